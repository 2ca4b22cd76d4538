"""The controlling pytest: collects, schedules units onto devices, and reports what workers send."""

import builtins
import contextlib
import mmap
import os
import select
import signal
import socket
import time
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from sooner.devices.masks import visible_env
from sooner.door.channel import Receiver, send
from sooner.door.devices import lease_all, session_devices
from sooner.door.units import DoorUnit, units_of, works_of_units
from sooner.door.worker import Worker
from sooner.model.devices import Device
from sooner.model.outcomes import Outcome
from sooner.run.classify import signal_name
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.work import Begin, Command, Ended, Start


class _Position:
    """Which item a worker runs now, readable after it died."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, 8)
        self.value = -1

    @property
    def value(self) -> int:
        return int.from_bytes(self._map[:8], "little", signed=True)

    @value.setter
    def value(self, position: int) -> None:
        self._map[:8] = position.to_bytes(8, "little", signed=True)


class _Hand:
    """The controlling side of one worker."""

    def __init__(self, pid: int, channel: socket.socket, current: _Position, devices: tuple[int, ...]) -> None:
        self.pid = pid
        self.channel = channel
        self.receiver = Receiver(channel)
        self.current = current
        self.devices = devices
        self.unit: DoorUnit | None = None
        self.left: list[int] = []
        """Items of its unit that have not reported."""


class Door:
    """Replaces pytest's loop over items by workers on devices."""

    def __init__(self, config: pytest.Config) -> None:
        _refuse_rivals(config)
        self._config = config
        self._devices: tuple[Device, ...] = session_devices(config.option.gpus)

    def pytest_report_header(self) -> str:
        """Say where tests run."""
        return f"sooner: {len(self._devices)} devices ({', '.join(device.id for device in self._devices[:8])})"

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run everything that was collected; as pytest's own loop does, but on all devices."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        if session.config.option.collectonly:
            return True
        if session.config.option.usepdb:
            return None  # a debugger needs the terminal: one process, one device
        with contextlib.closing(lease_all(self._devices, holder=f"pytest-{os.getpid()}")):
            _Run(session, self._devices).run()
        return True


def _refuse_rivals(config: pytest.Config) -> None:
    if getattr(config.option, "numprocesses", None) or getattr(config.option, "tx", None):
        raise pytest.UsageError("--gpus schedules by itself: leave -n (pytest-xdist) out")


