"""Warm worlds: what a test costs on ranks that are kept, on ranks that are its own, and as PyTorch's own suite runs it.

Needs `torch==2.13.0`, `numpy` and `expecttest`, with gloo on the CPU; prints medians next to the goals. The suite is
`worlds_suite.py`: 20 tests of 2 ranks in an unmodified MultiProcessTestCase. `--quick` leaves the slow peers out.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import torch
import torch.distributed as dist

from figures import machine, save, table
from sooner.warm.forking import anonymous_file, tail_of
from sooner.warm.judgement import RankLost, WorldHung
from sooner.warm.worlds import Worlds
from sooner.warm.zygote import Zygote

HERE: Final = Path(__file__).resolve().parent
SUITE: Final = HERE / "worlds_suite.py"
RANKS: Final = 4
CHILDREN: Final = 8
PRELOAD: Final = ("torch._dynamo", "torch.optim.adam", "numpy.random")
"""What a train step with Adam imports: in a child that would cost it 100 MiB and 2 s."""


def all_reduce() -> list[float]:
    tensor = torch.full((4,), float(dist.get_rank()))
    dist.all_reduce(tensor)
    if tensor[0] != sum(range(dist.get_world_size())):
        raise AssertionError(tensor)
    values: list[float] = tensor.tolist()
    return values


def hang_on_rank_1() -> None:
    if dist.get_rank() == 1:
        signal.pause()
    dist.barrier()


def trivial(_descriptors: list[int], _argument: bytes) -> None:
    if (torch.ones(8) + 1).sum() != 16:
        raise AssertionError


def train_step(descriptors: list[int], _argument: bytes) -> None:
    """Say what it holds once all siblings have trained: what they share is nobody's own."""
    _, done, measure, end = descriptors
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()
    os.write(done, b".")
    os.read(measure, 1)
    os.write(1, f"{unshared_mib()}\n".encode())  # in one piece: the children share the file
    os.write(done, b".")
    os.read(end, 1)


def unshared_mib() -> float:
    """Memory that ends with this process (USS), in MiB."""
    lines = Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty"))) / 1024


def median_ms(action: Callable[[], object], times: int, *, warm_up: int = 3) -> float:
    seconds = []
    for _ in range(times + warm_up):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[warm_up:]) * 1000


def fork_isolated(times: int) -> float:
    """Milliseconds of a test in a fork of its own, its end included."""
    zygote, output = Zygote.fork(), anonymous_file()

    def test() -> None:
        if zygote.status(zygote.spawn(f"{__name__}:trivial", [output], b"")) != 0:
            raise RuntimeError(tail_of(output))

    found = median_ms(test, times, warm_up=200)
    zygote.close()
    return found


def memory_of_children() -> float:
    """What each of some children that live at the same time holds for itself after a train step, in MiB."""
    zygote, output = Zygote.fork(), anonymous_file()
    zygote.preload(PRELOAD)
    (done, say_done), (measure, say_measure), (end, say_end) = os.pipe(), os.pipe(), os.pipe()
    pipes = [output, say_done, measure, end]
    children = [zygote.spawn(f"{__name__}:train_step", pipes, b"") for _ in range(CHILDREN)]
    for say_go in (say_measure, say_end):
        for _child in children:
            os.read(done, 1)
        os.write(say_go, b"." * CHILDREN)
    for child in children:
        zygote.status(child)
    zygote.close()
    return statistics.median(map(float, tail_of(output).split()))


def kept(worlds: Worlds, times: int) -> float:
    def test() -> None:
        with worlds.lease(RANKS) as world:
            world.run(all_reduce)

    return median_ms(test, times)


def isolated(worlds: Worlds, times: int) -> float:
    def test() -> None:
        with worlds.lease(RANKS, is_kept=False) as world:
            world.run(all_reduce)

    return median_ms(test, times, warm_up=8)


def recovery_from_kill(worlds: Worlds, times: int) -> float:
    """From the moment a rank is killed to the first result of the ranks that replace its world, in ms."""
    seconds = []
    with worlds.lease(RANKS) as world:
        for _ in range(times):
            world.run(all_reduce)
            killer, killed_at = kill_soon(world.pids[1])
            try:
                world.run(hang_on_rank_1)
            except RankLost:
                world.run(all_reduce)
            seconds.append(time.monotonic() - float(os.read(killed_at, 100)))
            os.waitpid(killer, 0)
            os.close(killed_at)
    return statistics.median(seconds) * 1000


