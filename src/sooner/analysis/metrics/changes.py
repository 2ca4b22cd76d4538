"""When a series changed its level, by how much, and whether waiting or working moved it. Needs numpy.

Levels are looked for in logarithms: a step of 15 % is the same step in a job of a minute and in one of an hour, and the
noise of durations grows with them. Segments come from PELT (Killick, Fearnhead and Eckley, "Optimal detection of
changepoints with a linear computational cost", 2012) with the squared error as cost.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Codes = NDArray[np.int64]
Values: TypeAlias = Sequence[float] | Numbers

_FEWEST_RUNS: Final = 5
"""Runs on each side of a change: fewer are an outlier."""
_OUTLIER: Final = 3.0
"""Values further than so many standard deviations from the level around them count as so far."""
_FALSE_ALARMS: Final = 36.0
"""Penalty of a change in units of twice the variance. In simulated months of 720 log-normal runs it gives less than one
false alarm in 100 job-months (bench/metrics.py)."""
_SMALLEST_STEP: Final = math.log(1.05)
_SMALLEST_JUMP: Final = math.log(1.2)
"""Totals that are published once a week: a change of one snapshot must be this large."""
_PRICE: Final = 3
"""Parameters that a change of level of totals counts as."""
_NOISE_FLOOR: Final = 0.02
"""Log-durations of the same work on the same machine differ by this at least."""
_AROUND: Final = 51
"""Values over which the level around a value is taken."""
_AT_ONCE: Final = 20_000
"""Values whose levels are taken at once: each needs as many places as are around it."""
_PLACES: Final = 2_000
"""Where a change may begin that are compared at once: the search takes the square of it."""


_STEP: Final = math.log(1.15)
"""The step for which the watch is tuned."""
_ALARM: Final = 12.0
"""Log-likelihood ratio of the alarm: between two false ones lie about e^12 runs where the noise is normal."""
_BASELINE: Final = 40
"""Runs after which the level is known well enough to watch it."""
_DOUBT: Final = 1.0
"""Standard errors of the level that are given to it for nothing: a level of 40 runs is not exact."""
_PRUNE_EVERY: Final = 16
"""Steps of the search after which places that cannot win any more are dropped."""
_NEAR: Final = 15
"""Changes that are so many runs apart at most are one."""


class Change(Struct, frozen=True, kw_only=True):
    """A series was on one level before `index` and is on another one from it on."""

    index: int
    before: float
    """Median of the segment before, in the units of the series."""
    after: float


def changes_of_runs(values: Values) -> list[Change]:
    """Changes of level in a series of single runs, which has noise and outliers.

    Args:
        values: Seconds, in the order of time; what is not positive counts as a millisecond.
    """
    logs = _logs(values)
    if len(logs) < 2 * _FEWEST_RUNS:
        return []
    sigma = max(_NOISE_FLOOR, _noise(logs))
    starts = pelt(_winsorised(logs, sigma), penalty=_FALSE_ALARMS * sigma**2, shortest=_FEWEST_RUNS)
    if starts and len(logs) - starts[-1] < _NEAR:
        starts.pop()  # what is that young is the watch's
    known = len(logs) if not starts else len(logs) - starts[-1]
    late = watch(logs[-known:], sigma)
    if late is not None and known - late >= _FEWEST_RUNS and late >= _NEAR:
        starts.append(len(logs) - known + late)
    return _described(values, logs, starts, _SMALLEST_STEP)


def watch(logs: Numbers, sigma: float) -> int | None:
    """Where the level began to be another one, if by now that is beyond doubt: a two-sided CUSUM (Page 1954).

    It is the quickest detector of a step of known size, and sees a young change sooner than a search for segments,
    which pays for looking everywhere.

    Args:
        logs: A series that began on one level.
        sigma: Standard deviation of its noise.
    """
    if len(logs) <= _BASELINE:
        return None
    counts = _baselines(len(logs))
    medians = np.array([np.median(logs[:count]) for count in counts])
    for sign in (1.0, -1.0):
        if (found := _rises(sign * logs, counts, (sign * medians).tolist(), sigma)) is not None:
            return found
    return None


def _rises(logs: Numbers, counts: Sequence[int], medians: Sequence[float], sigma: float) -> int | None:
    """Where the series began to lie above the medians of its first so many values."""
    levels = [median + _DOUBT * sigma / math.sqrt(count) for count, median in zip(counts, medians, strict=True)]
    ratio, since, weight, most = 0.0, 0, _STEP / sigma**2, _OUTLIER * sigma
    level = levels[0]
    for i, value in enumerate(logs[_BASELINE:].tolist(), _BASELINE):
        distance = value - level
        if distance > most:
            distance = most
        elif distance < -most:
            distance = -most
        ratio += (distance - _STEP / 2) * weight
        if ratio <= 0.0:
            ratio, since = 0.0, i + 1
            level = levels[max(bisect_right(counts, since) - 1, 0)]
        elif ratio > _ALARM:
            return since
    return None


def _baselines(length: int) -> list[int]:
    """Counts of values after which a level is taken anew: every so many, later in steps of a twentieth."""
    counts = [_BASELINE]
    while counts[-1] + _BASELINE < length:
        counts.append(counts[-1] + max(_BASELINE, counts[-1] // 20 // _BASELINE * _BASELINE))
    return counts


def changes_of_totals(values: Values) -> list[Change]:
    """Changes of level in a short series of totals, each already an average over many runs: one snapshot can be enough.

    How noisy such a series is must be told from itself, also if it has several levels: the number of segments is the
    one that the Bayesian information criterion of a normal distribution with one variance prefers (Yao 1988). The
    variance is the unbiased one, and a change costs as much as three parameters instead of two (its place was searched
    for: Zhang and Siegmund 2007), or each value of a noisy series would be a level of its own.
    """
    logs = _logs(values)
    n = len(logs)
    if n < 2:  # noqa: PLR2004 - nothing can change
        return []
    best: tuple[float, list[int]] = (math.inf, [])
    for scale in np.geomspace(1.0, 0.003, 31):
        starts = pelt(logs, penalty=float(scale) ** 2 * 4 * math.log(n), shortest=1)
        error = sum(float(np.var(part) * len(part)) for part in np.split(logs, starts))
        left = n - len(starts) - 1
        if left > 0:
            variance = max(error / left, _NOISE_FLOOR**2)
            best = min(best, (n * math.log(variance) + _PRICE * len(starts) * math.log(n), starts))
    return _described(values, logs, best[1], _SMALLEST_JUMP)


def _logs(values: Values) -> Numbers:
    return np.log(np.maximum(np.asarray(values, dtype=np.float64), 1e-3))


def _noise(logs: Numbers) -> float:
    """Standard deviation of the noise, from neighbours, which a change of level hardly touches."""
    steps = np.abs(np.diff(logs))
    return float(np.median(steps)) * 1.4826 / math.sqrt(2) if len(steps) else 0.0


def _winsorised(logs: Numbers, sigma: float) -> Numbers:
    """Outliers pulled to the level around them."""
    half = min(_AROUND, len(logs) - 1) // 2
    padded = np.pad(logs, half, mode="reflect")
    around = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    level = np.concatenate([np.median(around[i : i + _AT_ONCE], axis=1) for i in range(0, len(logs), _AT_ONCE)])
    return np.clip(logs, level - _OUTLIER * sigma, level + _OUTLIER * sigma)


def pelt(values: Numbers, *, penalty: float, shortest: int, most: int = _PLACES) -> list[int]:
    """Where the segments after the first begin, such that squared error + penalty for each is smallest.

    Args:
        values: The series.
        penalty: Of each further segment.
        shortest: Fewest values of a segment.
        most: Places that are compared at once. Of a longer series every so many are, then those around what was found,
            until they are next to each other.
    """
    n = len(values)
    sums, squares = (np.concatenate([[0.0], np.cumsum(of)]) for of in (values, values**2))
    every = max(1, -(-n // most))
    places = np.append(np.arange(0, n, every), n)
    while True:
        starts = places[_optimal(places, sums[places], squares[places], penalty, shortest)]
        if every == 1 or not len(starts):
            return [int(start) for start in starts]
        finer = min(max(1, 2 * every * len(starts) // most), every // 2)
        near = (starts[:, None] + np.arange(-every, every + 1, finer)).ravel()
        places = np.unique(np.concatenate([[0, n], starts, near[(near > 0) & (near < n)]]))
        every = finer


def _optimal(places: Codes, sums: Numbers, squares: Numbers, penalty: float, shortest: int) -> list[int]:
    """Which places segments begin at; of each place, sums are those of all values before it."""
    at = places.astype(np.float64)
    n = len(at) - 1
    best = np.full(n + 1, math.inf)
    best[0] = -penalty
    last = np.zeros(n + 1, dtype=int)
    opens = np.searchsorted(at, at - shortest, side="right").tolist()  # so many places are far enough from each end
    # Of each place where the last segment may begin: itself, values before it, their sum, its cost less their squares.
    waiting, count, added = np.zeros((4, n + 2)), 0, 0
    for end in range(1, n + 1):
        for begin in range(added, opens[end]):
            waiting[:, count] = begin, at[begin], sums[begin], best[begin] - squares[begin]
            count += 1
        added = max(added, opens[end])
        if not count:
            continue
        place, before, total, cost = waiting[:, :count]
        of_segment = sums[end] - total
        costs = cost - of_segment * of_segment / (at[end] - before)
        index = int(costs.argmin())
        smallest = costs[index] + squares[end]
        best[end], last[end] = smallest + penalty, int(place[index])
        if not end % _PRUNE_EVERY:
            kept = waiting[:, :count][:, costs + squares[end] <= best[end]]
            count = kept.shape[1]
            waiting[:, :count] = kept
    starts = []
    end = n
    while (end := int(last[end])) > 0:
        starts.append(end)
    return starts[::-1]


def _described(values: Values, logs: Numbers, starts: list[int], smallest: float) -> list[Change]:
    """The changes between segments that are large enough to matter."""
    found: list[Change] = []
    bounds = [0, *starts, len(values)]
    for begin, index, end in zip(bounds, bounds[1:], bounds[2:], strict=False):
        before, after = float(np.median(logs[begin:index])), float(np.median(logs[index:end]))
        if abs(after - before) >= smallest:
            found.append(Change(index=index, before=math.exp(before), after=math.exp(after)))
    return found


class Moved(Struct, frozen=True, kw_only=True):
    """A part of a time, before and after a change."""

    part: str
    before: float
    after: float


def part_that_moved(before: Mapping[str, Values], after: Mapping[str, Values]) -> list[Moved]:
    """The parts of a time in the order of how much of the change is theirs.

    Args:
        before: Seconds of each part in the runs before the change.
        after: The same after it.
    """
    moved = [
        Moved(part=part, before=_mean(before.get(part, ())), after=_mean(after.get(part, ())))
        for part in dict.fromkeys([*before, *after])
    ]
    return sorted(moved, key=lambda one: -abs(one.after - one.before))


def _mean(values: Values) -> float:
    """Mean without the outermost twentieths: parts then still add up, and no outlier decides."""
    if not len(values):
        return 0.0
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    cut = len(ordered) // 20
    return float(np.mean(ordered[cut : len(ordered) - cut]))
