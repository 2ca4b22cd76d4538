"""Products by what is little are those of dense matrices, whatever the size of a block."""

import numpy as np
import pytest

from sooner.analysis.selection import correlation, products
from sooner.analysis.selection.correlation import jaccard, phi, tables

SHARES = [(0.6, 0.2), (1.0, 0.01), (0.995, 0.3), (0.01, 0.5), (0.7, 0.01)]


@pytest.mark.parametrize(("present", "red"), SHARES)
def test_counts_and_figures_do_not_depend_on_the_blocks(present, red, monkeypatch):
    chance = np.random.default_rng(7)
    ran = (chance.random((500, 41)) < present).astype(np.float32)
    failed = (ran * (chance.random((500, 41)) < red)).astype(np.float32)
    whole = tables(ran, failed)
    figures = phi(whole), jaccard(whole)
    for name in ("_BLOCK", "_THIN_BLOCK", "ROWS"):
        monkeypatch.setattr(products, name, 7)
    monkeypatch.setattr(correlation, "_TILE", 6)
    found = tables(ran, failed)
    assert np.array_equal(found.both_ran, ran.T @ ran)
    assert np.array_equal(found.red, failed.T @ ran)
    assert np.array_equal(found.both_red, failed.T @ failed)
    assert np.array_equal(phi(found), figures[0], equal_nan=True)
    assert np.array_equal(jaccard(found), figures[1], equal_nan=True)


def test_a_history_without_jobs_has_empty_tables():
    found = tables(np.zeros((5, 0), np.float32), np.zeros((5, 0), np.float32))
    assert found.both_ran.shape == found.red.shape == found.both_red.shape == (0, 0)
