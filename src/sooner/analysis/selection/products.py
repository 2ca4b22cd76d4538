"""Products of large matrices of zeros and ones, by what they hold little of. Pure.

Results are filled block by block: the memory that a whole product of sparse matrices needs beside its result is what
takes the time. Counts are whole numbers, so nothing depends on the order of the sums.
"""

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
_ROWS: Final = 512


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


def symmetric(thin: Any) -> Floats:
    """`thin.T @ thin` of a sparse matrix, dense."""
    size = thin.shape[1]
    turned, found = thin.T.tocsr(), np.empty((size, size), dtype=np.float32)
    for begin in range(0, size, _THIN_BLOCK):
        end = begin + _THIN_BLOCK
        block = (turned[begin:end] @ thin[:, begin:]).toarray()
        found[begin:end, begin:] = block
        found[begin:, begin:end] = block.T
    return found


def across(left: Any, right: Any) -> Floats:
    """`left.T @ right` of sparse matrices, dense."""
    turned, found = left.T.tocsr(), np.empty((left.shape[1], right.shape[1]), dtype=np.float32)
    for begin in range(0, len(found), _THIN_BLOCK):
        found[begin : begin + _THIN_BLOCK] = (turned[begin : begin + _THIN_BLOCK] @ right).toarray()
    return found


def _symmetric(matrix: Floats) -> Floats:
    jobs = matrix.shape[1]
    whole = np.empty((jobs, jobs), dtype=np.float32)
    for begin in range(0, jobs, _BLOCK):
        for other in range(begin, jobs, _BLOCK):
            block = matrix[:, begin : begin + _BLOCK].T @ matrix[:, other : other + _BLOCK]
            whole[begin : begin + _BLOCK, other : other + _BLOCK] = block
            whole[other : other + _BLOCK, begin : begin + _BLOCK] = block.T
    return whole


def _thin(matrix: Floats, *, missing: bool) -> Any:
    """Row by row, so no second dense matrix is needed."""
    from scipy.sparse import csr_matrix, vstack

    parts = []
    for begin in range(0, max(1, len(matrix)), _ROWS):
        some = matrix[begin : begin + _ROWS]
        parts.append(csr_matrix((some == 0) if missing else some, dtype=np.float32))
    return vstack(parts, format="csr")


def _dense(matrix: Any) -> Floats:
    found: Floats = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix, dtype=np.float32)
    return found
