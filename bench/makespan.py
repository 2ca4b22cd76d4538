"""How close to the bound: 60 units of mixed widths on 8 virtual devices, sooner next to its peers.

Every contestant runs the same suites as real processes; the units themselves record when they ran and take a lock on
each device, so what is compared does not depend on what a runner says about itself. Each suite is run twice: with a
first draw of real durations (cold: nothing is known) and with a second one, of which is known

- what the first run took (`after a run`: both sooner and CTest learn from their own), or
- the nominal durations, from which the real ones differ by up to 20 % (`known`).

GNU parallel runs one phase for each width. `waves` is `sooner run --policy waves`, the rule of Transformer Engine's
pull request 2824. Which contestant begins rotates from seed to seed.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import peers
from figures import machine, p95, save, table
from makespan_suite import DEVICES, UNIT_SCRIPT, WIDTHS, Result, Unit, draw, lay_out, make_suite, result_of

RUN_LIMIT_S: Final = 300
_SPEC: Final = {
    "version": {"major": 1, "minor": 0},
    "local": [{"gpus": [{"id": str(i), "slots": 1} for i in range(DEVICES)]}],
}


class Trial:
    """One suite in a folder of its own: its two draws, and what contestants leave there for their second run."""

    def __init__(self, seed: int, folder: Path, *, mean_s: float, sigma: float) -> None:
        self.folder = folder
        self.units = make_suite(seed, mean_s=mean_s, sigma=sigma)
        self._draws = {"first": draw(self.units, 2 * seed), "second": draw(self.units, 2 * seed + 1)}

    def run(self, name: str, which: str, *commands: Sequence[str | Path], phases: bool = False) -> Result:
        """Run commands one after the other, in this folder, on this draw, and judge what the units recorded."""
        place = lay_out(self.folder / name, self._draws[which])
        env = peers.environment(
            {
                "BENCH_RUN": str(place),
                "SOONER_LEASE_DIR": str(self.folder / "leases"),
                "PARALLEL_HOME": str(self.folder / "parallel"),
            }
        )
        codes = [_call(command, place, env) for command in commands]
        result = result_of(place, self.units, phases=phases)
        # A runner that complains about units which all recorded a success is a failure too.
        return result._replace(failures=max(result.failures, int(any(codes))))


def _call(command: Sequence[str | Path], place: Path, env: Mapping[str, str]) -> int:
    with (place / "output.txt").open("ab") as output:
        try:
            return subprocess.run(
                list(map(str, command)),
                cwd=place,
                env=env,
                stdout=output,
                stderr=output,
                timeout=RUN_LIMIT_S,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return 1


def sooner(trial: Trial) -> dict[str, Result]:
    """Cold, then with the durations of that run."""
    plan = _plan(trial)
    known = ("--durations", trial.folder / "sooner cold" / "run")
    return {
        "sooner, cold": trial.run("sooner cold", "first", _sooner(plan)),
        "sooner, after a run": trial.run("sooner again", "second", [*_sooner(plan), *known]),
    }


def sooner_history(trial: Trial) -> dict[str, Result]:
    """Twice with a history and nothing else: the second run knows what the first one left there."""
    plan, kept = _plan(trial), ("--history", trial.folder / "history")
    trial.run("history first", "first", [*_sooner(plan), *kept])
    again = trial.run("history again", "second", [*_sooner(plan), *kept])
    return {"sooner, after a run, by the history": again}


def sooner_known(trial: Trial) -> dict[str, Result]:
    """With the nominal durations."""
    path = trial.folder / "durations.json"
    path.write_text(json.dumps({unit.name: unit.seconds for unit in trial.units}), encoding="utf-8")
    return {"sooner, known +-20 %": trial.run("known", "second", [*_sooner(_plan(trial)), "--durations", path])}


def waves(trial: Trial) -> dict[str, Result]:
    """The rule of Transformer Engine's pull request 2824, in sooner."""
    return {"waves (sooner --policy waves)": trial.run("waves", "first", [*_sooner(_plan(trial)), "--policy", "waves"])}


def ctest(trial: Trial) -> dict[str, Result]:
    """Cold, then again in the same build folder, where CTest keeps its cost data."""
    program = peers.ctest()
    if program is None:
        return {}
    build = trial.folder / "build"
    build.mkdir()
    (build / "spec.json").write_text(json.dumps(_SPEC), encoding="utf-8")
    (build / "CTestTestfile.cmake").write_text("".join(map(_ctest_unit, trial.units)), encoding="utf-8")
    command = [program, "--test-dir", build, "--resource-spec-file", build / "spec.json", f"-j{DEVICES}"]
    return {
        "CTest, cold": trial.run("ctest cold", "first", command),
        "CTest, after a run": trial.run("ctest again", "second", command),
    }


