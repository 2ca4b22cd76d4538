"""Records as they are handed in: clocks, gaps, rows that cannot be."""

import numpy as np
import pytest

from sooner.analysis.sizing.candidates import as_on_days_before, past_of
from sooner.analysis.sizing.facts import DAY_S, PoolSpec, Steps
from sooner.analysis.sizing.fifo import starts
from sooner.analysis.sizing.judge import judge, mixture
from sooner.analysis.sizing.load import queue_of
from sooner.analysis.sizing.seen import load_of, look

BEGIN = 1_760_000_000.0
MONDAY = 1_767_571_200.0


def record(jobs, seed=1):
    """Times of jobs that wait ten seconds each."""
    created = BEGIN + np.sort(np.random.default_rng(seed).uniform(0, 28 * DAY_S, jobs)).round()
    return created, created + 10, created + 610


def queue(created, started, completed):
    return queue_of(created, started, completed, np.full(len(created), np.nan))


def test_jobs_that_are_years_away_from_all_others_are_left_out():
    created, started, completed = record(300)
    strays = np.array([0.0, -6.2e10, 4e9])
    found, rows = queue(*(np.concatenate([times, strays + add]) for times, add in
                          ((created, 0), (started, 1), (completed, 2))))  # fmt: skip
    assert found.created.tolist() == created.tolist()
    assert rows.tolist() == list(range(300))


def test_times_that_are_endless_are_unknown():
    created, started, completed = record(300)
    endless = np.array([np.inf])
    found, _ = queue(*(np.concatenate([times, endless]) for times in (created, started, completed)))
    assert found.created.tolist() == created.tolist()


def test_a_start_years_before_the_job_came_is_unknown_and_the_job_never_ran():
    created, started, completed = record(300)
    started[7] = 0.0
    started[9] = completed[9] = -6.2e10
    found, rows = queue(created, started, completed)
    assert np.isnan(found.started[7])
    assert found.completed[7] == completed[7]
    assert 9 not in rows


def test_an_end_in_the_far_future_costs_no_memory():
    created, started, completed = record(300)
    completed[5] = 4e11
    found, _ = queue(created, started, completed)
    assert len(look(found, 20.0).backlog_s) < 29 * 144


def test_few_jobs_are_predicted_too_but_prove_nothing():
    found = judge(queue(*record(20))[0], PoolSpec(label="p"))
    assert found.predicted.p90 == pytest.approx(10.0)
    assert found.observed.p90 == 10.0
    assert not found.fits
    assert found.reason == "only 20 jobs that started"


@pytest.mark.parametrize("jobs", [1, 2, 3, 5, 8, 13, 49, 60])
def test_any_number_of_jobs_has_an_answer_without_a_number_that_is_none(jobs):
    for times in (record(jobs), [np.repeat(column[:1], jobs) for column in record(jobs)]):
        found = judge(queue(*times)[0], PoolSpec(label="p"))
        for one in (found.observed, found.predicted):
            assert all(value is None or np.isfinite(value) for value in (one.p50, one.p90))
        assert all(np.isfinite(list(found.errors.values())))
        assert found.jobs == jobs


def test_jobs_that_still_wait_when_a_record_ends_are_not_what_is_asked_for():
    created, started, completed = record(2000)
    late = created > created[-1] - 6 * 3600
    assert late.sum() < 50 <= (created > created[-1] - DAY_S).sum()
    late = created > created[-1] - DAY_S
    # A queue of a day: what starts now came a day ago.
    started = np.where(late, np.nan, created + DAY_S)
    completed = started + 600
    found, _ = queue(created, started, completed)
    assert not found.to_predict.any()
    assert len(found) == 2000 - late.sum()


def test_a_last_part_that_was_blanked_is_asked_for_though_jobs_of_before_start_in_it():
    created, *_ = record(2000)
    late = created > created[0] + 20 * DAY_S
    started = np.where(late, np.nan, created + DAY_S)
    found, _ = queue(created, started, started + 600)
    assert found.to_predict.sum() == late.sum()


def test_candidates_that_disagree_each_give_the_waits_that_their_share_says():
    said = [np.full(10, 5.0), np.full(10, 60.0), np.full(10, 7000.0)]
    assert mixture(said, [0.5, 0.2, 0.3]).tolist() == [5.0] * 5 + [60.0] * 2 + [7000.0] * 3
    assert mixture(said, [1.0, 0.9, 0.04]).max() == 60.0
    assert mixture(said[:1], [0.2]).tolist() == said[0].tolist()


