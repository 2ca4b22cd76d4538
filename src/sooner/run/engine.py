"""The dispatcher: carries out what the scheduler commands, and tells it what happened.

One event loop, one process for each unit. It decides nothing: which unit starts where is the scheduler's, how an
attempt ended is `attempts`', whether a device is at fault is `devices`'. What it does is keep these in step, and make
sure that every planned unit has exactly one verdict when it returns.
"""

import asyncio
import itertools
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from sooner.model.devices import Device, DeviceKind
from sooner.model.errors import DevicesError
from sooner.model.events import (
    Attempt,
    DeviceChanged,
    Event,
    Finished,
    Interrupted,
    RunFinished,
    RunStarted,
    Started,
    Verdict,
    exit_code_of,
)
from sooner.model.outcomes import BROKEN, Outcome
from sooner.model.units import Plan, Unit, UnitKey
from sooner.run import clock
from sooner.run.attempts import attempt_of, oom_kill_count
from sooner.run.folder import RunFolder, log_names
from sooner.run.holding import Holding
from sooner.run.journal import Journal
from sooner.run.junit_files import Stamp, stamp_of
from sooner.run.launch import spawn_of
from sooner.run.machine import LeasedPort, Machine, Watch
from sooner.run.quarantined import Quarantined
from sooner.run.records import kept_junit_path, own_junit_path
from sooner.run.replanner import Replanner
from sooner.run.supervision.client import Report, decode_wait_status
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.strikes import Strikes
from sooner.schedule.work import Away, Begin, Command, Conclude, Ended, PutAside, Reorder, Returned, Start, Stop, Work

_LEASE_POLL_S: Final = 0.1
_SETTLE_POLL_S: Final = 0.2
_REPLAN_DELAY_S: Final = 0.02
"""The next unit starts first: it needs the processors more."""
_SHELL_SIGNAL_BASE: Final = 128


class RunOptions(Struct, frozen=True, kw_only=True):
    """How a run treats its units."""

    run_id: str
    host_slots: int = 1
    """Units without a device that run at once."""
    search: bool = True
    """Whether a better order may be looked for while the suite runs."""
    timeout_s: float = 0.0
    """For units that have none of their own; 0 is no limit."""
    grace_s: float = 5.0
    """From SIGTERM to SIGKILL."""
    settle_s: float = 15.0
    """How long a device may take to be proven free after a unit, before it is put aside."""


class _Running(Struct):
    unit: Unit
    attempt: int
    positions: tuple[int, ...]
    machine: Machine
    ports: Sequence[LeasedPort]
    timeout_s: float
    oom_kills: int = 0
    """OOM kills of the machine just after it started."""
    started_at: float = 0.0
    asked_to_stop: bool = False
    junit_before: Stamp | None = None
    """Stamp of its own JUnit file before it started."""


