"""The process on another machine that runs units for a runner elsewhere: it leases, starts, watches and tells.

It decides nothing and keeps nothing: when the runner is gone, so is its end of the socket, and the agent's own guardian
ends what still runs. What units write is sent to the runner as it comes, unless both see the same file system.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from sooner import __version__
from sooner.devices.find import usable_devices
from sooner.devices.leases import LeaseBook, lease_root
from sooner.devices.proof import Monitor
from sooner.model.devices import Device
from sooner.model.errors import SoonerError
from sooner.model.text import printable
from sooner.run import clock
from sooner.run.attempts import oom_kill_count
from sooner.run.backends.messages import PIECE, Alive, Answer, Call, Piece, Said, Unpacked, encode
from sooner.run.folder import open_regular
from sooner.run.junit_files import Stamp, stamp_of
from sooner.run.launch import RUN_MARKER
from sooner.run.machine import Held, LeasedPort
from sooner.run.ports import Ports
from sooner.run.supervision.client import Report, Spawn, Supervisor

_SEND_EVERY_S: Final = 0.25
"""How late output may be seen where the runner does not see the file itself."""
_ALIVE_EVERY_S: Final = 5.0
"""A runner that hears nothing for a minute takes this machine for lost."""


class _Unit:
    """One that runs: what it writes, and how much of that has been sent."""

    def __init__(self, spawn: Spawn) -> None:
        self.id = spawn.id
        self.log = Path(spawn.log) if spawn.log else None
        self.sent = self.log.stat().st_size if self.log and self.log.exists() else 0
        self.junit = Path(spawn.junit) if spawn.junit else None
        self.junit_before: Stamp | None = stamp_of(self.junit) if self.junit else None
        self.oom_kills = oom_kill_count()


class Agent:
    """Does what a runner asks for, until the runner is gone.

    Args:
        channel: The socket to the runner.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._writer: asyncio.StreamWriter | None = None
        self._book = LeaseBook(lease_root(os.environ))
        self._ports = Ports(lease_root(os.environ))
        self._devices: tuple[Device, ...] = ()
        self._monitor: Monitor | None = None
        self._supervisor: Supervisor | None = None
        self._held: dict[int, Held | LeasedPort] = {}
        """Leases and ports by the numbers that the runner knows them by."""
        self._next = 1
        self._units: dict[str, _Unit] = {}
        self._sends_files = False
        self._made: Path | None = None
        """The folder of the run, where it was made for this run alone."""
        self._ending: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Answer until the runner says goodbye or is gone."""
        reader, self._writer = await asyncio.open_connection(sock=self._channel)
        tasks = [asyncio.create_task(self._send_output()), asyncio.create_task(self._say_alive())]
        calls = Unpacked(Call)
        try:
            while data := await reader.read(1 << 16):
                for call in calls.take(data):
                    self._answer(call)
                    if call.name == "goodbye":
                        await self._writer.drain()
                        return
        finally:
            for task in tasks:
                task.cancel()
            self._writer.close()
            if self._made is not None:
                self.do_goodbye()  # what still runs where the runner is gone may write there
                shutil.rmtree(self._made, ignore_errors=True)

    def _answer(self, call: Call) -> None:
        """Do it; never waits for the runner to read, or two that wait for each other would wait for ever."""
        try:
            answer = Answer(call.number, clock.now(), getattr(self, f"do_{call.name}")(*json.loads(call.arguments)))
        except (SoonerError, OSError) as error:
            answer = Answer(call.number, clock.now(), error=printable(str(error)) or type(error).__name__)
        if call.number and self._writer is not None:
            self._writer.write(encode(answer))

    async def _say(self, message: Said | Piece | Alive) -> None:
        if self._writer is not None:
            with contextlib.suppress(ConnectionError):  # the runner is gone: the next read says so
                self._writer.write(encode(message))
                await self._writer.drain()

    # What a runner may ask for

    def do_begin(self, spec: str, cwd: str, version: str) -> dict[str, Any]:
        """Find devices; the runner's folder must be here too, and the runner's version of this program."""
        if version != __version__:
            raise SoonerError(f"it has sooner {__version__}, the runner {version}: install the same on all nodes")
        try:
            os.chdir(cwd)
        except OSError as error:
            raise SoonerError(f"the folder {cwd} is not there ({error.strerror})") from None
        found = usable_devices(spec, os.environ, self._book, now=time.time())
        self._devices = found.devices
        self._monitor = Monitor(self._devices)
        return {"devices": msgspec.to_builtins(found.devices), "notes": list(found.notes)}

    def do_run(self, run_id: str, folder: str, token: str) -> None:
        """Get ready for units: their files go to `folder`, which is the runner's own if the token is in it."""
        path = Path(folder)
        if not (path / token).exists():
            self._sends_files = True
            if not path.exists():
                self._made = path
                _make(path)
        self._supervisor = Supervisor(marker=f"{RUN_MARKER}={run_id}", finisher=(), on_report=self._on_report)
        self._supervisor.start()
        self._supervisor.listen()

    def do_try_lease(self, place: int, holder: str) -> int:
        """The number of a new lease; 0 where somebody else has the device."""
        return self._keep(self._book.try_lease(self._devices[place], holder=holder))

    def do_turnstile(self, holder: str) -> int:
        """The number of the lease of this machine's turnstile; 0 where somebody else has it."""
        return self._keep(self._book.turnstile(holder=holder))

    def do_release(self, number: int) -> None:
        """Give back a lease or a port."""
        self._held.pop(number).release()

    def do_holder_of(self, place: int) -> str | None:
        """Who holds a device, for people."""
        return self._book.holder_of(self._devices[place])

    def do_put_aside(self, place: int, reason: str, at: float) -> None:
        """Mark a device as not to be used for a day."""
        self._book.put_aside(self._devices[place], reason, at)

    def do_baseline(self, place: int) -> None:
        """Remember how a device is."""
        self._watch.baseline(self._devices[place])

    def do_not_free(self, place: int) -> str:
        """Why a device is not free."""
        return self._watch.not_free(self._devices[place])

    def do_fault(self, place: int) -> str:
        """What is wrong with a device."""
        return self._watch.fault(self._devices[place])

    def do_ports(self, count: int) -> list[tuple[int, int]]:
        """Leased ports, each with the number of its lease."""
        return [(port.number, self._keep(port)) for port in self._ports.lease(count)]

    def do_spawn(self, spawn: dict[str, Any]) -> None:
        """Start a unit; where there is no place for its log, its output goes nowhere, as on the runner's machine.

        Nobody waits for an answer: that it cannot be started is reported as of a unit that was lost.
        """
        asked = msgspec.convert(spawn, Spawn)
        leases = [self._held[number].fd for number in asked.leases]  # type: ignore[union-attr]
        try:
            if asked.log:
                Path(asked.log).parent.mkdir(parents=True, exist_ok=True)
            self._units[asked.id] = _Unit(asked)
        except OSError:
            asked = msgspec.structs.replace(asked, log="")
            self._units[asked.id] = _Unit(asked)
        try:
            self._starter.spawn(msgspec.structs.replace(asked, leases=leases))
        except SoonerError as error:
            self._on_report(Report(id=asked.id, kind="lost", at=clock.now(), error=str(error)))

    def do_stop(self, unit_id: str) -> None:
        """End a unit, with its grace."""
        self._starter.stop(unit_id)

    def do_kill(self, unit_id: str) -> None:
        """End a unit at once."""
        self._starter.kill(unit_id)

    def do_goodbye(self) -> None:
        """Wait until nothing is left."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.close()

    @property
    def _watch(self) -> Monitor:
        if self._monitor is None:
            raise SoonerError("the runner has not said `begin`")
        return self._monitor

    @property
    def _starter(self) -> Supervisor:
        if self._supervisor is None:
            raise SoonerError("the runner has not said `run`")
        return self._supervisor

    def _keep(self, held: Held | LeasedPort | None) -> int:
        if held is None:
            return 0
        number, self._next = self._next, self._next + 1
        self._held[number] = held
        return number

    # What is told without being asked

    def _on_report(self, report: Report) -> None:
        task = asyncio.get_running_loop().create_task(self._tell(report))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _tell(self, report: Report) -> None:
        """Hand on a report; what a unit wrote comes before its end."""
        if report.kind != "started":
            unit = self._units.pop(report.id)
            await self._send_log(unit)
            await self._send_junit(unit)
            report = msgspec.structs.replace(report, oom_kills=oom_kill_count() - unit.oom_kills)
        await self._say(Said(report, clock.now()))

    async def _say_alive(self) -> None:
        while True:
            await asyncio.sleep(_ALIVE_EVERY_S)
            await self._say(Alive(clock.now()))

    async def _send_output(self) -> None:
        while True:
            await asyncio.sleep(_SEND_EVERY_S)
            for unit in list(self._units.values()):
                await self._send_log(unit)

    async def _send_log(self, unit: _Unit) -> None:
        if not self._sends_files or unit.log is None:
            return
        with contextlib.suppress(OSError), open_regular(unit.log) as file:
            while data := os.pread(file.fileno(), PIECE, unit.sent):
                unit.sent += len(data)  # before anything is awaited: its end may send the rest meanwhile
                await self._say(Piece(unit.id, data, clock.now()))

    async def _send_junit(self, unit: _Unit) -> None:
        if not self._sends_files or unit.junit is None or stamp_of(unit.junit) == unit.junit_before:
            return
        with contextlib.suppress(OSError), open_regular(unit.junit) as file:
            anew = True
            while (data := file.read(PIECE)) or anew:
                await self._say(Piece(unit.id, data, clock.now(), of_junit=True, anew=anew))
                anew = False


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise SoonerError(
            f"the run's folder {folder} cannot be made ({error.strerror}): pass --out FOLDER that every node can make"
        ) from None


def main(serve: Callable[[Agent], Any] = Agent.serve) -> None:
    """Entry point: `python -m sooner.run.backends.agent FD`, a socket to the runner."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    asyncio.run(serve(Agent(channel)))


if __name__ == "__main__":
    main()
