"""Which jobs fail together: 2 x 2 tables of all pairs, by masked matrix products. Pure.

For each pair only the commits count on which both jobs came to a verdict (pairwise complete). The counts of all pairs
are three products of matrices of zeros and ones: `ran.T @ ran`, `red.T @ ran`, `red.T @ red`. Cells that are red and
not run, or passed and not run, are different things; nothing is filled in.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sooner.analysis.selection.facts import Cells, Flags, Numbers
from sooner.analysis.selection.lift import discoveries
from sooner.analysis.selection.presence import presence
from sooner.analysis.selection.products import Floats, Ones, blocks

_TILE: Final = 256
"""Rows and columns of a part of the tables whose figures are computed at once."""
_LARGE: Final = 10_000_000
"""From so many cells on it is worth looking for jobs that run on the same commits."""
_FEWEST: Final = 2
"""Breakages in common: one shared outage makes any two jobs look alike."""
_LIKELY: Final = 1.0
"""Pairs below so many standard deviations are no discoveries; their p-value is not computed."""
_NEGLIGIBLE: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """Counts of all pairs of jobs, as [job, job] float32: whole numbers, exact up to 16 million commits."""

    both_ran: Floats
    red: Floats
    """[a, b]: commits on which both ran and a was red."""
    both_red: Floats


def matrices(known: Cells, jobs: int, commits: int, red: Flags | None = None) -> tuple[Floats, Floats]:
    """Commit x job: ran, and red on all attempts (or as told), as ones and zeros."""
    ran = np.zeros((commits, jobs), dtype=np.float32)
    ran[known.commit, known.job] = 1.0
    failed = np.zeros((commits, jobs), dtype=np.float32)
    chosen = (known.passes == 0) if red is None else red
    failed[known.commit[chosen], known.job[chosen]] = 1.0
    return ran, failed


def tables(ran: Floats, red: Floats) -> Tables:
    """The counts of all pairs.

    Args:
        ran: [commit, job], ones and zeros.
        red: The same; red only where it ran.
    """
    here, broke = Ones(ran), Ones(red)
    middling = not here.is_sparse and not here.is_full
    if middling and ran.size >= _LARGE and broke.is_sparse and (found := presence(ran)) is not None:
        return Tables(both_ran=found.symmetric(), red=found.after(broke.thin), both_red=broke.symmetric())
    return Tables(both_ran=here.symmetric(), red=here.after(broke), both_red=broke.symmetric())


def phi(counts: Tables) -> Floats:
    """Pearson's correlation of two series of zeros and ones; NaN where one of them is constant."""
    n, a, both = counts.both_ran, counts.red, counts.both_red
    found = np.empty(n.shape, dtype=np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        for rows, columns in _tiles(len(n)):  # in float64: products of counts are too large for float32
            at = rows, columns
            m, x, y = (one.astype(np.float64) for one in (n[at], a[at], a[columns, rows].T))
            spread = np.sqrt(x * (m - x) * y * (m - y))
            found[at] = np.where(spread > 0, (m * both[at] - x * y) / spread, np.nan)
    return found


def jaccard(counts: Tables) -> Floats:
    """Commits on which both were red over those on which at least one was; NaN where none was."""
    a, both = counts.red, counts.both_red
    found = np.empty(a.shape, dtype=np.float32)
    with np.errstate(divide="ignore", invalid="ignore"):
        for rows, columns in _tiles(len(a)):
            at = rows, columns
            either = a[at] + a[columns, rows].T - both[at]
            found[at] = np.where(either > 0, both[at] / either, np.nan)
    return found


def _tiles(size: int) -> Iterator[tuple[slice, slice]]:
    """Parts of a square matrix small enough for what is computed of one to stay in the cache."""
    for rows in blocks(size, _TILE):
        for columns in blocks(size, _TILE):
            yield rows, columns


class Pair(Struct, frozen=True, kw_only=True):
    """Two jobs that fail together more often than by chance."""

    a: int
    b: int
    phi: float
    jaccard: float
    both_ran: int
    both_red: int
    p: float


def pairs(counts: Tables, most: int = 1000) -> list[Pair]:
    """Pairs that are discoveries (false ones at most 5 %), the most alike first."""
    alike, similar = phi(counts), jaccard(counts)
    a, b = np.nonzero(np.triu(counts.both_red, 1) >= _FEWEST)
    if not len(a):
        return []
    chance = _chance(counts, a, b, alike[a, b])
    kept = np.flatnonzero(discoveries(chance, tried=_tried(counts.red)) & (np.nan_to_num(alike[a, b]) > 0))
    kept = kept[np.argsort(-alike[a[kept], b[kept]], kind="stable")][:most]
    return [
        Pair(
            a=int(a[i]),
            b=int(b[i]),
            phi=round(float(alike[a[i], b[i]]), 4),
            jaccard=round(float(similar[a[i], b[i]]), 4),
            both_ran=int(counts.both_ran[a[i], b[i]]),
            both_red=int(counts.both_red[a[i], b[i]]),
            p=float(chance[i]),
        )
        for i in kept.tolist()
    ]


def _tried(red: Floats) -> int:
    """Pairs that can have enough breakages in common: both have so many where both ran. Chance had all of these."""
    both = sum(int((np.minimum(red[at], red[at[::-1]].T) >= _FEWEST).sum()) for at in _tiles(len(red)))
    return (both - int((red.diagonal() >= _FEWEST).sum())) // 2


def _chance(counts: Tables, a: Any, b: Any, alike: Any) -> Numbers:
    """Probability of at least as many common reds, had they been dealt out independently (hypergeometric)."""
    n = counts.both_ran[a, b].astype(np.float64)
    found = np.ones(len(a))
    some = np.flatnonzero(np.nan_to_num(alike) * np.sqrt(n) > _LIKELY)
    x, y = counts.red[a[some], b[some]].astype(np.float64), counts.red[b[some], a[some]].astype(np.float64)
    found[some] = _upper_tail(counts.both_red[a[some], b[some]].astype(np.float64), n[some], x, y)
    return found


def _upper_tail(both: Numbers, n: Numbers, x: Numbers, y: Numbers) -> Numbers:
    """P(at least `both` common ones), x and y ones among n: the first term by gamma functions, the next by ratios."""
    from scipy.special import gammaln

    def choose(of: Numbers, some: Numbers) -> Numbers:
        ways: Numbers = gammaln(of + 1) - gammaln(some + 1) - gammaln(of - some + 1)
        return ways

    term = np.exp(choose(x, both) + choose(n - x, y - both) - choose(n, y))
    total, at = term.copy(), both.copy()
    while np.any(term > _NEGLIGIBLE * total):
        term *= np.maximum((x - at) * (y - at), 0.0) / ((at + 1) * np.maximum(n - x - y + at + 1, 1.0))
        at += 1
        total += term
    return np.minimum(total, 1.0)


class Stand(Struct, frozen=True, kw_only=True):
    """What is missed if one job stands in for another."""

    stands: int
    """The job that is kept."""
    dropped: int
    breakages: int
    """Of the dropped job, with the kept one run on the same commit."""
    missed: int
    """Of these, those in which the kept job passed."""
    rate: float
    """P(kept passes | dropped really breaks), shrunk towards the mean of pairs of the same kinds."""
    low: float
    high: float
    """95 %, of the beta posterior."""


_PRIOR: Final = 2.0
"""Breakages that the mean of the same kind of pairs counts for."""


def stands(broken: Flags, ran: Flags, facet: NDArray[np.int64], most: int = 1000) -> list[Stand]:
    """For each job that broke, the jobs that would have seen most of it.

    Args:
        broken: [breakage, job]: the job really broke.
        ran: [breakage, job]: it came to a verdict.
        facet: By job: a number for its kind (platform, compiler, device).
        most: Lines at most.
    """
    from scipy.special import betaincinv

    hurt, here = broken.astype(np.float64), ran.astype(np.float64)
    count = here.T @ hurt  # [kept, dropped]
    missed = (here - hurt).T @ hurt
    prior = _facet_means(count, missed, facet)
    alpha, beta = missed + _PRIOR * prior, count - missed + _PRIOR * (1 - prior)
    rate = alpha / (alpha + beta)
    some = [(k, d) for k, d in zip(*np.nonzero(count), strict=True) if k != d and count[k, d] - missed[k, d] >= _FEWEST]
    some.sort(key=lambda pair: (rate[pair], -count[pair], pair))
    found = []
    for kept, dropped in some[:most]:
        at = (kept, dropped)
        low, high = (float(betaincinv(alpha[at], beta[at], tail)) for tail in (0.025, 0.975))
        found.append(
            Stand(
                stands=int(kept),
                dropped=int(dropped),
                breakages=int(count[at]),
                missed=int(missed[at]),
                rate=float(rate[at]),
                low=low,
                high=high,
            )
        )
    return found


def _facet_means(count: Numbers, missed: Numbers, facet: NDArray[np.int64]) -> Numbers:
    """For each pair the mean over pairs whose jobs are of the same two kinds; never exactly 0 or 1."""
    kinds = int(facet.max(initial=0)) + 1
    member = np.zeros((len(facet), kinds))
    member[np.arange(len(facet)), facet] = 1.0
    off = 1.0 - np.eye(len(facet))
    all_count, all_missed = member.T @ (count * off) @ member, member.T @ (missed * off) @ member
    mean = (all_missed + 0.5) / (all_count + 1.0)
    found: Numbers = mean[facet][:, facet]
    return np.clip(found, 0.01, 0.99)
