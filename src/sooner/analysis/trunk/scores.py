"""What a policy came to on trunks whose culprits are known."""

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sooner.analysis.trunk.simulate import Ending, Verdict

Z_95: Final = 1.959964
"""Two-sided 95 % quantile of the normal distribution."""
BINS: Final = (0.0, 0.9, 0.99, 0.999, 0.9995, 1.0)
"""Edges of the rows of a reliability table; a policy states little below its threshold."""


class Score(Struct, frozen=True, kw_only=True):
    """Shares are of all trunks."""

    trunks: int
    right: float
    wrong: float
    none: float
    median_hours: float | None
    mean_reruns: float
    reverts: int
    precision: float | None
    """Of the reverts, the share that hit a culprit, and its interval."""
    precision_low: float | None
    precision_high: float | None


class Reliable(Struct, frozen=True, kw_only=True):
    """One row of a reliability table: what was stated, and how often it was right."""

    low: float
    high: float
    reverts: int
    stated: float
    right: float
    right_low: float
    right_high: float


def score(endings: Sequence[Ending]) -> Score:
    """Sum up; at least one ending."""
    count = {verdict: sum(one.verdict is verdict for one in endings) for verdict in Verdict}
    hours = [one.hours for one in endings if one.hours is not None]
    stated = [was_right for one in endings for _, was_right in one.stated]
    low, high = wilson(sum(stated), len(stated)) if stated else (None, None)
    return Score(
        trunks=len(endings),
        right=count[Verdict.RIGHT] / len(endings),
        wrong=count[Verdict.WRONG] / len(endings),
        none=count[Verdict.NONE] / len(endings),
        median_hours=statistics.median(hours) if hours else None,
        mean_reruns=statistics.fmean(one.reruns for one in endings),
        reverts=len(stated),
        precision=sum(stated) / len(stated) if stated else None,
        precision_low=low,
        precision_high=high,
    )


def reliability(stated: Sequence[tuple[float, bool]]) -> list[Reliable]:
    """How often reverts were right, by what was stated."""
    rows = []
    for low, high in itertools.pairwise(BINS):
        here = [(p, right) for p, right in stated if low <= p < high or (high == BINS[-1] and p == high)]
        if not here:
            continue
        right = sum(was_right for _, was_right in here)
        bounds = wilson(right, len(here))
        rows.append(
            Reliable(
                low=low,
                high=high,
                reverts=len(here),
                stated=statistics.fmean(p for p, _ in here),
                right=right / len(here),
                right_low=bounds[0],
                right_high=bounds[1],
            )
        )
    return rows


def wilson(successes: int, trials: int) -> tuple[float, float]:
    """The 95 % interval of a share after Wilson, 1927."""
    share = successes / trials
    center = share + Z_95**2 / (2 * trials)
    spread = Z_95 * math.sqrt(share * (1 - share) / trials + Z_95**2 / (4 * trials**2))
    scale = 1 + Z_95**2 / trials
    return max(0.0, (center - spread) / scale), min(1.0, (center + spread) / scale)