def gnu_parallel(trial: Trial) -> dict[str, Result]:
    """One phase for each width, widest first; a job's slot says which devices it has."""
    program = peers.gnu_parallel()
    if program is None:
        return {}
    commands = []
    for width in sorted(WIDTHS, reverse=True):
        names = [unit.name for unit in trial.units if unit.width == width]
        command = [program, "--will-cite", f"-j{DEVICES // width}", "bash", UNIT_SCRIPT, "{}", "{%}", str(width), ":::"]
        if names:
            commands.append([*command, *names])
    return {"GNU parallel, by width": trial.run("parallel", "first", *commands, phases=True)}


CONTESTANTS: Final[Mapping[str, Callable[[Trial], dict[str, Result]]]] = {
    "sooner": sooner,
    "sooner-history": sooner_history,
    "sooner-known": sooner_known,
    "ctest": ctest,
    "parallel": gnu_parallel,
    "waves": waves,
}
_ROWS: Final = (
    "sooner, known +-20 %",
    "sooner, after a run",
    "sooner, after a run, by the history",
    "CTest, after a run",
    "sooner, cold",
    "CTest, cold",
    "GNU parallel, by width",
    "waves (sooner --policy waves)",
)


def _plan(trial: Trial) -> Path:
    path = trial.folder / "plan.toml"
    units = (
        f"[[unit]]\nname = {json.dumps(unit.name)}\ndevices = {unit.width}\n"
        f"command = {json.dumps(['bash', str(UNIT_SCRIPT), unit.name])}\n"
        for unit in trial.units
    )
    path.write_text("\n".join(units), encoding="utf-8")
    return path


def _sooner(plan: Path) -> list[str | Path]:
    return [*peers.SOONER, "run", plan, "--devices", f"virtual:{DEVICES}", "--out", "run", "--replay", "none"]


def _ctest_unit(unit: Unit) -> str:
    return (
        f'add_test({unit.name} bash "{UNIT_SCRIPT}" {unit.name})\n'
        f'set_tests_properties({unit.name} PROPERTIES RESOURCE_GROUPS "{unit.width},gpus:1")\n'
    )


def measure(seeds: int, chosen: Sequence[str], *, mean_s: float, sigma: float) -> dict[str, list[Result]]:
    """All contestants on all suites: a list of results, one for each seed, for every row."""
    results: dict[str, list[Result]] = {}
    for seed in range(seeds):
        with tempfile.TemporaryDirectory(prefix="sooner-makespan-") as name:
            trial = Trial(seed, Path(name), mean_s=mean_s, sigma=sigma)
            shift = seed % len(chosen)
            for contestant in (*chosen[shift:], *chosen[:shift]):
                for row, result in CONTESTANTS[contestant](trial).items():
                    results.setdefault(row, []).append(result)
        latest = ", ".join(f"{row} {results[row][-1].ratio:.3f}" for row in _ROWS if row in results)
        sys.stderr.write(f"seed {seed}: {latest}\n")
    return results


def report(results: Mapping[str, Sequence[Result]]) -> str:
    """The table, and sooner against CTest seed by seed."""
    rows = []
    for row in (row for row in _ROWS if row in results):
        ratios = [result.ratio for result in results[row]]
        overlaps, failures = (sum(getattr(result, key) for result in results[row]) for key in ("overlaps", "failures"))
        figures = (statistics.median(ratios), p95(ratios), max(ratios))
        pause = f"{1000 * statistics.median(result.pause_s for result in results[row]):.1f}"
        rows.append([row, *(f"{figure:.3f}" for figure in figures), pause, overlaps, failures])
    text = table(["wall / bound", "median", "p95", "max", "pause, ms", "overlaps", "failures"], rows)
    for state in ("cold", "after a run"):
        ours, theirs = results.get(f"sooner, {state}"), results.get(f"CTest, {state}")
        if ours and theirs:
            text += f"\n{_against(state, [a.wall_s / b.wall_s for a, b in zip(ours, theirs, strict=True)])}"
    return text


def _against(state: str, ratios: Sequence[float]) -> str:
    worse = sum(ratio > 1 for ratio in ratios)
    return (
        f"sooner's wall over CTest's, {state}: median {statistics.median(ratios):.3f},"
        f" worst {max(ratios):.3f}; sooner was slower on {worse} of {len(ratios)} seeds"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--scale", type=float, default=0.6, help="mean duration of a unit in seconds (default 0.6)")
    parser.add_argument("--sigma", type=float, default=0.8, help="sigma of the logarithm of durations (default 0.8)")
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--quick", action="store_true", help="3 seeds")
    options = parser.parse_args()
    before = machine()
    seeds = 3 if options.quick else options.seeds
    results = measure(seeds, options.contestants, mean_s=options.scale, sigma=options.sigma)
    print(f"\n{seeds} suites, units of {options.scale:g} s on average, log-normal with sigma {options.sigma:g}")
    print(report(results))
    program = peers.ctest()
    document = {
        "machine": before,
        "load_average_after": machine()["load_average"],
        "ctest": peers.version_of(program, "--version") if program else None,
        "options": vars(options),
        "results": {row: [result._asdict() for result in found] for row, found in results.items()},
    }
    print(f"\n{save('makespan', document)}")
    return int(any(r.overlaps or r.failures for row in results if "sooner" in row for r in results[row]))


if __name__ == "__main__":
    sys.exit(main())
