"""The controlling pytest's walk over all items: units go to workers, what they say is reported or judged again."""

import collections
import select
import signal
import time
from collections.abc import Sequence
from typing import Any, Final

import pytest

from sooner.door.durations import Durations
from sooner.door.earlier import Earlier
from sooner.door.evidence import Ledger
from sooner.door.hands import Hand, Judge, Workshop
from sooner.door.journal import Entry, Journal
from sooner.door.quarantine import Quarantined
from sooner.door.record import Record
from sooner.door.reporting import Reporter, how_it_ended, kept_of, message_of, outcome_of, seconds_of
from sooner.door.serving import Server
from sooner.door.units import DoorUnit, Level, units_of, works_of_units
from sooner.door.wider import Wider
from sooner.door.widths import Widths
from sooner.door.worker import Ran
from sooner.model.devices import Device, DeviceKind
from sooner.model.junit import HOLE, HUNG
from sooner.model.outcomes import Outcome
from sooner.run import clock
from sooner.schedule.order import ranks
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.work import Begin, Command, Ended, Policy, Start
from sooner.warm import pages

_WITHOUT_MEMORY: Final = (DeviceKind.VIRTUAL, DeviceKind.CPU)
_GRACE_S: Final = 3.0
"""Time to finish a test once the run is over before its end; and as long again to clean up after it was interrupted."""
_MANY_FORKS: Final = 100
"""From so many on it pays to make forks cheaper."""
_STACKS_S: Final = 0.3
"""Time for the stacks of a hung process to be written."""


