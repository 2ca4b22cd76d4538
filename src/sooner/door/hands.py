"""The controlling side of workers: which run where, at what level of isolation, and from which origin they come."""

import contextlib
import functools
import select
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sooner.devices.masks import visible_env
from sooner.door.channel import Receiver, send
from sooner.door.guards import guards_of_project
from sooner.door.origins import Origin, Process, Remote, Zygote, remote_spec
from sooner.door.serving import Server
from sooner.door.units import DoorUnit, Level
from sooner.door.worker import Errand, Ran
from sooner.model.devices import Device
from sooner.warm.forking import fork_refusal


class Hand:
    """One worker, as the controlling pytest sees it."""

    def __init__(self, process: Process, devices: tuple[int, ...], level: Level, serial: int) -> None:
        self.process = process
        self.receiver = Receiver(process.channel)
        self.devices = devices
        self.level = level
        self.serial = serial
        self._ends_by_itself = level is not Level.WARM
        self.unit: DoorUnit | None = None
        self.is_by_evidence = False
        """Whether evidence or budget gave its test a process of its own."""
        self.left: list[int] = []
        """Items of its unit that have not reported."""
        self.ran: list[int] = []
        """Items that ran in its process, in order."""
        self.restored_in_unit = False
        """Whether a guard put something back since its unit began."""
        self.judged: Ran | None = None
        """The failure that a judge looks at, while this worker waits."""
        self.judge: Judge | None = None
        """Set in a worker that is itself a judge."""
        self.has_hung = False
        """Whether it was ended because its test took too long (`--hang-timeout`)."""
        self.has_torn_down = False
        """Whether it said that nothing is set up in it any more."""

    def ask(self, unit: DoorUnit, items: Sequence[int], *, waits: str) -> None:
        """Have it run items of a unit."""
        self.unit, self.left, self.is_by_evidence = unit, list(items), unit.is_by_evidence
        self.restored_in_unit = False
        errand = Errand(
            items=tuple(items), keeps_fixtures=unit.keeps_fixtures, waits=waits, is_last=self._ends_by_itself
        )
        self.say("run", errand)

    def stop(self) -> None:
        """Have it end once it has torn down what it holds."""
        if not self._ends_by_itself:
            self.say("stop")

    def say(self, kind: str, value: Any = None) -> None:
        """Send a word; a worker that died is noticed when its channel is read."""
        with contextlib.suppress(OSError):
            send(self.process.channel, (kind, value))

    def ends_before(self, deadline: float) -> bool:
        """Wait for its end, on the monotonic clock; what it still says is not heard."""
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self.process.channel], [], [], left)[0]:
                return False
            if self.receive() is None:
                return True
        return False

    def receive(self) -> list[Any] | None:
        """What it says; None when it is gone."""
        messages = self.receiver.receive()
        self.has_torn_down = self.has_torn_down or ("torn down", None) in (messages or ())
        return messages

    def last_words(self) -> list[Any]:
        """Everything that it still says before it ends."""
        rest: list[Any] = []
        while True:
            ended = self.process.ended
            if ended is not None and ended in select.select([self.process.channel.fileno(), ended], [], [])[0]:
                self.process.hang_up()  # a process that a test of it left would keep the channel open
            if (messages := self.receive()) is None:
                return rest
            rest.extend(messages)


class Judge:
    """A failed test is judged again, by itself, while the worker in which it failed waits.

    Args:
        waiting: The worker that waits.
        item: The test.
        before: Tests that run before it, unguarded: it may need what they leave.
    """

    def __init__(self, waiting: Hand, item: int, before: Sequence[int] = ()) -> None:
        self.waiting = waiting
        self.item = item
        self.before = before
        self.ran: Ran | None = None


class Workshop:
    """Makes workers of every level and width.

    Args:
        session: The session that has collected.
        devices: The devices of the run.
        nodeids: Ids of all items.
    """

    def __init__(self, session: pytest.Session, devices: Sequence[Device], nodeids: Sequence[str]) -> None:
        self._session = session
        self._devices = devices
        self._nodeids = nodeids
        self._origins: dict[int, Origin] = {}
        self._single: dict[int, Remote] = {}
        """Remotes that are themselves the worker with this serial."""
        self._count = 0
        self.refusal = fork_refusal()
        """Why this process must not be forked; empty where it may."""

    @property
    def count(self) -> int:
        """Workers made so far."""
        return self._count

    def prepare(self, width: int) -> None:
        """Begin to collect for a width, while other tests run."""
        if width > 1 and not self.refusal:
            self._origin(width)

    def begin(self) -> Server | None:
        """Fork the process that workers of one device are forked from; in that process, return what it is to run."""
        if self.refusal:
            return None
        self._origins[1] = zygote = self._zygote()
        return zygote.server

    def make(self, positions: tuple[int, ...], level: Level, path: str, *, guarded: bool) -> Hand:
        """A worker on these devices.

        Args:
            positions: Its devices.
            level: How much its process shares with other tests.
            path: The file of the test, which is all that a fresh process collects.
            guarded: Whether its tests are cleaned up after.
        """
        self._count += 1
        environment = visible_env([self._devices[i] for i in positions])
        if level is Level.FRESH or self.refusal:
            remote = self._remote(environment, files=[path] if level is Level.FRESH else [], forks=False)
            self._single[self._count] = remote
            process = remote.start(environment, guarded=guarded)
        else:
            process = self._origin(len(positions)).start(environment, guarded=guarded)
        return Hand(process, positions, level, self._count)

    def make_ready(self, width: int) -> None:
        """Prepare the next worker of this width while others run."""
        if not self.refusal:
            self._origin(width).make_ready()

    def _origin(self, width: int) -> Origin:
        if width not in self._origins:
            if width <= 1:
                self._origins[width] = zygote = self._zygote()
                if zygote.server is not None:
                    zygote.server.run()
            else:
                mask = visible_env(self._devices[:width])
                self._origins[width] = self._remote(mask, files=[], forks=True)
        return self._origins[width]

    def _zygote(self) -> Zygote:
        return Zygote(self._session, functools.partial(guards_of_project, self._session.config))

    def _remote(self, environment: Mapping[str, str], *, files: Sequence[str], forks: bool) -> Remote:
        spec = remote_spec(self._session.config, self._nodeids, files=files)
        return Remote(spec, environment, forks=forks)

    def unmake(self, hand: Hand) -> int | None:
        """Wait for a worker that is at its end; returns its wait status."""
        status = hand.process.end()
        if remote := self._single.pop(hand.serial, None):
            remote.close()
        return status

    def last_words(self, hand: Hand) -> str:
        """What the process from which a worker comes said when it could not make it."""
        origin = self._single.get(hand.serial) or self._origins.get(len(hand.devices))
        return origin.last_words if isinstance(origin, Remote) else ""

    def close(self) -> None:
        """End all origins."""
        for origin in (*self._origins.values(), *self._single.values()):
            origin.close()
