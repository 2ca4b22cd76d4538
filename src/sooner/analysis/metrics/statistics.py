"""Percentiles and rates with their intervals. Needs numpy and scipy (`pip install 'sooner[stats]'`)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy.special import betaincinv

_TAIL: Final = 0.025
"""Of a two-sided interval of 95 %."""

Numbers = NDArray[np.float64]


class Estimate(Struct, frozen=True, kw_only=True):
    """A number and the interval of 95 % around it."""

    value: float
    low: float
    high: float


def percentile(values: Sequence[float] | Numbers, share: float) -> Estimate:
    """A percentile, interpolated linearly, with its bootstrap interval.

    The bootstrap distribution of an order statistic is known exactly, so nothing is resampled: the k-th smallest of a
    resample of n is at most the j-th smallest of the sample with the probability that a binomial(n, j/n) is at least k
    (Efron 1979, section 2), which is a quantile of beta(k, n - k + 1).

    Args:
        values: At least one.
        share: 0.5 for the median.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n = len(ordered)
    rank = max(1.0, share * n)
    low, high = (betaincinv(rank, n - rank + 1, tail) for tail in (_TAIL, 1 - _TAIL))
    places = np.clip(np.ceil(np.array([low, high]) * n).astype(int) - 1, 0, n - 1)
    return Estimate(
        value=float(np.quantile(ordered, share)), low=float(ordered[places[0]]), high=float(ordered[places[1]])
    )


def rate(hits: int, trials: int) -> Estimate:
    """A share with its Clopper-Pearson interval."""
    low = float(betaincinv(hits, trials - hits + 1, _TAIL)) if hits else 0.0
    high = float(betaincinv(hits + 1, trials - hits, 1 - _TAIL)) if hits < trials else 1.0
    return Estimate(value=hits / trials if trials else 0.0, low=low, high=high)
