"""The guardian: starts units on behalf of the runner, and outlives it just long enough to end what it started.

It is a small process of its own, in a session of its own, that terminal and CI signals do not reach. It forks a warden
for each unit, a few milliseconds cheaper than forking the runner, adopts what a killed warden leaves behind, and when
the runner is gone without having said goodbye it waits for all wardens, sweeps by the run's environment marker, and
lets the run folder be completed, so that every unit has its verdict in valid JUnit even then.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
from typing import Final, NamedTuple

from sooner.run.supervision import kernel
from sooner.run.supervision.messages import receive_request, report, send_request
from sooner.run.supervision.warden import HANDLED_SIGNALS, Warden

_SWEEP_S: Final = 12.0
"""Bound on the last sweep; wardens themselves wait at most 10 s for what cannot be killed."""


class _Spare(NamedTuple):
    """A warden that waits for its unit."""

    pid: int
    channel: socket.socket


class Guardian:
    """The guardian's loop.

    Args:
        channel: Socket on which requests come.
        pipe: Where wardens report.
        life: Read end of a pipe whose other end only the runner holds.
        marker: `SOONER_RUN_ID=...`, which every process of the run carries in its environment.
    """

    def __init__(self, channel: socket.socket, *, pipe: int, life: int, marker: str) -> None:
        self._channel = channel
        self._pipe = pipe
        self._life = life
        self._marker = os.fsencode(marker)
        self._wardens: dict[int, str] = {}
        self._spare: _Spare | None = None
        self._said_goodbye = False
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def run(self) -> bool:
        """Serve until the runner says goodbye or is gone; says which of the two it was."""
        kernel.become_subreaper()
        gc.freeze()  # a fork then copies fewer pages
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(signum, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._spare = self._fork_spare()
        while self._serve():
            pass
        self._sweep()
        return self._said_goodbye

    def _serve(self) -> bool:
        channel = self._channel.fileno()
        ready, _, _ = select.select([channel, self._wake_read], [], [])
        if self._wake_read in ready:
            os.read(self._wake_read, 4096)
            self._collect()
        if channel not in ready:
            return True
        request, fds = receive_request(self._channel)
        if request is None:
            return False
        match request["op"]:
            case "spawn":
                self._spawn(request, fds)
            case "stop":
                self._signal(request["id"], signal.SIGTERM)
            case "kill":
                self._signal(request["id"], signal.SIGUSR1)
            case "goodbye":
                self._said_goodbye = True
        return not self._said_goodbye

    def _spawn(self, request: dict[str, object], leases: list[int]) -> None:
        """Hand a unit to the spare warden, then fork the next spare: forking is not what a device should wait for."""
        spare = self._spare or self._fork_spare()
        self._wardens[spare.pid] = str(request["id"])
        with contextlib.suppress(OSError):  # a spare that was killed is reported when it is reaped
            send_request(spare.channel, request, leases)
        spare.channel.close()
        for fd in leases:
            os.close(fd)
        self._spare = self._fork_spare()

    def _fork_spare(self) -> "_Spare":
        guardian = os.getpid()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # A stop that comes before the warden has its handlers must wait for them, not be lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, HANDLED_SIGNALS)
        pid = os.fork()
        if pid == 0:
            ours.close()
            self._become_warden(theirs, guardian)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HANDLED_SIGNALS)
        theirs.close()
        return _Spare(pid, ours)

    def _become_warden(self, channel: socket.socket, guardian: int) -> None:
        code, unit_id = 0, ""
        try:
            signal.set_wakeup_fd(-1)
            self._channel.close()
            kernel.become_subreaper()
            kernel.die_with_parent(signal.SIGTERM, guardian)
            warden = Warden(pipe=self._pipe, life=self._life)
            request, _leases = receive_request(channel)  # the leases stay open as long as this process lives
            channel.close()
            if request is not None:
                unit_id = str(request["id"])
                warden.run(request)
        except BaseException as error:  # noqa: BLE001 - a warden that fails must still say so
            code = 1
            report(self._pipe, {"id": unit_id, "kind": "lost", "at": time.time(), "error": repr(error)[:300]})
        finally:
            os._exit(code)

    def _signal(self, unit_id: str, signum: int) -> None:
        kernel.send([pid for pid, name in self._wardens.items() if name == unit_id], signum)

    def _collect(self) -> None:
        """Reap wardens; what a killed warden leaves behind has become our child: end it, then report."""
        lost = self._reap()
        if not lost:
            return
        lost += self._kill_strays()
        for unit_id, status in lost:
            cause = f"its warden ended with status {status}"
            report(self._pipe, {"id": unit_id, "kind": "lost", "at": time.time(), "error": cause})

    def _reap(self) -> list[tuple[str, int]]:
        """Reap children; returns the wardens that ended without a word."""
        lost = []
        for pid, status, _ in kernel.reap(wake_stopped=True):
            unit_id = self._wardens.pop(pid, None)
            if unit_id is not None and status != 0:
                lost.append((unit_id, status))
            if self._spare is not None and pid == self._spare.pid:
                self._spare.channel.close()
                self._spare = None
        return lost

    def _kill_strays(self) -> list[tuple[str, int]]:
        """SIGKILL every descendant that is not, and is not below, a living warden; returns wardens lost meanwhile."""
        lost = []
        deadline = time.monotonic() + _SWEEP_S
        while time.monotonic() < deadline:
            protected = set(self._wardens) | ({self._spare.pid} if self._spare else set())
            for warden in self._wardens:
                protected.update(kernel.descendants(warden))
            strays = [pid for pid in kernel.descendants(os.getpid()) if pid not in protected]
            if not strays:
                break
            kernel.send(strays, signal.SIGKILL)
            select.select([self._wake_read], [], [], 0.02)
            lost += self._reap()
        return lost

    def _sweep(self) -> None:
        """Wait for all wardens, which see for themselves that the runner is gone, and leave nothing alive."""
        if self._spare is not None:
            self._spare.channel.close()  # it ends when it sees that nothing will come
            self._spare = None
        deadline = time.monotonic() + _SWEEP_S
        while self._wardens and time.monotonic() < deadline:
            kernel.send(self._wardens, signal.SIGTERM)
            select.select([self._wake_read], [], [], 1.0)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
            self._collect()
        self._wardens.clear()
        self._kill_strays()
        kernel.send(kernel.carriers_of(self._marker), signal.SIGKILL)


def main() -> None:
    """Entry point: `guardian CHANNEL PIPE LIFE MARKER [FINISHER...]`; see `client.py` for the other side."""
    channel_fd, pipe, life = (int(text) for text in sys.argv[1:4])
    marker, finisher = sys.argv[4], sys.argv[5:]
    channel = socket.socket(fileno=channel_fd)
    for fd in (channel_fd, pipe, life):
        os.set_inheritable(fd, False)
    said_goodbye = Guardian(channel, pipe=pipe, life=life, marker=marker).run()
    if finisher and not said_goodbye:
        os.execv(finisher[0], finisher)  # noqa: S606 - our own interpreter
