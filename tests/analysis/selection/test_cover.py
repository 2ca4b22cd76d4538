"""Covers: greedy is near the proven optimum, constraints hold."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.analysis.selection.choice import solved
from sooner.analysis.selection.cover import Constraints, Floor, beginning, exact, greedy


def some(seed, events=80, jobs=30):
    chance = np.random.default_rng(seed)
    sees = chance.random((events, jobs)) < 0.08
    return sees, np.ones(events), np.exp(chance.normal(3, 0.7, jobs))


@pytest.mark.parametrize("seed", range(4))
def test_greedy_is_within_one_percent_of_the_proven_optimum(seed):
    sees, weight, cost = some(seed)
    found = greedy(sees, weight, cost, 0.97 * 80, Constraints())
    proof = exact(sees, weight, cost, 0.97 * 80, Constraints(), found=found)
    assert proof.proven
    assert proof.gap <= 0.01
    assert found.covered >= min(0.97 * 80, sees.any(axis=1).sum()) - 1e-9


@pytest.mark.parametrize(("dearest", "jobs", "by"), [(2.9, {1, 2}, "exact"), (9.0, {1, 2}, "greedy")])
def test_of_a_greedy_and_an_exact_cover_the_cheaper_is_taken(dearest, jobs, by):
    sees = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]], dtype=bool)
    best, proof, whose = solved(sees, np.ones(4), np.array([dearest, 2.0, 2.0]), 4.0, Constraints(), solver_s=5.0)
    assert (set(best.jobs), best.cost, proof.proven, whose) == (jobs, 4.0, True, by)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.floats(0.1, 1.0))
def test_what_is_asked_for_is_covered_whatever_the_history(seed, recall):
    sees, weight, cost = some(seed, events=12, jobs=8)
    bound = recall * float(weight[sees.any(axis=1)].sum())
    found = greedy(sees, weight, cost, bound, Constraints())
    assert found.covered >= bound - 1e-6
    assert found.cost == pytest.approx(cost[list(found.jobs)].sum())


def test_pinned_jobs_floors_and_dependencies_hold_in_both():
    sees, weight, cost = some(7)
    rules = Constraints(
        fixed=frozenset({0}),
        floors=(Floor(name="cuda", jobs=(3, 4, 5), least=2),),
        needs=dict.fromkeys(range(10, 30), (1,)),
    )
    found = greedy(sees, weight, cost, 60.0, rules)
    proof = exact(sees, weight, cost, 60.0, rules, found=found)
    for jobs in (set(found.jobs), set(proof.best.jobs)):
        assert 0 in jobs
        assert len(jobs & {3, 4, 5}) >= 2
        assert 1 in jobs or not jobs & set(range(10, 30))
    assert proof.gap <= 0.05


def test_breakages_that_no_job_sees_are_not_asked_for():
    sees = np.array([[True, False], [False, False]])
    assert greedy(sees, np.ones(2), np.ones(2), 2.0, Constraints()).jobs == (0,)


def test_without_breakages_nothing_is_needed():
    assert greedy(np.zeros((0, 3), bool), np.zeros(0), np.ones(3), 0.0, Constraints()).jobs == ()


def test_what_greedy_cover_takes_first_sees_most_for_its_cost_and_keeps_within_its_room():
    sees = np.array([[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]], dtype=bool)
    cost, all_of_them = np.array([1.0, 4.0, 1.0, 0.4]), np.ones(4, dtype=bool)
    assert beginning(sees, cost, all_of_them, [], 100.0) == [3, 0, 2, 1]
    assert beginning(sees, cost, all_of_them, [], 1.5) == [3, 0]
    assert beginning(sees, cost, all_of_them, [0], 100.0) == [2, 1]  # what is taken already covers, and costs
    assert beginning(sees, cost, all_of_them, [0], 1.0) == []
    assert beginning(sees, cost, np.array([True, True, False, False]), [], 100.0) == [0, 1]


def test_where_nothing_has_broken_cover_takes_nothing():
    assert beginning(np.zeros((0, 3), dtype=bool), np.ones(3), np.ones(3, dtype=bool), [], 9.0) == []
    assert beginning(np.zeros((0, 0), dtype=bool), np.ones(0), np.ones(0, dtype=bool), [], 9.0) == []