class Engine:
    """Runs units to their verdicts.

    Args:
        plan: Everything that is planned, what has its verdict already included.
        devices: The devices of the run, in the scheduler's order.
        scheduler: Knows the units that are still to run.
        works: The same units, by key.
        folder: The run's folder, held.
        machines: Makes what is known of each machine, by the name of its node, given who hears reports; that of the
            empty name is this one, on which units without a device run.
        options: How to treat the units.
        listeners: Hear every event once it is on the disk.
        verdicts: Verdicts from before a resume.
        attempts: Attempts from before a resume, of units that have no verdict.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        devices: Sequence[Device],
        scheduler: Scheduler,
        works: Mapping[UnitKey, Work],
        folder: RunFolder,
        machines: Callable[[Callable[[Report], None]], Mapping[str, Machine]],
        options: RunOptions,
        listeners: Sequence[Callable[[Event], None]],
        verdicts: Mapping[UnitKey, Verdict],
        attempts: Mapping[UnitKey, Sequence[Attempt]],
    ) -> None:
        self._plan = plan
        self._devices = devices
        self._scheduler = scheduler
        self._folder = folder
        self._options = options
        self._units = {unit.key: unit for unit in plan.units}
        self._logs = log_names(plan)
        self._quarantined = Quarantined(folder)
        self._machines = machines(self._on_report)
        books = {node: machine.book for node, machine in self._machines.items()}
        self._holding = Holding(books, devices, holder=options.run_id)
        self._journal = Journal(folder, units=len(plan.units), listeners=listeners)
        self._strikes = Strikes(len(devices))
        self._replanner = Replanner(
            works, devices, host_slots=options.host_slots, found=lambda ranks: self._guarded(self._reorder, ranks)
        )
        self._verdicts = dict(verdicts)
        self._attempts = {key: list(earlier) for key, earlier in attempts.items()}
        self._running: dict[str, _Running] = {}
        self._settling: dict[int, float] = {}
        """Devices that are not proven free yet, and until when they may take."""
        self._held_elsewhere: set[int] = set()
        """Devices that another run held when this one began, as the journal was told."""
        self._gather_later: asyncio.TimerHandle | None = None
        self._began_at = 0.0
        self._interrupted = ""
        self._failure: BaseException | None = None
        self._done = asyncio.Event()
        self._serial = itertools.count()

    @property
    def interrupted(self) -> bool:
        """Whether the run was asked to stop before its end."""
        return bool(self._interrupted)

    @property
    def lost_events(self) -> int:
        """Events for which the journal had no room."""
        return self._journal.lost_events

    async def run(self) -> dict[UnitKey, Verdict]:
        """Run everything; returns the verdict of every planned unit.

        Raises:
            SupervisionError: Units can no longer be started.
        """
        self._began_at = clock.now()
        try:
            for machine in self._machines.values():
                machine.starter.listen()
            self._guarded(self._begin)
            await self._done.wait()
            if self._failure is not None:
                raise self._failure
            self._conclude_rest()
            code = exit_code_of(self._verdicts.values(), interrupted=self.interrupted)
            self._journal.append(RunFinished(at=clock.now(), run=self._options.run_id, exit_code=code))
        finally:
            for machine in self._machines.values():
                machine.starter.close()
            self._holding.close()
            for machine in self._machines.values():
                machine.ports.close()
            await self._journal.close()
        return self._verdicts

    def _guarded(self, action: Callable[..., Any], *arguments: object) -> None:
        """Do something in a callback of the loop; what it raises ends the run instead of being lost."""
        try:
            action(*arguments)
        except BaseException as error:  # noqa: BLE001 - raised again by `run`
            self._failure = self._failure or error
            self._done.set()

    def _begin(self) -> None:
        self._journal.append(
            RunStarted(
                at=self._began_at,
                run=self._options.run_id,
                units=len(self._plan.units),
                pending=len(self._plan.units) - len(self._verdicts),
                devices=tuple(device.id for device in self._devices),
            )
        )
        gained = self._holding.acquire()
        for position in gained:
            self._watch(position).baseline(self._devices[position])
        for position in self._holding.missing:
            self._scheduler.handle(Away(self._began_at, position))
            self._held_elsewhere.add(position)
            holder = self._holding.holder_of(position)
            self._change(position, "held_elsewhere", f"held by {holder}" if holder else "")
        self._apply(self._scheduler.handle(Begin(self._began_at)))

    def _change(self, position: int, state: str, reason: str = "") -> None:
        self._journal.append(
            DeviceChanged(at=clock.now(), device=self._devices[position].id, state=state, reason=reason)
        )

    def _machine_of(self, positions: Sequence[int]) -> Machine:
        return self._machines[self._devices[positions[0]].node if positions else ""]

    def _watch(self, position: int) -> Watch:
        return self._machines[self._devices[position].node].watch

    # What the scheduler commands

    def _apply(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case Start():
                    self._start(command)
                case Conclude():
                    self._conclude(command)
        self._tend_leases()
        if self._scheduler.is_done and not self._running:
            self._done.set()

    def _start(self, command: Start) -> None:
        unit = self._units[command.key]
        spawn_id = str(next(self._serial))
        machine = self._machine_of(command.devices)
        try:
            leased = machine.ports.lease(unit.need.ports)
        except DevicesError as error:
            self._running[spawn_id] = self._entry(unit, command, machine, [])
            lost = Report(id=spawn_id, kind="lost", at=clock.now(), error=str(error))
            asyncio.get_running_loop().call_soon(self._on_report, lost)
            return
        running = self._running[spawn_id] = self._entry(unit, command, machine, leased)
        if (junit := own_junit_path(unit, self._folder)) is not None:
            running.junit_before = stamp_of(junit)
        machine.starter.spawn(
            spawn_of(
                unit,
                spawn_id=spawn_id,
                attempt=command.attempt,
                devices=[self._devices[i] for i in command.devices],
                ports=[port.number for port in leased],
                folder=self._folder,
                log=self._logs[unit.key],
                run_id=self._options.run_id,
                timeout_s=running.timeout_s,
                grace_s=self._options.grace_s,
                leases=self._holding.descriptors(command.devices),
            )
        )

    def _entry(self, unit: Unit, command: Start, machine: Machine, ports: Sequence[LeasedPort]) -> _Running:
        return _Running(
            unit=unit,
            attempt=command.attempt,
            positions=command.devices,
            machine=machine,
            ports=ports,
            timeout_s=unit.timeout_s or self._options.timeout_s,
        )

    def _conclude(self, command: Conclude) -> None:
        unit = self._units[command.key]
        attempts = tuple(self._attempts.get(command.key, ()))
        earlier = {attempt.outcome for attempt in attempts[:-1]}
        verdict = Verdict(
            at=clock.now(),
            unit=unit.name,
            variant=unit.variant,
            outcome=command.outcome,
            cause=command.cause or (attempts[-1].cause if attempts else self._interrupted),
            flaky=command.outcome is Outcome.PASSED and bool(earlier & BROKEN),
            attempts=attempts,
            queued_s=max(0.0, attempts[0].started_at - self._began_at) if attempts else 0.0,
            duration_s=attempts[-1].ended_at - attempts[-1].started_at if attempts else 0.0,
            log=self._logs[command.key] if attempts else "",
            quarantined=self._quarantined.holds(
                unit, command.outcome, attempts, kept_junit_path(self._folder, self._logs[command.key])
            ),
        )
        self._verdicts[command.key] = verdict
        self._journal.append(verdict)

    def _conclude_rest(self) -> None:
        """Units that were never started because the run was interrupted."""
        for unit in self._plan.units:
            if unit.key not in self._verdicts:
                self._conclude(Conclude(unit.key, Outcome.NOT_RUN, self._interrupted or "nothing could start it"))

    # What wardens report

    def _on_report(self, report: Report) -> None:
        match report.kind:
            case "started":
                self._guarded(self._started, report)
            case "gone":
                self._guarded(self._node_gone, report)
            case _:
                self._guarded(self._ended, report)

    def _started(self, report: Report) -> None:
        running = self._running[report.id]
        running.started_at = report.at
        running.oom_kills = oom_kill_count()
        running.machine.ports.lease_ahead()
        self._journal.append(
            Started(
                at=report.at,
                unit=running.unit.name,
                variant=running.unit.variant,
                attempt=running.attempt,
                devices=self._ids(running.positions),
                pid=report.pid,
                log=self._logs[running.unit.key],
            )
        )

    def _ids(self, positions: Sequence[int]) -> tuple[str, ...]:
        return tuple(self._devices[i].id for i in positions)

    def _ended(self, report: Report) -> None:
        running = self._running.pop(report.id)
        for port in running.ports:
            port.release()
        key = running.unit.key
        fault = next((fault for i in running.positions if (fault := self._fault(i))), "")
        attempt = attempt_of(
            report,
            running.unit,
            folder=self._folder,
            log=self._logs[key],
            devices=self._ids(running.positions),
            started_at=report.started_at or running.started_at or report.at,
            timeout_s=running.timeout_s,
            asked_to_stop=running.asked_to_stop,
            oom_kills=self._oom_kills(report, running),
            device_fault=fault,
            junit_before=running.junit_before,
        )
        self._attempts.setdefault(key, []).append(attempt)
        now = clock.now()
        held_back = self._not_proven_free(running.positions, now)
        self._judge_devices(running, attempt, fault)  # first: a retry must not go where the fault is
        commands = self._scheduler.handle(Ended(now, key, attempt.outcome, held_back))
        for command in commands:  # first, because a device waits for it
            if isinstance(command, Start):
                self._start(command)
        self._journal.append(
            Finished(
                at=attempt.ended_at,
                unit=running.unit.name,
                variant=running.unit.variant,
                attempt=running.attempt,
                devices=attempt.devices,
                result=attempt,
                retried=not any(isinstance(c, Conclude) and c.key == key for c in commands),
            )
        )
        self._apply(command for command in commands if not isinstance(command, Start))
        asyncio.get_running_loop().call_later(_REPLAN_DELAY_S, self._guarded, self._replan)

    def _replan(self) -> None:
        """Have a better order of what waits looked for."""
        if not self._options.search or self._done.is_set():
            return
        now = clock.now()
        running = [(r.unit.key, now - (r.started_at or now)) for r in self._running.values()]
        self._replanner.consider(self._scheduler.waiting, running, now)

    def _reorder(self, ranks: Mapping[UnitKey, int]) -> None:
        if not self._done.is_set():
            self._apply(self._scheduler.handle(Reorder(clock.now(), ranks)))

    def _node_gone(self, report: Report) -> None:
        """A machine was lost: its devices with it; what ran there is reported for itself."""
        self._put_aside([i for i, device in enumerate(self._devices) if device.node == report.id], report.error)

    @staticmethod
    def _oom_kills(report: Report, running: _Running) -> int:
        if not _was_killed(report):
            return 0
        return oom_kill_count() - running.oom_kills if report.oom_kills is None else report.oom_kills

    # Devices

    def _fault(self, position: int) -> str:
        return self._watch(position).fault(self._devices[position])

    def _not_proven_free(self, positions: Sequence[int], now: float) -> tuple[int, ...]:
        """Devices that something still uses: they are watched until they are free or the time is over.

        A device that other shared units still run on cannot be proven free, and need not be.
        """
        shared = {i for running in self._running.values() for i in running.positions}
        alone = [i for i in positions if self._is_real(i) and i not in shared]
        busy = tuple(i for i in alone if self._watch(i).not_free(self._devices[i]))
        for position in busy:
            if position not in self._settling:
                self._settling[position] = now + self._options.settle_s
                asyncio.get_running_loop().call_later(_SETTLE_POLL_S, self._guarded, self._settle, position)
        return busy

    def _is_real(self, position: int) -> bool:
        return self._devices[position].kind not in (DeviceKind.VIRTUAL, DeviceKind.CPU)

    def _settle(self, position: int) -> None:
        reason = self._watch(position).not_free(self._devices[position])
        now = clock.now()
        if reason and now < self._settling[position]:
            asyncio.get_running_loop().call_later(_SETTLE_POLL_S, self._guarded, self._settle, position)
            return
        del self._settling[position]
        if reason:
            self._put_aside([position], f"not free {self._options.settle_s:g} s after its last unit: {reason}")
        else:
            self._apply(self._scheduler.handle(Returned(now, position)))

    def _judge_devices(self, running: _Running, attempt: Attempt, fault: str) -> None:
        """Put aside a device that reported a fault, or that one unit after the other crashes on.

        A fault that only the output of a gang speaks of cannot be laid on one of its members.
        """
        if fault:
            faulty = [i for i in running.positions if self._fault(i)]
        elif attempt.cause.startswith("device fault"):
            faulty = [i for i in running.positions if len(running.positions) == 1]
        else:
            for position in self._strikes.note(running.unit.key, running.positions, attempt.outcome):
                self._put_aside([position], "three different units in a row crashed on it, others passed elsewhere")
            return
        for position in faulty:
            self._put_aside([position], attempt.cause)
            if self._is_real(position):
                running.machine.book.put_aside(self._devices[position], attempt.cause, time.time())

    def _put_aside(self, positions: Sequence[int], reason: str) -> None:
        there = tuple(position for position in positions if position not in self._holding.gone)
        if not there:
            return
        self._holding.gone.update(there)
        for position in there:
            self._change(position, "put_aside", reason)
        self._apply(self._scheduler.handle(PutAside(clock.now(), there)))

    def _tend_leases(self) -> None:
        """Give idle devices back when nothing can want them any more, gather missing ones when something does."""
        if not self._scheduler.has_waiting:
            self._let_go(self._scheduler.idle[self._scheduler.may_want :])
            return
        if self._holding.missing and self._gather_later is None:
            loop = asyncio.get_running_loop()
            self._gather_later = loop.call_later(_LEASE_POLL_S, self._guarded, self._gather)

    def _let_go(self, positions: Sequence[int]) -> None:
        for position in self._holding.release(positions):
            self._scheduler.handle(Away(clock.now(), position))

    def _gather(self) -> None:
        """Take what others gave back. What stays idle then only waits for more: that needs the right to gather."""
        self._gather_later = None
        if not self._scheduler.has_waiting:
            return
        for position in self._holding.acquire():
            self._watch(position).baseline(self._devices[position])
            if position in self._held_elsewhere:
                self._held_elsewhere.discard(position)
                self._change(position, "available")
            self._apply(self._scheduler.handle(Returned(clock.now(), position)))
        if not self._holding.missing or not self._scheduler.idle:
            self._holding.end_gathering()
        elif not self._holding.may_gather():
            self._let_go(self._scheduler.idle)
        self._tend_leases()

    # Being asked to stop

    def interrupt(self, signum: int) -> None:
        """A signal asks for the end, in the event loop. First: let units clean up. Again: no more grace."""
        name = signal.Signals(signum).name
        if self._interrupted:
            for spawn_id, running in self._running.items():
                running.machine.starter.kill(spawn_id)
            return
        self._interrupted = f"the run was interrupted by {name}"
        self._journal.append(Interrupted(at=clock.now(), reason=name))
        self._scheduler.handle(Stop(clock.now()))
        for spawn_id, running in self._running.items():
            running.asked_to_stop = True
            running.machine.starter.stop(spawn_id)
        self._apply(())


def _was_killed(report: Report) -> bool:
    """Whether a unit, or a child that its shell speaks of, died of SIGKILL."""
    if report.status is None:
        return False
    code, number = decode_wait_status(report.status)
    return number == signal.SIGKILL or code == _SHELL_SIGNAL_BASE + signal.SIGKILL
