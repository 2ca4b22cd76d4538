"""What units do: well-behaved neighbours, and every fault that a unit can have. Standard library only, quick to start.

As a program: `python -I -S acts.py ACT NAME MARKER`. In a pytest test: `acts.act(ACT, NAME)`. Every process that is
started here carries the marker in its arguments, also where its environment is emptied, so that none can hide.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_NEIGHBOUR_S: Final = 0.4
_FIRST_WORDS_S: Final = 0.1
_LONG_S: Final = 300
_CLAIM_S: Final = 0.3
_MIB: Final = 1 << 20
_ALLOCATED_MIB: Final = 256
"""Four times what the bench's memory cgroup allows."""


def fine(name: str) -> None:
    """Print, work, print again: what every unit should be able to do beside a faulty one.

    The first words come only after a moment, as from a test that imports something: the fault has happened by then.
    """
    time.sleep(_FIRST_WORDS_S)
    print(f"{name} begins", flush=True)
    time.sleep(_NEIGHBOUR_S)
    print(f"{name} is done", flush=True)


def exit_3(_name: str) -> None:
    """End with a non-zero exit code."""
    print("about to fail", flush=True)
    sys.exit(3)


def segfault(_name: str) -> None:
    """Read address 0."""
    import ctypes

    ctypes.string_at(0)


def hard_exit_3(_name: str) -> None:
    """End without any cleaning up, with a non-zero code."""
    os._exit(3)


def hard_exit_0(_name: str) -> None:
    """End without any cleaning up and say that all is well: the promised JUnit file is never written."""
    os._exit(0)


def kill_itself(_name: str) -> None:
    """End by a signal that nobody can handle."""
    os.kill(os.getpid(), signal.SIGKILL)


def exhaust_memory(_name: str) -> None:
    """Join the bench's memory cgroup where there is one, else limit the address space; then take more."""
    cgroup = os.environ.get("BENCH_MEMORY_CGROUP")
    if cgroup:
        Path(cgroup, "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")
    else:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_ALLOCATED_MIB * _MIB // 2, _ALLOCATED_MIB * _MIB // 2))
    block = bytearray(_ALLOCATED_MIB * _MIB)
    for i in range(0, len(block), 4096):
        block[i] = 1


def hang(_name: str) -> None:
    """Never end, and ignore every polite request to."""
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    while True:
        time.sleep(1)


def leave_daemon(_name: str) -> None:
    """Succeed, and leave a daemon: forked twice, in its own session, with an empty environment."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            os.closerange(3, 256)
            os.execve(sys.executable, _sleeping(), {})
        os._exit(0)
    os.wait()
    time.sleep(0.1)


def hold_stdout(_name: str) -> None:
    """Succeed, and leave a child that keeps stdout open."""
    subprocess.Popen(_sleeping())
    print("done", flush=True)


def flood(_name: str) -> None:
    """Write as many MiB of lines as BENCH_FLOOD_MIB says."""
    block = (b"x" * 127 + b"\n") * (_MIB // 128)
    for _ in range(int(os.environ["BENCH_FLOOD_MIB"])):
        _write_all(block)


def print_bytes(_name: str) -> None:
    """Print what is neither UTF-8 nor fit for XML or a terminal, and fail, so that reports quote it."""
    _write_all(b"\xff\xfe \xc3( \xed\xa0\x80 \x00\x01\x1b[2J\x1b]0;title\x07 ]]> <failure> &amp; \xe2\x82\n")
    sys.exit(1)


def fill_disk(_name: str) -> None:
    """Write until the disk is full."""
    flood("")


def sleep_long(name: str) -> None:
    """Say that this unit runs, start a child in a session of its own, and sleep: the runner is about to be hit."""
    subprocess.Popen(_sleeping(), start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    Path(os.environ["BENCH_READY"], name).write_text(str(os.getpid()), encoding="ascii")
    time.sleep(_LONG_S)


def claim(name: str) -> None:
    """Hold a lock on each device that this unit was given; fail and say so if another unit has it."""
    folder = Path(os.environ["BENCH_CLAIMS"])
    locks = [(folder / device).open("w", encoding="ascii") for device in _devices()]
    try:
        for lock in locks:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        (folder / f"overlap-{name}-{os.getpid()}").touch()
        raise
    time.sleep(_CLAIM_S)


ACTS: Final[dict[str, Callable[[str], None]]] = {
    act.__name__: act
    for act in (
        fine,
        exit_3,
        segfault,
        hard_exit_3,
        hard_exit_0,
        kill_itself,
        exhaust_memory,
        hang,
        leave_daemon,
        hold_stdout,
        flood,
        print_bytes,
        fill_disk,
        sleep_long,
        claim,
    )
}


def act(which: str, name: str) -> None:
    """Do what a unit of this kind does."""
    ACTS[which](name)


def _sleeping() -> list[str]:
    """A process that does nothing for long, with the marker among its arguments."""
    return [sys.executable, "-I", "-S", "-c", f"import time; time.sleep({_LONG_S})", os.environ["BENCH_MARKER"]]


def _devices() -> list[str]:
    """The devices that the runner gave to this unit, in the way in which it tells."""
    if count := os.environ.get("CTEST_RESOURCE_GROUP_COUNT"):
        groups = (os.environ[f"CTEST_RESOURCE_GROUP_{i}_GPUS"] for i in range(int(count)))
        return [group.removeprefix("id:").partition(",")[0] for group in groups]
    if slot := os.environ.get("PARALLEL_JOBSLOT"):
        return [str(int(slot) - 1)]
    return os.environ["CUDA_VISIBLE_DEVICES"].split(",")


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    # A fault handler that the runner's environment asks for (PYTHONFAULTHANDLER) is not active under -I.
    with contextlib.suppress(BrokenPipeError):
        act(sys.argv[1], sys.argv[2])
