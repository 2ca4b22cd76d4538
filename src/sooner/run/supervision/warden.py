"""The warden: the parent of one unit, that outlives whatever the unit does and ends when the runner does.

A warden is a subreaper, so all of its unit's descendants stay below it, also daemons that forked twice, left their
session and emptied their environment. When the unit's main process has ended, times out, must stop, or the runner is
gone, the warden ends what is left and reports only then. It holds duplicates of the unit's leases: no device is free
while a process that used it lives.
"""

import contextlib
import json
import os
import select
import signal
import time
from typing import Any, Final

from sooner.run import clock
from sooner.run.supervision import kernel
from sooner.run.supervision.messages import report

_LEAK_GRACE_S: Final = 0.1
"""Helpers such as multiprocessing's resource tracker end just after their parent; nextest waits as long."""
_LEAK_TERM_S: Final = 0.5
_ABORT_S: Final = 0.5
"""Time for faulthandler to write the stacks of all threads."""
_STACKS_S: Final = 5.0
_ORPHAN_GRACE_S: Final = 1.0
"""The runner is gone: nobody waits for a long grace any more."""
_LOG_RESERVE: Final = 64 * 1024
"""Of each log so much is reserved at its start: a neighbour that fills the disk must not make a unit fail to print."""
_LINGER_S: Final = 0.008
"""A device waits for its next unit, whose start needs the processors more than the end of this process does."""
_NOWHERE: Final = "/proc/self/no-such-command"
_UNKILLABLE_S: Final = 10.0
"""How long to wait for processes that SIGKILL does not end (uninterruptible in a driver)."""


HANDLED_SIGNALS: Final = (signal.SIGCHLD, signal.SIGTERM, signal.SIGUSR1)
"""Blocked from the fork of a warden until it handles them."""


