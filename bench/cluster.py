"""Two nodes of a Ray cluster, 4 devices each: `sooner run --backend ray` beside Ray's own tasks, on the same suites.

Both nodes are on this machine, with GPUs that Ray is told of and that do not exist: real raylets, real agents, real
processes. A unit sleeps and says when it began and ended, and on which devices of which node; what is compared is first
start to last end over a lower bound. Ray gets each unit as a task with `num_gpus`, in the order of the plan or the
widest first, after as many tasks as there are devices have started its workers; that the longest come first is known
where sooner knows durations too, both give or take 20 %.
"""

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import psutil

from figures import machine, p95, save, table

NODES: Final = 2
DEVICES: Final = 4
UNITS: Final = 60
WIDTHS: Final = {1: 0.72, 2: 0.16, 4: 0.12}
NOISE: Final = 0.2
_UNIT: Final = 'start=$EPOCHREALTIME; sleep "$2"; echo "$1 $start $EPOCHREALTIME $3 ${SOONER_DEVICES:-}" >> "$4"'
_RAY: Final = """
import json, os, subprocess, sys, ray
unit, times, units = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
ray.init(address=os.environ["RAY_ADDRESS"], log_to_driver=False, logging_level="ERROR")

@ray.remote(num_cpus=0)
def run(name, seconds):
    node = ray.get_runtime_context().get_node_id()
    there = ",".join(f"{node}/{one}" for one in os.environ["CUDA_VISIBLE_DEVICES"].split(","))
    subprocess.run(["bash", "-c", unit, "unit", name, seconds, there, times], check=True)

@ray.remote(num_cpus=0, num_gpus=1)
def warm():
    subprocess.run(["sleep", "0.5"], check=True)

ray.get([warm.remote() for _ in range(int(ray.cluster_resources()["GPU"]))])
ray.get([run.options(num_gpus=width).remote(name, seconds) for name, width, seconds in units])
"""


class Unit(NamedTuple):
    """One unit: how many devices of a node it needs, and how long it nominally takes."""

    name: str
    width: int
    seconds: float


def suite(seed: int, mean_s: float) -> list[Unit]:
    """Widths by their shares, log-normal durations."""
    source = random.Random(seed)
    widths = source.choices(list(WIDTHS), weights=list(WIDTHS.values()), k=UNITS)
    return [Unit(f"u{i:02d}", width, mean_s * source.lognormvariate(-0.5, 1.0)) for i, width in enumerate(widths)]


