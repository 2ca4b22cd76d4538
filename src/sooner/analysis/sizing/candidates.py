"""Ways to see a pool: each says, from what was known at a time, how many machines there will be for our jobs.

None of them is right for all pools. Which one predicts is decided by how well each predicted so far (`judge.py`).
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.sizing.facts import DAY_S, HOUR_S, Flags, Indices, Numbers, PoolSpec, Queue, Steps
from sooner.analysis.sizing.fifo import starts, starts_by_priority, starts_out_of_order, whole
from sooner.analysis.sizing.hours import Levels, levels_of
from sooner.analysis.sizing.seen import BIN_S, Load, Seen, delays

WINDOW_S: Final = 14 * DAY_S
"""How far back is looked: two weeks hold every hour of the week twice, and forget pools as they were a season ago."""
_RECENT_S: Final = 6 * HOUR_S
"""Backlog by which a recent level is forgotten to 1/e."""
_DRAWS_DAYS: Final = (1, 7, 2, 14, 3)
"""Days before, at the same time of day, whose capacity may come again."""
_STRETCH: Final = 18
"""Bins (three hours) without a backlog that are given one number: others' load and lost machines last for hours."""
_REPEATED: Final = 3
"""How often such days are repeated at most where more is predicted than they are long."""
_LONG: Final = 5.0
"""Delays of an idle pool beyond so many medians (plus half a minute) are taken for queueing."""
_LEVELS: Final = (0.5, 0.75, 0.9, 0.95)
SAMPLE: Final = 20_000
"""Waits that stand for all of a window."""
SOFT_S: Final = 30.0
"""Added to waits before their logarithms are compared: seconds do not matter where a job takes minutes."""
IN_ORDER: Final = 0.08
"""Disorder below which a pool is taken to be first come, first served: jobs of one push have no order of their own."""
_FEW: Final = 50
"""Jobs that a calibration needs: fewer say nothing about a 95th percentile."""
_SCALE: Final = 1.15
"""Factor by which machines are first changed in a calibration; halved so often, it is known within one percent."""
_HALVES: Final = 4
_MOST_SCALE: Final = 3.0
_NEAR_WHOLE: Final = 0.12
_LATELY_S: Final = DAY_S
_LATEST: Final = 100


class Draw(Struct, frozen=True):
    """One way the future may be."""

    capacity: Steps | None
    """None: there is always a machine."""
    delays: Numbers
    """What it takes to hand over a machine: samples, ascending."""


class Past(Struct, frozen=True, kw_only=True):
    """A pool's record; what lies behind `now` is not to be looked at."""

    queue: Queue
    seen: Seen
    spec: PoolSpec
    now: float
    delays: Numbers
    """Waits of the window's jobs that found the pool idle, without what looks like queueing behind others."""
    waits: Numbers
    """Waits of the window's jobs, at most `SAMPLE` of them, evenly."""
    lately: Numbers
    """Waits of jobs that started in the last `_LATELY_S`."""
    latest: Numbers
    """Waits of the `_LATEST` jobs that started last."""
    draws: int = 3
    """How many ways a future may be drawn in."""
    disorder: float = 0.0
    """Who is taken next: 0 the oldest, 0.5 anybody, 1 the newest."""
    calibration: Levels | None = None
    """Machines with which the window before would have shown the waits that it did."""

    @property
    def since(self) -> float:
        """Where the window begins."""
        return max(float(self.queue.created[0]), self.now - WINDOW_S)

    def backlog(self, since: float) -> tuple[Numbers, Numbers, Numbers]:
        """Bins with a backlog: their middle, seconds of backlog, jobs running."""
        bins = self.seen.bins(since, self.now)
        seconds, busy = self.seen.backlog_s[bins], self.seen.busy_mean[bins]
        middle: Numbers = (self.seen.begin + BIN_S * (np.arange(len(self.seen.backlog_s))[bins] + 0.5)).astype(
            np.float64
        )
        some = seconds > 1.0
        return middle[some], seconds[some], busy[some]


