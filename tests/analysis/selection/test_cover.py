"""Covers: greedy is near the proven optimum, constraints hold."""

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.analysis.selection.choice import solved
from sooner.analysis.selection.cover import Constraints, Floor, beginning, exact, greedy
from sooner.analysis.selection.decide import Ranking, choose


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


# What a budget pays for.


def ranking(count=10, **more):
    """Jobs that cost ten minutes each, in their order."""
    given = {
        "order": list(range(count)), "cost": np.full(count, 10.0), "total": 10.0 * count, "first": {},
        "share": np.linspace(0, 1, count), "width": np.full(count, 1 / count), "score": np.full(count, 1 / count),
    }  # fmt: skip
    return Ranking(**{**given, **more})


@pytest.mark.parametrize(("level", "count"), [(0.0, 0), (0.24, 2), (0.25, 3), (0.34, 3), (1.0, 10)])
def test_a_job_is_paid_for_if_half_of_it_is_within_the_budget(level, count):
    choice = choose(ranking(), level)
    assert (choice.selected, choice.cost, choice.total) == (list(range(count)), 10.0 * count, 100.0)


def test_what_is_left_or_overdrawn_goes_to_later_commits_up_to_a_quarter():
    assert choose(ranking(), 0.34).bank == pytest.approx(4.0)
    assert choose(ranking(), 0.26).bank == pytest.approx(-4.0)
    assert choose(ranking(), 0.20, bank=4.0).bank == pytest.approx(4.0)
    assert choose(ranking(first=dict.fromkeys(range(9), "new")), 0.1).bank == -25.0


@pytest.mark.parametrize("level", [0.23, 0.25, 0.29, 0.4])
def test_where_no_bank_is_carried_a_drawn_part_keeps_the_budget_on_average(level):
    costs = [choose(ranking(), level, part=(i + 0.5) / 1000).cost for i in range(1000)]
    assert sum(costs) / 1000 == pytest.approx(100.0 * level)
    assert max(costs) - min(costs) <= 10.0


def test_what_runs_in_any_case_runs_whatever_it_costs_and_leaves_less_for_others():
    choice = choose(ranking(order=[7, *range(7), 8, 9], first={7: "pinned"}), 0.2)
    assert choice.selected == [7, 0]
    assert choose(ranking(order=[7, *range(7), 8, 9], first={7: "pinned"}), 0.0).selected == [7]


def test_a_floor_takes_its_best_jobs_and_no_more():
    rules = Constraints(floors=(Floor(name="gpu", jobs=frozenset({3, 5, 8}), least=2),))
    assert choose(ranking(rules=rules), 0.0).selected == [3, 5]
    assert choose(ranking(rules=rules), 0.4).selected == [0, 1, 3, 5]  # and no more than the budget
    assert choose(ranking(rules=rules), 0.6).selected == [0, 1, 2, 3, 4, 5]
    assert choose(ranking(rules=rules), 0.0, without=frozenset({3})).selected == [5, 8]
    # What runs for the floor is spent, and not saved as well.
    assert choose(ranking(rules=rules), 0.5, without=frozenset({3, 5, 8})).selected == [0, 1, 2, 3, 5]


def test_what_a_job_of_a_floor_needs_is_not_called_one_of_the_floor():
    rules = Constraints(floors=(Floor(name="gpu", jobs=frozenset({3}), least=1),), needs={3: (5,)})
    added = choose(ranking(rules=rules), 0.0).added
    assert added == {5: "another selected job needs it", 3: "floor: at least 1 of gpu"}


def test_what_is_taken_first_may_fill_a_floor():
    rules = Constraints(floors=(Floor(name="gpu", jobs=frozenset({3, 5}), least=1),), needs={7: (5,)})
    choice = choose(ranking(order=[7, *range(7), 8, 9], first={7: "pinned"}, rules=rules), 0.3)
    assert (choice.selected, choice.cost) == ([5, 7, 0], 30.0)


def test_what_a_job_needs_runs_before_it_if_it_exists_now():
    share = np.linspace(0, 1, 10)
    share[9] = 2.0
    rules = Constraints(needs={0: (4,), 4: (6, 9)})
    choice = choose(ranking(rules=rules, share=share), 0.3)
    assert choice.selected == [6, 4, 0]
    assert choice.added == dict.fromkeys((6, 4), "another selected job needs it")


def test_what_a_commit_cannot_break_is_left_out_unless_it_was_lately_red_and_frees_no_money():
    quiet = ranking(red=frozenset({1}))
    choice = choose(quiet, 0.3, without=frozenset({0, 1, 5}))
    assert choice.selected == [1, 2]
