"""What happens to a runner in mid-run: waits until its units really run, then hits it or a part of it."""

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final

_READY_S: Final = 15.0
_GUARDIAN: Final = b"supervision.guardian"


def hit(what: str, runner: "subprocess.Popen[bytes]", ready: Path, *, wanted: int) -> str:
    """Wait until `wanted` units have said in `ready` that they run, then hit; returns what went wrong, if anything."""
    deadline = time.monotonic() + _READY_S
    while len(list(ready.iterdir())) < wanted:
        if time.monotonic() > deadline or runner.poll() is not None:
            return f"only {len(list(ready.iterdir()))} of {wanted} units ran at once"
        time.sleep(0.02)
    time.sleep(0.2)  # whatever announced them is on its way to the journal
    try:
        os.kill(_target(what, runner.pid, ready), _number(what))
    except (LookupError, ProcessLookupError) as error:
        return f"nothing to hit: {error}"
    return ""


def _number(what: str) -> signal.Signals:
    return signal.Signals[what] if what.startswith("SIG") else signal.SIGKILL


def _target(what: str, runner: int, ready: Path) -> int:
    """The process to hit: the runner, its guardian, or the parent of a unit, which is its warden."""
    if what == "guardian":
        found = [pid for pid in _children(runner) if _GUARDIAN in Path(f"/proc/{pid}/cmdline").read_bytes()]
        if not found:
            raise LookupError("no guardian process")
        return found[0]
    if what == "warden":
        unit = int(next(ready.iterdir()).read_text(encoding="ascii"))
        return _parent(unit)
    return runner


def _children(pid: int) -> list[int]:
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [number for number in numbers if _parent(number) == pid]


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat[stat.rindex(b")") + 2 :].split()[1])
