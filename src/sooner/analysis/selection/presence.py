"""Which jobs run on the same commits: workflows start their jobs together, so few columns really differ.

The matrix of what ran is written as `pattern[:, group] - rest`, where the patterns are few and the rest (cancelled,
skipped, lost) is sparse. Counts of pairs then need products with few columns, and of sparse matrices, instead of one of
two dense matrices. Exact: nothing is rounded or left out. Pure.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sooner.analysis.selection.products import ROWS, Floats, across, blocks, symmetric

_SAMPLE: Final = 1024
"""Commits by which columns are compared."""
_ALIKE: Final = 0.04
"""Columns that differ on at most this share of the sampled commits share a pattern."""
_FEW: Final = 16
"""Patterns must be fewer than the jobs by this factor, or nothing is gained."""
_REST: Final = 0.015
"""Share of the cells that may differ from their pattern: the product of the rest with itself is quadratic in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """`ran = pattern[:, group] - rest`."""

    pattern: Floats
    """[commit, pattern]."""
    group: NDArray[np.int64]
    """By job: its pattern."""
    rest: Any
    """[commit, job], sparse."""

    def symmetric(self) -> Floats:
        """`ran.T @ ran`."""
        among = self.pattern.T @ self.pattern
        beside = np.asarray(self.rest.T @ self.pattern, dtype=np.float32)  # job, pattern
        found = symmetric(self.rest)
        for rows in blocks(len(found), ROWS):
            group = self.group[rows]
            found[rows] += among[group][:, self.group]
            found[rows] -= beside[rows][:, self.group]
            found[rows] -= beside[:, group].T
        return found

    def after(self, red: Any) -> Floats:
        """`red.T @ ran`, of a sparse matrix."""
        beside = np.asarray(red.T @ self.pattern, dtype=np.float32)
        found = across(red, self.rest)
        for rows in blocks(len(found), ROWS):
            found[rows] = beside[rows][:, self.group] - found[rows]
        return found


def presence(ran: Floats) -> Presence | None:
    """The patterns of a matrix of ones and zeros; None where its columns have too little in common."""
    commits, jobs = ran.shape
    rows = np.unique(np.linspace(0, commits - 1, min(_SAMPLE, commits)).astype(np.int64))
    sample = np.ascontiguousarray(ran[rows])
    group, leaders = _groups(sample, jobs // _FEW)
    if group is None:
        return None
    pattern = np.ascontiguousarray(ran[:, leaders])
    rest = _rest(ran, pattern, group)
    return None if rest is None else Presence(pattern=pattern, group=group, rest=rest)


def _groups(sample: Floats, most: int) -> tuple[NDArray[np.int64] | None, list[int]]:
    """Leaders one after the other: each takes the columns that are like it and have no leader yet."""
    count, jobs = sample.shape
    ones = sample.sum(axis=0)
    group, leaders = np.full(jobs, -1, dtype=np.int64), list[int]()
    while (open_ := np.flatnonzero(group < 0)).size:
        if len(leaders) >= most:
            return None, leaders
        leader = int(open_[0])
        differing = ones + ones[leader] - 2 * (sample[:, leader] @ sample)
        alike = (differing <= _ALIKE * count) & (group < 0)
        group[alike] = len(leaders)
        group[leader] = len(leaders)
        leaders.append(leader)
    return group, leaders


def _rest(ran: Floats, pattern: Floats, group: NDArray[np.int64]) -> Any:
    """What is left, block by block; None as soon as it is too much."""
    from scipy.sparse import csr_matrix

    usual, left = pattern > 0, int(_REST * ran.size)
    places, values, counts = [], [], [np.zeros(1, dtype=np.int64)]
    for rows in blocks(len(ran), ROWS):
        wanted = np.ascontiguousarray(usual[rows][:, group])
        other = wanted != (ran[rows] > 0)
        at = np.flatnonzero(other)
        places.append((at % other.shape[1]).astype(np.int32))
        values.append(np.where(wanted.ravel()[at], np.float32(1.0), np.float32(-1.0)))
        counts.append(np.count_nonzero(other, axis=1))
        left -= len(at)
        if left < 0:
            return None
    ends = np.cumsum(np.concatenate(counts))
    return csr_matrix((np.concatenate(values), np.concatenate(places), ends), shape=ran.shape)
