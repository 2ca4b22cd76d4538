"""The general replay of pools, event by event: whatever `fifo.py` cannot, at a few microseconds an event.

Jobs have priorities, wait for each other, and are cancelled by newer pushes; machines are on for good, or booted when
jobs wait and let go when they idle, or are nodes that split into pieces of 1, 2, 4, 8 devices.
"""

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from math import inf, isnan, nan

from msgspec import Struct

from sooner.analysis.sizing.facts import Node, Steps

_ENDED, _CHANGED, _BOOTED, _IDLED, _READY, _GIVEN_UP = range(6)
"""Kinds of events; at one moment machines become free before jobs ask for them."""


class Task(Struct, frozen=True, kw_only=True, gc=False):
    """One job of a replay."""

    label: str
    created: float
    seconds: float
    after: tuple[int, ...] = ()
    """Positions of the jobs that must have ended."""
    priority: float = 0
    """Higher first; equals in the order in which they came."""
    patience: float = inf
    """When it is given up if it still waits."""
    group: str = ""
    """A newer job of another `push` in this group cancels the older ones, waiting or running."""
    push: str = ""
    node: int = -1
    """Position of the node that it takes, where it fits there; -1: the fullest on which it fits."""


class Machines(Struct, frozen=True, kw_only=True):
    """Machines of one label."""

    capacity: Steps
    boot_s: float = 0.0
    idle_s: float | None = None
    """Seconds after which an idle machine is let go, to be booted again when needed; None: they stay on, and `boot_s`
    is what handing one to a job takes."""


class Nodes(Struct, frozen=True, kw_only=True):
    """Nodes that several labels share."""

    nodes: tuple[Node, ...]
    handover_s: float = 0.0
    reserves: bool = True
    """Whether what is first in the queue is waited for; without it, wide jobs starve behind narrow ones."""


class Played(Struct, frozen=True):
    """What became of each task; NaN for what never happened."""

    ready: list[float]
    """When it joined the queue: created, and all that it waits for had ended."""
    started: list[float]
    completed: list[float]


def play(tasks: Sequence[Task], pools: Mapping[str, Machines | Nodes]) -> Played:
    """Replay tasks on pools.

    Args:
        tasks: In any order.
        pools: By label; several labels may share one `Nodes` (the same object). Tasks of a label without a pool start
            at once.
    """
    return _Replay(tasks, pools).played()


