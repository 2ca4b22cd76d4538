"""How far down its order a commit must go so that few enough breakages are missed: learned from earlier ones. Pure.

Each breakage of the past has a level: the share of the cost of all jobs that its commit would have had to spend until
the first of the jobs that really broke was run. Where the budget ends within that job, it is run on as large a share
of the commits as the budget pays for. What a budget of L catches is the sum of these shares, and the next breakage is
exchangeable with the past ones, so their quantile is a bound (split conformal prediction; Vovk, Gammerman and Shafer
2005).

One further breakage, of which nothing is known, counts as if its level were uniform: with
few breakages the level stays high by itself, and without any it is the recall that was asked for.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.facts import Indices, Numbers

_LEVELS: Final = np.linspace(0.0, 1.0, 201)
_UNKNOWN: Final = 1.0
"""Breakages of unknown level. On made projects, where 97 % was asked for, 97.5 % were caught with 1 (for 81 % of the
cost), 97.9 % with 2 (83 %), 96.8 % with 0 (79 %)."""
_TAIL: Final = 0.05
_LEAST_WEIGHT: Final = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Earlier breakages with their levels: an entry for each job that broke."""

    commit: Indices
    real: Numbers
    """Probability that the job really broke there."""
    level: Numbers
    """At which half of the job is paid for."""
    width: Numbers
    """How much more pays for all of it than for nothing of it."""


class Point(Struct, frozen=True, kw_only=True):
    """A point of the frontier of cost and recall."""

    level: float
    """Share of the cost of all jobs."""
    recall: float
    low: float
    """Lower end of the one-sided interval of 95 % (Clopper and Pearson 1934)."""
    breakages: float
    """How many this rests on: each counts by its probability. With none the recall says nothing."""


def caught(past: Past) -> tuple[Numbers, float]:
    """Expected number of breakages caught at each of 201 levels from 0 to 1, and of breakages."""
    found = np.zeros(len(_LEVELS))
    total = 0.0
    order = np.lexsort((past.level, past.commit))
    commits, levels, real = past.commit[order], past.level[order], past.real[order]
    widths = np.maximum(past.width[order], 1e-9)
    missed = 1.0
    for i in range(len(order)):
        if i == 0 or commits[i] != commits[i - 1]:
            total += 1.0 - missed
            missed = 1.0
        step = missed * real[i]
        missed -= step
        found += step * np.clip((_LEVELS - levels[i]) / widths[i] + 0.5, 0.0, 1.0)
    total += 1.0 - missed
    found[-1] = total
    return found, float(total)


def promised_recall(*, recall: float, breakages: float, level: float) -> float:
    """The probability that the next breakage is caught, as `level_for` reckons it: what a record may be held to."""
    return (recall * breakages + _UNKNOWN * level) / (breakages + _UNKNOWN)


def level_for(past: Past, recall: float) -> float:
    """The lowest level at which the next breakage is caught with this probability."""
    found, total = caught(past)
    expected = (found + _UNKNOWN * _LEVELS) / (total + _UNKNOWN)
    return float(_LEVELS[int(np.argmax(expected >= recall - 1e-9))]) if recall < 1.0 else 1.0


def recall_at(past: Past, level: float) -> Point:
    """What a level would have caught of the past, with its bound."""
    found, total = caught(past)
    hits = float(np.interp(level, _LEVELS, found)) if level < 1.0 else total
    if total <= _LEAST_WEIGHT:
        return Point(level=level, recall=1.0, low=0.0, breakages=0.0)
    return Point(level=level, recall=hits / total, low=lower_bound(hits, total), breakages=total)


def frontier(past: Past) -> list[Point]:
    """What each level from 5 % to 100 % would have caught."""
    return [recall_at(past, level / 100) for level in range(5, 101, 5)]


def lower_bound(hits: float, trials: float, *, tail: float = _TAIL) -> float:
    """One-sided lower bound of a share (Clopper and Pearson 1934); counts may be expected ones."""
    from scipy.special import betaincinv

    return float(betaincinv(hits, trials - hits + 1, tail)) if hits > _LEAST_WEIGHT else 0.0


def trials_for(recall: float) -> int:
    """Breakages without a miss after which this recall is proven: 99 for 97 %."""
    return int(np.ceil(np.log(_TAIL) / np.log(recall))) if 0.0 < recall < 1.0 else 0