def past_of(queue: Queue, seen: Seen, load: Load, spec: PoolSpec, now: float) -> Past:
    """What is known of a pool at a time."""
    since = max(float(queue.created[0]), now - WINDOW_S)
    first, last = np.searchsorted(queue.created, [since, now])
    started = queue.started[first:last]
    waits = np.maximum(0.0, started - queue.created[first:last])[started <= now]
    begun = started[started <= now]
    lately = waits[begun > now - _LATELY_S]
    return Past(
        queue=queue,
        seen=seen,
        spec=spec,
        now=now,
        delays=_short(delays(queue, load, since=since, until=now)),
        waits=np.sort(waits[:: max(1, len(waits) // SAMPLE)]),
        lately=np.sort(lately[:: max(1, len(lately) // SAMPLE)]),
        latest=np.sort(waits[_latest(begun)]),
    )


def _latest(begun: Numbers) -> Indices:
    places: Indices = np.arange(len(begun))
    return places if len(begun) <= _LATEST else np.argpartition(begun, len(begun) - _LATEST)[-_LATEST:]


def _short(found: Numbers) -> Numbers:
    kept: Numbers = found[found <= _LONG * float(np.median(found)) + 30.0]
    return kept if len(kept) else found


Candidate = Callable[[Past, float], Sequence[Draw]]
"""(what is known, until when) -> ways the future may be; none where it has nothing to say."""


def unlimited(past: Past, _until: float) -> Sequence[Draw]:
    """There is always a machine; it takes what it takes to hand it over."""
    return [Draw(None, past.delays)]


def others(past: Past, _until: float) -> Sequence[Draw]:
    """Waits come from others' load: ours neither makes nor shortens them. They are drawn from the window's."""
    return [Draw(None, past.waits)] if len(past.waits) else []


def others_lately(past: Past, _until: float) -> Sequence[Draw]:
    """The same, drawn from those that began in the last day: others' load drifts, and machines get lost for a while."""
    return [Draw(None, past.lately)] if len(past.lately) else []


def others_latest(past: Past, _until: float) -> Sequence[Draw]:
    """The same, drawn from the latest ones, however long ago they were."""
    return [Draw(None, past.latest)] if len(past.latest) else []


def constant(past: Past, until: float) -> Sequence[Draw]:
    """As many machines as ran while others waited, on average."""
    _, seconds, busy = past.backlog(past.since)
    if not len(seconds):
        return []
    return [Draw(_flat(_weighted_median(busy, seconds), past.now, until), past.delays)]


def recent(past: Past, until: float) -> Sequence[Draw]:
    """As many as ran while others waited lately; the last hours of backlog count most."""
    _, seconds, busy = past.backlog(past.since)
    if not len(seconds):
        return []
    ago = np.cumsum(seconds[::-1])[::-1] - seconds
    weight = seconds * np.exp(-ago / _RECENT_S)
    return [Draw(_flat(float(np.average(busy, weights=weight)), past.now, until), past.delays)]


def by_hour(past: Past, until: float) -> Sequence[Draw]:
    """As many as ran while others waited at this hour of a working day, or of a weekend, grown as they grew."""
    middle, seconds, busy = past.backlog(past.since)
    if not busy.any():
        return []
    return [Draw(_by_hour(levels_of(middle, busy, seconds, past.now), past.now, until), past.delays)]


def as_on_days_before(past: Past, until: float) -> Sequence[Draw]:
    """The number changes as it did on days before; where nobody waited it is drawn from what was seen at other times.

    A bin without a backlog says only that there were at least as many as ran. Taking those for enough forgets that
    a fuller day would have met the limit; taking the mean of the bins with a backlog looks only at bad times.
    """
    window = past.seen.bins(past.since, past.now)
    is_seen = past.seen.backlog_s[window] > BIN_S / 10
    if not is_seen.any():
        return []
    counts = np.where(is_seen, past.seen.busy_mean[window], past.seen.busy_top[window])
    more = _Lifetimes(counts, is_seen)
    random = np.random.default_rng(int(past.now))
    draws = []
    for days in _DRAWS_DAYS:
        shift = days * DAY_S
        if past.now - shift < past.seen.begin or until - past.now > _REPEATED * shift:
            continue
        bins = past.seen.bins(past.now - shift, min(past.now, until - shift))
        first, last = bins.start - window.start, bins.stop - window.start
        if first < 0 or last <= first:
            continue
        drawn = more.imputed(counts[first:last], is_seen[first:last], random)
        begin = past.seen.begin + shift + BIN_S * bins.start
        drawn = np.resize(drawn, max(len(drawn), int(np.ceil((until - begin) / BIN_S))))
        draws.append(Draw(_fine(begin + BIN_S * np.arange(len(drawn), dtype=np.float64), drawn), past.delays))
    return draws[: past.draws]


class _Lifetimes:
    """How often there are more than so many machines (Kaplan and Meier 1958), from bins that saw them or a floor."""

    def __init__(self, counts: Numbers, is_seen: Flags) -> None:
        order = np.lexsort((~is_seen, counts))
        at_risk = np.arange(len(counts), 0, -1)
        reached = np.cumprod(np.where(is_seen[order], 1.0 - 1.0 / at_risk, 1.0))
        self._counts, self._above = counts[order][is_seen[order]], reached[is_seen[order]]
        self._most = float(counts.max())

    def imputed(self, counts: Numbers, is_seen: Flags, random: np.random.Generator) -> Numbers:
        """Counts as seen; each stretch of bins that were not has one number, that of chance above what ran in it."""
        found = counts.copy()
        edges = np.flatnonzero(np.diff(is_seen.astype(np.int8))) + 1
        for part in np.split(np.arange(len(counts)), edges):
            for begin in range(0, 0 if is_seen[part[0]] else len(part), _STRETCH):
                some = part[begin : begin + _STRETCH]
                found[some] = self._more_than(float(counts[some].max()), random.random())
        return found

    def _more_than(self, floor: float, chance: float) -> float:
        place = int(np.searchsorted(self._counts, floor, side="right"))
        level = chance * (self._above[place - 1] if place else 1.0)
        place = int(np.searchsorted(-self._above, -level))
        return max(floor, float(self._counts[place]) if place < len(self._counts) else self._most)


def calibrated(past: Past, until: float) -> Sequence[Draw]:
    """The same by hour, but so many that the window would have shown its waits."""
    if past.calibration is None:
        return []
    return [Draw(_by_hour(past.calibration, past.now, until), past.delays)]


def declared(past: Past, _until: float) -> Sequence[Draw]:
    """As many as were declared."""
    if past.spec.capacity is None:
        return []
    return [Draw(whole(past.spec.capacity.since(past.now)), past.delays)]


CANDIDATES: Final[dict[str, Candidate]] = {
    "declared": declared,
    "constant": constant,
    "recent": recent,
    "by_hour": by_hour,
    "calibrated": calibrated,
    "as_on_days_before": as_on_days_before,
    "unlimited": unlimited,
    "others": others,
    "others_lately": others_lately,
    "others_latest": others_latest,
}
"""The first of equals is taken: what says more about the pool stands before what says less."""
BLIND: Final = frozenset({"unlimited", "others", "others_lately", "others_latest"})
"""Candidates in which our load changes nothing: they cannot rank options that change it."""


def _flat(count: float, at: float, until: float) -> Steps:
    """A constant, as whole numbers that alternate where it is not one."""
    count = max(1.0, count)
    if abs(count - round(count)) <= _NEAR_WHOLE:
        return Steps((at,), (float(round(count)),))
    times: Numbers = np.arange(at, until, 3 * BIN_S, dtype=np.float64)
    return _fine(times, np.full(len(times), count))


def _by_hour(levels: Levels, since: float, until: float) -> Steps:
    first = np.floor(since / HOUR_S) * HOUR_S
    times: Numbers = np.arange(first, until + HOUR_S, HOUR_S, dtype=np.float64)
    return _fine(times, levels.at(times))


def _fine(times: Numbers, counts: Numbers) -> Steps:
    steps = whole(Steps(tuple(times.tolist()), tuple(np.maximum(counts, 0.0).tolist())))
    return Steps(steps.times, tuple(max(1.0, count) for count in steps.counts))


def _weighted_median(values: Numbers, weights: Numbers) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])


def calibrate(past: Past, most_jobs: int) -> Levels | None:
    """So much more or fewer than ran while others waited, at every hour, that a replay of the window shows its waits.

    Args:
        past: What is known; its `calibration` is the answer where a replay would show too little.
        most_jobs: How many jobs a replay may have; the latest are taken.
    """
    queue = past.queue
    inside = np.flatnonzero((queue.created >= past.since) & (queue.started <= past.now) & ~np.isnan(queue.seconds))
    span = queue.created[inside[-1]] - queue.created[inside[0]] if len(inside) else 0.0
    inside = inside[-most_jobs:]
    middle, backlog_s, busy_then = past.backlog(past.since)
    if len(inside) < _FEW or not busy_then.any():
        return past.calibration
    if queue.created[inside[-1]] - queue.created[inside[0]] < min(2 * DAY_S, span / 2):
        return past.calibration
    levels = levels_of(middle, busy_then, backlog_s, past.now)
    created, seconds = queue.created[inside], queue.seconds[inside]
    priority = None if queue.priority is None else queue.priority[inside].tolist()
    begin = float(created[0])
    wanted = height_of(queue.waits[inside])
    short = float(np.median(past.delays))
    running = (queue.started < begin) & (queue.completed > begin)
    busy = queue.completed[running].tolist()

    def waits_longer(scale: float) -> bool:
        machines = _by_hour(levels.scaled(scale), begin, past.now)
        found = replay(created.tolist(), seconds.tolist(), machines, past.disorder, busy=busy, priority=priority)
        return height_of(np.array(found) - created + short) > wanted

    low, high = 1.0 / _SCALE, 1.0
    while high < _MOST_SCALE and waits_longer(high):
        low, high = high, high * _SCALE
    while low * high < 1.0 and low > 1.0 / _MOST_SCALE and not waits_longer(low):
        low, high = low / _SCALE, low
    for _ in range(_HALVES):
        between = float(np.sqrt(low * high))
        low, high = (between, high) if waits_longer(between) else (low, between)
    return levels.scaled(float(np.sqrt(low * high)))


def replay(
    created: Sequence[float],
    seconds: Sequence[float],
    capacity: Steps,
    disorder: float,
    *,
    busy: Sequence[float] = (),
    patience: Sequence[float] | None = None,
    priority: Sequence[float] | None = None,
) -> list[float]:
    """When jobs start, in the order in which the pool takes them; the same chances every time."""
    if priority is not None:
        return starts_by_priority(created, seconds, capacity, priority, busy=busy, patience=patience)
    if disorder < IN_ORDER:
        return starts(created, seconds, capacity, busy=busy, patience=patience)
    chances = np.random.default_rng(len(created)).random(2 * len(created) + 2).tolist()
    return starts_out_of_order(created, seconds, capacity, chances, disorder=disorder, busy=busy, patience=patience)


def height_of(waits: Numbers) -> float:
    """Levels of waits as one number, by which replays are compared with a record: the mean of their logarithms."""
    return float(np.log(np.quantile(waits, _LEVELS) + SOFT_S).mean())
