"""How an attempt ended, in one word and a few: from its wait status, who ended it, and what it said last. Pure."""

import re
import signal
from typing import Final

from msgspec import Struct

from sooner.model.outcomes import Outcome

_SHELL_SIGNAL_BASE: Final = 128
"""A shell whose last command died of signal N exits with 128 + N (POSIX, 2.8.2)."""
_CRASH_SIGNALS: Final = frozenset(
    {signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGKILL, signal.SIGSEGV}
)
_HOST_MEMORY: Final = re.compile(
    r"^(?:E\s+)?(?:MemoryError\b|numpy\.\S*_ArrayMemoryError|std::bad_alloc)|std::bad_alloc", re.MULTILINE
)


class End(Struct, frozen=True, kw_only=True):
    """What is known about the end of an attempt."""

    exit_code: int | None = None
    signal: int | None = None
    ended_by: str = ""
    """Empty where the unit ended by itself; `timeout`, `stop`, `orphaned`."""
    asked_to_stop: bool = False
    lost: str = ""
    """Why the unit's warden was lost; empty where it was not."""
    unstartable: str = ""
    timeout_s: float = 0.0
    oom_kills: int = 0
    """Processes that the kernel's OOM killer ended while the attempt ran."""
    tail: str = ""
    """The end of what it printed."""
    device_fault: str = ""
    device_out_of_memory: bool = False
    junit_missing: bool = False
    """It was to write a JUnit file, and did not."""


def classify(end: End) -> tuple[Outcome, str]:
    """The outcome of an attempt and its cause in a few words."""
    if end.lost:
        return Outcome.WORKER_LOST, end.lost
    if end.unstartable:
        return Outcome.FAILED, f"cannot be started: {end.unstartable}"
    if end.ended_by == "timeout":
        return Outcome.TIMED_OUT, f"no end after {end.timeout_s:g} s"
    if end.ended_by and end.asked_to_stop:
        return Outcome.NOT_RUN, "interrupted"
    if end.ended_by:
        return Outcome.WORKER_LOST, "ended together with its guardian process"
    if end.exit_code == 0:
        if end.junit_missing:
            return Outcome.CRASHED, "exit code 0, but its JUnit file was not written, or is broken"
        return Outcome.PASSED, ""
    return _not_passed(end)


def _not_passed(end: End) -> tuple[Outcome, str]:
    if end.device_fault:
        return Outcome.WORKER_LOST, f"device fault: {end.device_fault}"
    number = _signal_of(end)
    if number == signal.SIGKILL and end.oom_kills:
        return Outcome.OUT_OF_MEMORY, "host memory: killed by the kernel's OOM killer"
    if end.device_out_of_memory:
        return Outcome.OUT_OF_MEMORY, "device memory"
    if _HOST_MEMORY.search(end.tail):
        return Outcome.OUT_OF_MEMORY, "host memory: an allocation failed"
    if end.signal is not None:
        return Outcome.CRASHED, signal_name(end.signal)
    if number in _CRASH_SIGNALS:
        return Outcome.CRASHED, f"exit code {end.exit_code} ({signal_name(number)} in a child)"
    return Outcome.FAILED, f"exit code {end.exit_code}"


def _signal_of(end: End) -> int:
    """The signal that ended the unit, or a child that its shell speaks of; 0 for none."""
    if end.signal is not None:
        return end.signal
    code = end.exit_code or 0
    return code - _SHELL_SIGNAL_BASE if code > _SHELL_SIGNAL_BASE else 0


def signal_name(number: int) -> str:
    """`SIGSEGV` for 11; real-time signals as `signal 35`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