def drawn(units: Sequence[Unit], seed: int) -> list[Unit]:
    """The same as they take this time."""
    source = random.Random(f"draw {seed}")
    return [unit._replace(seconds=unit.seconds * source.uniform(1 - NOISE, 1 + NOISE)) for unit in units]


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """Two nodes; yields the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    ray = str(Path(sys.executable).with_name("ray"))
    common = ["--block", "--disable-usage-stats", "--num-cpus=1", f"--num-gpus={DEVICES}"]
    head = ["--head", f"--port={address.partition(':')[2]}", f"--temp-dir={folder}", "--include-dashboard=false"]
    nodes = []
    try:
        for number, options in enumerate((head, *([[f"--address={address}"]] * (NODES - 1)))):
            said = folder / f"node-{number}.log"
            env = {**os.environ, "SOONER_LEASE_DIR": str(folder / f"leases-{number}"), "PYTHONUNBUFFERED": "1"}
            with said.open("w") as output:
                command = [ray, "start", *common, *options]
                nodes.append(psutil.Popen(command, env=env, stdout=output, stderr=output))
            while "Ray runtime started" not in said.read_text():
                time.sleep(0.1)
        yield address
    finally:
        for node in nodes:
            for process in [*node.children(recursive=True), node]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            node.wait()


def ratio(times: Path, units: Sequence[Unit]) -> tuple[float, int]:
    """Wall over the bound, and how often two units had one device at once."""
    width = {unit.name: unit.width for unit in units}
    rows = [line.split() for line in times.read_text().splitlines()]
    if len(rows) != len(units):
        raise SystemExit(f"{len(rows)} of {len(units)} units ran")
    took = {name: float(end) - float(start) for name, start, end, *_ in rows}
    area = sum(took[name] * width[name] for name in took) / (NODES * DEVICES)
    classes = [
        sum(took[name] for name in took if width[name] >= wide) / (NODES * (DEVICES // wide)) for wide in (2, 3, 4)
    ]
    wall = max(float(end) for _, _, end, *_ in rows) - min(float(start) for _, start, *_ in rows)
    on = defaultdict(list)
    for _, start, end, devices in rows:
        for device in devices.split(","):
            on[device].append((float(start), float(end)))
    pairs = (pair for spans in on.values() for pair in itertools.pairwise(sorted(spans)))
    overlaps = sum(later[0] < earlier[1] for earlier, later in pairs)
    return wall / max(area, *classes, *took.values()), overlaps


def by_ray(order: Callable[[Unit], Any] | None) -> Callable[[Path, Sequence[Unit], Sequence[Unit], str], Path]:
    def run(folder: Path, real: Sequence[Unit], nominal: Sequence[Unit], address: str) -> Path:
        known = {unit.name: unit for unit in nominal}
        units = sorted(real, key=lambda unit: order(known[unit.name])) if order else real
        told = json.dumps([[unit.name, unit.width, f"{unit.seconds:.4f}"] for unit in units])
        times = folder / "times"
        command = [sys.executable, "-c", _RAY, _UNIT, str(times), told]
        subprocess.run(command, env={**os.environ, "RAY_ADDRESS": address}, check=True, stdout=subprocess.DEVNULL)
        return times

    return run


def by_sooner(is_known: bool) -> Callable[[Path, Sequence[Unit], Sequence[Unit], str], Path]:
    def run(folder: Path, real: Sequence[Unit], nominal: Sequence[Unit], address: str) -> Path:
        times = folder / "times"
        plan = "".join(
            f"[[unit]]\nname = {json.dumps(unit.name)}\ndevices = {unit.width}\n"
            f"command = {json.dumps(['bash', '-c', _UNIT, 'unit', unit.name, f'{unit.seconds:.4f}', '', str(times)])}\n"
            for unit in real
        )
        (folder / "plan.toml").write_text(plan)
        command = [sys.executable, "-m", "sooner", "run", "plan.toml", "--backend", "ray", "--replay", "none"]
        if is_known:
            (folder / "known.json").write_text(json.dumps({unit.name: unit.seconds for unit in nominal}))
            command += ["--durations", "known.json"]
        env = {**os.environ, "RAY_ADDRESS": address, "SOONER_RUN_HISTORY": "none"}
        more = ["--devices", f"virtual:{DEVICES}"]
        subprocess.run([*command, *more], cwd=folder, env=env, check=True, capture_output=True)
        return times

    return run


CONTESTANTS: Final = {
    "sooner, durations known to +-20 %": by_sooner(is_known=True),
    "Ray, widest and longest first (known)": by_ray(lambda unit: (-unit.width, -unit.seconds)),
    "sooner, nothing known": by_sooner(is_known=False),
    "Ray, widest first": by_ray(lambda unit: -unit.width),
    "Ray, in the order of the plan": by_ray(None),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=8, help="suites (default 8)")
    parser.add_argument("--mean", type=float, default=0.6, help="mean seconds of a unit (default 0.6)")
    arguments = parser.parse_args()
    os.environ["RAY_AUTH_MODE"] = "disabled"  # whether or not whoever runs this has a token
    found: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    overlaps = dict.fromkeys(CONTESTANTS, 0)
    root = Path(tempfile.mkdtemp(prefix="sc-", dir="/tmp"))  # paths of sockets are short
    try:
        with cluster(root) as address:
            for seed in range(arguments.seeds):
                nominal = suite(seed, arguments.mean)
                real = drawn(nominal, seed)
                names = list(CONTESTANTS)
                for name in names[seed % len(names) :] + names[: seed % len(names)]:
                    folder = Path(tempfile.mkdtemp(dir=root))
                    one, more = ratio(CONTESTANTS[name](folder, real, nominal, address), real)
                    found[name].append(one)
                    overlaps[name] += more
                    print(f"seed {seed}  {name}: {one:.3f}", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    rows = [
        [name, f"{statistics.median(ratios):.3f}", f"{p95(ratios):.3f}", overlaps[name]]
        for name, ratios in found.items()
    ]
    print(table([f"{arguments.seeds} suites of {UNITS} units, wall / bound", "median", "p95", "overlaps"], rows))
    print(save("cluster", {"machine": machine(), "ratios": found, "overlaps": overlaps}))


if __name__ == "__main__":
    main()
