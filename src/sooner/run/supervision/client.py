"""The runner's side of supervision: starts the guardian, asks it for units, hands on what wardens report."""

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from sooner.model.errors import SupervisionError
from sooner.run import clock
from sooner.run.supervision import kernel
from sooner.run.supervision.messages import receive_request, send_request

_SOURCE_ROOT: Final = str(Path(__file__).resolve().parents[3])
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from sooner.run.supervision.guardian import main; main()"
)
_GOODBYE_S: Final = 30.0
_TELL_LATER_S: Final = 0.005
"""The unit that was just started needs the processors more than the guardian does."""


class Spawn(Struct, frozen=True, kw_only=True):
    """What a warden is asked to run."""

    id: str
    argv: Sequence[str]
    env: Mapping[str, str] = {}
    unset: Sequence[str] = ()
    cwd: str = ""
    log: str = ""
    timeout_s: float = 0.0
    grace_s: float = 10.0
    leases: Sequence[int] = ()
    """Descriptors of device leases that must live as long as the unit's last process."""
    junit: str = ""
    """The JUnit file that it writes, to be brought back from another machine."""


class Report(Struct, frozen=True, kw_only=True):
    """What a warden says: `started`, then `ended`; or `unstartable`; or the guardian says `lost`.

    Of another machine `gone` is said, once, when it is lost; `id` is its name.
    """

    id: str
    kind: str
    at: float
    pid: int = 0
    started_at: float = 0.0
    status: int | None = None
    """Wait status of the main process; None where it had to be killed and never reported one."""
    ended_by: str = ""
    """What ended the wait: empty where the unit ended by itself, `timeout`, `stop` or `orphaned`."""
    peak_rss_mib: float = 0.0
    leaked: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()
    error: str = ""
    oom_kills: int | None = None
    """OOM kills on another machine while it ran; None where that is for the runner to count."""
    clock_ahead_s: float = 0.0
    """How far the clock of another machine is ahead of the runner's; times of files may be told by it."""


