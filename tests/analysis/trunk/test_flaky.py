"""Flakes: what is evidence, what they cost, and what is none."""

import pytest

from sooner.analysis.trunk.facts import Kind
from sooner.analysis.trunk.flaky import LONGEST_RED_S, Run, Subject, ranking

TEST = Subject(Kind.TEST, "t.py::test_a")


def runs(pattern, *, subject=TEST, where="job", seconds=10.0, step=100.0):
    """`P` and `F` in words, a word a commit: `"P FP F"`; runs start `step` seconds apart."""
    found, at = [], 0.0
    for number, word in enumerate(pattern.split()):
        for letter in word:
            fact = {"subject": subject, "where": where, "code": f"c{number}", "started": at, "seconds": seconds}
            found.append(Run(failed=letter == "F", **fact))
            at += step
    return found


def test_both_outcomes_on_one_commit_are_a_flake():
    (row,) = ranking(runs("P FP P P"))
    assert (row.failures, row.runs, row.commits, row.evidence) == (1, 5, 1, ("c1",))
    assert row.rate.value == pytest.approx(0.2)
    assert row.rate.low < 0.2 < row.rate.high
    assert not row.broken_now


def test_failures_alone_are_no_flake():
    assert ranking(runs("P F F P P")) == []


def test_a_broken_commit_does_not_raise_the_rate():
    (row,) = ranking(runs("PP FP FFF FFF PP"))
    assert (row.failures, row.runs) == (1, 6)


def test_one_commit_in_two_jobs_is_two_pieces_of_code():
    broken = runs("P F F", where="rocm") + runs("P P P", where="cuda")
    assert ranking(broken) == []


def test_a_failure_between_passes_is_suspected():
    (row,) = ranking(runs("P F P FP P F"))
    assert row.suspected == 1
    (row,) = ranking(runs("FP F P P F FP"))
    assert row.suspected == 0


def test_the_cost_is_the_wait_for_the_next_pass_and_what_ran_again():
    (row,) = ranking(runs("P FFP P"))
    # The first failure ends at 110 s, the pass at 310 s; two runs of 10 s came after it.
    assert (row.red_s, row.rerun_s) == (200.0, 20.0)
    assert row.cost_s == 220.0
    (row,) = ranking(runs("P FPP P"))
    assert row.red_s == 100.0, "it ends with the first pass"


def test_a_run_whose_length_nobody_told_costs_no_repeating():
    (row,) = ranking([*runs("FP"), Run(subject=TEST, where="job", code="c0", failed=False, started=500.0)])
    assert row.rerun_s == 10.0


def test_a_failure_after_the_pass_waits_for_the_next_commit():
    (row,) = ranking(runs("PF P"))
    assert (row.red_s, row.rerun_s) == (100.0, 0.0)


def test_a_failure_that_nothing_follows_costs_a_day_at_most():
    (row,) = ranking(runs("PF"))
    assert row.red_s == LONGEST_RED_S


def test_runs_without_times_are_counted_and_cost_nothing():
    bare = [Run(subject=TEST, code="c", failed=failed) for failed in (True, False)]
    (row,) = ranking(bare)
    assert (row.failures, row.runs, row.cost_s, row.last) == (1, 2, 0.0, None)


def test_what_costs_most_comes_first():
    slow = Subject(Kind.JOB, "slow")
    rows = ranking(runs("P FP P") + runs("P FP P", subject=slow, seconds=90.0, step=3600.0))
    assert [row.id for row in rows] == ["slow", "t.py::test_a"]


def test_what_is_broken_now_says_so():
    (row,) = ranking(runs("FP FP P F F"))
    assert row.broken_now


def test_the_order_of_the_rows_does_not_matter():
    made = runs("P FP PF F P") + runs("FP P", subject=Subject(Kind.TEST, "t.py::test_b", "A=1"))
    assert ranking(made) == ranking(made[::-1])


def test_a_unit_whose_tests_are_known_says_so():
    unit = Subject(Kind.TEST, "t.py")
    (row,) = ranking(runs("FP", subject=unit), with_cases={("t.py", "")})
    assert row.has_cases
