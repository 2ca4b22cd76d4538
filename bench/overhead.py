"""What a runner itself costs: 500 units of `true` on 8 virtual devices, the first start, the help, the planning.

- Wall per unit: of the whole command, start-up and reports included, over the number of units; contestants in turn.
- First start: from the start of the command to the moment that its first unit writes down.
- Help: `sooner --help` and `sooner run --help`, with bytecode, as anybody's second call has it.
- Planning, in this process: ranks, a simulated schedule and the lower bound for 100,000 units on 1,000 devices; and
  `sooner plan` end to end for 10,000 units.
"""

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import peers
from figures import machine, save, table

DEVICES: Final = 8
_WIDTHS: Final = (1, 2, 4, 8)
_WEIGHTS: Final = (72, 14, 9, 5)
_STAMP: Final = ("bash", "-c", 'echo "$EPOCHREALTIME" >>"$BENCH_STAMPS"')
_TRUE: Final = ("true",)

Command = Callable[[Path, int, Sequence[str]], list[str]]


def sooner(folder: Path, count: int, command: Sequence[str]) -> list[str]:
    """`sooner run` of a plan; it replays no logs, as the others print none."""
    plan = folder / "plan.toml"
    entry = f'[[unit]]\nname = "u%d"\ncommand = {json.dumps(command)}\n'
    plan.write_text("".join(entry % i for i in range(count)), encoding="ascii")
    return [*peers.SOONER, "run", str(plan), "--devices", f"virtual:{DEVICES}", "--out", "run", "--replay", "none"]


def ctest(folder: Path, count: int, command: Sequence[str]) -> list[str]:
    """CTest, each test with a resource group of one GPU."""
    slots = [{"id": str(i), "slots": 1} for i in range(DEVICES)]
    spec = {"version": {"major": 1, "minor": 0}, "local": [{"gpus": slots}]}
    (folder / "spec.json").write_text(json.dumps(spec), encoding="ascii")
    quoted = " ".join(f"[==[{part}]==]" for part in command)
    entry = f'add_test(u%d {quoted})\nset_tests_properties(u%d PROPERTIES RESOURCE_GROUPS "gpus:1")\n'
    (folder / "CTestTestfile.cmake").write_text("".join(entry % (i, i) for i in range(count)), encoding="ascii")
    options = ["--resource-spec-file", "spec.json", f"-j{DEVICES}"]
    return [str(peers.ctest()), "--test-dir", str(folder), *options]


def gnu_parallel(folder: Path, count: int, command: Sequence[str]) -> list[str]:
    """GNU parallel with a slot for each device and a job log."""
    jobs = folder / "jobs"
    jobs.write_text("".join(f"{i}\n" for i in range(count)), encoding="ascii")
    options = ["--will-cite", f"-j{DEVICES}", "--joblog", "joblog", "-q", "-a", str(jobs)]
    return [str(peers.gnu_parallel()), *options, *command]


def contestants() -> dict[str, Command]:
    """Those that can be had here."""
    known: dict[str, tuple[Command, bool]] = {
        "sooner": (sooner, True),
        "CTest": (ctest, peers.ctest() is not None),
        "GNU parallel": (gnu_parallel, peers.gnu_parallel() is not None),
    }
    return {name: command for name, (command, present) in known.items() if present}


