"""The runner's side of one other machine: its leases, devices, ports and units, asked of the agent there.

A question waits for its answer, 3 ms through Ray; what is told meanwhile is kept for the event loop. A machine that
does not answer or says nothing any more is *gone*: what ran there is lost, its devices are put aside, and the run goes
on elsewhere. Its channel is closed at once, so that an agent that was only slow ends its units: they may run again.
"""

import asyncio
import contextlib
import json
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from sooner import __version__
from sooner.model.devices import Device, DeviceId
from sooner.model.errors import DevicesError, SoonerError
from sooner.run import clock
from sooner.run.backends.messages import Alive, Answer, Call, FromAgent, Piece, Said, Unpacked, encode
from sooner.run.launch import RUN_MARKER
from sooner.run.machine import Machine
from sooner.run.supervision.client import Report, Spawn

_ANSWER_S: Final = 60.0
"""A machine that says nothing for so long is taken for lost."""
_LOOK_EVERY_S: Final = 5.0
_GOODBYE_S: Final = 45.0


class NodeLost(SoonerError):  # noqa: N818 - what happened
    """A machine of the run does not answer any more."""


class _Lease(Struct):
    """A lease or a port that the agent holds for us."""

    node: "Node"
    fd: int
    """Its number there."""
    number: int = 0
    """Of a port."""

    def release(self) -> None:
        """Give it back."""
        self.node.tell("release", self.fd)