class _Run:
    """One walk over all items."""

    def __init__(self, session: pytest.Session, devices: Sequence[Device]) -> None:
        option = session.config.option
        self._session = session
        self._devices = devices
        units = units_of(session.items, how=option.unit, isolation=option.isolation, devices=len(devices))
        self._units = {unit.key: unit for unit in units}
        self._scheduler = Scheduler(works_of_units(units), devices, host_slots=1)
        self._hands: dict[tuple[int, ...], _Hand] = {}

    def run(self) -> None:
        """Run all units; raises what pytest's own loop raises for `-x`, `--maxfail` and `session.shouldstop`."""
        try:
            self._carry_out(self._scheduler.handle(Begin(time.time())))
            while not self._scheduler.is_done:
                self._step()
                self._check_stop()
            self._retire(list(self._hands.values()))
            self._check_stop()
        finally:
            self._kill_all()

    def _check_stop(self) -> None:
        session = self._session
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, Start):
                self._start(self._units[command.key], command.devices)
            elif command.outcome is Outcome.HOLE:
                self._report_hole(self._units[command.key], command.cause)

    def _start(self, unit: DoorUnit, devices: tuple[int, ...]) -> None:
        hand = self._hands.get(devices)
        if hand is None:
            overlapping = [other for other in self._hands.values() if set(other.devices) & set(devices)]
            self._retire(overlapping)
            hand = self._fork(devices)
        hand.unit, hand.left = unit, list(unit.items)
        with contextlib.suppress(OSError):  # a worker that died is noticed when its channel is read
            send(hand.channel, ("run", unit.items))

    def _fork(self, devices: tuple[int, ...]) -> _Hand:
        ours, theirs = socket.socketpair()
        current = _Position()
        environment = visible_env([self._devices[i] for i in devices])
        self._session.config.get_terminal_writer().flush()
        pid = os.fork()
        if pid == 0:
            ours.close()
            for other in self._hands.values():
                other.channel.close()
            Worker(self._session, theirs, current).run(environment)
        theirs.close()
        hand = self._hands[devices] = _Hand(pid, ours, current, devices)
        return hand

    def _step(self) -> None:
        """Wait for some worker to say something, or to die."""
        by_fd = {hand.channel.fileno(): hand for hand in self._hands.values()}
        ready, _, _ = select.select(list(by_fd), [], [])
        for fd in ready:
            self._listen(by_fd[fd])

    def _listen(self, hand: _Hand) -> None:
        messages = hand.receiver.receive()
        if messages is None:
            self._lost(hand)
            return
        for kind, value in messages:
            if kind == "item":
                self._take(hand, *value)
            elif kind == "done" and hand.unit is not None:
                unit, hand.unit = hand.unit, None
                if unit.isolated:
                    self._retire([hand])
                self._carry_out(self._scheduler.handle(Ended(time.time(), unit.key, Outcome.PASSED)))

    def _take(self, hand: _Hand, position: int, messages: Sequence[tuple[str, Any]]) -> None:
        """Report one item through the hooks, in the order in which plain pytest calls them."""
        reports = [value for kind, value in messages if kind == "report"]
        item = self._session.items[position]
        first = position in hand.left
        if first:
            hand.left.remove(position)
            item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for kind, value in messages:
            if kind == "warning":
                self._warn(value)
        for data in reports:
            report = self._session.config.hook.pytest_report_from_serializable(config=self._session.config, data=data)
            item.ihook.pytest_runtest_logreport(report=report)
        if first:
            item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _warn(self, value: tuple[Any, ...]) -> None:
        text, category, filename, line, when, nodeid, location = value
        kind = getattr(builtins, category, None) or type(category, (Warning,), {})
        message = warnings.WarningMessage(kind(text), kind, filename, line)
        hook = self._session.config.hook.pytest_warning_recorded
        hook.call_historic(kwargs={"warning_message": message, "when": when, "nodeid": nodeid, "location": location})

    def _lost(self, hand: _Hand) -> None:
        """A worker died: the item that it ran is to blame, the others of its unit go on in a new one."""
        del self._hands[hand.devices]
        hand.channel.close()
        _, status = os.waitpid(hand.pid, 0)
        unit = hand.unit
        if unit is None:
            return
        culprit = hand.current.value if hand.current.value in hand.left else hand.left[0]
        self._report_crash(self._session.items[culprit], status)
        hand.left.remove(culprit)
        if hand.left:
            fresh = self._fork(hand.devices)
            fresh.unit, fresh.left = unit, hand.left
            send(fresh.channel, ("run", tuple(hand.left)))
        else:
            self._carry_out(self._scheduler.handle(Ended(time.time(), unit.key, Outcome.CRASHED)))

    def _report_crash(self, item: pytest.Item, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        how = signal_name(-code) if code < 0 else f"exit code {code}"
        self._report(item, "failed", f"the process of the test ended in its middle: {how}")

    def _report_hole(self, unit: DoorUnit, cause: str) -> None:
        for position in unit.items:
            self._report(self._session.items[position], "failed", f"coverage hole: {cause}")

    def _report(self, item: pytest.Item, outcome: Any, text: str) -> None:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        report = pytest.TestReport(
            nodeid=item.nodeid,
            location=item.location,
            keywords=dict.fromkeys(item.keywords, 1),
            outcome=outcome,
            longrepr=text,
            when="call",
        )
        item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def _retire(self, hands: Sequence[_Hand]) -> None:
        """Let workers tear down what they hold, and wait for them."""
        for hand in hands:
            self._hands.pop(hand.devices, None)
            with contextlib.suppress(OSError):
                send(hand.channel, ("stop", None))
        for hand in hands:
            for position, messages in _rest(hand):
                self._take(hand, position, messages)
            hand.channel.close()
            os.waitpid(hand.pid, 0)

    def _kill_all(self) -> None:
        for hand in self._hands.values():
            hand.channel.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(hand.pid, signal.SIGKILL)
            os.waitpid(hand.pid, 0)
        self._hands.clear()


def _rest(hand: _Hand) -> Iterator[tuple[int, Any]]:
    """What a worker still has to say before it ends."""
    while (messages := hand.receiver.receive()) is not None:
        yield from (value for kind, value in messages if kind == "item")
