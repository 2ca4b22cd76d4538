"""The scheduler: list scheduling with reservation and backfill over gangs of devices.

Units wait in an order of ranks (`sooner.schedule.order`). At every event the scheduler goes through them by rank and
starts what fits. The first that does not fit gets a *reservation*: the devices that will be free soonest, and the time
by which they are expected to be. Later units may use other devices, or reserved ones when they are expected to end
before that time (EASY backfilling: Lifka, "The ANL/IBM SP Scheduling System", 1995). A reservation is made once and
only ever brought forward, so a wide unit waits at most for what ran when it became first, plus one backfilled unit that
overran: a stream of narrow units cannot starve it, however wrong the estimates are.
"""

import heapq
from collections.abc import Container, Mapping, Sequence
from typing import Final, assert_never

from msgspec import Struct

from sooner.model.devices import Device
from sooner.model.outcomes import RETRIED, Outcome
from sooner.model.units import UnitKey
from sooner.schedule.fleet import Fleet, positions
from sooner.schedule.work import (
    Away,
    Begin,
    Command,
    Conclude,
    Ended,
    Input,
    Policy,
    PutAside,
    Reorder,
    Returned,
    Start,
    Stop,
    Work,
)

_FOREVER: Final = float("inf")
_Shape = tuple[int, int, bool]
"""What units must have in common to stand in one queue: width, memory in MiB, shared."""
_HOST: Final[_Shape] = (0, 0, False)
"""Units that need no device; only the host's slots limit them."""


class _Reservation(Struct):
    """Devices kept for one unit, and the time by which they are expected to be free."""

    index: int
    devices: int
    until: float
    awaited: int
    """Those of the devices on which still runs what ran when the reservation was made."""


class _Running(Struct, gc=False):
    index: int
    gang: int
    shared_mib: int | None