class Node:
    """One machine that an agent serves.

    Args:
        name: What people shall call it.
        channel: The socket to its agent.
    """

    def __init__(self, name: str, channel: socket.socket) -> None:
        self.name = name
        self.devices: tuple[Device, ...] = ()
        self.notes: tuple[str, ...] = ()
        self._channel = channel
        channel.settimeout(_ANSWER_S)
        self._messages = Unpacked(FromAgent)
        self._told: deque[Said | Piece] = deque()
        self._answers: deque[Answer] = deque()
        self._calls = 0
        self._ahead = float("-inf")
        """How far the agent's clock is ahead of ours, as far as is known."""
        self._places: dict[DeviceId, int] = {}
        self._units: dict[str, Spawn] = {}
        self._run_id = ""
        """Of the run on this node: an agent's last sweep ends its own units alone, though two be on one machine."""
        self._gone = ""
        self._heard_at = time.monotonic()
        self._on_report: Callable[[Report], None] | None = None

    @property
    def machine(self) -> Machine:
        """What the dispatcher needs."""
        return Machine(self, self, self, self)

    def begin(self, spec: str, cwd: Path) -> None:
        """Learn which devices it has; they get this node's name.

        Raises:
            SoonerError: It has none such, lacks the folder, or has another version of sooner.
        """
        found = self._ask("begin", spec, str(cwd), __version__)
        devices = msgspec.convert(found["devices"], tuple[Device, ...])
        self.devices = tuple(
            msgspec.structs.replace(device, id=DeviceId(f"{self.name}/{device.id}"), node=self.name)
            for device in devices
        )
        self.notes = tuple(f"{self.name}: {note}" for note in found["notes"])
        self._places = {device.id: place for place, device in enumerate(self.devices)}

    def prepare(self, run_id: str, folder: Path) -> None:
        """Let it get ready for the units of a run.

        Raises:
            SoonerError: It cannot have the run's folder, or cannot start units.
        """
        self._run_id = f"{run_id}@{self.name}"
        token = folder / f".seen-by-{self.name}"
        token.touch()
        try:
            self._ask("run", self._run_id, str(folder.absolute()), token.name)
        finally:
            token.unlink()

    def report_to(self, on_report: Callable[[Report], None]) -> None:
        """Who hears of its units."""
        self._on_report = on_report

    # Leases

    def try_lease(self, device: Device, *, holder: str) -> _Lease | None:
        """Lease a device that nobody holds."""
        return self._lease("try_lease", self._places[device.id], holder)

    def turnstile(self, *, holder: str) -> _Lease | None:
        """The one right of that machine to hold devices while waiting for more."""
        return self._lease("turnstile", holder)

    def _lease(self, name: str, *arguments: object) -> _Lease | None:
        number = self._known(0, name, *arguments)
        return _Lease(self, number) if number else None

    def holder_of(self, device: Device) -> str | None:
        """Who holds a device, for people."""
        found: str | None = self._known(None, "holder_of", self._places[device.id])
        return found

    def put_aside(self, device: Device, reason: str, at: float) -> None:
        """Mark a device as not to be used for a day."""
        self.tell("put_aside", self._places[device.id], reason, at)

    # The state of devices

    def baseline(self, *devices: Device) -> None:
        """Remember how devices are."""
        for device in devices:
            self.tell("baseline", self._places[device.id])

    def not_free(self, device: Device) -> str:
        """Why a device is not free for the next unit."""
        return str(self._known(self._gone, "not_free", self._places[device.id]))

    def fault(self, device: Device) -> str:
        """What is wrong with a device itself; that its machine is gone is said of the machine."""
        return str(self._known("", "fault", self._places[device.id]))

    # Ports

    def lease(self, count: int) -> Sequence[_Lease]:
        """Lease so many ports there.

        Raises:
            DevicesError: None is free, or the machine is gone.
        """
        if not count:
            return []
        try:
            return [_Lease(self, lease, number) for number, lease in self._ask("ports", count)]
        except SoonerError as error:
            raise DevicesError(str(error)) from error

    def lease_ahead(self) -> None:
        """Ports there are leased as they are needed."""

    # Units

    def listen(self) -> None:
        """Begin to hand on reports in the running event loop."""
        loop = asyncio.get_running_loop()
        if self._gone:
            loop.call_soon(self._tell_gone)
            return
        loop.add_reader(self._channel.fileno(), self._read)
        loop.call_soon(self._hand_on)
        loop.call_later(_LOOK_EVERY_S, self._look)

    def _look(self) -> None:
        """Lose a machine that is silent; what came while this process itself was stopped is heard first."""
        if self._gone:
            return
        now = time.monotonic()
        if now - self._heard_at > _ANSWER_S and not self._hears_until(now):
            self._lose(f"no word for {_ANSWER_S:g} s")
        else:
            asyncio.get_running_loop().call_later(_LOOK_EVERY_S, self._look)

    def spawn(self, spawn: Spawn) -> None:
        """Ask for a unit to be started."""
        spawn = msgspec.structs.replace(spawn, env={**spawn.env, RUN_MARKER: self._run_id})
        self._units[spawn.id] = spawn
        if self._gone:
            asyncio.get_running_loop().call_soon(self._lose_units)
        else:
            self.tell("spawn", msgspec.to_builtins(spawn))

    def stop(self, unit_id: str) -> None:
        """Ask for a unit to be ended, with its grace."""
        self.tell("stop", unit_id)

    def kill(self, unit_id: str) -> None:
        """Ask for a unit to be ended at once."""
        self.tell("kill", unit_id)

    def close(self) -> None:
        """Wait until nothing is left there, and let the agent go; once."""
        self._on_report = None
        if self._gone:
            return
        with contextlib.suppress(SoonerError):
            self._ask("goodbye", within_s=_GOODBYE_S)
        if not self._gone:
            self._gone = f"{self.name} was let go"
            self._hang_up()

    def _hang_up(self) -> None:
        with contextlib.suppress(RuntimeError):  # before and after the event loop nobody reads
            asyncio.get_running_loop().remove_reader(self._channel.fileno())
        self._channel.close()

    # Talking

    def tell(self, name: str, *arguments: object) -> None:
        """Have something done; nobody waits for it."""
        self._send(Call(0, name, json.dumps(arguments)))

    def _known(self, instead: Any, name: str, *arguments: object) -> Any:
        """An answer, or something instead where the machine is gone."""
        try:
            return self._ask(name, *arguments)
        except NodeLost:
            return instead

    def _ask(self, name: str, *arguments: object, within_s: float = _ANSWER_S) -> Any:
        self._calls += 1
        self._send(Call(self._calls, name, json.dumps(arguments)))
        deadline = time.monotonic() + within_s
        while not self._answers:
            if self._gone or not self._hears_until(deadline):
                self._lose(f"no answer for {within_s:g} s")
                raise NodeLost(self._gone)
            self._receive()
        answer = self._answers.popleft()
        self._hand_on_later()
        if answer.error:
            raise SoonerError(f"{self.name}: {answer.error}")
        return answer.value

    def _hears_until(self, deadline: float) -> bool:
        """Wait for the agent to say something; not by `select`, which knows no descriptors above 1,023."""
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))

    def _send(self, call: Call) -> None:
        if self._gone:
            return
        try:
            self._channel.sendall(encode(call))
        except OSError:
            self._lose("its agent ended")

    def _receive(self) -> None:
        """Take in what has come; at least one byte has, or the end."""
        try:
            data = self._channel.recv(1 << 20)
        except OSError:
            data = b""
        if not data:
            self._lose("its agent ended")
            return
        self._heard_at = time.monotonic()
        now = clock.now()
        try:
            for message in self._messages.take(data):
                self._ahead = max(self._ahead, message.now - now)
                match message:
                    case Answer():
                        self._answers.append(message)
                    case Said() | Piece():
                        self._told.append(message)
                    case Alive():
                        pass
        except msgspec.MsgspecError as error:
            self._lose(f"its agent says what is no message ({error})")

    def _read(self) -> None:
        self._receive()
        self._hand_on()

    def _hand_on_later(self) -> None:
        if self._told and self._on_report is not None:
            asyncio.get_running_loop().call_soon(self._hand_on)

    def _hand_on(self) -> None:
        while self._told:
            message = self._told.popleft()
            if isinstance(message, Piece):
                self._write(message)
            elif self._on_report is not None:
                self._on_report(self._in_our_time(message.report))

    def _in_our_time(self, report: Report) -> Report:
        """A report as our clock tells it: what came soonest after it was sent says how far the clocks differ."""
        if report.kind != "started":
            self._units.pop(report.id, None)
        started = report.started_at - self._ahead if report.started_at else 0.0
        at = min(report.at - self._ahead, clock.now())
        return msgspec.structs.replace(report, at=at, started_at=started, clock_ahead_s=self._ahead)

    def _write(self, piece: Piece) -> None:
        """Put what a unit wrote where it would be, had it run here: its log, or its own JUnit file."""
        unit = self._units.get(piece.unit)
        written = unit and (unit.junit if piece.of_junit else unit.log)
        if not written:
            return
        path = Path(written)
        with contextlib.suppress(OSError):  # no room: as here, output is lost before a verdict is
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb" if piece.anew else "ab") as file:
                file.write(piece.data)

    # Being lost

    def _lose(self, why: str) -> None:
        if self._gone:
            return
        self._gone = f"{self.name} was lost: {why}"
        self._hang_up()
        with contextlib.suppress(RuntimeError):  # before and after the event loop nobody is to be told
            asyncio.get_running_loop().call_soon(self._tell_gone)

    def _tell_gone(self) -> None:
        self._hand_on()
        if self._on_report is not None:
            self._on_report(Report(id=self.name, kind="gone", at=clock.now(), error=self._gone))
            self._lose_units()

    def _lose_units(self) -> None:
        units, self._units = self._units, {}
        for unit_id in units:
            if self._on_report is not None:
                self._on_report(Report(id=unit_id, kind="lost", at=clock.now(), error=self._gone))
