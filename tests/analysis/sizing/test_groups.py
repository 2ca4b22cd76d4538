"""Concurrency groups: who is held back by an older run, and who waits for a machine."""

import numpy as np
import pytest

from sooner.analysis.sizing.facts import Steps
from sooner.analysis.sizing.fifo import starts
from sooner.analysis.sizing.groups import released

NAN = float("nan")


def chain(count, every=100.0, takes=250.0):
    """Jobs that come every so often and run one after the other."""
    created = every * np.arange(count)
    ends = np.cumsum(np.full(count, takes))
    return created, ends - takes, ends


def test_a_job_that_its_group_holds_waits_from_the_end_of_the_older_one():
    created, started, completed = chain(30)
    found = released(created, started, completed, ["deploy"] * 30)
    assert found.tolist() == [0.0, *completed[:-1].tolist()]


def test_a_key_whose_runs_overlap_holds_nobody():
    created, _, _ = chain(30)
    found = released(created, created + 5, created + 255, ["ci"] * 30)
    assert found.tolist() == created.tolist()


def test_jobs_of_one_run_do_not_wait_for_each_other():
    created, started, completed = chain(30)
    twice = [np.repeat(times, 2) for times in (created, started, completed)]
    runs = [str(number // 2) for number in range(60)]
    assert released(*twice, ["deploy"] * 60, runs=runs)[2:].tolist() == np.repeat(completed[:-1], 2).tolist()


def test_a_job_that_was_cancelled_while_it_was_held_had_not_been_let_go():
    created, started, completed = chain(30)
    started[7], completed[7] = NAN, created[7] + 20
    assert released(created, started, completed, ["deploy"] * 30)[7] == completed[7]


@pytest.mark.parametrize("others_pass", [True, False])
def test_a_workflow_on_a_branch_is_a_group_only_where_younger_jobs_pass_those_that_it_holds(others_pass):
    created, _, _ = chain(60)
    groups = ["deploy@main", "ci@main"] * 30
    if others_pass:
        _, began, ended = chain(30)
        started, completed = np.empty(60), np.empty(60)
        started[::2], completed[::2] = np.maximum(began, created[::2]), np.maximum(ended, created[::2] + 250)
        started[1::2], completed[1::2] = created[1::2] + 5, created[1::2] + 50
    else:
        started = np.array(starts(created.tolist(), [250.0] * 60, Steps((0.0,), (1.0,))))
        completed = started + 250
    found = released(created, started, completed, groups, labels=["gpu"] * 60)
    assert (found > created).any() == others_pass


def test_no_key_is_no_group_and_times_that_are_not_known_are_no_harm():
    created, started, completed = chain(30)
    assert released(created, started, completed, [""] * 30).tolist() == created.tolist()
    created[3] = started[4] = completed[4] = NAN
    found = released(created, started, completed, ["g"] * 30)
    assert np.isnan(found[3])
    assert found[4] == created[4]
    assert released(np.zeros(0), np.zeros(0), np.zeros(0), []).tolist() == []