class Warden:
    """Runs one unit to its end, in a process forked for it.

    Args:
        pipe: Where reports go.
        life: The read end of a pipe whose other end only the runner holds: readable means that it is gone.
    """

    def __init__(self, *, pipe: int, life: int) -> None:
        self._request: dict[str, Any] = {}
        self._inherited = dict(os.environ)  # made while there is time: a unit's start is what a device waits for
        self._pipe = pipe
        self._life = life
        self._main = 0
        self._status: int | None = None
        self._peak_rss_mib = 0.0
        self._ended_at = 0.0
        self._stop_asked = False
        self._hurry = False
        self._orphaned = False
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._listen_to_signals()

    def rehearse(self) -> None:
        """Do once, for nothing, what a start does: the first time, a forked process copies every page that it touches.

        It saves 0.5 ms of the 1.2 ms from a request to the unit's process.
        """
        request = json.loads(json.dumps({"id": "", "argv": [_NOWHERE], "cwd": "", "env": {}, "unset": [], "log": ""}))
        self._request = request
        self._start()
        self._collect()
        kernel.has_children()

    def run(self, request: dict[str, Any]) -> None:
        """Start the unit, wait for its end, leave nothing behind, report.

        Args:
            request: What to run: `id`, `argv`, `cwd`, `env` (added), `unset`, `log`, `timeout_s`, `grace_s`, `py_spy`.
        """
        self._request = request
        started_at = clock.now()
        error = self._start()
        if error:
            report(self._pipe, {"id": self._request["id"], "kind": "unstartable", "at": started_at, "error": error})
            return
        report(self._pipe, {"id": self._request["id"], "kind": "started", "at": started_at, "pid": self._main})
        ended_by = self._wait(self._request["timeout_s"])
        leaked: list[str] = []
        if ended_by:
            self._stop(ended_by)
        else:
            leaked = self._end_leftovers()
        survivors = self._kill_all()
        report(
            self._pipe,
            {
                "id": self._request["id"],
                "kind": "ended",
                "at": self._ended_at or clock.now(),
                "started_at": started_at,
                "status": self._status,
                "ended_by": ended_by,
                "peak_rss_mib": round(self._peak_rss_mib, 1),
                "leaked": leaked[:5],
                "survivors": survivors[:5],
            },
        )
        time.sleep(_LINGER_S)
        self._give_back_reserve()

    def _listen_to_signals(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, self._ask_to_stop)
        signal.signal(signal.SIGUSR1, self._ask_to_hurry)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)

    def _ask_to_stop(self, *_: object) -> None:
        self._stop_asked = True

    def _ask_to_hurry(self, *_: object) -> None:
        self._stop_asked = self._hurry = True

    def _start(self) -> str:
        """Start the unit in a session of its own; returns what went wrong, empty if nothing did.

        posix_spawn and not fork: a child that shares the warden's memory until it is the unit costs half as much.
        """
        request = self._request
        environment = self._inherited
        for name in request["unset"]:
            environment.pop(name, None)
        environment.update(request["env"])
        os.environ["PATH"] = environment.get("PATH", os.defpath)  # where posix_spawnp looks
        try:
            if request["cwd"]:
                os.chdir(request["cwd"])
        except OSError as error:
            return f"its directory cannot be entered: {error}"
        log = self._open_log()
        try:
            self._main = os.posix_spawnp(
                request["argv"][0],
                request["argv"],
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, log, 1),
                    (os.POSIX_SPAWN_DUP2, log, 2),
                ],
                setsid=True,
                setsigmask=(),
                setsigdef=kernel.CHANGED_SIGNALS,
            )
        except (OSError, ValueError) as error:  # ValueError: a NUL byte in an argument
            return f"{type(error).__name__}: {error}"[:500]
        finally:
            os.close(log)
        return ""

    def _open_log(self) -> int:
        """The log, or nowhere: a log that cannot be opened is no fault of the unit."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK  # a unit may have put a FIFO there
            log = os.open(self._request["log"] or os.devnull, flags, 0o666)
        except OSError:
            return os.open(os.devnull, os.O_WRONLY)
        if self._request["log"]:
            kernel.reserve(log, os.fstat(log).st_size + _LOG_RESERVE)
        return log

    def _give_back_reserve(self) -> None:
        """Free the blocks of the log that were reserved and not needed."""
        with contextlib.suppress(OSError):
            log = os.open(self._request["log"], os.O_WRONLY | os.O_NONBLOCK)
            os.ftruncate(log, os.fstat(log).st_size)
            os.close(log)

    def _wait(self, timeout_s: float) -> str:
        """Wait for the main process; says what ended the wait: nothing, `timeout`, `stop` or `orphaned`."""
        deadline = time.monotonic() + timeout_s if timeout_s else None
        while True:
            self._collect()
            if self._status is not None:
                return ""
            if self._orphaned:
                return "orphaned"
            if self._stop_asked:
                return "stop"
            if deadline is not None and time.monotonic() >= deadline:
                return "timeout"
            self._sleep(None if deadline is None else deadline - time.monotonic())

    def _sleep(self, seconds: float | None) -> None:
        """Sleep until a signal comes, the runner is gone, or the time is over."""
        watched = [self._wake_read] if self._orphaned else [self._wake_read, self._life]
        ready, _, _ = select.select(watched, [], [], None if seconds is None else max(0.0, seconds))
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
        if self._life in ready:
            self._orphaned = True

    def _collect(self) -> None:
        for pid, status, peak_rss_mib in kernel.reap():
            self._peak_rss_mib = max(self._peak_rss_mib, peak_rss_mib)
            if pid == self._main:
                self._status = status
                self._ended_at = clock.now()

    def _wait_for_all(self, seconds: float) -> bool:
        """Wait for every descendant to end, at most so long; says whether they did."""
        deadline = time.monotonic() + seconds
        while True:
            self._collect()
            if not kernel.has_children():
                return True
            left = deadline - time.monotonic()
            if left <= 0 or self._hurry:
                return False
            self._sleep(left)

    def _end_leftovers(self) -> list[str]:
        """End what the unit left behind; returns its commands."""
        if self._wait_for_all(_LEAK_GRACE_S):
            return []
        left = kernel.descendants(os.getpid())
        commands = [kernel.command_of(pid) for pid in left]
        kernel.send(left, signal.SIGTERM)
        self._wait_for_all(_LEAK_TERM_S)
        return commands

    def _stop(self, ended_by: str) -> None:
        """End the unit with a chance to clean up; for a timeout the stacks are saved first."""
        grace_s = self._request["grace_s"]
        if ended_by == "timeout":
            self._save_stacks()
        else:
            kernel.send(kernel.descendants(os.getpid()), signal.SIGTERM)
        if ended_by == "orphaned":
            grace_s = min(grace_s, _ORPHAN_GRACE_S)
        if self._wait_for_all(grace_s) or ended_by != "timeout":
            return
        stubborn = [pid for pid in kernel.descendants(os.getpid()) if kernel.catches(pid, signal.SIGABRT)]
        if stubborn:
            kernel.send(stubborn, signal.SIGABRT)
            self._wait_for_all(_ABORT_S)

    def _save_stacks(self) -> None:
        """Save the stacks of a hung unit in its log, then ask it to end.

        With py-spy the stacks of every Python process are dumped from outside. Without, Python's faulthandler writes
        them at SIGABRT. A process that has a handler for SIGTERM gets that first, to clean up, and SIGABRT after the
        grace; for one that would just die of SIGTERM nothing is lost by sending SIGABRT at once.
        """
        pids = kernel.descendants(os.getpid())
        self._note_processes(pids)
        if self._request["py_spy"]:
            for pid in pids:
                self._dump(pid)
            kernel.send(pids, signal.SIGTERM)
            return
        for pid in pids:
            speaks = kernel.catches(pid, signal.SIGABRT) and kernel.ends_on(pid, signal.SIGTERM)
            kernel.send([pid], signal.SIGABRT if speaks else signal.SIGTERM)

    def _note_processes(self, pids: list[int]) -> None:
        """Say in the log what still ran: for programs that are not Python, all that can be known."""
        lines = [f"--- sooner: no end after {self._request['timeout_s']:g} s; still running:"]
        lines += [f"---   pid {pid} ({kernel.state_of(pid)}): {kernel.command_of(pid)}" for pid in pids]
        try:
            with open(self._request["log"], "ab") as log:  # noqa: PTH123 - as below
                log.write("\n".join(["", *lines, ""]).encode())
        except OSError:
            return

    def _dump(self, pid: int) -> None:
        import subprocess

        try:
            with open(self._request["log"], "ab") as log:  # noqa: PTH123 - pathlib is not worth its import here
                subprocess.run(
                    [self._request["py_spy"], "dump", "--pid", str(pid)],
                    stdout=log,
                    stderr=subprocess.DEVNULL,
                    timeout=_STACKS_S,
                    check=False,
                )
        except (OSError, subprocess.TimeoutExpired):
            return

    def _kill_all(self) -> list[str]:
        """SIGKILL until no descendant is left; returns the commands of those that cannot be killed."""
        deadline = time.monotonic() + _UNKILLABLE_S
        while not self._wait_for_all(0.0):
            left = kernel.descendants(os.getpid())
            if time.monotonic() > deadline:
                return [kernel.command_of(pid) for pid in left]
            kernel.send(left, signal.SIGKILL)
            self._sleep(0.02)
        return []