class Loop:
    """One walk over all items.

    Args:
        session: The session that has collected.
        devices: The devices of the run.
        journal: Hears what became of each test's isolation.
        durations: What tests took before.
        record: Hears what is kept of each test.
        quarantined: Says whose failure fails no run.
    """

    def __init__(
        self,
        session: pytest.Session,
        devices: Sequence[Device],
        journal: Journal,
        durations: Durations,
        record: Record,
        *,
        quarantined: Quarantined,
    ) -> None:
        option = session.config.option
        self._session = session
        self._journal = journal
        self._durations = durations
        self._record = record
        self._reporter = Reporter(session, quarantined)
        self._hang_s: float = option.hang_timeout
        self._verifies = option.reuse == "verify"
        self._workshop = Workshop(session, devices, [item.nodeid for item in session.items])
        self._seconds = durations.of_items(session.items)
        is_open = option.isolation == "auto" and option.reuse == "on" and not self._workshop.refusal
        self._ledger = Ledger(session.config, is_open=is_open)
        expected_s = sum(self._seconds.values())
        self._widths = Widths(session.config, session.items, devices=len(devices), expected_s=expected_s)
        journal.widths = self._widths
        units = units_of(
            session.items,
            how=option.unit,
            isolation=option.isolation,
            reuse=option.reuse != "off",
            devices=len(devices),
            is_alone=None if self._ledger.says_nothing else self._is_alone,
            needs=self._widths.of,
            seconds=self._seconds,
        )
        self._devices = devices
        self._earlier = Earlier(session.items, units, self._seconds)
        self._schedule(units)
        self._hands: dict[tuple[tuple[int, ...], Level], Hand] = {}
        self._holds_memory = any(device.kind not in _WITHOUT_MEMORY for device in devices)
        self._judges: list[Hand] = []
        self._leaving: collections.deque[Hand] = collections.deque()
        """Workers that are done with everything but their exit: waited for at once where they hold device memory."""
        self._wider = Wider(session.items, len(devices), self._widths, are_pretended=not self._holds_memory)

    def run(self) -> Server | None:
        """Run all units; raises what pytest's own loop raises for `-x`, `--maxfail` and `session.shouldstop`.

        Returns:
            None; but in the process that workers are forked from, what that has to run, as near to pytest's own loop
            as can be.
        """
        units = self._units.values()
        if sum(unit.level is Level.FORK and not unit.is_by_evidence for unit in units) >= _MANY_FORKS:
            pages.collapse()
        if (server := self._workshop.begin()) is not None:
            return server
        try:
            for width in sorted({unit.devices for unit in units}):
                self._workshop.prepare(width)
            self._run_all()
            if self._wider.has_some:
                self._schedule(self._wider.units())
                self._run_all()
            self._retire(list(self._hands.values()))
            self._check_stop()
        finally:
            self._journal.workers = self._workshop.count
            self._end_all()
            self._ledger.save()
        return None

    def _schedule(self, units: Sequence[DoorUnit]) -> None:
        self._units = {unit.key: unit for unit in units}
        works = works_of_units(units, self._seconds)
        option = self._session.config.option
        orders = self._durations.are_known and not _orders_by_itself(option)
        order = ranks(works, self._devices) if orders else None
        # The next run of --stepwise takes everything before the failure that ended this one as passed.
        policy = Policy.SEQUENTIAL if getattr(option, "stepwise", False) else Policy.PACKED
        self._scheduler = Scheduler(works, self._devices, ranks=order, policy=policy, host_slots=1)

    def _is_alone(self, number: int) -> bool:
        return self._ledger.is_alone(self._session.items[number], self._seconds.get(number))

    def _run_all(self) -> None:
        self._carry_out(self._scheduler.handle(Begin(clock.now())))
        while not self._scheduler.is_done:
            self._step()

    def _check_stop(self) -> None:
        session = self._session
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)

    # What the scheduler commands

    def _carry_out(self, commands: Sequence[Command]) -> None:
        for command in commands:
            if isinstance(command, Start):
                self._start(self._units[command.key], command.devices)
            elif command.outcome is Outcome.HOLE:
                for number in self._units[command.key].items:
                    self._reporter.failure(number, f"{HOLE}{command.cause}")
                    self._record.add(
                        self._session.items[number].nodeid,
                        outcome="skipped_no_devices",
                        seconds=0.0,
                        devices=(),
                        worker=0,
                        message=command.cause,
                    )

    def _start(self, unit: DoorUnit, devices: tuple[int, ...]) -> None:
        hand = self._hands.get((devices, Level.WARM))
        if hand is not None and unit.level is Level.WARM:
            self._ask(hand, unit, unit.items)
            return
        if self._holds_memory:  # what an idle worker of another gang keeps on a device is not there for this one
            others = [other for other in self._hands.values() if other.devices != devices]
            self._retire([other for other in others if set(other.devices) & set(devices)])
        self._begin(unit, devices, unit.items)

    def _begin(self, unit: DoorUnit, devices: tuple[int, ...], items: Sequence[int]) -> None:
        """Make a worker for a unit and give it these items."""
        path, guarded = self._path(items[0]), unit.level is Level.WARM or unit.is_by_evidence
        hand = self._hands[devices, unit.level] = self._workshop.make(devices, unit.level, path, guarded=guarded)
        self._ask(hand, unit, items)
        if unit.level is Level.FORK:
            self._workshop.make_ready(len(devices))

    def _ask(self, hand: Hand, unit: DoorUnit, items: Sequence[int]) -> None:
        waits = "any failure" if unit.level is Level.WARM or unit.is_by_evidence else ""
        hand.ask(unit, items, waits="always" if waits and self._verifies else waits)

    def _path(self, number: int) -> str:
        return str(self._session.items[number].path)

    # What workers say

    def _step(self) -> None:
        """Wait for some worker to say something, to die, or to hang."""
        by_fd = {hand.process.channel.fileno(): hand for hand in (*self._hands.values(), *self._judges)}
        ends = {hand.process.ended: hand for hand in by_fd.values() if hand.process.ended is not None}
        ready, _, _ = select.select([*by_fd, *ends], [], [], self._hang_s / 10 if self._hang_s else None)
        for fd in ready:
            hand = by_fd.get(fd) or ends[fd]
            if fd in ends:
                hand.process.hang_up()
            elif self._is_here(hand):
                self._listen(hand)
            self._check_stop()
        if self._hang_s:
            for hand in filter(self._is_here, by_fd.values()):
                self._end_if_hung(hand)

    def _is_here(self, hand: Hand) -> bool:
        """Whether the worker was not ended meanwhile."""
        return self._hands.get((hand.devices, hand.level)) is hand or hand in self._judges

    def _listen(self, hand: Hand) -> None:
        messages = hand.receive()
        if messages is None:
            self._lost(hand)
            return
        for kind, value in messages:
            self._hear(hand, kind, value)

    def _hear(self, hand: Hand, kind: str, value: Any) -> None:
        match kind:
            case "items" if hand.judge is not None:
                hand.judge.ran = value[-1]
            case "items":
                with self._reporter.together():
                    for ran in value:
                        self._take(hand, ran)
            case "absent" if hand.judge is None:
                self._absent(hand, value)
            case "late":
                self._reporter.phases(*value)
            case "raised":
                self._raise(*value)
            case "done" if hand.judge is not None:
                self._judged(hand, hand.judge)
            case "done":
                self._done(hand, doubt=value)

    def _take(self, hand: Hand, ran: Ran) -> None:
        hand.left.remove(ran.item)
        hand.ran.append(ran.item)
        is_warm = hand.level is Level.WARM
        if (ran.has_failed and ran.ran_before > 0 and is_warm) or (self._verifies and is_warm):
            hand.judged = ran
            self._judge(hand, ran.item, ())
            return
        if ran.has_failed and (is_warm or hand.is_by_evidence):
            hand.judged = ran
            if before := self._may_need(hand, ran.item):
                self._judge(hand, ran.item, before)
            else:
                self._resume(hand, ran)
                self._conclude(hand, ran, ran)
            return
        if self._wider.holds_back(ran, len(hand.devices)):
            self._workshop.prepare(len(self._devices))
        else:
            self._conclude(hand, ran, self._wider.better(ran))
        hand.restored_in_unit = hand.restored_in_unit or bool(ran.restored)

    def _conclude(
        self,
        hand: Hand,
        ran: Ran,
        said: Ran,
        *,
        level: Level | None = None,
        pollution: bool = False,
        depends: bool = False,
    ) -> None:
        """Report an item with what `said` says; `ran` is how it ran in its worker."""
        item = self._session.items[ran.item]
        # Before pytest makes reports of them, in place.
        message, kept = message_of(said.messages), kept_of(said.messages)
        item.__dict__.setdefault("location", ran.location)  # a cached property
        self._reporter.item(ran.item, said.messages)
        seconds = seconds_of(said.messages)
        self._earlier.took(ran.item, seconds)
        outcome = outcome_of(said.messages)
        is_hole = kept == "skipped" and self._widths.wants_more(ran.item)
        self._remember(item, hand, "skipped_no_devices" if is_hole else kept, seconds, message)
        if hand.is_by_evidence and not depends:
            self._ledger.saw_alone(item, left=ran.discard, seconds=seconds, expected=self._seconds.get(ran.item))
        elif ran.discard or pollution or depends:
            self._ledger.saw_shared(item, discard=ran.discard, pollution=pollution, order=depends)
        self._journal.add(
            Entry(
                nodeid=item.nodeid,
                worker=hand.serial,
                level=level or hand.level,
                devices=len(hand.devices),
                outcome=outcome,
                restored=ran.restored,
                discard=ran.discard,
                pollution=pollution,
                depends=depends,
            )
        )
        if said.stop and not self._session.shouldstop:
            self._session.shouldstop = said.stop

    def _remember(self, item: pytest.Item, hand: Hand, outcome: str, seconds: float, message: str) -> None:
        self._durations.add(item, seconds)
        devices = tuple(self._devices[i].id for i in hand.devices)
        self._record.add(
            item.nodeid, outcome=outcome, seconds=seconds, devices=devices, worker=hand.serial, message=message
        )

    def _absent(self, hand: Hand, number: int) -> None:
        hand.left.remove(number)
        seen = f"{len(hand.devices)} devices are visible" if len(hand.devices) != 1 else "one device is visible"
        text = f"its id was not collected again while {seen}: its need is wrong, or the id is another one each time"
        self._reporter.failure(number, text)

    def _raise(self, kind: str, text: str, code: int | None) -> None:
        """What ends plain pytest in a test ends this one."""
        if kind == "KeyboardInterrupt":
            raise KeyboardInterrupt
        if kind == "Exception":
            raise RuntimeError(f"in a worker, outside its tests:\n{text}")
        pytest.exit(text, returncode=code)

    def _done(self, hand: Hand, *, doubt: str) -> None:
        unit, devices, left = hand.unit, hand.devices, hand.left
        hand.unit = None
        if doubt or hand.level is not Level.WARM:
            self._retire([hand])
        if unit is None:
            return
        if left:
            self._begin(unit, devices, left)
            return
        self._carry_out(self._scheduler.handle(Ended(clock.now(), unit.key, Outcome.PASSED)))

    # What is in doubt

    def _judge(self, hand: Hand, number: int, before: Sequence[int]) -> None:
        """Have a test judged in a process of its own, on the same devices: by itself, or after others."""
        unit = hand.unit
        assert unit is not None  # noqa: S101 - it has just run one of its items
        judge = self._workshop.make(hand.devices, Level.FORK, self._path(number), guarded=False)
        judge.judge = Judge(hand, number, before)
        judge.ask(unit, (*before, number), waits="")
        self._judges.append(judge)
        self._journal.judged_again += 1

    def _judged(self, judge_hand: Hand, judge: Judge) -> None:
        """Two runs of one test: if they agree the first one is reported, else the second, with what that means."""
        self._judges.remove(judge_hand)
        judge_hand.stop()
        judge_hand.last_words()
        self._workshop.unmake(judge_hand)
        hand, first, second = judge.waiting, judge.waiting.judged, judge.ran
        assert first is not None  # noqa: S101 - set before the judge was made
        passed = second is not None and second.item == judge.item and not second.has_failed
        if first.has_failed and not passed and not judge.before and (before := self._may_need(hand, judge.item)):
            self._judge(hand, judge.item, before)
            return
        if second is None or passed != first.has_failed or (judge.before and not passed):
            self._earlier.was_futile(judge.item, judge.before)
            self._conclude(hand, first, first)
        elif judge.before:
            self._conclude(hand, first, second, level=Level.FORK, depends=True)
        else:
            self._conclude(hand, first, second, level=Level.FORK, pollution=True)
            self._durations.add_pollution([self._session.items[i].nodeid for i in hand.ran])
        self._resume(hand, first)

    def _resume(self, hand: Hand, ran: Ran) -> None:
        """Let a worker go on that waits for a verdict."""
        hand.judged = None
        hand.restored_in_unit = hand.restored_in_unit or bool(ran.restored)
        hand.say("on")

    def _may_need(self, hand: Hand, number: int) -> Sequence[int]:
        """The tests that one that failed by itself may need before it; none where its failure is its own."""
        if hand.is_by_evidence:
            return self._before_in_file(number) if self._ledger.may_need_others(self._session.items[number]) else ()
        here = [i for i in hand.ran if i < number and hand.unit is not None and i in hand.unit.items]
        elsewhere = self._earlier.elsewhere(number, here)
        return sorted([*here, *elsewhere]) if elsewhere or hand.restored_in_unit else ()

    def _before_in_file(self, number: int) -> list[int]:
        items, path, first = self._session.items, self._path(number), number
        while first > 0 and str(items[first - 1].path) == path:
            first -= 1
        return list(range(first, number))

    # Workers that end

    def _lost(self, hand: Hand) -> None:
        """A worker died: the item that it ran is to blame, the others of its unit go on in a new one."""
        number, _ = hand.process.position.get()
        stacks = hand.process.position.stacks
        if hand.judge is not None:
            self._judged(hand, hand.judge)
            return
        del self._hands[hand.devices, hand.level]
        status = self._workshop.unmake(hand)
        unit, left = hand.unit, hand.left
        if hand.judged is not None:  # it died while it waited: its verdict is known
            self._drop_judge_of(hand)
            self._conclude(hand, hand.judged, hand.judged)
        elif not left:  # between its tests, or after them
            if hand.ran:
                self._say_how_it_left(hand, status)
        else:
            number = number if number in left else left[0]
            how = self._how(hand, status, stacks)
            self._reporter.failure(number, how)
            self._remember(self._session.items[number], hand, "crashed", 0.0, how)
            self._earlier.took(number, float("inf"))
            left.remove(number)
        if unit is not None and left:
            self._begin(unit, hand.devices, left)
        elif unit is not None:
            self._carry_out(self._scheduler.handle(Ended(clock.now(), unit.key, Outcome.CRASHED)))

    def _say_how_it_left(self, hand: Hand, status: int | None) -> None:
        """Report a worker that ended after its tests, before everything that they had set up was torn down."""
        where = "the process of the test ended before what its tests had set up was torn down"
        self._reporter.late_failure(hand.ran[-1], how_it_ended(status, "", where=where))

    def _how(self, hand: Hand, status: int | None, stacks: str) -> str:
        if hand.has_hung:
            return f"{HUNG}{self._hang_s:g} s (--hang-timeout)\n{stacks}"
        words = self._workshop.last_words(hand) if status is None or not hand.ran else ""
        return "\n".join(filter(None, (how_it_ended(status, stacks), words)))

    def _drop_judge_of(self, hand: Hand) -> None:
        for judge in [one for one in self._judges if one.judge is not None and one.judge.waiting is hand]:
            self._judges.remove(judge)
            judge.process.kill()
            self._workshop.unmake(judge)

    def _end_if_hung(self, hand: Hand) -> None:
        number, since = hand.process.position.get()
        if number < 0 or time.monotonic() - since < self._hang_s:
            return
        hand.process.signal(signal.SIGUSR2)
        time.sleep(_STACKS_S)
        hand.has_hung = True
        hand.process.kill()

    def _retire(self, hands: Sequence[Hand]) -> None:
        """Let workers tear down what they hold, and wait for them."""
        for hand in hands:
            self._hands.pop((hand.devices, hand.level), None)
            hand.stop()
        for hand in hands:
            for kind, value in hand.last_words():
                if kind in {"late", "raised"}:
                    self._hear(hand, kind, value)
            if hand.ran and not hand.has_torn_down:
                self._say_how_it_left(hand, self._workshop.unmake(hand))
            else:
                self._leaving.append(hand)
        while len(self._leaving) > (0 if self._holds_memory else len(self._devices)):
            self._workshop.unmake(self._leaving.popleft())

    def _end_all(self) -> None:
        """End what is left: workers may finish the item that they run and tear down.

        What takes longer is interrupted, so that it cleans up after itself, and then killed.
        """
        hands = [*self._hands.values(), *self._judges]
        for hand in hands:
            hand.process.position.ask_to_stop()
            hand.stop()
        late = hands
        for signum in (signal.SIGINT, signal.SIGKILL):
            deadline = time.monotonic() + _GRACE_S
            late = [hand for hand in late if not hand.ends_before(deadline)]
            for hand in late:
                hand.process.signal(signum)
        for hand in hands:
            self._workshop.unmake(hand)
        for hand in self._leaving:
            self._workshop.unmake(hand)
        self._hands.clear()
        self._judges.clear()
        self._leaving.clear()
        self._workshop.close()


def _orders_by_itself(option: Any) -> bool:
    """Whether the user asked pytest for an order."""
    return bool(getattr(option, "failedfirst", False) or getattr(option, "newfirst", False))
