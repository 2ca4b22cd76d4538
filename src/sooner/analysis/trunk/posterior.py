"""How probable each explanation of a signal's failures is.

Explanations: nothing but flakes; a commit broke the signal (all of its runs, or a share) and it is broken still; it was
broken and fixed again; the machines failed for a while, whatever commit ran. Flake rate and strength of a break are not
known: they are integrated out over a grid. Observed are only runs that ended with a verdict.

The first three are a walk over commits in the order in which they landed, through the states *sound*, *broken*,
*fixed*; the last one is the same walk over runs in the order in which they started. One function, `walk`, does both.
After: "Flake Aware Culprit Finding", Henderson et al., 2023 (a hypothesis without culprit, a floor for flakes), and
"Bayesian change-point" analyses of LUCI; the time walk, partial breaks and the fix are ours.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

FLAKE_RATES: Final[Array] = np.array([0.0005, 0.003, 0.01, 0.025, 0.05, 0.09, 0.14, 0.2, 0.28, 0.37, 0.5])
_FLAKE_WIDTHS: Final[Array] = np.gradient(FLAKE_RATES)
FLAKE_PRIOR: Final = (0.5, 9.0)
"""Failures and passes that are believed before anything is seen: 5 % flaky on average, mostly far less."""
FLAKE_PRIOR_RUNS: Final = 80.0
"""What is told of the flake rate from before the window counts as at most so many runs: rates drift."""

BREAK_STRENGTHS: Final[Array] = np.array([0.995, 0.9, 0.8, 0.65, 0.45])
"""Share of its runs that a break fails; and how many breaks are of that kind."""
BREAK_WEIGHTS: Final[Array] = np.array([0.86, 0.06, 0.04, 0.03, 0.01])
BURST_STRENGTHS: Final[Array] = np.array([0.97, 0.8, 0.5])
BURST_WEIGHTS: Final[Array] = np.array([0.93, 0.06, 0.01])

BREAK_HAZARD: Final = 0.004
"""Probability that a commit breaks a given signal."""
FIX_HAZARD: Final = 0.03
"""Probability that a later commit mends it."""
BURST_HAZARD: Final = 0.001
"""Probability that the machines begin to fail between two runs that start an hour apart."""
BURST_END_HAZARD: Final = 0.35
"""Probability that a burst ends within an hour."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Evidence (logarithms) of a walk through sound, broken, fixed."""

    sound: float
    """Nothing ever changed."""
    broken: Array
    """Broken from this place on, to the end."""
    fixed: Array
    """Broken from this place on, and fixed at some later one."""
    flake_rate: float
    """Expected, where nothing ever changed."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Probabilities of all explanations of one signal; they sum to 1. Places are commits, oldest first."""

    none: float
    broken: Array
    """This commit broke the signal, and it still is; the first place stands for "before the window"."""
    fixed: Array
    """This commit broke the signal, and a newer one that ran has mended it."""
    burst_over: float
    burst_now: float
    flake_rate: float
    """Expected, where nothing is broken."""

    def after(self, commits: int) -> "Posterior":
        """The same with so many more commits before, of which none can be the culprit."""
        if not commits:
            return self
        nothing = np.zeros(commits)
        broken, fixed = np.concatenate([nothing, self.broken]), np.concatenate([nothing, self.fixed])
        return replace(self, broken=broken, fixed=fixed)

    def doubted(self, place: int, share: float) -> "Posterior":
        """The same with a share of one commit's guilt given to an outage that is over."""
        kept = np.ones(len(self.broken))
        kept[place] -= share
        over = self.burst_over + share * self.guilt(place)
        return replace(self, broken=self.broken * kept, fixed=self.fixed * kept, burst_over=over)

    def guilt(self, place: int) -> float:
        """That this commit broke the signal, whether or not somebody has mended it."""
        return float(self.broken[place] + self.fixed[place])


def flake_weights(prior: tuple[float, float] | None) -> Array:
    """Logarithms of the weights of `FLAKE_RATES`, from failures and runs that are known."""
    failures, passes = FLAKE_PRIOR
    if prior is not None:
        failures, passes = failures + prior[0], passes + prior[1] - prior[0]
    logs = (failures - 1) * np.log(FLAKE_RATES) + (passes - 1) * np.log1p(-FLAKE_RATES) + np.log(_FLAKE_WIDTHS)
    return np.asarray(logs - _log_sum(logs, 0))


