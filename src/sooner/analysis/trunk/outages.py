"""When the machines failed for a while: what an outage is taken for, and one beside a break. Pure."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

BURST_STRENGTHS: Final[Array] = np.array([0.97, 0.8, 0.5])
BURST_WEIGHTS: Final[Array] = np.array([0.93, 0.06, 0.01])
BURST_HAZARD: Final = 0.001
"""Probability that the machines begin to fail between two runs that start an hour apart."""
BURST_END_HAZARD: Final = 0.35
"""Probability that a burst ends within an hour."""

OUTAGE_FAILURES: Final = 2
"""Fewer failures of older commits are flakes, not an outage beside a break."""
FOR_AN_OUTAGE: Final = 1.5
AGAINST_AN_OUTAGE: Final = -3.5
"""Logarithms of how much a failure and a pass speak for one: .97 against a fifth, .03 against nearly 1."""


def streak_of(failures: Array, passes: Array) -> int:
    """The oldest commit of those, newest first, on which nothing passed."""
    passed = np.flatnonzero(passes)
    failed = np.flatnonzero(failures)
    last = int(passed[-1]) if len(passed) else -1
    newer = failed[failed > last]
    return int(newer[0]) if len(newer) else len(failures)


def outage_of(runs: Array, streak: int) -> tuple[float, float] | None:
    """When an outage was, if a break by the streak's first commit is not all: from what failed on older commits.

    The stretch of time with the most failures beyond what passes speak against (the segment of the largest sum); it
    takes two failures to be more than a flake.
    """
    older = runs[runs[:, 2] < streak]
    if older[:, 1].sum() < OUTAGE_FAILURES:
        return None
    best, found, total, first = 0.0, None, 0.0, 0
    for i, failed in enumerate(older[:, 1]):
        if total <= 0:
            total, first = 0.0, i
        total += FOR_AN_OUTAGE if failed else AGAINST_AN_OUTAGE
        if total > best:
            best, found = total, (first, i)
    if found is None or older[found[0] : found[1] + 1, 1].sum() < OUTAGE_FAILURES:
        return None
    return float(older[found[0], 0]), float(older[found[1], 0])


def left_to_an_outage(runs: Array, outage: tuple[float, float], factor: float) -> tuple[Array, float]:
    """The runs that started in an outage, and the logarithm of its probability together with theirs."""
    inside = runs[(runs[:, 0] >= outage[0]) & (runs[:, 0] <= outage[1])]
    failed = inside[:, 1].sum()
    logs = failed * np.log(BURST_STRENGTHS) + (len(inside) - failed) * np.log1p(-BURST_STRENGTHS)
    begins = min(BURST_HAZARD * factor / BURST_END_HAZARD, 0.5)
    lasts = (outage[1] - outage[0]) * np.log1p(-BURST_END_HAZARD)
    return inside, float(np.log(begins) + lasts + log_sum(logs + np.log(BURST_WEIGHTS), 0))


def log_sum(values: Any, axis: int) -> Any:
    """Logarithm of a sum of exponentials; minus infinity where all are."""
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top, axis=axis)