class Scheduler:
    """Places units on devices; see the module's docstring for the rule.

    Args:
        works: The units, in plan order; keys are unique and every `after` names one of them.
        devices: The devices of the run; commands name them by position.
        ranks: Rank of each unit (lower starts first), one for each of `works`; plan order where not given.
        policy: How to place them.
        retries: Further attempts that a unit may have after the first.
        host_slots: How many units that need no device may run at the same time.
    """

    def __init__(
        self,
        works: Sequence[Work],
        devices: Sequence[Device],
        *,
        ranks: Sequence[int] | None = None,
        policy: Policy = Policy.PACKED,
        retries: int = 0,
        host_slots: int = 1,
    ) -> None:
        self._works = works
        self._index = {work.key: i for i, work in enumerate(works)}
        if len(devices) == 1 and policy is Policy.PACKED:
            policy = Policy.SEQUENTIAL
        in_plan_order = ranks is None or policy is not Policy.PACKED
        self._ranks: Sequence[int] = range(len(works)) if in_plan_order or ranks is None else ranks
        self._policy = policy
        self._retries = retries
        self._host_free = host_slots
        self._fleet = Fleet(devices)
        self._ends = [0.0] * len(devices)
        """Expected end of what runs on each device; 0 where nothing does."""
        self._queues: dict[_Shape, list[tuple[int, int]]] = {}
        self._running: dict[UnitKey, _Running] = {}
        self._tries = [0] * len(works)
        """Attempts so far, -1 once a unit has its verdict."""
        self._last = [Outcome.HOLE] * len(works)
        """Outcome of the last attempt: the verdict of a unit that can no longer be retried."""
        self._avoid: dict[int, int] = {}
        self._reservation: _Reservation | None = None
        self._blockers = [len(set(work.after)) for work in works]
        self._followers: dict[UnitKey, list[int]] = {}
        for i, work in enumerate(works):
            for name in set(work.after):
                self._followers.setdefault(name, []).append(i)
        self._waiting = [True] * len(works)
        self._waiting_count = len(works)
        self._stopped = False

    @property
    def is_done(self) -> bool:
        """Whether nothing runs and nothing can start any more."""
        return not self._running and (self._stopped or self._waiting_count == 0)

    @property
    def has_waiting(self) -> bool:
        """Whether units are left that want to start."""
        return self._waiting_count > 0 and not self._stopped

    @property
    def placed(self) -> tuple[UnitKey, ...]:
        """Units that run now."""
        return tuple(self._running)

    @property
    def waiting(self) -> tuple[UnitKey, ...]:
        """Units that have not started, or will start again."""
        return tuple(work.key for work, waits in zip(self._works, self._waiting, strict=True) if waits)

    @property
    def may_want(self) -> int:
        """How many devices a further attempt of what runs now may want beside its own."""
        widths = (self._works[r.index].devices for r in self._running.values() if self._tries[r.index] <= self._retries)
        return 0 if self._stopped else max(widths, default=0)

    @property
    def idle(self) -> tuple[int, ...]:
        """Devices that are free and that nothing was started on."""
        return tuple(positions(self._fleet.free))

    def handle(self, event: Input) -> list[Command]:
        """Take one event in, give the commands that follow from it."""
        commands: list[Command] = []
        match event:
            case Begin():
                self._begin(commands)
            case Ended():
                self._end(event, commands)
            case Away(device=device):
                self._fleet.away |= 1 << device
                self._fleet.free &= ~(1 << device)
            case Returned(device=device):
                self._fleet.away &= ~(1 << device)
                self._fleet.free |= 1 << device & ~self._fleet.gone
            case PutAside(devices=devices):
                self._put_aside(sum(1 << device for device in devices), commands)
            case Reorder(ranks=ranks):
                self._reorder(ranks)
            case Stop():
                self._stopped = True
            case _:
                assert_never(event)
        if not self._stopped:
            self._fill(event.at, commands)
        return commands

    def _begin(self, commands: list[Command]) -> None:
        for i, blockers in enumerate(self._blockers):
            if not blockers and self._waiting[i]:
                self._enqueue(i, commands)

    def _fits_ever(self, work: Work) -> bool:
        return not work.devices or self._fleet.widest(work.memory_mib) >= work.devices

    def _enqueue(self, index: int, commands: list[Command]) -> None:
        """Let a unit wait for devices, or conclude it where no such gang is left."""
        work = self._works[index]
        if not self._fits_ever(work):
            self._conclude_unplaced(index, commands)
            return
        shape = (work.devices, work.memory_mib, work.shared) if work.devices else _HOST
        queue = self._queues.setdefault(shape, [])
        heapq.heappush(queue, (self._ranks[index], index))

    def _conclude_unplaced(self, index: int, commands: list[Command]) -> None:
        """A unit that fits nowhere: a coverage hole, or what its last attempt said."""
        work = self._works[index]
        present = self._fleet.widest(work.memory_mib)
        size = f" of {work.memory_mib} MiB" if work.memory_mib else ""
        there = f"no node of the run has more than {present}" if self._fleet.has_nodes else f"the run has {present}"
        cause = f"needs {work.devices} devices{size}, {there}"
        self._conclude(index, self._last[index], cause if self._last[index] is Outcome.HOLE else "", commands)

    def _conclude(self, index: int, outcome: Outcome, cause: str, commands: list[Command]) -> None:
        """Give the verdict, and settle what waits for this unit; iterative, as chains can be long."""
        pending = [(index, outcome, cause)]
        while pending:
            i, outcome, cause = pending.pop()
            if self._tries[i] < 0:
                continue
            self._tries[i] = -1
            self._waiting_count -= self._waiting[i]
            self._waiting[i] = False
            key = self._works[i].key
            commands.append(Conclude(key, outcome, cause))
            for follower in self._followers.get(key, ()):
                if outcome is Outcome.NOT_RUN:
                    pending.append((follower, outcome, cause))
                    continue
                if outcome is not Outcome.PASSED:
                    pending.append((follower, Outcome.SKIPPED, f"runs after {key}, which ended as {outcome}"))
                    continue
                self._blockers[follower] -= 1
                if not self._blockers[follower] and self._waiting[follower]:
                    self._enqueue(follower, commands)

    def _end(self, event: Ended, commands: list[Command]) -> None:
        running = self._running.pop(event.key)
        index = running.index
        if not self._works[index].devices:
            self._host_free += 1
        freed = self._fleet.give_back(running.gang, shared_mib=running.shared_mib)
        for i in positions(freed):
            self._ends[i] = 0.0
        self._bring_forward(freed, event.at)
        held_back = sum(1 << i for i in event.held_back)
        self._fleet.free |= freed & ~held_back & ~self._fleet.gone & ~self._fleet.away
        self._last[index] = event.outcome
        if event.outcome in RETRIED and self._tries[index] <= self._retries and not self._stopped:
            if event.outcome is not Outcome.FAILED:
                self._avoid[index] = self._avoid.get(index, 0) | running.gang
            self._waiting[index] = True
            self._waiting_count += 1
            self._enqueue(index, commands)
        else:
            self._conclude(index, event.outcome, "", commands)

    def _bring_forward(self, freed: int, now: float) -> None:
        """What a reservation waits for ended sooner than expected: nothing is backfilled any longer than needed."""
        if self._reservation is not None:
            self._reservation.awaited &= ~freed
            ends = (self._ends[i] for i in positions(self._reservation.awaited))
            self._reservation.until = min(self._reservation.until, max(ends, default=now))

    def _put_aside(self, devices: int, commands: list[Command]) -> None:
        self._fleet.gone |= devices
        self._fleet.free &= ~devices
        if self._reservation and self._reservation.devices & devices:
            self._reservation = None
        for shape in [shape for shape in self._queues if shape[0]]:
            if self._fleet.widest(shape[1]) < shape[0]:
                for _, index in self._queues.pop(shape):
                    self._conclude_unplaced(index, commands)

    def _reorder(self, ranks: Mapping[UnitKey, int]) -> None:
        """Change the ranks of units that wait; a reservation stays: who was first once is not overtaken."""
        if self._policy is not Policy.PACKED:
            return
        changed = list(self._ranks)
        for key, rank in ranks.items():
            changed[self._index[key]] = rank
        if self._reservation is not None:
            changed[self._reservation.index] = min(changed) - 1
        self._ranks = changed
        for queue in self._queues.values():
            queue[:] = sorted((changed[index], index) for _, index in queue)

    def _fill(self, now: float, commands: list[Command]) -> None:
        match self._policy:
            case Policy.PACKED:
                self._fill_packed(now, commands)
            case Policy.WAVES:
                if not self._running:
                    self._fill_in_order(now, commands, limit=len(self._works))
            case Policy.SEQUENTIAL:
                if not self._running:
                    self._fill_in_order(now, commands, limit=1)
            case _:
                assert_never(self._policy)

    def _fill_in_order(self, now: float, commands: list[Command], *, limit: int) -> None:
        started = 0
        while started < limit and (shape := self._next_shape(())):
            gang = self._gang(shape, allowed=self._fleet.all, avoid=0)
            if gang is None:
                return
            self._start_next(shape, gang, now, commands)
            started += 1

    def _fill_packed(self, now: float, commands: list[Command]) -> None:
        """Start by rank whatever fits; keep the devices of the first that does not."""
        stuck: set[_Shape] = set()
        while (self._fleet.has_room or self._queues.get(_HOST)) and (shape := self._next_shape(stuck)):
            index = self._queues[shape][0][1]
            gang = self._gang(shape, allowed=self._allowed(index, now), avoid=self._avoid.get(index, 0))
            if gang is None:
                stuck.add(shape)
                self._reserve(index, now)
                continue
            if self._reservation and self._ranks[index] <= self._ranks[self._reservation.index]:
                self._reservation = None  # fulfilled, or overtaken by a unit that comes first (a retry)
            self._start_next(shape, gang, now, commands)

    def _next_shape(self, stuck: Container[_Shape]) -> _Shape | None:
        best: _Shape | None = None
        best_rank = -1
        for shape, queue in self._queues.items():
            if queue and shape not in stuck and (best is None or queue[0][0] < best_rank):
                best, best_rank = shape, queue[0][0]
        return best

    def _gang(self, shape: _Shape, *, allowed: int, avoid: int) -> int | None:
        width, memory_mib, shared = shape
        if not width:
            return 0 if self._host_free else None
        if shared:
            return self._fleet.shared_gang(width, memory_mib=memory_mib, allowed=allowed) or None
        return self._fleet.gang(width, memory_mib=memory_mib, allowed=allowed, avoid=avoid) or None

    def _allowed(self, index: int, now: float) -> int:
        kept = self._reservation
        if kept is None or self._ranks[index] <= self._ranks[kept.index]:
            return self._fleet.all
        seconds = self._works[index].seconds
        if seconds is not None and now + seconds <= kept.until < _FOREVER:
            return self._fleet.all
        return self._fleet.all & ~kept.devices

    def _reserve(self, index: int, now: float) -> None:
        """Keep the devices that will be free soonest, unless somebody of a lower rank already has them.

        Where nothing is free there is nothing to keep: whoever comes first by rank gets what ends next.
        """
        kept = self._reservation
        work = self._works[index]
        if not work.devices or not self._fleet.has_room:
            return
        if kept is not None and self._ranks[kept.index] <= self._ranks[index]:
            return
        candidates = self._fleet.of_one_node(self._fleet.fitting(work.memory_mib) & ~self._fleet.away)
        soonest = [self._soonest(some, work.devices, now) for some in candidates if some.bit_count() >= work.devices]
        if not soonest:
            return  # another run holds what is missing: nobody knows until when, so the others go on
        until, devices = min(soonest)
        self._reservation = _Reservation(index, devices, until, devices & ~self._fleet.free)

    def _soonest(self, devices: int, width: int, now: float) -> tuple[float, int]:
        """When so many of these are expected to be free, and which."""
        ends = sorted((max(now, self._ends[i]), i) for i in positions(devices))[:width]
        return ends[-1][0], sum(1 << i for _, i in ends)

    def _start_next(self, shape: _Shape, gang: int, now: float, commands: list[Command]) -> None:
        _, index = heapq.heappop(self._queues[shape])
        work = self._works[index]
        shared_mib = work.memory_mib if work.shared else None
        self._fleet.take(gang, shared_mib=shared_mib)
        end = now + work.seconds if work.seconds is not None else _FOREVER
        places = tuple(positions(gang))
        for i in places:
            if end > self._ends[i]:  # noqa: PLR1730 - `max` takes twice as long, 100,000 times
                self._ends[i] = end
        if not work.devices:
            self._host_free -= 1
        self._tries[index] += 1
        self._waiting[index] = False
        self._waiting_count -= 1
        self._running[work.key] = _Running(index, gang, shared_mib)
        attempt = work.attempts_before + self._tries[index]
        commands.append(Start(work.key, places, attempt))