class _Replay:
    """One replay: a heap of events, a queue for each pool."""

    def __init__(self, tasks: Sequence[Task], pools: Mapping[str, Machines | Nodes]) -> None:
        self._tasks = tasks
        self._events: list[tuple[float, int, int, int]] = []
        """(time, kind, order, what)."""
        count = len(tasks)
        self._result = Played([nan] * count, [nan] * count, [nan] * count)
        self._missing = [len(task.after) for task in tasks]
        self._waiting_for: dict[int, list[int]] = {}
        self._gone = [False] * count
        self._groups: dict[str, tuple[str, list[int]]] = {}
        self._came: dict[tuple[str, str], float] = {}
        """When each push of a group did: its first job. What is ready later is not newer for that."""
        for task in tasks:
            if task.group:
                key = task.group, task.push
                self._came[key] = min(task.created, self._came.get(key, inf))
        made: dict[int, _Fixed | _Scaled | _Split] = {}
        self._order = 0
        self._pools: dict[str, _Fixed | _Scaled | _Split] = {}
        self._numbered: list[_Fixed | _Scaled | _Split] = []
        for label, pool in pools.items():
            if id(pool) not in made:
                made[id(pool)] = self._made(pool)
                self._numbered.append(made[id(pool)])
            self._pools[label] = made[id(pool)]
        self._pool_of = [self._pools.get(task.label) for task in tasks]
        self._places = [-task.priority for task in tasks]
        for index, task in enumerate(tasks):
            for other in task.after:
                self._waiting_for.setdefault(other, []).append(index)
        for followers in self._waiting_for.values():  # they come at one moment: the machine is for who is first
            followers.sort(key=self._places.__getitem__)
        self._arrivals = sorted((task.created, index) for index, task in enumerate(tasks) if not task.after)
        """Of tasks that wait for no other; kept out of the heap of events, which stays small so."""

    def _made(self, pool: Machines | Nodes) -> "_Fixed | _Scaled | _Split":
        number = len(self._numbered)
        match pool:
            case Nodes():
                return _Split(self, pool)
            case Machines(idle_s=None):
                return _Fixed(self, pool, number)
            case _:
                return _Scaled(self, pool, number)

    def at(self, time: float, kind: int, what: int) -> None:
        """Plan an event."""
        self._order += 1
        heappush(self._events, (time, kind, self._order, what))

    def played(self) -> Played:
        """Play to the end."""
        events = self._events
        for at, index in self._arrivals:
            while events and events[0][0] <= at:
                self._happen(*heappop(events))
            self._ready(index, at)
        while events:
            self._happen(*heappop(events))
        return self._result

    def _happen(self, now: float, kind: int, _order: int, what: int) -> None:
        if kind == _ENDED:
            self._ended(what, now)
        elif kind == _READY:
            self._ready(what, now)
        elif kind == _GIVEN_UP:
            self._give_up(what, now)
        else:
            pool = self._numbered[what]
            if not isinstance(pool, _Split):
                pool.moved(kind, now)

    def _ready(self, index: int, now: float) -> None:
        task = self._tasks[index]
        if self._gone[index] or (task.group and self._is_outdated(task)):
            return
        self._result.ready[index] = now
        if task.group:
            self._cancel_older(index, now)
        pool = self._pool_of[index]
        if pool is None:
            self.start(index, now, 0.0)
        else:
            pool.join(index, now)
            if task.patience < inf and isnan(self._result.started[index]):
                self.at(max(now, task.patience), _GIVEN_UP, index)

    def _give_up(self, index: int, now: float) -> None:
        if isnan(self._result.started[index]) and not self._gone[index]:
            self._gone[index] = True
            self._result.completed[index] = now
            for follower in self._waiting_for.get(index, ()):
                self._gone[follower] = True
            self._stop_waiting(index, now)

    def _is_outdated(self, task: Task) -> bool:
        """Whether a newer push of its group was there before this one was ready: it never happens."""
        push, _ = self._groups.get(task.group, (task.push, []))
        return self._came[task.group, task.push] < self._came[task.group, push]

    def _cancel_older(self, index: int, now: float) -> None:
        task = self._tasks[index]
        push, members = self._groups.get(task.group, (task.push, []))
        if push != task.push:
            self._cancel(members, now)
            push, members = task.push, []
        members.append(index)
        self._groups[task.group] = (push, members)

    def _cancel(self, members: Sequence[int], now: float) -> None:
        """All of them at once: a machine that one gives back is not for another of them."""
        result = self._result
        older = [i for i in members if not self._gone[i] and not result.completed[i] <= now]
        for index in older:
            self._gone[index] = True
            for follower in self._waiting_for.get(index, ()):
                self._gone[follower] = True
        for index in older:
            is_held = result.completed[index] < inf
            result.completed[index] = now
            if is_held:
                self._leave(index, now)
            else:
                self._stop_waiting(index, now)

    def start(self, index: int, now: float, handover: float) -> None:
        """A machine takes a job."""
        begin = now + handover
        end = begin + self._tasks[index].seconds
        self._result.started[index] = begin
        self._result.completed[index] = end
        self._order += 1
        heappush(self._events, (end, _ENDED, self._order, index))

    def is_gone(self, index: int) -> bool:
        """Whether it was cancelled."""
        return self._gone[index]

    def priority(self, index: int) -> float:
        """Lower is sooner."""
        return self._places[index]

    def node(self, index: int) -> int:
        """The node that a job takes, -1 for any."""
        return self._tasks[index].node

    def width(self, index: int, widths: Mapping[str, int]) -> int:
        """Devices that a job takes of a node."""
        return widths[self._tasks[index].label]

    def _ended(self, index: int, now: float) -> None:
        if self._gone[index]:
            return
        self._leave(index, now)
        if not self._waiting_for:
            return
        for follower in self._waiting_for.get(index, ()):
            self._missing[follower] -= 1
            if not self._missing[follower] and not self._gone[follower]:
                self.at(max(now, self._tasks[follower].created), _READY, follower)

    def _stop_waiting(self, index: int, now: float) -> None:
        pool = self._pool_of[index]
        if isinstance(pool, _Split):
            pool.fill(now)

    def _leave(self, index: int, now: float) -> None:
        pool = self._pool_of[index]
        if pool is not None:
            pool.free(index, now)


class _Line:
    """A queue: higher priority first, then who came first."""

    def __init__(self, replay: _Replay) -> None:
        self.replay = replay
        self._heap: list[tuple[float, float, int]] = []

    def add(self, index: int, now: float) -> None:
        """Join."""
        heappush(self._heap, (self.replay.priority(index), now, index))

    def head(self) -> tuple[float, float, int] | None:
        """Who is next, with what it is compared by: smaller is sooner. None where nobody waits."""
        heap = self._heap
        while heap and self.replay.is_gone(heap[0][2]):
            heappop(heap)
        return heap[0] if heap else None

    def first(self) -> int:
        """Who is next, -1 where nobody waits."""
        head = self.head()
        return -1 if head is None else head[2]

    def pop(self) -> None:
        """The first one leaves."""
        heappop(self._heap)

    def __len__(self) -> int:
        return len(self._heap)


