"""What Linux offers to keep hold of processes: subreapers, parent-death signals and /proc.

On systems without them every function here says so or does nothing, and `ps` stands in for /proc: there a daemon that
leaves its session can escape (docs/explanation/supervision.md).
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36
_libc: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


CHANGED_SIGNALS: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGCHLD, signal.SIGUSR1),
    *(signal.SIGPIPE, signal.SIGXFSZ),  # which Python itself ignores
)
"""Signals that a unit must find as a shell would leave them."""


class Process(NamedTuple):
    """One line of the process table."""

    pid: int
    parent: int
    session: int


def _read(path: str) -> bytes:
    """A file of /proc, empty where the process is gone; without pathlib, whose import would cost every start 5 ms."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read()
    except OSError:
        return b""


def become_subreaper() -> None:
    """From now on orphaned descendants become children of this process instead of init's (prctl(2))."""
    if _libc is not None:
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent(signum: int, parent: int) -> None:
    """Have this signal sent to this process when its parent ends; at once if `parent` is gone already."""
    if _libc is not None:
        _libc.prctl(_PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), signum)


def processes() -> Iterator[Process]:
    """All processes of the machine that can be seen."""
    if sys.platform != "linux":
        yield from _processes_by_ps()
        return
    for entry in os.listdir("/proc"):  # noqa: PTH208 - as above
        stat = _read(f"/proc/{entry}/stat") if entry.isdigit() else b""
        if stat:
            fields = stat[stat.rindex(b")") + 2 :].split(maxsplit=4)
            yield Process(int(entry), int(fields[1]), int(fields[3]))


def _processes_by_ps() -> Iterator[Process]:
    import subprocess

    table = subprocess.run(["ps", "-axo", "pid=,ppid=,sess="], capture_output=True, text=True, check=False).stdout
    for line in table.splitlines():
        pid, parent, session = line.split()
        yield Process(int(pid), int(parent), int(session, 16))


def descendants(root: int) -> list[int]:
    """All living or unreaped descendants of `root`, parents before children."""
    children: dict[int, list[int]] = {}
    for process in processes():
        children.setdefault(process.parent, []).append(process.pid)
    found: list[int] = []
    front = [root]
    while front:
        front = [child for pid in front for child in children.get(pid, ())]
        found.extend(front)
    return found


def send(pids: Iterable[int], signum: int) -> None:
    """Send a signal to each process that still exists and that we may signal."""
    for pid in pids:
        try:
            os.kill(pid, signum)
        except (ProcessLookupError, PermissionError):
            continue


def catches(pid: int, signum: int) -> bool:
    """Whether a process has a handler of its own for a signal (the SigCgt mask of proc_pid_status(5))."""
    return _in_mask(pid, "SigCgt", signum)


def ends_on(pid: int, signum: int) -> bool:
    """Whether a signal would end a process: it neither handles nor ignores it."""
    return not _in_mask(pid, "SigCgt", signum) and not _in_mask(pid, "SigIgn", signum)


def _in_mask(pid: int, name: str, signum: int) -> bool:
    _, _, rest = _read(f"/proc/{pid}/status").partition(f"{name}:".encode())
    mask = rest.split(maxsplit=1)[0] if rest else b"0"
    return bool(int(mask, 16) >> (signum - 1) & 1)


def command_of(pid: int) -> str:
    """The command line of a process, for people; its short name where the command line is gone."""
    data = _read(f"/proc/{pid}/cmdline") or _read(f"/proc/{pid}/comm")
    return data.replace(b"\0", b" ").decode("utf-8", "backslashreplace").strip()[:200] or f"pid {pid}"


def state_of(pid: int) -> str:
    """What a process is doing: its state and where in the kernel it waits, as far as /proc says."""
    _, _, rest = _read(f"/proc/{pid}/status").partition(b"State:")
    state = rest.split(b"\n", 1)[0].strip().decode("ascii", "replace") or "gone"
    place = _read(f"/proc/{pid}/wchan").decode("ascii", "replace")
    return f"{state}, in {place}" if place not in ("", "0") else state


def carriers_of(marker: bytes) -> list[int]:
    """Processes whose environment at their start held this `NAME=value`, this process excepted."""
    if sys.platform != "linux":
        return []
    found = []
    for process in processes():
        environment = _read(f"/proc/{process.pid}/environ")
        if process.pid != os.getpid() and marker in environment.split(b"\0"):
            found.append(process.pid)
    return found


def reap(*, wake_stopped: bool = False) -> list[tuple[int, int, float]]:
    """Reap every ended child: (pid, wait status, peak RSS in MiB); optionally let stopped ones go on."""
    ended: list[tuple[int, int, float]] = []
    while True:
        try:
            pid, status, usage = os.wait4(-1, os.WNOHANG | (os.WUNTRACED if wake_stopped else 0))
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        if os.WIFSTOPPED(status):
            send([pid], signal.SIGCONT)
            continue
        ended.append((pid, status, usage.ru_maxrss / 1024))


def has_children() -> bool:
    """Whether any child, ended or not, is left; under a subreaper: whether any descendant is."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def reserve(fd: int, size: int) -> bool:
    """Reserve blocks for a file and leave its size (fallocate(2), FALLOC_FL_KEEP_SIZE); says whether it could."""
    if _libc is None or not hasattr(_libc, "fallocate64"):
        return False
    keep_size = 1
    return bool(_libc.fallocate64(fd, keep_size, ctypes.c_int64(0), ctypes.c_int64(size)) == 0)
