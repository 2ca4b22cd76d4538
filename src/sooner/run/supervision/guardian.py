"""The guardian: starts units on behalf of the runner, and outlives it just long enough to end what it started.

It is a small process of its own, in a session of its own, that terminal and CI signals do not reach. It forks a warden
for each unit, a few milliseconds cheaper than forking the runner, adopts what a killed warden leaves behind, and when
the runner is gone without having said goodbye it waits for all wardens, sweeps by the run's environment marker, and
lets the run folder be completed, so that every unit has its verdict in valid JUnit even then.

A device waits while its next unit is being started. So wardens are forked in advance, rehearse, and their sockets are
given to the runner: it asks a waiting *spare* directly and tells the guardian afterwards whose it has become.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import time
from typing import Final

from sooner.run import clock
from sooner.run.supervision import kernel
from sooner.run.supervision.messages import receive_request, report, send_request
from sooner.run.supervision.warden import HANDLED_SIGNALS, Warden

_SWEEP_S: Final = 12.0
"""Bound on the last sweep; wardens themselves wait at most 10 s for what cannot be killed."""


_SPARES: Final = 2
"""Wardens that wait for units: two ends on different devices may come together."""
_REFILL_S: Final = 0.01
"""Quiet for so long, a spare is forked: what was just started needs the processors more."""


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
        self._spares: set[int] = set()
        self._ended_spares: dict[int, int] = {}
        """Wait statuses of wardens that ended before the runner said whose they were."""
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
        self._offer_spares()
        while self._serve():
            pass
        self._sweep()
        return self._said_goodbye

    def _serve(self) -> bool:
        channel = self._channel.fileno()
        short = len(self._spares) < _SPARES
        ready, _, _ = select.select([channel, self._wake_read], [], [], _REFILL_S if short else None)
        if not ready:
            self._offer_spares()
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
            case "taken":
                self._name(request["pid"], request["id"])
            case "stop":
                self._signal(request["id"], signal.SIGTERM)
            case "kill":
                self._signal(request["id"], signal.SIGUSR1)
            case "goodbye":
                self._said_goodbye = True
        return not self._said_goodbye

    def _spawn(self, request: dict[str, object], leases: list[int]) -> None:
        """Start a unit for which the runner had no spare."""
        pid, channel = self._fork_warden()
        self._wardens[pid] = str(request["id"])
        with contextlib.suppress(OSError), channel:  # a warden that was killed is reported when it is reaped
            send_request(channel, request, leases)
        for fd in leases:
            os.close(fd)

    def _name(self, pid: int, unit_id: str) -> None:
        """A spare has been given a unit; it may have ended meanwhile, and if it was killed nobody else says so."""
        if pid in self._spares:
            self._spares.discard(pid)
            self._wardens[pid] = unit_id
        elif status := self._ended_spares.pop(pid, 0):
            self._report_lost([(unit_id, status), *self._kill_strays()])

    def _offer_spares(self) -> None:
        """Fork the wardens that are missing and give their sockets to the runner."""
        while len(self._spares) < _SPARES:
            pid, channel = self._fork_warden()
            self._spares.add(pid)
            with contextlib.suppress(OSError), channel:  # the runner is gone: the next read says so
                send_request(self._channel, {"op": "spare", "pid": pid}, [channel.fileno()])

    def _fork_warden(self) -> tuple[int, socket.socket]:
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
        return pid, ours

    def _become_warden(self, channel: socket.socket, guardian: int) -> None:
        code, unit_id = 0, ""
        try:
            signal.set_wakeup_fd(-1)
            self._channel.close()
            kernel.become_subreaper()
            kernel.die_with_parent(signal.SIGTERM, guardian)
            warden = Warden(pipe=self._pipe, life=self._life)
            warden.rehearse()
            request, _leases = receive_request(channel)  # the leases stay open as long as this process lives
            channel.close()
            if request is not None:
                unit_id = str(request["id"])
                warden.run(request)
        except BaseException as error:  # noqa: BLE001 - a warden that fails must still say so
            code = 1
            report(self._pipe, {"id": unit_id, "kind": "lost", "at": clock.now(), "error": repr(error)[:300]})
        finally:
            os._exit(code)

    def _signal(self, unit_id: str, signum: int) -> None:
        kernel.send([pid for pid, name in self._wardens.items() if name == unit_id], signum)

    def _collect(self) -> None:
        """Reap wardens; what a killed warden leaves behind has become our child: end it, then report."""
        if lost := self._reap():
            self._report_lost(lost + self._kill_strays())

    def _report_lost(self, lost: list[tuple[str, int]]) -> None:
        for unit_id, status in lost:
            cause = f"its warden ended with status {status}"
            report(self._pipe, {"id": unit_id, "kind": "lost", "at": clock.now(), "error": cause})

    def _reap(self) -> list[tuple[str, int]]:
        """Reap children; returns the wardens that ended without a word."""
        lost = []
        for pid, status, _ in kernel.reap(wake_stopped=True):
            unit_id = self._wardens.pop(pid, None)
            if unit_id is not None and status != 0:
                lost.append((unit_id, status))
            if pid in self._spares:
                self._spares.discard(pid)
                self._ended_spares[pid] = status
        return lost

    def _kill_strays(self) -> list[tuple[str, int]]:
        """SIGKILL every descendant that is not, and is not below, a living warden; returns wardens lost meanwhile."""
        lost = []
        deadline = time.monotonic() + _SWEEP_S
        while time.monotonic() < deadline:
            protected = {*self._wardens, *self._spares}
            for warden in tuple(protected):
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
        deadline = time.monotonic() + _SWEEP_S
        while (self._wardens or self._spares) and time.monotonic() < deadline:  # spares end with the runner's sockets
            kernel.send(self._wardens, signal.SIGTERM)
            select.select([self._wake_read], [], [], 1.0)
            with contextlib.suppress(BlockingIOError):
                os.read(self._wake_read, 4096)
            self._collect()
        self._wardens.clear()
        self._spares.clear()
        self._kill_strays()
        kernel.send(kernel.carriers_of(self._marker), signal.SIGKILL)


def main() -> None:
    """Entry point: `guardian CHANNEL PIPE LIFE OFFSET MARKER [FINISHER...]`; see `client.py` for the other side."""
    channel_fd, pipe, life = (int(text) for text in sys.argv[1:4])
    clock.follow(float(sys.argv[4]))
    marker, finisher = sys.argv[5], sys.argv[6:]
    channel = socket.socket(fileno=channel_fd)
    for fd in (channel_fd, pipe, life):
        os.set_inheritable(fd, False)
    said_goodbye = Guardian(channel, pipe=pipe, life=life, marker=marker).run()
    if finisher and not said_goodbye:
        os.execv(finisher[0], finisher)  # noqa: S606 - our own interpreter