def walk(
    failures: Array,
    passes: Array,
    *,
    hazard: Array,
    fix_hazard: Array,
    rates: Array,
    strengths: tuple[Array, Array],
) -> Walk:
    """The evidence of every way through sound, broken and fixed.

    Args:
        failures: Failed runs at each place, in order.
        passes: Passed ones.
        hazard: Logarithm of the probability that it breaks at this place.
        fix_hazard: Logarithm of the probability that it is fixed at this place.
        rates: Logarithms of the weights of `FLAKE_RATES`.
        strengths: Shares of runs that a break fails, and the weight of each.
    """
    q = FLAKE_RATES[:, None, None]
    f = strengths[0][None, :, None]
    r = f + (1 - f) * q
    sound = failures * np.log(q) + passes * np.log1p(-q)  # rate, 1, place
    broken = failures * np.log(r) + passes * np.log1p(-r)  # rate, strength, place
    sound_sum = np.cumsum(sound, axis=2)
    broken_sum = np.cumsum(broken, axis=2)
    sound_before, broken_before = sound_sum - sound, broken_sum - broken
    sound_all, broken_all = sound_sum[:, :, -1:], broken_sum[:, :, -1:]
    weight = rates[:, None, None] + np.log(strengths[1])[None, :, None]
    enters = hazard + sound_before - broken_before
    stays = enters + broken_all + weight
    leaves = fix_hazard + broken_before + sound_all - sound_before
    later = np.full_like(leaves, -np.inf)
    np.logaddexp.accumulate(leaves[:, :, :0:-1], axis=2, out=later[:, :, -2::-1])
    passes_through = enters + later + weight
    none = sound_all[:, 0, 0] + rates
    by_rate = _log_sum(stays, 1)  # rate, place
    total = _log_sum(by_rate, 0)
    mean = float((np.exp(none - _log_sum(none, 0)) * FLAKE_RATES).sum())
    fixed = _log_sum(_log_sum(passes_through, 1), 0)
    return Walk(float(_log_sum(none, 0)), total, fixed, mean)


def posterior(
    failures: Array,
    passes: Array,
    runs: Array,
    *,
    flake_prior: tuple[float, float] | None,
    priors: Array,
    burst_factor: float = 1.0,
) -> Posterior:
    """Weigh the explanations of one signal.

    Args:
        failures: Failed runs of each commit, oldest commit first.
        passes: Passed ones.
        runs: A row a run in the order of their starts: start in hours, 1 where it failed.
        flake_prior: Failures and runs that are known.
        priors: How much more than others each commit is suspect.
        burst_factor: How much more probable than usual it is that the machines fail, because other signals say so.
    """
    rates = flake_weights(flake_prior)
    hazard = np.log(np.minimum(BREAK_HAZARD * priors, 0.5))
    seen = np.maximum.accumulate(((failures + passes) > 0)[::-1])[::-1]  # at this commit or a newer one
    mends = np.where(seen, np.log(FIX_HAZARD), -np.inf)  # a fix that nothing has run on is no explanation
    kinds = (BREAK_STRENGTHS, BREAK_WEIGHTS)
    by_commit = walk(failures, passes, hazard=hazard, fix_hazard=mends, rates=rates, strengths=kinds)
    burst = _burst(runs, rates, burst_factor)
    over = -np.inf if burst is None else float(_log_sum(burst.fixed, 0))
    now = -np.inf if burst is None else float(_log_sum(burst.broken, 0))
    logs = np.concatenate([[by_commit.sound, over, now], by_commit.broken, by_commit.fixed])
    shares = np.exp(logs - _log_sum(logs, 0))
    broken, fixed = np.split(shares[3:], 2)
    return Posterior(
        none=float(shares[0]),
        burst_over=float(shares[1]),
        burst_now=float(shares[2]),
        broken=broken,
        fixed=fixed,
        flake_rate=by_commit.flake_rate,
    )


def _burst(runs: Array, rates: Array, factor: float) -> Walk | None:
    if not len(runs):
        return None
    gaps = np.diff(runs[:, 0], prepend=runs[0, 0] - 1.0).clip(0.02)
    length = 1 / BURST_END_HAZARD  # one that began earlier has ended before this run
    begins = np.log(np.minimum(-np.expm1(-BURST_HAZARD * factor * gaps.clip(max=length)), 0.5))
    ends = np.log(-np.expm1(np.log1p(-BURST_END_HAZARD) * gaps))
    kinds = (BURST_STRENGTHS, BURST_WEIGHTS)
    return walk(runs[:, 1], 1 - runs[:, 1], hazard=begins, fix_hazard=ends, rates=rates, strengths=kinds)


def _log_sum(values: Any, axis: int) -> Any:
    """Logarithm of a sum of exponentials; minus infinity where all are."""
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top, axis=axis)