def call(command: Command, count: int, unit: Sequence[str]) -> tuple[float, float | None]:
    """Run so many units; wall seconds of the command, and until the first unit wrote its time down, if any did."""
    with tempfile.TemporaryDirectory(prefix="sooner-overhead-") as name:
        folder = Path(name)
        stamps = folder / "stamps"
        line = command(folder, count, unit)
        env = peers.environment(
            {"BENCH_STAMPS": str(stamps), "SOONER_LEASE_DIR": str(folder / "leases"), "PARALLEL_HOME": name}
        )
        began, began_at = time.perf_counter(), time.time()
        subprocess.run(line, cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wall = time.perf_counter() - began
        times = stamps.read_text(encoding="ascii").split() if stamps.exists() else []
        return wall, min(map(float, times)) - began_at if times else None


def per_unit(units: int, repeats: int) -> dict[str, dict[str, float]]:
    """Milliseconds per unit and until the first start, medians over interleaved repeats."""
    walls: dict[str, list[float]] = {}
    firsts: dict[str, list[float]] = {}
    for _ in range(repeats):
        for name, command in contestants().items():
            walls.setdefault(name, []).append(call(command, units, _TRUE)[0])
            first = call(command, units, _STAMP)[1]
            firsts.setdefault(name, []).append(first if first is not None else float("nan"))
    return {
        name: {
            "ms_per_unit": 1000 * statistics.median(walls[name]) / units,
            "first_start_ms": 1000 * statistics.median(firsts[name]),
        }
        for name in walls
    }


def help_ms(*arguments: str, repeats: int) -> float:
    """Median wall of a call that only prints help, after one that wrote the bytecode."""
    script = Path(sys.executable).with_name("sooner")
    command = [str(script)] if script.exists() else list(peers.SOONER)
    walls = []
    for _ in range(repeats + 1):
        began = time.perf_counter()
        subprocess.run([*command, *arguments, "--help"], env=peers.environment(), check=True, stdout=subprocess.DEVNULL)
        walls.append(time.perf_counter() - began)
    return 1000 * statistics.median(walls[1:])


def planning(units: int, devices: int) -> dict[str, float]:
    """Seconds for ranks, a simulated schedule and the lower bound, in this process."""
    sys.path.insert(0, str(peers.SOURCE))
    from sooner.model.devices import Device, DeviceId, DeviceKind
    from sooner.model.units import UnitKey
    from sooner.schedule.bounds import lower_bound
    from sooner.schedule.order import assumed_seconds, ranks
    from sooner.schedule.simulate import makespan, simulate
    from sooner.schedule.work import Work

    source = random.Random(0)
    fleet = [
        Device(id=DeviceId(f"virtual:{i}"), kind=DeviceKind.VIRTUAL, index=i, visible=str(i)) for i in range(devices)
    ]
    widths = source.choices(_WIDTHS, weights=_WEIGHTS, k=units)
    works = [
        Work(key=UnitKey(f"u{i}"), devices=width, seconds=source.lognormvariate(3.0, 1.0))
        for i, width in enumerate(widths)
    ]
    marks = [time.perf_counter()]
    order = ranks(works, fleet)
    marks.append(time.perf_counter())
    seconds = assumed_seconds(works)
    placements = simulate(works, seconds, fleet, ranks=order)
    marks.append(time.perf_counter())
    bound = lower_bound(works, seconds, fleet)
    marks.append(time.perf_counter())
    return {
        "ranks_s": marks[1] - marks[0],
        "simulate_s": marks[2] - marks[1],
        "bound_s": marks[3] - marks[2],
        "all_s": marks[3] - marks[0],
        "makespan_over_bound": makespan(placements) / bound,
    }


def plan_verb_s(units: int, devices: int) -> float:
    """Wall of `sooner plan --json` with known durations."""
    source = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="sooner-overhead-") as name:
        folder = Path(name)
        entry = '[[unit]]\nname = "u%d"\ncommand = ["true"]\ndevices = %d\n'
        widths = source.choices(_WIDTHS, weights=_WEIGHTS, k=units)
        (folder / "plan.toml").write_text("".join(entry % pair for pair in enumerate(widths)), encoding="ascii")
        known = {f"u{i}": source.lognormvariate(3.0, 1.0) for i in range(units)}
        (folder / "durations.json").write_text(json.dumps(known), encoding="ascii")
        command = [*peers.SOONER, "plan", "plan.toml", "--devices", f"virtual:{devices}", "--json"]
        env = peers.environment({"SOONER_LEASE_DIR": str(folder / "leases")})
        began = time.perf_counter()
        subprocess.run(
            [*command, "--durations", "durations.json"], cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL
        )
        return time.perf_counter() - began


def report(figures: Mapping[str, Any], units: int) -> str:
    """All figures as text."""
    rows = [
        [name, f"{found['ms_per_unit']:.1f}", f"{found['first_start_ms']:.0f}"]
        for name, found in figures["runs"].items()
    ]
    plan = figures["planning"]
    planning_text = (
        f"planning 100,000 units on 1,000 devices: {plan['all_s']:.2f} s (ranks {plan['ranks_s']:.2f},"
        f" schedule {plan['simulate_s']:.2f}, bound {plan['bound_s']:.2f});"
        f" makespan {plan['makespan_over_bound']:.3f} x the bound"
    )
    return "\n".join(
        [
            table([f"{units} units of true", "ms per unit", "first start, ms"], rows),
            "",
            f"sooner --help: {figures['help_ms']:.0f} ms; sooner run --help: {figures['run_help_ms']:.0f} ms",
            planning_text,
            f"sooner plan, 10,000 units on 1,000 devices, end to end: {figures['plan_verb_s']:.2f} s",
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--units", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="2 repeats, fewer calls of help")
    options = parser.parse_args()
    calls = 5 if options.quick else 20
    figures = {
        "machine": machine(),
        "runs": per_unit(options.units, 2 if options.quick else options.repeats),
        "help_ms": help_ms(repeats=calls),
        "run_help_ms": help_ms("run", repeats=calls),
        "planning": planning(100_000, 1_000),
        "plan_verb_s": plan_verb_s(10_000, 1_000),
    }
    print(report(figures, options.units))
    print(f"\n{save('overhead', figures)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
