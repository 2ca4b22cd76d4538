"""The walks of many signals at once: the same as `posterior.walk` one by one, a hundred times sooner.

`walk` adds logarithms; here the ratio of *broken* to *sound* is multiplied from the newest place to the oldest, for all
signals together. Signals with more failures than a double's exponent can hold are walked one by one. Pure.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from sooner.analysis.trunk.outages import Array
from sooner.analysis.trunk.posterior import (
    BREAKS,
    BURSTS,
    FLAKE_RATES,
    Evidence,
    Posterior,
    Steps,
    Walk,
    burst_steps,
    commit_steps,
    posterior,
    together,
)

AT_ONCE: Final = 256
"""Signals a batch: their ratios (55 a signal) stay in the processor's cache."""
WORTH_IT: Final = 8
"""From so many signals on."""
MOST_RUNS: Final = 20
"""Runs of one signal on one commit with the same end."""
MOST_FAILURES: Final = 90
"""Of one signal. A failure multiplies a ratio by up to .995 / .0005, and 1990 ** 90 = e ** 684 is still a double."""
MOST_PASSES: Final = 900
"""Of one signal. A pass halves a weight at most, and e ** -709 is still a double."""


def posteriors(all_known: Sequence[Evidence]) -> list[Posterior]:
    """What `posterior` says of each."""
    if len(all_known) < WORTH_IT:
        return [posterior(known) for known in all_known]
    batch = [k for k, known in enumerate(all_known) if _is_plain(known)]
    by_commit = walks([commit_steps(all_known[k]) for k in batch], BREAKS)
    bursts = walks([burst_steps(all_known[k]) for k in batch], BURSTS)
    found = {k: together(all_known[k], *pair) for k, *pair in zip(batch, by_commit, bursts, strict=True)}
    return [found[k] if k in found else posterior(known) for k, known in enumerate(all_known)]


def _is_plain(known: Evidence) -> bool:
    """Whether doubles hold all of its ratios."""
    if not len(known.runs) or max(known.failures.max(), known.passes.max()) > MOST_RUNS:
        return False
    failed = known.runs[:, 1].sum()  # of older commits too
    return bool(failed <= MOST_FAILURES and len(known.runs) - failed <= MOST_PASSES)


def walks(all_steps: Sequence[Steps], strengths: tuple[Array, Array]) -> list[Walk]:
    """Walk all of them; places are oldest first in each, and their numbers may differ."""
    found: list[Walk] = [None] * len(all_steps)  # type: ignore[list-item] # each is set below
    order = sorted(range(len(all_steps)), key=lambda k: len(all_steps[k].failures))
    for first in range(0, len(order), AT_ONCE):
        batch = order[first : first + AT_ONCE]
        for k, walk in zip(batch, _walk_batch([all_steps[k] for k in batch], strengths), strict=True):
            found[k] = walk
    return found


def _walk_batch(batch: Sequence[Steps], strengths: tuple[Array, Array]) -> list[Walk]:
    most = max(len(steps.failures) for steps in batch)
    failures, passes, hazard, mends = (
        np.array([_padded(steps[column], most, fill) for steps in batch])
        for column, fill in ((0, 0.0), (1, 0.0), (2, -np.inf), (3, -np.inf))
    )
    rates = np.array([steps.rates for steps in batch])
    sound = failures.sum(1)[:, None] * np.log(FLAKE_RATES) + passes.sum(1)[:, None] * np.log1p(-FLAKE_RATES) + rates
    top = sound.max(1, keepdims=True)
    share = np.exp(sound - top)
    weight = (share[:, :, None] * strengths[1]).reshape(len(batch), -1)
    stays, leaves = _ratios(failures, passes, np.exp(mends), weight, strengths[0])
    with np.errstate(divide="ignore"):
        level = top + hazard
        broken, fixed = np.log(stays) + level, np.log(leaves) + level
    none = top[:, 0] + np.log(share.sum(1))
    mean = (share * FLAKE_RATES).sum(1) / share.sum(1)
    return [
        Walk(float(none[k]), broken[k, most - size :], fixed[k, most - size :], float(mean[k]))
        for k, size in enumerate(len(steps.failures) for steps in batch)
    ]


def _ratios(failures: Array, passes: Array, mends: Array, weight: Array, strength: Array) -> tuple[Array, Array]:
    """Sums over flake rates and strengths of broken to the end, and of mended later, against sound."""
    q = FLAKE_RATES[:, None]
    r = strength + (1 - strength) * q
    worse, better = np.log(r / q).ravel(), np.log((1 - r) / (1 - q)).ravel()
    codes, which = np.unique(failures * (MOST_RUNS + 1) + passes, return_inverse=True)
    table = np.exp((codes // (MOST_RUNS + 1))[:, None] * worse + (codes % (MOST_RUNS + 1))[:, None] * better)
    which = which.reshape(failures.shape)
    signals, places = failures.shape
    ratio, mended = np.ones_like(weight), np.zeros_like(weight)
    stays, leaves = np.zeros((signals, places)), np.zeros((signals, places))
    for i in range(places - 1, -1, -1):
        step = table[which[:, i]]
        if i + 1 < places:
            mended += mends[:, i + 1, None]
        ratio *= step
        mended *= step
        stays[:, i] = np.einsum("sk,sk->s", weight, ratio)
        leaves[:, i] = np.einsum("sk,sk->s", weight, mended)
    return stays, leaves


def _padded(values: Array, size: int, fill: float) -> Array:
    padded = np.full(size, fill)
    padded[size - len(values) :] = values
    return padded
