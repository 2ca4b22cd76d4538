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
from typing import Final, NamedTuple

import numpy as np

from sooner.analysis.trunk.outages import (
    BURST_END_HAZARD,
    BURST_HAZARD,
    BURST_STRENGTHS,
    BURST_WEIGHTS,
    Array,
    left_to_an_outage,
    log_sum,
    outage_of,
    streak_of,
)

FLAKE_RATES: Final[Array] = np.array([0.0005, 0.003, 0.01, 0.025, 0.05, 0.09, 0.14, 0.2, 0.28, 0.37, 0.5])
_FLAKE_WIDTHS: Final[Array] = np.gradient(FLAKE_RATES)
FLAKE_PRIOR: Final = (1.0, 20.0)
"""Failures and passes that are believed before anything is seen: 5 % flaky on average, mostly far less."""
FLAKE_PRIOR_RUNS: Final = 80.0
"""What is told of the flake rate from before the window counts as at most so many runs: rates drift."""

BREAK_STRENGTHS: Final[Array] = np.array([0.995, 0.9, 0.8, 0.65, 0.45])
"""Share of its runs that a break fails; and how many breaks are of that kind."""
BREAK_WEIGHTS: Final[Array] = np.array([0.86, 0.06, 0.04, 0.03, 0.01])

BREAK_HAZARD: Final = 0.004
"""Probability that a commit breaks a given signal."""
FIX_HAZARD: Final = 0.03
"""Probability that a later commit mends it."""


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

    def newer(self, place: int) -> float:
        """That a newer commit broke it, and what failed on this one were flakes."""
        return float(self.broken[place + 1 :].sum() + self.fixed[place + 1 :].sum())

    def older(self, place: int) -> float:
        """That an older commit broke it, and it passed by luck: the break fails only some runs."""
        return float(self.broken[:place].sum() + self.fixed[:place].sum())

    def guilt(self, place: int) -> float:
        """That this commit broke the signal, whether or not somebody has mended it."""
        return float(self.broken[place] + self.fixed[place])


def flake_weights(prior: tuple[float, float] | None) -> Array:
    """Logarithms of the weights of `FLAKE_RATES`, from failures and runs that are known."""
    failures, passes = FLAKE_PRIOR
    if prior is not None:
        failures, passes = failures + prior[0], passes + prior[1] - prior[0]
    logs = (failures - 1) * np.log(FLAKE_RATES) + (passes - 1) * np.log1p(-FLAKE_RATES) + np.log(_FLAKE_WIDTHS)
    return np.asarray(logs - log_sum(logs, 0))


class Evidence(NamedTuple):
    """What is known of one signal."""

    failures: Array
    """Failed runs of each commit, oldest commit first."""
    passes: Array
    runs: Array
    """A row a run in the order of their starts: start in hours, 1 where it failed, place of its commit."""
    flake_prior: tuple[float, float] | None
    """Failures and runs that are known."""
    priors: Array
    """How much more than others each commit is suspect."""
    burst_factor: float = 1.0
    """How much more probable than usual it is that the machines fail, because other signals say so."""
    beside_factor: float = 1.0
    """The same of machines that fail beside a break. What others say of a break is in `priors`: it counts once."""


class Steps(NamedTuple):
    """What a walk goes over, in order."""

    failures: Array
    """Failed runs at each place."""
    passes: Array
    hazard: Array
    """Logarithm of the probability that it breaks at this place."""
    fix_hazard: Array
    """Logarithm of the probability that it is fixed at this place."""
    rates: Array
    """Logarithms of the weights of `FLAKE_RATES`."""


BREAKS: Final = (BREAK_STRENGTHS, BREAK_WEIGHTS)
"""Shares of runs that a break fails, and the weight of each."""
BURSTS: Final = (BURST_STRENGTHS, BURST_WEIGHTS)


def walk(steps: Steps, strengths: tuple[Array, Array]) -> Walk:
    """The evidence of every way through sound, broken and fixed."""
    failures, passes, hazard, fix_hazard, rates = steps
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
    by_rate = log_sum(stays, 1)  # rate, place
    total = log_sum(by_rate, 0)
    mean = float((np.exp(none - log_sum(none, 0)) * FLAKE_RATES).sum())
    fixed = log_sum(log_sum(passes_through, 1), 0)
    return Walk(float(log_sum(none, 0)), total, fixed, mean)


def posterior(known: Evidence) -> Posterior:
    """Weigh the explanations of one signal."""
    by_commit = walk(commit_steps(known), BREAKS)
    burst = walk(burst_steps(known), BURSTS) if len(known.runs) else None
    return together(known, by_commit, burst)


def together(known: Evidence, by_commit: Walk, burst: Walk | None) -> Posterior:
    """The posterior, from a walk over commits and one over time."""
    over = -np.inf if burst is None else float(log_sum(burst.fixed, 0))
    now = -np.inf if burst is None else float(log_sum(burst.broken, 0))
    logs = np.concatenate([[by_commit.sound, over, now], by_commit.broken, by_commit.fixed])
    outage = outage_of(known.runs, streak_of(known.failures, known.passes))
    if outage is not None:
        both, weight = _beside(known, outage)
        logs[3:] = np.logaddexp(logs[3:], weight + np.concatenate([both.broken, both.fixed]))
    shares = np.exp(logs - log_sum(logs, 0))
    broken, fixed = np.split(shares[3:], 2)
    return Posterior(
        none=float(shares[0]),
        burst_over=float(shares[1]),
        burst_now=float(shares[2]),
        broken=broken,
        fixed=fixed,
        flake_rate=by_commit.flake_rate,
    )


def _beside(known: Evidence, outage: tuple[float, float]) -> tuple[Walk, float]:
    """A break beside an outage: the walk over what started outside of it, and the logarithm of the outage's share."""
    inside, weight = left_to_an_outage(known.runs, outage, known.beside_factor)
    inside = inside[inside[:, 2] >= 0]  # what lies before the window's doubt is of no commit
    size = len(known.failures)
    less = [np.bincount(inside[inside[:, 1] == kind, 2].astype(int), minlength=size) for kind in (1, 0)]
    steps = commit_steps(known)._replace(failures=known.failures - less[0], passes=known.passes - less[1])
    return walk(steps, BREAKS), weight


def commit_steps(known: Evidence) -> Steps:
    """The walk over commits in the order in which they landed."""
    hazard = np.log(np.clip(BREAK_HAZARD * known.priors, 1e-12, 0.5))
    ran = (known.failures + known.passes) > 0
    seen = np.maximum.accumulate(ran[::-1])[::-1]  # at this commit or a newer one
    mends = np.where(seen, np.log(FIX_HAZARD), -np.inf)  # a fix that nothing has run on is no explanation
    return Steps(known.failures, known.passes, hazard, mends, flake_weights(known.flake_prior))


def burst_steps(known: Evidence) -> Steps:
    """The walk over runs in the order in which they started; at least one run."""
    runs = known.runs
    gaps = np.diff(runs[:, 0], prepend=runs[0, 0] - 1.0).clip(0.02)
    length = 1 / BURST_END_HAZARD  # one that began earlier has ended before this run
    begins = np.log(np.minimum(-np.expm1(-BURST_HAZARD * known.burst_factor * gaps.clip(max=length)), 0.5))
    ends = np.log(-np.expm1(np.log1p(-BURST_END_HAZARD) * gaps))
    return Steps(runs[:, 1], 1 - runs[:, 1], begins, ends, flake_weights(known.flake_prior))
