"""Rows become queues: which jobs count, in which order, and what is told of the others."""

import numpy as np
import pytest

from sooner.analysis.sizing.load import Rows, by_label, let_go_by_workflow, meant, pushes, queue_of

NAN = float("nan")
AT = 1_700_000_000.0


def rows(*jobs, labels=None, **more):
    """Jobs as (created, started, completed), seconds after one moment."""
    created, started, completed = (np.array(column, dtype=float) + AT for column in zip(*jobs, strict=True))
    labels = list(labels or ["gpu"] * len(jobs))
    given = {"seconds": np.full(len(jobs), NAN), "names": [], "runs": [], **more}
    return Rows(labels=labels, created=created, started=started, completed=completed, **given)


def queue(*jobs, priority=None):
    one = rows(*jobs)
    found, kept = queue_of(one.created, one.started, one.completed, one.seconds, priority)
    return found, kept.tolist()


def test_jobs_stand_in_the_order_in_which_they_came_and_know_their_rows():
    found, kept = queue((5, 6, 9), (1, 2, 3), (3, 3, 4))
    assert kept == [1, 2, 0]
    assert (found.created - AT).tolist() == [1, 3, 5]
    assert found.seconds.tolist() == [1, 1, 3]


def test_a_job_that_ended_before_it_came_is_left_out_and_one_that_ended_at_once_is_not():
    assert queue((5, 6, 4), (5, 5, 5), (7, 8, 9))[1] == [1, 2]


def test_a_start_before_the_creation_is_no_wait():
    assert queue((5, 3, 9), (7, 8, 9))[0].waits.tolist() == [0, 1]


def test_a_job_that_runs_still_goes_on_until_after_all_that_is_known():
    found, _ = queue((1, 2, NAN), (3, 4, 50))
    assert (found.completed - AT).tolist() == [51, 50]


def test_priorities_that_are_all_the_same_are_none():
    assert queue((1, 2, 3), (2, 3, 4), priority=np.array([7.0, 7.0]))[0].priority is None
    found, _ = queue((3, 4, 5), (2, 3, 4), priority=np.array([7.0, 1.0]))
    assert found.priority.tolist() == [1.0, 7.0]


@pytest.mark.parametrize(("waiting", "asked"), [(49, False), (50, True)])
def test_fifty_jobs_without_a_start_behind_all_others_are_asked_for(waiting, asked):
    done = [(i, i, i + 1) for i in range(10)]
    found, _ = queue(*done, *[(100 + i, NAN, NAN) for i in range(waiting)])
    assert bool(found.to_predict.any()) is asked
    assert len(found.created) == 10 + (waiting if asked else 0)


def test_jobs_of_which_none_has_a_start_are_asked_for_however_few():
    assert queue((1, NAN, NAN), (2, NAN, NAN))[0].to_predict.all()


def test_jobs_that_wait_where_others_went_on_until_they_came_wait_still():
    """The record was cut while they waited."""
    found, _ = queue((0, 1, 200), *[(100 + i, NAN, NAN) for i in range(60)])
    assert len(found.created) == 1


def test_labels_come_busiest_first_and_what_is_left_out_is_told():
    found, notes = by_label(rows((1, 2, 3), (1, 2, 3), (5, 6, 4), (7, 8, 9), labels=["b", "a", "a", "a"]))
    assert list(found) == ["a", "b"]
    assert found["a"].rows.tolist() == [1, 3]
    assert notes == ["a: 1 of 3 jobs left out: no time, or ended before they began"]


def test_a_label_whose_jobs_all_cannot_be_is_no_pool():
    found, notes = by_label(rows((5, 6, 4), (1, 2, 3), labels=["a", "b"]))
    assert list(found) == ["b"]
    assert len(notes) == 1


def test_a_priority_that_is_not_told_is_none():
    found, _ = by_label(rows((1, 2, 3), (2, 3, 4), priority=np.array([NAN, 2.0])))
    assert found["gpu"].queue.priority.tolist() == [0.0, 2.0]


def test_runs_of_a_workflow_on_a_branch_wait_for_each_other_only_where_both_are_told():
    jobs = [(60 * i, max(60 * i, 100 * i), 100 * i + 100) for i in range(30)]
    passing = [(60 * i + 5, 60 * i + 6, 60 * i + 7) for i in range(60)]
    runs = [f"r{i}" for i in range(90)]
    one = rows(*jobs, *passing, runs=runs)
    mine, others = ["test"] * 30, ["lint"] * 60
    held = let_go_by_workflow(one, mine + others, ["main"] * 30 + [f"b{i}" for i in range(60)])
    assert held.held == 29
    assert (held.created[:30] - AT).tolist() == [100 * i for i in range(30)]
    for workflows, branches in ((["test"] * 90, [""] * 90), ([""] * 90, ["main"] * 90)):
        assert let_go_by_workflow(one, workflows, branches) is one


def test_a_push_is_the_first_job_of_a_run():
    created = np.array([50.0, 10.0, 40.0, 20.0])
    assert pushes(created, ["b", "a", "b", "a"]) == (10.0, 40.0)


def test_without_runs_jobs_within_a_minute_of_each_other_are_one_push():
    created = np.array([200.0, 0.0, 50.0, 110.0, 171.0])
    assert pushes(created, ["", "", "", "", ""]) == (0.0, 171.0)


def test_jobs_that_name_no_run_are_not_all_of_one_beside_others_that_name_theirs():
    created = np.array([100.0, 0.0, 5000.0, 5030.0, 9000.0, np.nan])
    assert pushes(created, ["a", "a", "", "", "", "b"]) == (0.0, 5000.0, 9000.0)


def test_a_pattern_means_labels():
    assert meant(["linux.gpu.4", "linux.gpu.2", "linux.gpu.4"], "*.4").tolist() == [True, False, True]
