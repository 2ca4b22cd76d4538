"""What the record of a pool shows: how many ran while others waited, hour by hour. Nothing later than asked is used.

While a job waits longer than it takes to give it a machine, every machine that the pool has for us is taken: the number
that runs *is* the capacity, less what jobs that we do not see hold. While none waits, it is a lower bound only.
"""

from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.sizing.facts import DAY_S, Indices, Numbers, Queue

BIN_S: Final = 600.0
"""Width of a bin: shorter than jobs on GPU runners usually take, long enough to hold several events of a busy pool."""
_LIGHT: Final = 0.5
"""Share of the largest number ever at work below which a pool is taken to be idle enough to start a job at once."""
_FEW: Final = 20
_SHORTEST: Final = 0.2
"""Share of the shortest waits that stand for undelayed starts where a pool was never idle."""
_LONGEST_DELAY_S: Final = 1200.0
"""Handing over a machine takes minutes at most, booting it included; unless even the shortest wait of an idle pool is
longer: then `_USUAL` times that."""
_USUAL: Final = 2.0
_CROWD: Final = 4
_MOMENTS: Final = 120
_LONGEST_WAIT_S: Final = 5 * DAY_S
_MARGIN_S: Final = 1.0


class Seen(Struct, frozen=True, kw_only=True):
    """A pool in bins of `BIN_S`."""

    begin: float
    """Start of the first bin."""
    backlog_s: Numbers
    """Seconds of each bin in which somebody waited for a machine."""
    busy_mean: Numbers
    """Jobs running, mean over those seconds; NaN where there are none."""
    busy_top: Numbers
    """Most jobs running at once in the bin."""

    def bins(self, since: float, until: float) -> slice:
        """The whole bins between two times."""
        first = max(0, int(np.ceil((since - self.begin) / BIN_S)))
        return slice(first, max(first, int(np.floor((until - self.begin) / BIN_S))))


class Load(Struct, frozen=True, kw_only=True):
    """How full the pool was of our jobs, for each of them."""

    inside: Indices
    """Waiting and running when it was created, itself included."""
    running: Indices
    """Running when it started, itself included."""


def load_of(queue: Queue) -> Load:
    """What each job found; nothing of it depends on anything later than the job's own start.

    Of jobs that were created at one moment, as those of a matrix are, who began first was there first.
    """
    gone = np.sort(queue.completed)
    begun = np.sort(queue.started)
    place = np.empty(len(queue), dtype=np.int64)
    place[np.lexsort((queue.started, queue.created))] = np.arange(1, len(queue) + 1)
    inside = place - np.searchsorted(gone, queue.created, side="right")
    ended = np.sort(queue.completed[~np.isnan(queue.started)])
    running = np.searchsorted(begun, queue.started, side="right") - np.searchsorted(ended, queue.started, side="right")
    return Load(inside=inside, running=running)


def delays(queue: Queue, load: Load, *, since: float, until: float) -> Numbers:
    """Waits of jobs that found the pool idle, ascending: what it takes to hand a machine over (assignment, boot).

    Only jobs that had started before `until` are looked at.
    """
    first, last = np.searchsorted(queue.created, [since, until])
    known = first + np.flatnonzero(queue.started[first:last] <= until)
    if not len(known):
        return np.zeros(1)
    waits = np.maximum(0.0, queue.started[known] - queue.created[known])
    light = max(1.0, _LIGHT * float(np.quantile(load.running[known], 0.99)))
    idle: Numbers = np.sort(waits[load.inside[known] <= light])
    if len(idle) >= _FEW:
        return _plausible(idle)
    shortest: Numbers = np.sort(waits)[: max(1, int(_SHORTEST * len(waits)))]
    return _plausible(shortest)


def _plausible(waits: Numbers) -> Numbers:
    """Without those that are too long for a delay: a pool without many of our jobs may be full of others'."""
    longest = max(_LONGEST_DELAY_S, _USUAL * float(waits[0]))
    kept: Numbers = waits[waits <= longest]
    return kept


def disorder_of(queue: Queue, *, since: float, until: float, threshold_s: float) -> float:
    """Mean place, among those who waited, of who was taken next: 0 the oldest, 0.5 anybody, 1 the newest.

    Of jobs that were created, or taken, at one moment nobody knows which was first: they do not count. Only moments at
    which at least `_CROWD` waited, and starts before `until`, are looked at: about `_MOMENTS` of them.
    """
    first, last = np.searchsorted(queue.created, [since, until])
    created, started = queue.created[first:last], queue.started[first:last]
    known = np.flatnonzero((started <= until) & (started - created > threshold_s))
    places = []
    for index in known[:: max(1, len(known) // _MOMENTS)]:
        at = started[index]
        low, high = np.searchsorted(created, [at - _LONGEST_WAIT_S, at - threshold_s])
        waits = (started[low:high] > at) & (created[low:high] != created[index])
        others = int(waits.sum())
        if others + 1 >= _CROWD:
            places.append(int(waits[: max(0, index - low)].sum()) / others)
    return min(1.0, float(np.mean(places))) if len(places) >= _FEW else 0.0


def undelayed(found: Numbers) -> float:
    """Seconds of waiting above which a job is said to wait for a machine, from the delays of an idle pool."""
    return 2.0 * float(np.median(found)) + _MARGIN_S


def look(queue: Queue, threshold_s: float) -> Seen:
    """Bins of the whole record; but for the last, behind all jobs, a bin depends on nothing later than its own end."""
    begin = float(np.floor(queue.created[0] / BIN_S) * BIN_S)
    ran = ~np.isnan(queue.started)
    gone = np.where(ran, queue.started, queue.completed)
    last = queue.created[-1]
    edges = begin + BIN_S * np.arange(int((last - begin) // BIN_S) + 2)
    queued = ~np.isnan(gone) & (gone - queue.created > threshold_s)
    times = np.concatenate(
        [queue.started[ran], queue.completed[ran], queue.created[queued] + threshold_s, gone[queued], edges]
    )
    up, down, none = (np.ones(ran.sum()), -np.ones(ran.sum()), np.zeros(len(edges)))
    zeros = np.zeros(int(queued.sum()))
    running = np.concatenate([up, down, zeros, zeros, none])
    waiting = np.concatenate([np.zeros(2 * len(up)), zeros + 1, zeros - 1, none])
    order = np.argsort(times, kind="stable")
    times = times[order]
    busy, backlog = np.cumsum(running[order]), np.cumsum(waiting[order]) > 0
    width = np.diff(times, append=times[-1])
    index = np.clip(((times - begin) // BIN_S).astype(np.int64), 0, len(edges) - 1)
    seconds: Numbers = np.bincount(index[backlog], weights=width[backlog], minlength=len(edges)).astype(np.float64)
    area = np.bincount(index[backlog], weights=(width * busy)[backlog], minlength=len(edges))
    top = np.zeros(len(edges))
    long = width > 0
    np.maximum.at(top, index[long], busy[long])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = area / seconds
    return Seen(begin=begin, backlog_s=seconds, busy_mean=mean, busy_top=top)
