"""Jobs that run together: the same counts, by fewer products."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np

from sooner.analysis.selection import correlation
from sooner.analysis.selection.correlation import tables
from sooner.analysis.selection.presence import presence


def workflows(jobs=120, commits=600, flows=4, lost=0.005, seed=1):
    """Each workflow runs on some commits, with all its jobs but for few."""
    chance = np.random.default_rng(seed)
    pattern = chance.random((commits, flows)) < 0.6
    ran = pattern[:, np.arange(jobs) % flows] & (chance.random((commits, jobs)) >= lost)
    red = ran & (chance.random((commits, jobs)) < 0.01)
    return ran.astype(np.float32), red.astype(np.float32)


def test_the_counts_are_those_of_the_dense_products(monkeypatch):
    ran, red = workflows()
    monkeypatch.setattr(correlation, "_LARGE", 1)
    assert presence(ran) is not None
    found = tables(ran, red)
    assert np.array_equal(found.both_ran, ran.T @ ran)
    assert np.array_equal(found.red, red.T @ ran)
    assert np.array_equal(found.both_red, red.T @ red)


def test_jobs_that_run_at_random_have_no_pattern():
    chance = np.random.default_rng(1)
    assert presence((chance.random((500, 100)) < 0.6).astype(np.float32)) is None


def test_too_much_that_is_lost_is_no_pattern():
    ran, _ = workflows(lost=0.1)
    assert presence(ran) is None


def test_each_workflow_is_found_once():
    found = presence(workflows()[0])
    assert found.pattern.shape[1] == 4
    assert [len(set(found.group[flow::4].tolist())) for flow in range(4)] == [1, 1, 1, 1]
