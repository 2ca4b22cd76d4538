"""Trivial tests: how many a second, and how soon the first result, for plain pytest, pytest-xdist and the door.

10,000 tests over 100 files that do nothing: what is left is what the runners cost. pytest-xdist counts with the best of
its modes. A second suite of 500 trivial torch tests writes down when each test starts; the time from one start to the
next in the same place is everything that a test costs there, guards and reports included.
"""

import argparse
import itertools
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from figures import machine, save, table
from peers import environment, package_versions, pytest_xdist_with_sooner

TESTS: Final = 10_000
FILES: Final = 100
TORCH_TESTS: Final = 500
ROUNDS: Final = 3
LIMIT_S: Final = 600
XDIST_MODES: Final = ("load", "loadfile", "worksteal")
OUTCOME: Final = re.compile(rb"\b(PASSED|FAILED|SKIPPED|ERROR)\b")
RECORD: Final = struct.Struct("qd")
GOALS_MS: Final = {"warm": 1.0, "fork": 8.0}

TORCH_FILE: Final = """\
import os, struct, time
import pytest
import torch

@pytest.mark.parametrize("number", range({tests}))
def test_sum(number):
    with open(os.environ["STARTS"], "ab") as file:
        file.write(struct.pack("qd", os.getpid(), time.perf_counter()))
    assert torch.ones(2).sum() == 2
"""


@dataclass(frozen=True, slots=True)
class Contestant:
    """One way to run the suite."""

    name: str
    command: tuple[str, ...]


def contestants(gpus: str) -> list[Contestant]:
    python = pytest_xdist_with_sooner()
    ours = (str(python or sys.executable), "-m", "pytest")
    found = [Contestant("pytest", ours), Contestant(f"pytest --gpus={gpus}", (*ours, f"--gpus={gpus}"))]
    if python:
        xdist = (str(python), "-m", "pytest", "-n", "2", "--dist")
        found += [Contestant(f"pytest-xdist -n 2, {mode}", (*xdist, mode)) for mode in XDIST_MODES]
    return found


def write_suite(folder: Path, tests: int, files: int) -> None:
    for file in range(files):
        body = "".join(f"def test_{number}():\n    pass\n\n\n" for number in range(tests // files))
        (folder / f"test_{file:03}.py").write_text(body, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")


def wall_s(contestant: Contestant, folder: Path, tests: int) -> float:
    """Seconds for the whole command.

    Raises:
        SystemExit: Not all tests passed.
    """
    command = [*contestant.command, "-q", "-p", "no:cacheprovider"]
    began = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=variables(), capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    wall = time.perf_counter() - began
    if done.returncode or f"{tests} passed" not in done.stdout:
        raise SystemExit(
            f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        )
    return wall


def first_result_s(contestant: Contestant, folder: Path) -> float:
    """Seconds until the first line of output that names an outcome; the rest of the run is cut off."""
    command = [*contestant.command, "-v", "-p", "no:cacheprovider"]
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=folder, env=variables(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        assert process.stdout
        found = next((time.perf_counter() - began for line in process.stdout if OUTCOME.search(line)), float("inf"))
        os.killpg(process.pid, signal.SIGKILL)
    return found


def variables(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    return environment({"PYTHONUNBUFFERED": "1", **(extra or {})})


def many(gpus: str, tests: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Medians of wall and of time to the first result for each contestant; the order rotates from round to round."""
    runners = contestants(gpus)
    walls: dict[str, list[float]] = {one.name: [] for one in runners}
    firsts: dict[str, list[float]] = {one.name: [] for one in runners}
    with tempfile.TemporaryDirectory(prefix="sooner-throughput-") as name:
        folder = Path(name)
        write_suite(folder, tests, FILES)
        for number in range(rounds):
            start = number % len(runners)
            for one in runners[start:] + runners[:start]:
                walls[one.name].append(wall_s(one, folder, tests))
                firsts[one.name].append(first_result_s(one, folder))
    return {name: (statistics.median(walls[name]), statistics.median(firsts[name])) for name in walls}


def show_many(found: Mapping[str, tuple[float, float]], tests: int) -> None:
    rows = [[name, f"{tests / wall:.0f}", f"{wall:.2f}", f"{first:.2f}"] for name, (wall, first) in found.items()]
    print(table([f"{tests} trivial tests", "tests/s", "wall, s", "first result, s"], rows))
    xdist = [value for name, value in found.items() if "xdist" in name]
    door = next(value for name, value in found.items() if "--gpus" in name)
    if xdist:
        best, soonest = min(wall for wall, _ in xdist), min(first for _, first in xdist)
        print(f"\ndoor / best of pytest-xdist: {best / door[0]:.2f} x the tests per second (goal >= 1.5),", end=" ")
        print(f"first result after {door[1] / soonest:.2f} of its time (goal < 1)")


def torch_costs(isolation: str, tests: int) -> tuple[float, float, int]:
    """Milliseconds from one test's start to the next on one device: median and 95th percentile; processes used."""
    with tempfile.TemporaryDirectory(prefix="sooner-throughput-") as name:
        folder, starts = Path(name), Path(name) / "starts"
        for file in range(5):
            text = TORCH_FILE.format(tests=tests // 5)
            (folder / f"test_torch_{file}.py").write_text(text, encoding="utf-8")
        unit = ("--unit=test",) if isolation == "fork" else ()
        command = (sys.executable, "-m", "pytest", "--gpus=virtual:1", f"--isolation={isolation}", *unit)
        done = subprocess.run(
            [*command, "-q", "-p", "no:cacheprovider"],
            cwd=folder,
            env=variables({"STARTS": str(starts)}),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-2000:]}")
        return _costs(list(RECORD.iter_unpack(starts.read_bytes())))


def _costs(starts: Sequence[tuple[int, float]]) -> tuple[float, float, int]:
    times = sorted(at for _, at in starts)
    gaps = [(after - before) * 1000 for before, after in itertools.pairwise(times)]
    return statistics.median(gaps), statistics.quantiles(gaps, n=20)[18], len({pid for pid, _ in starts})


def show_torch(tests: int) -> dict[str, tuple[float, float, int]]:
    found = {isolation: torch_costs(isolation, tests) for isolation in GOALS_MS}
    rows = [
        [name, f"{median:.2f}", f"{p95:.2f}", f"{GOALS_MS[name]:.0f}", processes]
        for name, (median, p95, processes) in found.items()
    ]
    print(table([f"{tests} trivial torch tests", "median, ms", "p95, ms", "goal, ms", "processes"], rows))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--gpus", default="virtual:2", help="devices of the door (default virtual:2)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each (default {ROUNDS})")
    parser.add_argument("--tests", type=int, default=TESTS, help=f"trivial tests (default {TESTS})")
    parser.add_argument("--only", choices=("many", "torch"), help="one of the two suites")
    arguments = parser.parse_args()
    document: dict[str, object] = {"machine": machine(), "tests": arguments.tests}
    print(package_versions(Path(sys.executable), "pytest", "sooner"))
    if arguments.only != "torch":
        document["many"] = found = many(arguments.gpus, arguments.tests, arguments.rounds)
        show_many(found, arguments.tests)
    if arguments.only != "many":
        print()
        document["torch"] = show_torch(TORCH_TESTS)
    print(f"\n{save('throughput', document)}")


if __name__ == "__main__":
    main()