def kill_soon(victim: int) -> tuple[int, int]:
    """A process that kills another in a moment, and a pipe in which it says when."""
    reader, writer = os.pipe()
    killer = os.fork()
    if killer == 0:
        time.sleep(0.2)
        os.write(writer, str(time.monotonic()).encode())
        os.kill(victim, signal.SIGKILL)
        os._exit(0)
    os.close(writer)
    return killer, reader


def recovery_from_hang(worlds: Worlds, times: int) -> float:
    """From the moment a hang is noticed to the first result of the ranks that replace its world, in ms."""
    seconds = []
    with worlds.lease(RANKS) as world:
        for _ in range(times):
            world.run(all_reduce)
            began = time.monotonic()
            try:
                world.run(hang_on_rank_1, timeout_s=0.2)
            except WorldHung:
                world.run(all_reduce)
                seconds.append(time.monotonic() - began - 0.2)
    return statistics.median(seconds) * 1000


def suite(*chosen: str, warm: bool, ranks: int = 2) -> tuple[float, float, int]:
    """The unmodified suite, or the tests of it whose names are chosen, under pytest.

    Returns:
        Seconds, start of the interpreter included; the mean milliseconds of a test; how many tests passed.
    """
    program = "import sys, pytest; "
    if warm:
        program += "from sooner.warm.multiprocess import install; install(); "
    program += "sys.exit(pytest.main(sys.argv[1:]))"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "junit.xml"
        options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", f"--junitxml={report}", "-k", " or ".join(chosen)]
        command = [sys.executable, "-c", program, *options, str(SUITE)]
        environment = {**os.environ, "RANKS": str(ranks)}
        began = time.perf_counter()
        subprocess.run(command, env=environment, capture_output=True, check=False)
        seconds = time.perf_counter() - began
        cases = [case for case in ET.parse(report).getroot().iter("testcase") if not list(case.iter("failure"))]
    return seconds, statistics.fmean(float(case.get("time", "nan")) for case in cases) * 1000, len(cases)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="leave out what takes a minute")
    options = parser.parse_args()
    worlds = Worlds()
    found: dict[str, tuple[float, str, str]] = {
        "trivial test, a fork of its own": (fork_isolated(500), "ms", "<= 8"),
        f"memory of each of {CHILDREN} children after a train step": (memory_of_children(), "MiB", "<= 10"),
        f"all_reduce, {RANKS} kept ranks": (kept(worlds, 300), "ms", "<= 5"),
        f"all_reduce, {RANKS} ranks of its own": (isolated(worlds, 40), "ms", "<= 80"),
        "killed rank to next result": (recovery_from_kill(worlds, 9), "ms", "<= 100"),
        "noticed hang to next result": (recovery_from_hang(worlds, 9), "ms", "<= 100"),
    }
    worlds.close()
    if not options.quick:
        _, per_test, _ = suite("test_all_reduce_size_1", "test_all_gather_size_1", warm=False, ranks=RANKS)
        found[f"a test of MultiProcessTestCase, {RANKS} ranks"] = (per_test, "ms", "")
        _, per_test, _ = suite("test_all_reduce", "test_all_gather", warm=True, ranks=RANKS)
        found["the same, unmodified, on kept ranks"] = (per_test, "ms", "")
        seconds, _, passed = suite(warm=False)
        found[f"suite of MultiProcessTestCase, {passed} passed"] = (seconds, "s", "")
        seconds, _, passed = suite(warm=True)
        found[f"the same, unmodified, on kept ranks, {passed} passed"] = (seconds, "s", "<= 6")
    rows = [[name, f"{value:.1f}", unit, goal] for name, (value, unit, goal) in found.items()]
    print(table(["", "median", "", "goal"], rows))
    print(f"\n{save('worlds', {'machine': machine(), 'figures': {k: v[0] for k, v in found.items()}})}")


if __name__ == "__main__":
    main()
