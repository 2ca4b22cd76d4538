"""All breakages of a history, each with the commits that may have caused it. Pure.

A signal is *sound* or *broken* at each commit, and rarely changes. Sound, a run fails with the signal's flake rate,
broken, nearly always. The forward-backward algorithm (Rabiner, 1989) weighs all histories of states, so flakes fall out
by themselves: one failure between passes is far more probable as a flake than as a break and its fix. The flake rate is
fitted to the signal itself (Baum-Welch, the emission of the sound state alone).
"""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sooner.analysis.trunk.facts import Event, Status

Array = NDArray[np.float64]

BREAKS: Final = 0.004
"""Probability that a commit breaks a given signal."""
MENDS: Final = 0.06
"""Probability that a commit mends a broken one."""
FAILS_BROKEN: Final = 0.96
"""Share of its runs that a broken signal fails."""
FLAKE_PRIOR: Final = (1.0, 30.0)
"""Failures and passes that are believed of a sound signal before anything is seen."""
RATE_BOUNDS: Final = (0.001, 0.5)
ROUNDS: Final = 6
"""Of fitting the flake rate; it has settled by then."""
RANGE: Final = 0.95
"""Probability that the culprit is in the range that is named."""
AT_ONCE: Final = 256
"""Signals that are smoothed at once."""
LOOK_AROUND: Final = 40
"""Commits before and after the switch in which a culprit may lie."""


class Series(Struct, frozen=True, kw_only=True):
    """One signal over all commits, oldest first."""

    key: str
    failures: tuple[int, ...]
    passes: tuple[int, ...]


class Breakage(Struct, frozen=True, kw_only=True):
    """A stretch of commits over which a signal was broken. Places count from the oldest commit."""

    signal: str
    culprit: int
    """The most probable one."""
    probability: float
    """That it is this one."""
    first: int
    last: int
    """The culprit lies between these, with `RANGE`."""
    fixed: int | None
    """The first commit on which it was sound again; None where it is broken at the end."""
    failures: int
    """Runs that failed meanwhile."""
    is_certain: float
    """Probability that anything was broken at all."""
    is_older: bool = False
    """It was never seen sound before: what broke it is older than the record, and `culprit` only the first commit."""


def series_of(key: str, events: Sequence[Event], places: dict[str, int]) -> Series:
    """Count the runs of each commit."""
    failures, passes = [0] * len(places), [0] * len(places)
    for event in events:
        if event.status is not Status.PENDING and event.sha in places:
            (failures if event.status is Status.FAILURE else passes)[places[event.sha]] += 1
    return Series(key=key, failures=tuple(failures), passes=tuple(passes))


def find_breakages(all_series: Sequence[Series], suspicion: Sequence[float] = ()) -> Iterator[Breakage]:
    """Every breakage of every signal, by signal and time.

    Args:
        all_series: The signals.
        suspicion: How suspect each commit is before anything ran (1, or less for documentation); empty is 1 for all.
    """
    failing = [series for series in all_series if any(series.failures)]
    for first in range(0, len(failing), AT_ONCE):
        batch = failing[first : first + AT_ONCE]
        failures, passes = _counts(batch)
        _, broken, switch = _fit(failures, passes)
        weights = np.array(suspicion or [1.0] * failures.shape[1])
        for k, series in enumerate(batch):
            yield from _of_one(series.key, failures[k], passes[k], broken[k], switch[k] * weights)


def _counts(batch: Sequence[Series]) -> tuple[Array, Array]:
    return np.array([one.failures for one in batch], float), np.array([one.passes for one in batch], float)


def flake_rates_of(all_series: Sequence[Series]) -> list[float]:
    """Of each signal the share of runs that fail where it is sound."""
    if not all_series:
        return []
    return [float(rate) for rate in _fit(*_counts(all_series))[0]]


def _of_one(key: str, failures: Array, passes: Array, broken: Array, switch: Array) -> Iterator[Breakage]:
    ran = (failures + passes) > 0
    ended = 0
    for start, end in _stretches(broken > 0.5):  # noqa: PLR2004 - more probable than not
        if not failures[start:end].any():
            continue
        low, high = max(ended, start - LOOK_AROUND), min(end, start + LOOK_AROUND)
        near = switch[low:high]
        ended = end
        is_older = start == 0
        if is_older or near.sum() <= 0:
            near = (np.arange(low, high) == start).astype(float)
        near = near / near.sum()
        culprit = int(near.argmax())
        first, last = _range(near, culprit)
        yield Breakage(
            signal=key,
            culprit=low + culprit,
            probability=0.0 if is_older else round(float(near[culprit]), 4),
            first=low + first,
            last=low + last,
            fixed=next((i for i in range(end, len(broken)) if ran[i]), None),
            failures=int(failures[start:end].sum()),
            is_certain=round(float(broken[start:end].max()), 4),
            is_older=is_older,
        )


def _fit(failures: Array, passes: Array) -> tuple[Array, Array, Array]:
    """Flake rate, probability of being broken at each commit, of breaking at each commit; a row a signal."""
    rate = np.full(len(failures), 0.02)
    broken = switch = np.zeros_like(failures)
    for _ in range(ROUNDS):
        broken, switch = _smooth(failures, passes, rate[:, None])
        sound = 1 - broken
        failed = (failures * sound).sum(1) + FLAKE_PRIOR[0]
        passed = (passes * sound).sum(1) + FLAKE_PRIOR[1]
        before, rate = rate, np.clip(failed / (failed + passed), *RATE_BOUNDS)
        if (abs(rate - before) < 0.001 * rate).all():
            break
    return rate, broken, switch


def _smooth(failures: Array, passes: Array, rate: Array) -> tuple[Array, Array]:
    sound = failures * np.log(rate) + passes * np.log1p(-rate)
    bad = failures * np.log(FAILS_BROKEN) + passes * np.log1p(-FAILS_BROKEN)
    odds = np.exp(np.clip(bad - sound, -60, 60)).T.copy()  # of broken over sound; a row a commit
    forward, backward = np.empty_like(odds), np.ones_like(odds)
    share = np.full(odds.shape[1], BREAKS / (BREAKS + MENDS))  # broken before anything was seen
    for i, seen in enumerate(odds):
        ahead = share * (1 - MENDS) + (1 - share) * BREAKS
        share = ahead * seen / (ahead * seen + 1 - ahead)
        forward[i] = share
    ratio = np.ones(odds.shape[1])  # of what follows, if broken over if sound
    for i in range(len(odds) - 1, -1, -1):
        backward[i] = ratio
        seen = odds[i] * ratio
        ratio = ((1 - MENDS) * seen + MENDS) / (BREAKS * seen + 1 - BREAKS)
    broken = forward * backward / (forward * backward + 1 - forward)
    before = np.concatenate([np.zeros_like(forward[:1]), forward[:-1]])
    into = (1 - before) * BREAKS * odds * backward
    others = (1 - before) * (1 - BREAKS) + before * ((1 - MENDS) * odds * backward + MENDS)
    return broken.T, (into / (into + others)).T


def _stretches(is_broken: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_broken.astype(np.int8), [0]])))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _range(shares: Array, middle: int) -> tuple[int, int]:
    """The shortest stretch around the most probable place that holds `RANGE`."""
    first = last = middle
    held = shares[middle]
    while held < RANGE:
        before = shares[first - 1] if first > 0 else -1.0
        after = shares[last + 1] if last + 1 < len(shares) else -1.0
        if before < 0 and after < 0:
            break
        if before >= after:
            first -= 1
            held += before
        else:
            last += 1
            held += after
    return first, last