class _Fixed:
    """Machines that stay on."""

    def __init__(self, replay: _Replay, pool: Machines, number: int) -> None:
        self._line = _Line(replay)
        self._replay = replay
        self._capacity, self._handover = pool.capacity, pool.boot_s
        self._count = pool.capacity.counts[0]
        self._busy = 0
        self._step = 0
        for time in pool.capacity.times[1:]:
            replay.at(time, _CHANGED, number)

    def moved(self, _kind: int, now: float) -> None:
        """The number of machines changes."""
        self._step += 1
        self._count = self._capacity.counts[self._step]
        self._fill(now)

    def join(self, index: int, now: float) -> None:
        """A job comes."""
        if self._busy < self._count and not len(self._line):
            self._busy += 1
            self._replay.start(index, now, self._handover)
        else:
            self._line.add(index, now)
            self._fill(now)

    def free(self, _index: int, now: float) -> None:
        """A job leaves its machine."""
        self._busy -= 1
        self._fill(now)

    def _fill(self, now: float) -> None:
        line = self._line
        while self._busy < self._count and len(line) and (first := line.first()) >= 0:
            line.pop()
            self._busy += 1
            self._replay.start(first, now, self._handover)


class _Scaled:
    """Machines that are booted when jobs wait, and let go when they idle."""

    def __init__(self, replay: _Replay, pool: Machines, number: int) -> None:
        self._line = _Line(replay)
        self._replay, self._pool, self._number = replay, pool, number
        self._limit = pool.capacity.counts[0]
        self._step = 0
        self._booting = 0
        self._busy = 0
        self._idle: list[float] = []
        """Since when each idle machine idles, ascending."""
        for time in pool.capacity.times[1:]:
            replay.at(time, _CHANGED, number)

    def moved(self, kind: int, now: float) -> None:
        """A machine is ready, or has idled too long, or the limit changes."""
        if kind == _CHANGED:
            self._step += 1
            self._limit = self._pool.capacity.counts[self._step]
            while self._idle and self._room < 0:
                self._idle.pop(0)
            self._boot(now)
        elif kind == _BOOTED:
            self._booting -= 1
            if self._busy + len(self._idle) < self._limit:
                self._take(now)
        else:
            idle = self._pool.idle_s or 0.0
            while self._idle and self._idle[0] + idle <= now:  # the sum that was planned: a difference is rounded
                self._idle.pop(0)

    def join(self, index: int, now: float) -> None:
        """A job comes."""
        self._line.add(index, now)
        if self._idle:
            self._idle.pop()
            self._take(now)
        else:
            self._boot(now)

    def free(self, _index: int, now: float) -> None:
        """A job leaves its machine; one too many is let go."""
        self._busy -= 1
        if self._room > 0:
            self._take(now)
        else:
            self._boot(now)

    @property
    def _room(self) -> float:
        """How many more machines there may be."""
        return self._limit - self._busy - self._booting - len(self._idle)

    def _take(self, now: float) -> None:
        """A machine is there: for who is first, or to idle."""
        first = self._line.first()
        if first >= 0:
            self._line.pop()
            self._busy += 1
            self._replay.start(first, now, 0.0)
        else:
            self._idle.append(now)
            self._replay.at(now + (self._pool.idle_s or 0.0), _IDLED, self._number)

    def _boot(self, now: float) -> None:
        for _ in range(int(min(self._room, len(self._line) - self._booting))):
            self._booting += 1
            self._replay.at(now + self._pool.boot_s, _BOOTED, self._number)


class _Split:
    """Nodes that give each job as many devices as its label says: the fullest node on which it fits.

    Jobs of one width stand in one line: where the first of them does not fit, none of them does.
    """

    def __init__(self, replay: _Replay, pool: Nodes) -> None:
        self._replay, self._pool = replay, pool
        self._free = [node.devices for node in pool.nodes for _ in range(node.count)]
        self._widths = {label: width for node in pool.nodes for label, width in node.widths.items()}
        self._lines = {width: _Line(replay) for width in set(self._widths.values())}
        self._place: dict[int, int] = {}

    def join(self, index: int, now: float) -> None:
        """A job comes."""
        self._lines[self._replay.width(index, self._widths)].add(index, now)
        self.fill(now)

    def free(self, index: int, now: float) -> None:
        """A job leaves its devices."""
        self._free[self._place.pop(index)] += self._replay.width(index, self._widths)
        self.fill(now)

    def fill(self, now: float) -> None:
        """Jobs that fit take their devices; also when one that they were kept waiting for is gone."""
        while True:
            heads = sorted((head, width) for width, line in self._lines.items() if (head := line.head()) is not None)
            if self._pool.reserves:
                heads = heads[:1]
            taken = next((width for (*_, index), width in heads if self._put(index, width, now)), 0)
            if not taken:
                return
            self._lines[taken].pop()

    def _put(self, index: int, width: int, now: float) -> bool:
        fits = [(free, node) for node, free in enumerate(self._free) if free >= width]
        if not fits:
            return False
        known = self._replay.node(index)
        node = known if known >= 0 and self._free[known] >= width else min(fits)[1]
        self._free[node] -= width
        self._place[index] = node
        self._replay.start(index, now, self._pool.handover_s)
        return True
