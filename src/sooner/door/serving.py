"""The process that workers are forked from: it has collected, does nothing but fork, and tells how its children ended.

It is a process of its own also where the controlling pytest could be forked itself. After a fork, every page that the
parent writes to is copied; the controlling pytest writes to a thousand of them for each report (2 ms a test), and the
next fork has more to copy. This one stays as it is.
"""

import contextlib
import os
import pickle
import select
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pytest

from sooner.door.channel import Position, hang_up
from sooner.door.worker import Readiness, Worker
from sooner.run.supervision import kernel
from sooner.warm.guards import GuardSet


class Server:
    """Forks workers on request, until the controlling pytest is gone.

    Args:
        session: A session that has collected.
        items: Its items by the numbers that the controlling pytest gives them; None where one was not collected here.
        channel: Requests and answers, a datagram each.
        guards: Makes what is put back and watched between tests.
        begin: Called in a worker before anything else.
        show: As `Worker` has it.
    """

    def __init__(
        self,
        session: pytest.Session,
        items: Sequence[pytest.Item | None],
        channel: socket.socket,
        *,
        guards: Callable[[], GuardSet],
        begin: Callable[[], object] = lambda: None,
        show: Callable[[int], int] | None = None,
    ) -> None:
        self._session = session
        self._items = items
        self._channel = channel
        self._guards = guards
        self._begin = begin
        self._show = show
        self._children: dict[int, int] = {}
        self._channels: dict[int, socket.socket] = {}
        """Of each child: what a test of it left running may hold its channel open when it has ended."""
        self._parent = 0
        self._ready = Readiness(session)

    def run(self) -> NoReturn:
        """Serve; the process ends here."""
        try:
            # A worker runs from here, not from where it was forked: tests are as many frames deep as in plain pytest.
            if (worker := self._worker()) is not None:
                worker.run(parent=self._parent)
        finally:
            os._exit(0)

    def _worker(self) -> Worker | None:
        """Fork on request: returns a worker in each child, and None here once nobody asks any more."""
        wake_read, wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._before = {number: signal.getsignal(number) for number in (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM)}
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # of the terminal: the controlling pytest has it too, and decides
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        while True:
            ready, _, _ = select.select([self._channel.fileno(), wake_read], [], [])
            if wake_read in ready:
                os.read(wake_read, 4096)
                self._reap()
            if self._channel.fileno() in ready:
                try:
                    data, fds, _, _ = socket.recv_fds(self._channel, 1 << 16, 2)
                except ConnectionError:
                    data = b""
                if not data:
                    return None
                worker = self._serve(pickle.loads(data), fds)  # noqa: S301 - the controlling pytest's
                if worker is not None:
                    return worker

    def _reap(self) -> None:
        for pid, status, _ in kernel.reap():
            if pid in self._children:
                with contextlib.suppress(OSError):
                    self._channel.send(pickle.dumps((self._children.pop(pid), status)))
                hang_up(self._channels.pop(pid))

    def _serve(self, request: Any, fds: list[int]) -> Worker | None:
        kind, serial, signum = request
        if kind == "signal":
            kernel.send([pid for pid, number in self._children.items() if number == serial], signum)
            return None
        self._parent = os.getpid() if kind == "fork" else os.getppid()
        pid = 0 if kind == "become" else os.fork()
        if pid == 0:
            self._leave()
            self._begin()
            channel, position = socket.socket(fileno=fds[0]), Position(fds[1])
            return Worker(
                self._session, self._items, self._ready, channel, position, guards=self._guards, show=self._show
            )
        self._children[pid] = serial
        self._channels[pid] = socket.socket(fileno=fds[0])
        os.close(fds[1])
        return None

    def _leave(self) -> None:
        """Let go of what belongs to the server, in a process that becomes a worker."""
        signal.set_wakeup_fd(-1)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for channel in (self._channel, *self._channels.values()):
            channel.close()
