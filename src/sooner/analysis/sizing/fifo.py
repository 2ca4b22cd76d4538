"""The fast path: first come, first served, by a number of equal machines that changes over time.

A heap holds when each machine is free next; jobs take them in the order in which they came (the recursion of Kiefer and
Wolfowitz, "On the theory of queues with many servers", 1955). A million jobs take about a second.
"""

from collections.abc import Sequence
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

from sooner.analysis.sizing.facts import Steps


def whole(steps: Steps) -> Steps:
    """Counts as whole numbers whose mean over the steps is kept: what a rounding loses, the next one gives back."""
    counts, owed = [], 0.0
    for count in steps.counts:
        exact = count + owed
        rounded = max(0, round(exact))
        owed = exact - rounded if count > 0 else 0.0
        counts.append(float(rounded))
    return Steps(steps.times, tuple(counts))


def starts(
    created: Sequence[float],
    seconds: Sequence[float],
    capacity: Steps,
    *,
    busy: Sequence[float] = (),
    patience: Sequence[float] | None = None,
) -> list[float]:
    """When each job starts; infinity for one that never does.

    Args:
        created: When each job joins the queue, ascending.
        seconds: How long each holds its machine.
        capacity: Machines over time, whole numbers. Where it falls, idle machines go first, then those that are free
            soonest; a running job is never stopped.
        busy: When each machine that works already will be free.
        patience: When each job is given up if it still waits.
    """
    if not created:
        return []
    state = _Machines(capacity, busy)
    free, change = state.free, state.next_change
    found: list[float] = []
    if patience is None and change == inf and free:
        return _unchanging(created, seconds, free)
    for index, (at, length) in enumerate(zip(created, seconds, strict=True)):
        start = free[0] if free else inf
        if start < at:  # noqa: PLR1730 - a call of max would double the time
            start = at
        while change <= start and change < inf:
            state.apply()
            change = state.next_change
            start = max(at, free[0]) if free else inf
        if patience is not None and start > patience[index]:
            found.append(inf)
            continue
        found.append(start)
        if start < inf:
            heapreplace(free, start + length)
    return found


def _unchanging(created: Sequence[float], seconds: Sequence[float], free: list[float]) -> list[float]:
    """The same for machines whose number does not change."""
    found: list[float] = []
    for at, length in zip(created, seconds, strict=True):
        start = free[0]
        if start < at:  # noqa: PLR1730
            start = at
        heapreplace(free, start + length)
        found.append(start)
    return found


def starts_out_of_order(
    created: Sequence[float],
    seconds: Sequence[float],
    capacity: Steps,
    chances: Sequence[float],
    *,
    disorder: float,
    busy: Sequence[float] = (),
    patience: Sequence[float] | None = None,
) -> list[float]:
    """The same where who came first is not always first.

    Args:
        created: As for `starts`, and so for what is not named here.
        seconds: How long each holds its machine.
        capacity: Machines over time.
        chances: Two numbers in [0, 1) for each job.
        disorder: Mean place, among those who wait, of who is taken: 0 the oldest, 0.5 anybody, 1 the newest.
        busy: When each machine that works already will be free.
        patience: When each job is given up if it still waits.
    """
    found = [inf] * len(created)
    if not created:
        return found
    state = _Machines(capacity, busy)
    free, waiting = state.free, [0]
    following, drawn, mixed = 1, 0, min(1.0, 2 * disorder)
    newest = max(0.0, 2 * disorder - 1)
    while waiting or following < len(created):
        if not waiting:
            waiting.append(following)
            following += 1
        start = max(free[0], created[waiting[0]]) if free else inf
        while state.next_change <= start and state.next_change < inf:
            state.apply()
            start = max(free[0], created[waiting[0]]) if free else inf
        if start == inf:
            break
        while following < len(created) and created[following] <= start:
            waiting.append(following)
            following += 1
        place = 0
        if len(waiting) > 1 and chances[drawn] < mixed:
            place = -1 if chances[drawn + 1] < newest else int(chances[drawn + 1] * len(waiting))
        index = waiting.pop(place)
        if patience is not None and start > patience[index]:
            continue
        drawn = (drawn + 2) % (len(chances) - 1)
        heapreplace(free, start + seconds[index])
        found[index] = start
    return found


def starts_by_priority(
    created: Sequence[float],
    seconds: Sequence[float],
    capacity: Steps,
    priority: Sequence[float],
    *,
    busy: Sequence[float] = (),
    patience: Sequence[float] | None = None,
) -> list[float]:
    """The same where jobs of a higher priority are taken first; equals in the order in which they came."""
    found = [inf] * len(created)
    state = _Machines(capacity, busy)
    free, now, following = state.free, -inf, 0
    waiting: list[tuple[float, int]] = []
    while waiting or following < len(created):
        if not waiting:
            now = max(now, created[following])
        start = max(free[0], now) if free else inf
        while state.next_change <= start and state.next_change < inf:
            state.apply()
            start = max(free[0], now) if free else inf
        if start == inf:
            break
        now = start
        # A machine that becomes free is taken before a job of the same moment asks for it, as in the general replay.
        while following < len(created) and (created[following] < now or not waiting):
            heappush(waiting, (-priority[following], following))
            following += 1
        _, index = heappop(waiting)
        if patience is not None and now > patience[index]:
            continue
        heapreplace(free, now + seconds[index])
        found[index] = now
    return found


class _Machines:
    """Machines that are added and taken away while jobs run."""

    def __init__(self, capacity: Steps, busy: Sequence[float]) -> None:
        self._times, self._counts = capacity.times, capacity.counts
        self._index = 0
        self.free = sorted(busy)
        """When each machine is free next, a heap."""
        self._leaving: list[float] = []
        """When machines that were taken away have ended their last job: until then they count."""
        self._set(int(self._counts[0]), self._times[0])

    @property
    def next_change(self) -> float:
        """When the number changes next."""
        following = self._index + 1
        return self._times[following] if following < len(self._times) else inf

    def apply(self) -> None:
        """Make the next change."""
        self._index += 1
        self._set(int(self._counts[self._index]), self._times[self._index])

    def _set(self, count: int, at: float) -> None:
        free = self.free
        while len(free) > count:
            end = heappop(free)
            if end > at:
                heappush(self._leaving, end)
        self._leaving = [end for end in self._leaving if end > at]
        self._leaving.sort()
        free.extend([at] * max(0, count - len(free) - len(self._leaving)))
        while len(free) < count and self._leaving:  # taken away, not yet gone, and wanted again
            free.append(self._leaving.pop())
        heapify(free)