def test_a_pool_with_fewer_machines_at_weekends_is_seen_to_have_them():
    random = np.random.default_rng(1)
    created = MONDAY + np.sort(random.uniform(0, 35 * DAY_S, 9000))
    seconds = random.exponential(3000, 9000)
    days = np.arange(35)
    capacity = Steps(tuple((MONDAY + DAY_S * days).tolist()), tuple(np.where(days % 7 < 5, 14.0, 7.0).tolist()))
    begun = np.array(starts(created.tolist(), seconds.tolist(), capacity))
    found = judge(queue(created, begun + 5, begun + 5 + seconds)[0], PoolSpec(label="p"))
    assert abs(found.errors["by_hour"]) < 0.1
    assert abs(found.errors["calibrated"]) < 0.1
    assert abs(found.errors["constant"]) > 0.1


def test_a_quiet_day_does_not_say_that_there_are_machines_that_were_never_seen():
    random = np.random.default_rng(4)
    created = np.concatenate(
        [BEGIN + DAY_S * (day + np.sort(random.random(200 if day % 2 else 20))) for day in range(14)]
    )
    seconds = random.exponential(2400, len(created))
    begun = np.array(starts(created.tolist(), seconds.tolist(), Steps((BEGIN,), (6.0,))))
    found = queue(created, begun + 5, begun + 5 + seconds)[0]
    past = past_of(found, look(found, 11.0), load_of(found), PoolSpec(label="p"), BEGIN + 14 * DAY_S)
    draws = as_on_days_before(past, BEGIN + 14.25 * DAY_S)
    assert len(draws) == 3
    assert max(draw.capacity.top for draw in draws) <= 6


def test_where_the_last_day_had_no_jobs_the_latest_ones_stand_for_others_load():
    random = np.random.default_rng(2)
    created = BEGIN + np.sort(random.uniform(0, DAY_S, 600)) + 3 * DAY_S * np.repeat(np.arange(20), 30)
    started = created + random.exponential(900, 600)
    found = judge(queue(created, started, started + 60)[0], PoolSpec(label="p"))
    assert "others_lately" not in found.errors
    assert abs(found.errors["others_latest"]) < 0.2


def test_others_load_that_fell_is_noticed_in_a_day():
    random = np.random.default_rng(3)
    created = BEGIN + np.sort(random.uniform(0, 28 * DAY_S, 4000)).round()
    mean = np.where(created < BEGIN + 18 * DAY_S, 9000.0, 900.0)
    started = created + random.exponential(mean).round()
    found = judge(queue(created, started, started + 600)[0], PoolSpec(label="p"))
    assert found.predicted.p90 == pytest.approx(found.observed.p90, rel=0.2)


def test_of_jobs_that_are_asked_for_as_many_are_given_up_as_before():
    random = np.random.default_rng(4)
    created = BEGIN + np.sort(random.uniform(0, 28 * DAY_S, 4000))
    seconds = random.exponential(4838, 4000)
    given_up = random.random(4000) < 0.4
    started = np.full(4000, np.nan)
    started[~given_up] = starts(created[~given_up].tolist(), seconds[~given_up].tolist(), Steps((0.0,), (6.0,)))
    completed = np.where(given_up, created + 30, started + seconds)
    late = created > created[0] + 21 * DAY_S
    told = np.where(late, np.nan, started)
    found = judge(queue(created, told, np.where(late, np.nan, completed))[0], PoolSpec(label="p"))
    truth = np.quantile((started - created)[late & ~given_up], 0.9)
    assert truth / 2 < found.predicted.p90 < 2 * truth


def test_a_time_that_is_asked_for_at_once_is_only_said_to_fit_where_one_before_was_predicted_at_once():
    random = np.random.default_rng(5)
    created = BEGIN + np.sort(random.uniform(0, 40 * DAY_S, 6000))
    # Days of long waits, after them days of short ones: a few hours ahead this is foreseen, weeks ahead it is not.
    mean = np.where((created - BEGIN) // (6 * DAY_S) % 2 == 0, 9000.0, 300.0)
    started = created + random.exponential(mean)
    late = created > BEGIN + 28 * DAY_S
    times = [np.where(late, np.nan, at) for at in (started, started + 600)]
    found = judge(queue(created, *times)[0], PoolSpec(label="p"))
    assert not found.fits
