"""When a series changed its level, by how much, and whether waiting or working moved it. Needs numpy.

Levels are looked for in logarithms: a step of 15 % is the same step in a job of a minute and in one of an hour, and the
noise of durations grows with them. Segments come from PELT (Killick, Fearnhead and Eckley, "Optimal detection of
changepoints with a linear computational cost", 2012) with the squared error as cost.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
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
_NOISE_FLOOR: Final = 0.02
"""Log-durations of the same work on the same machine differ by this at least."""
_AROUND: Final = 51
"""Values over which the level around a value is taken."""


_STEP: Final = math.log(1.15)
"""The step for which the watch is tuned."""
_ALARM: Final = 12.0
"""Log-likelihood ratio of the alarm: between two false ones lie about e^12 runs where the noise is normal."""
_BASELINE: Final = 40
"""Runs after which the level is known well enough to watch it."""
_DOUBT: Final = 1.0
"""Standard errors of the level that are given to it for nothing: a level of 40 runs is not exact."""
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
    for sign in (1.0, -1.0):
        if (found := _rises(sign * logs, sigma)) is not None:
            return found
    return None


def _rises(logs: Numbers, sigma: float) -> int | None:
    ratio, since = 0.0, 0
    counts = np.maximum(_BASELINE, np.arange(0, len(logs), _BASELINE))
    levels = [float(np.median(logs[:count])) + _DOUBT * sigma / math.sqrt(count) for count in counts.tolist()]
    for i, value in enumerate(logs[_BASELINE:].tolist(), _BASELINE):
        level = levels[min(max(since // _BASELINE, 1), len(levels) - 1)]
        distance = min(max(value - level, -_OUTLIER * sigma), _OUTLIER * sigma)
        ratio += (distance - _STEP / 2) * _STEP / sigma**2
        if ratio <= 0.0:
            ratio, since = 0.0, i + 1
        elif ratio > _ALARM:
            return since
    return None


def changes_of_totals(values: Values) -> list[Change]:
    """Changes of level in a short series of totals, each already an average over many runs: one snapshot can be enough.

    How noisy such a series is must be told from itself, also if it has several levels: the number of segments is the
    one that the Bayesian information criterion of a normal distribution with one variance prefers (Yao 1988).
    """
    logs = _logs(values)
    n = len(logs)
    if n < 2:  # noqa: PLR2004 - nothing can change
        return []
    best: tuple[float, list[int]] = (math.inf, [])
    for scale in np.geomspace(0.3, 0.003, 25):
        starts = pelt(logs, penalty=float(scale) ** 2 * 4 * math.log(max(n, 2)), shortest=1)
        error = sum(float(np.var(part) * len(part)) for part in np.split(logs, starts))
        variance = max(error / n, _NOISE_FLOOR**2)
        best = min(best, (n * math.log(variance) + 2 * len(starts) * math.log(max(n, 2)), starts))
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
    level = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1)
    return np.clip(logs, level - _OUTLIER * sigma, level + _OUTLIER * sigma)


def pelt(values: Numbers, *, penalty: float, shortest: int) -> list[int]:
    """Where the segments after the first begin, such that squared error + penalty for each is smallest.

    Args:
        values: The series.
        penalty: Of each further segment.
        shortest: Fewest values of a segment.
    """
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    best = np.full(n + 1, math.inf)
    best[0] = -penalty
    last = np.zeros(n + 1, dtype=int)
    waiting, count = np.zeros(n + 2, dtype=int), 1  # where the last segment may begin
    for end in range(shortest, n + 1):
        candidates = waiting[:count]
        lengths = end - candidates
        costs = squares[end] - squares[candidates] - (sums[end] - sums[candidates]) ** 2 / lengths
        totals = best[candidates] + costs
        place = int(totals.argmin())
        best[end], last[end] = totals[place] + penalty, candidates[place]
        kept = candidates[totals <= best[end]]
        count = len(kept) + 1
        waiting[: count - 1], waiting[count - 1] = kept, end - shortest + 1
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
