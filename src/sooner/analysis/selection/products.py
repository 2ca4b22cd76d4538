"""Products of large matrices of zeros and ones, by what they hold little of. Pure.

Results are filled block by block: the memory that a whole product of sparse matrices needs beside its result is what
takes the time. Counts are whole numbers, so nothing depends on the order of the sums.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SPARSE: Final = 0.02
"""Up to this share of ones, products of sparse matrices are faster than dense ones."""
_BLOCK: Final = 2048
"""Columns of a block of dense products: only blocks on and above the diagonal are computed where they mirror."""
_THIN_BLOCK: Final = 512
"""The same of sparse ones."""
ROWS: Final = 256
"""Of a large matrix, few enough for what is computed of them to stay in the cache."""


class Ones:
    """A matrix of zeros and ones, how full it is, and its sparse forms, each found once."""

    def __init__(self, dense: Floats) -> None:
        self.dense = dense

    @cached_property
    def share(self) -> float:
        """Of all cells, those that are one."""
        return float(np.count_nonzero(self.dense)) / max(1, self.dense.size)

    @property
    def is_sparse(self) -> bool:
        """Whether nearly all is zero."""
        return self.share <= SPARSE

    @property
    def is_full(self) -> bool:
        """Whether nearly all is one."""
        return self.share > 1 - SPARSE

    @cached_property
    def thin(self) -> Any:
        """The ones, as a sparse matrix."""
        return _thin(self.dense, missing=False)

    @cached_property
    def missing(self) -> Any:
        """The zeros, as ones of a sparse matrix."""
        return _thin(self.dense, missing=True)

    def symmetric(self) -> Floats:
        """`dense.T @ dense`; where nearly all is one, by what is missing."""
        if self.is_full:
            gone = np.asarray(self.missing.sum(axis=0), dtype=np.float32).ravel()
            found = symmetric(self.missing)
            found += len(self.dense) - gone[:, None] - gone[None, :]
            return found
        return symmetric(self.thin) if self.is_sparse else _symmetric(self.dense)

    def after(self, red: "Ones") -> Floats:
        """`red.dense.T @ dense`, by what is missing where that is little."""
        if self.is_full:
            found = across(red.thin, self.missing) if red.is_sparse else _dense(red.dense.T @ self.missing)
            return np.asarray(red.dense.sum(axis=0)[:, None] - found, dtype=np.float32)
        if red.is_sparse:
            return across(red.thin, self.thin) if self.is_sparse else _dense(red.thin.T @ self.dense)
        product: Floats = red.dense.T @ self.dense
        return product


def blocks(size: int, step: int, begin: int = 0) -> Iterator[slice]:
    """Parts of so many rows or columns, from the first or a later one on."""
    for start in range(begin, size, step):
        yield slice(start, start + step)


def symmetric(thin: Any) -> Floats:
    """`thin.T @ thin` of a sparse matrix, dense."""
    size = thin.shape[1]
    turned, found = thin.T.tocsr(), np.empty((size, size), dtype=np.float32)
    for rows in blocks(size, _THIN_BLOCK):
        rest = slice(rows.start, None)
        block = (turned[rows] @ thin[:, rest]).toarray()
        found[rows, rest] = block
        found[rest, rows] = block.T
    return found


def across(left: Any, right: Any) -> Floats:
    """`left.T @ right` of sparse matrices, dense."""
    turned, found = left.T.tocsr(), np.empty((left.shape[1], right.shape[1]), dtype=np.float32)
    for rows in blocks(len(found), _THIN_BLOCK):
        found[rows] = (turned[rows] @ right).toarray()
    return found


def _symmetric(matrix: Floats) -> Floats:
    jobs = matrix.shape[1]
    whole = np.empty((jobs, jobs), dtype=np.float32)
    for one in blocks(jobs, _BLOCK):
        for other in blocks(jobs, _BLOCK, one.start):
            block = matrix[:, one].T @ matrix[:, other]
            whole[one, other] = block
            whole[other, one] = block.T
    return whole


def _thin(matrix: Floats, *, missing: bool) -> Any:
    """Row by row, so no second dense matrix is needed."""
    from scipy.sparse import csr_matrix, vstack

    some = [matrix[rows] for rows in blocks(max(1, len(matrix)), ROWS)]
    parts = [csr_matrix((one == 0) if missing else one, dtype=np.float32) for one in some]
    return vstack(parts, format="csr")


def _dense(matrix: Any) -> Floats:
    found: Floats = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float32)
    return found