class Supervisor:
    """Starts units under a guardian process.

    Args:
        marker: Environment entry `NAME=value` that every unit of this run carries.
        finisher: Command that completes the run folder if the runner dies.
        on_report: Called, in the event loop, with everything that is reported.
    """

    def __init__(self, *, marker: str, finisher: Sequence[str], on_report: Callable[[Report], None]) -> None:
        self._marker = marker
        self._finisher = finisher
        self._on_report = on_report
        self._buffer = b""
        self._decoder = msgspec.json.Decoder(Report)
        self._py_spy = shutil.which("py-spy") or ""
        self._running: set[str] = set()
        self._spares: deque[tuple[int, socket.socket]] = deque()
        """Wardens that wait for a unit, and their sockets."""
        self._taken: list[tuple[int, str]] = []
        self._report_read, self._report_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        os.set_blocking(self._report_write, True)
        self._life_read, self._life_write = os.pipe2(os.O_CLOEXEC)
        self._guardian: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    def start(self) -> None:
        """Start the guardian; it is ready when the first request is answered.

        Raises:
            SupervisionError: This machine cannot start it.
        """
        kernel.become_subreaper()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fds = (theirs.fileno(), self._report_write, self._life_read)
        command = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            _PROGRAM,
            _SOURCE_ROOT,
            *map(str, fds),
            repr(clock.offset()),
            self._marker,
        ]
        try:
            self._guardian = subprocess.Popen(
                [*command, *self._finisher],
                pass_fds=fds,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
            )
        except OSError as error:
            raise SupervisionError(f"the guardian process cannot be started: {error}") from error
        finally:
            theirs.close()
        self._channel = ours

    def listen(self) -> None:
        """Begin to hand on reports in the running event loop."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._report_read, self._read_reports)
        self._watch_guardian()

    def _watch_guardian(self) -> None:
        if self._channel is not None:
            asyncio.get_running_loop().add_reader(self._channel.fileno(), self._read_offer)

    def _read_offer(self) -> None:
        """A spare warden, or the end of the guardian."""
        offer, fds = receive_request(self._channel) if self._channel is not None else (None, [])
        if offer is None:
            self._guardian_lost()
        else:
            self._spares.append((offer["pid"], socket.socket(fileno=fds[0])))

    def _guardian_lost(self) -> None:
        """The guardian was killed: its wardens end their units by themselves; go on with a new one."""
        self._close_channel()
        if self._guardian is not None:
            self._guardian.wait()
        self.start()
        self._watch_guardian()

    def _close_channel(self) -> None:
        for _, spare in self._spares:
            spare.close()
        self._spares.clear()
        if self._channel is not None:
            with contextlib.suppress(RuntimeError, ValueError):
                asyncio.get_running_loop().remove_reader(self._channel.fileno())
            self._channel.close()
            self._channel = None

    def _read_reports(self) -> None:
        try:
            data = os.read(self._report_read, 1 << 16)
        except BlockingIOError:
            return
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            report = self._decoder.decode(line)
            if report.kind != "started":
                if report.id not in self._running:
                    continue
                self._running.discard(report.id)
            self._on_report(report)

    def spawn(self, spawn: Spawn) -> None:
        """Ask for a unit to be started; `started` or `unstartable` is reported."""
        request: dict[str, Any] = {"op": "spawn", "py_spy": self._py_spy, **msgspec.structs.asdict(spawn)}
        del request["leases"], request["junit"]
        self._running.add(spawn.id)
        if pid := self._give_to_spare(request, spawn.leases):
            self._taken.append((pid, spawn.id))
            asyncio.get_running_loop().call_later(_TELL_LATER_S, self._tell_taken)
        else:
            self._send(request, spawn.leases)

    def _give_to_spare(self, request: dict[str, Any], leases: Sequence[int]) -> int:
        """Hand a unit to a warden that waits; returns its process, 0 where none is there."""
        while self._spares:
            pid, channel = self._spares.popleft()
            with contextlib.suppress(OSError), channel:  # that one was killed: the next
                send_request(channel, request, leases)
                return pid
        return 0

    def _tell_taken(self) -> None:
        """Tell the guardian whose its spares have become."""
        taken, self._taken = self._taken, []
        for pid, unit_id in taken:
            self._send({"op": "taken", "pid": pid, "id": unit_id})

    def stop(self, unit_id: str) -> None:
        """Ask for a unit to be ended: SIGTERM, its grace, SIGKILL; `ended` is reported."""
        self._tell_taken()
        self._send({"op": "stop", "id": unit_id})

    def kill(self, unit_id: str) -> None:
        """Ask for a unit to be ended at once: SIGKILL without grace; `ended` is reported."""
        self._tell_taken()
        self._send({"op": "kill", "id": unit_id})

    def _send(self, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
        for attempt in (1, 2):
            try:
                if self._channel is None:
                    raise SupervisionError("no guardian process is there to start units")
                send_request(self._channel, request, fds)
            except OSError:
                if attempt == 2:  # noqa: PLR2004 - once is bad luck
                    raise SupervisionError("the guardian process was lost twice") from None
                self._guardian_lost()
            else:
                return

    def close(self) -> None:
        """Say goodbye and wait until the guardian has made sure that nothing is left."""
        self._taken.clear()
        if self._channel is not None:
            with contextlib.suppress(OSError):
                send_request(self._channel, {"op": "goodbye"})
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._report_read)
        self._close_channel()
        if self._guardian is not None:
            try:
                self._guardian.wait(_GOODBYE_S)
            except subprocess.TimeoutExpired:
                self._guardian.kill()
        kernel.send(kernel.carriers_of(os.fsencode(self._marker)), signal.SIGKILL)
        for fd in (self._report_read, self._report_write, self._life_read, self._life_write):
            os.close(fd)


def decode_wait_status(status: int) -> tuple[int | None, int | None]:
    """A wait status as (exit code, signal); exactly one of them is None."""
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None
