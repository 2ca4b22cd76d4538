"""Definitions against values computed by hand; a trace with every trap that a CI system sets."""

import random
from collections import Counter

import numpy as np
import pytest

from sooner.analysis.metrics import decide
from sooner.analysis.metrics.changes import changes_of_runs, changes_of_totals, pelt
from sooner.analysis.metrics.facts import Ending, Facts, JobFact, Sample, Samples
from sooner.analysis.metrics.load import job_facts
from sooner.analysis.metrics.statistics import percentile, rate
from sooner.analysis.metrics.summary import WEEK_S, By, summarise, week_of
from sooner.history import History, HistoryOutcome, JobRow, Where
from sooner.history.ingest.intake import Options
from sooner.history.ingest.take import ingest

GREEN, RED, OTHER, LOST, OPEN = Ending.GREEN, Ending.RED, Ending.OTHER, Ending.LOST, Ending.OPEN


def fact(job, ending=GREEN, *, commit="a", workflow="ci", attempt=1, event="push", **more):
    return JobFact(job=job, ending=ending, commit=commit, workflow=workflow, attempt=attempt, event=event, **more)


TRACE = Facts.of([
    # commit a: pushed at 1000, all green at the first attempt; the slower workflow ends at 1900
    fact("build", run_created=1000, created=1005, started=1065, completed=1600),
    fact("test", run_created=1000, created=1600, started=1630, completed=1900),
    fact("lint", workflow="style", run_created=1010, created=1010, started=1020, completed=1110),
    fact("docs", OTHER, run_created=1000),
    # commit b: one job fails, then passes when run again
    fact("build", commit="b", run_created=2000, created=2000, started=2300, completed=2900),
    fact("test", RED, commit="b", run_created=2000, created=2900, started=2910, completed=3000),
    fact("test", commit="b", attempt=2, run_created=5000, created=5000, started=5100, completed=5400),
    fact("lint", commit="b", workflow="style", run_created=2000, created=2000, started=2010, completed=2100),
    # commit c: red at every attempt; a cancelled job; one that still waits
    fact("build", RED, commit="c", run_created=6000, created=6000, started=6010, completed=6500),
    fact("build", RED, commit="c", attempt=2, run_created=7000, created=7000, started=7010, completed=7400),
    fact("lint", LOST, commit="c", workflow="style", run_created=6000, created=6000, started=6100, completed=6200),
    fact("test", OPEN, commit="c", run_created=6000, created=6600),
    # a pull request's job is no push
    fact("build", commit="p", event="pull_request", run_created=100, created=100, started=150, completed=400),
])  # fmt: skip


def seconds(samples):
    return sorted(sample.seconds for sample in samples)


def test_job_time_to_signal_counts_first_attempts_on_pushes_that_passed():
    assert seconds(decide.job_time_to_signal(TRACE)) == [100, 100, 600, 900, 900]


def test_the_dashboards_time_to_signal_counts_everything_that_has_ended():
    assert seconds(decide.dashboard_time_to_signal(TRACE)) == [100, 100, 200, 300, 400, 400, 500, 600, 900, 900, 1000]


def test_commit_time_to_signal_is_that_of_the_slowest_required_workflow():
    assert [(s.commit, s.seconds, s.job) for s in decide.commit_time_to_signal(TRACE)] == [("a", 900, "test")]
    assert [(s.commit, s.seconds) for s in decide.commit_time_to_signal(TRACE, ["style"])] == [("a", 100), ("b", 100)]


def test_a_second_run_of_a_workflow_on_a_commit_makes_its_signal_no_slower():
    facts = Facts.of([
        fact("build", run="1", run_created=1000, completed=1600),
        fact("build", RED, run="2", run_created=90_000, completed=90_600),  # pushed to a release branch, a day later
        fact("publish", run="2", run_created=90_000, completed=99_600),
        fact("build", run="3", commit="b", run_created=1000, completed=1600),
        fact("test", run="4", commit="b", run_created=1100, completed=1900),  # a system in which each job is a run
    ])  # fmt: skip
    assert seconds(decide.commit_time_to_signal(facts)) == [600, 900]


def test_a_commit_of_which_a_required_job_was_cancelled_or_lost_is_not_known_to_be_green():
    facts = Facts.of([
        fact("build", run_created=100, created=100, started=110, completed=400),
        fact("test", LOST, run_created=100, created=400, started=410, completed=420),
        fact("build", commit="b", run_created=1000, created=1000, started=1010, completed=1400),
        fact("test", LOST, commit="b", run_created=1000, created=1000, started=1010, completed=1100),
        fact("test", commit="b", attempt=2, run_created=1500, created=1500, started=1510, completed=1700),
        fact("build", commit="c", run_created=2000, created=2000, started=2010, completed=2300),
    ])  # fmt: skip
    assert [(s.commit, s.seconds) for s in decide.commit_time_to_signal(facts)] == [("c", 300)]
    assert [(s.commit, s.seconds) for s in decide.strict_lag(facts)] == [("c", 1000)]


def test_time_to_red_signal_ends_with_the_first_failure():
    assert [(s.commit, s.seconds) for s in decide.time_to_red_signal(TRACE)] == [("b", 1000), ("c", 500)]


def test_queue_time_of_a_job_that_still_waits_grows_with_the_clock():
    closed = [10, 10, 10, 10, 10, 30, 50, 60, 100, 100, 300]
    assert seconds(decide.queue_time(TRACE)) == closed
    assert seconds(decide.queue_time(TRACE, now=7000)) == sorted([*closed, 400])


def test_duration_counts_what_passed_or_failed():
    assert seconds(decide.duration(TRACE)) == [90, 90, 90, 250, 270, 300, 390, 490, 535, 600]


def test_strict_lag_is_the_age_of_the_newest_commit_known_to_be_green():
    # a is known to be green at 1900: at b's push (2000) it is 1000 old, at c's (6000) b is green since 5400
    assert [(s.commit, s.seconds) for s in decide.strict_lag(TRACE)] == [("b", 1000), ("c", 4000)]


def test_red_is_every_attempt_and_flaky_is_some():
    cells = decide.cells(TRACE)

    def those(which):
        columns = (cells.job.at(which), cells.commit.at(which))
        return list(zip(*([texts.names[code] for code in texts.codes] for texts in columns), strict=True))

    assert those(cells.is_red) == [("build", "c")]
    assert those(cells.is_flaky) == [("test", "b")]


def test_jobs_of_one_name_in_one_attempt_are_its_parts():
    parts = [
        fact("test", RED),
        fact("test"),
        fact("test", attempt=2),
        fact("test", RED, commit="b"),
        fact("test", commit="b"),
    ]
    cells = decide.cells(Facts.of(parts))
    assert dict(zip(("a", "b"), zip(cells.is_red, cells.is_flaky, strict=True), strict=True)) == {
        "a": (False, True), "b": (True, False),
    }  # fmt: skip


def test_an_interval_of_a_percentile_holds_it_and_shrinks():
    few, many = percentile(range(10), 0.5), percentile(np.arange(1000) / 100, 0.5)
    assert few.low <= few.value == 4.5 <= few.high
    assert many.high - many.low < few.high - few.low
    assert percentile([7.0], 0.9).low == percentile([7.0], 0.9).high == 7.0


def test_the_interval_of_a_percentile_is_that_of_many_resamples():
    values = np.random.default_rng(1).lognormal(size=200)
    resampled = np.quantile(np.random.default_rng(2).choice(values, (4000, 200)), 0.9, axis=1)
    low, high = np.quantile(resampled, [0.025, 0.975])
    estimate = percentile(values, 0.9)
    assert (estimate.low, estimate.high) == pytest.approx((low, high), rel=0.1)


def test_a_rate_has_the_interval_of_clopper_and_pearson():
    assert rate(0, 10).high == pytest.approx(0.3085, abs=1e-4)
    assert rate(5, 10).low == pytest.approx(0.1871, abs=1e-4)
    assert (rate(0, 0).low, rate(0, 0).high) == (0.0, 1.0)


def noisy(n, seed, sigma=0.05):
    return 600 * np.exp(np.random.default_rng(seed).normal(0, sigma, n))


def test_clocks_that_differ_make_no_time_below_zero():
    facts = Facts.of([
        fact("early", run_created=100, created=160, started=150, completed=140),
        fact("red", RED, commit="b", run_created=100, created=160, started=150, completed=90),
    ])  # fmt: skip
    for metric in ("queue_time", "duration", "job_time_to_signal", "time_to_red_signal"):
        samples = decide.METRICS[metric](facts)
        assert samples.seconds.min() >= 0, metric
        assert samples.queue_s.min() >= 0, metric


def test_an_end_hours_before_the_start_is_no_time_of_zero_seconds():
    zones = fact("a", run_created=100_000, created=100_000, started=100_000, completed=93_000)
    for metric in ("duration", "job_time_to_signal", "dashboard_time_to_signal"):
        assert not len(decide.METRICS[metric](Facts.of([zones]))), metric


def test_a_level_that_does_not_change_has_no_changes():
    assert [changes_of_runs(noisy(300, seed)) for seed in range(10)] == [[]] * 10


def test_a_step_is_found_where_it_is_with_its_size():
    values = noisy(300, 1)
    values[200:] *= 1.3
    (change,) = changes_of_runs(values)
    assert abs(change.index - 200) <= 3
    assert change.after / change.before == pytest.approx(1.3, abs=0.05)


def test_an_outlier_is_no_change():
    values = noisy(300, 2)
    values[[50, 150, 299]] *= 10
    assert changes_of_runs(values) == []


def test_a_jump_of_a_total_is_seen_in_the_first_snapshot_that_shows_it():
    totals = [7.15, 6.41, 7.22, 7.25, 5.61, 6.16, 5.79, 8.19]
    changes = changes_of_totals(totals)
    assert changes[-1].index == 7
    assert not any(change.index == 6 for change in changes_of_totals(totals[:-1]))


def test_totals_that_are_only_noisy_have_no_changes_mostly():
    noisy_totals = [np.exp(np.random.default_rng(seed).normal(0, 0.3, 20)) for seed in range(40)]
    assert sum(bool(changes_of_totals(totals)) for totals in noisy_totals) <= 4


def test_a_job_of_few_noisy_runs_has_no_changes_of_level():
    for seed in range(10):
        seconds = np.random.default_rng(seed).exponential(600, 30) + 10
        samples = Samples.of([Sample(at=i * 3600, seconds=s, job="unit") for i, s in enumerate(seconds.tolist())])
        assert summarise(samples, By.JOB)[0].changes == ()


def test_a_value_a_week_shows_its_jump_at_once():
    totals = [7.15, 6.41, 7.22, 7.25, 5.61, 6.16, 5.79, 8.19]
    samples = Samples.of([Sample(at=i * WEEK_S, seconds=3600 * t, job="rocm") for i, t in enumerate(totals)])
    assert summarise(samples, By.JOB)[0].changes[-1].at == 7 * WEEK_S


def test_a_change_names_the_part_and_the_jobs_that_moved_it():
    rng = np.random.default_rng(3)
    samples = []
    for i in range(240):
        queue = 60 * np.exp(rng.normal(0, 0.1)) + (200 if i >= 120 and i % 2 else 0)
        samples.append(
            Sample(at=i * 3600, seconds=queue + 300, queue_s=queue, workflow="ci", job="gpu" if i % 2 else "cpu")
        )
    (group,) = summarise(Samples.of(samples), By.WORKFLOW)
    assert {shift.part for shift in group.changes} == {"queue"}
    assert group.changes[0].jobs[0].part == "gpu"


@pytest.mark.parametrize("length", [3_001, 20_000])
def test_a_step_in_a_series_of_very_many_runs_is_found_at_its_place(length):
    values = noisy(length, 3)
    begins = (length * 2 // 7, length * 5 // 7)
    for begin in begins:
        values[begin:] = [1.5 * value for value in values[begin:]]
    assert [change.index for change in changes_of_runs(values)] == pytest.approx(begins, abs=2)


def test_the_place_of_a_change_does_not_hang_on_where_it_is_looked_for():
    values = np.repeat([1.0, 2.0, 1.0, 5.0], [103, 9, 88, 6])
    for most in (500, 103, 69, 52, 40):
        assert pelt(values, penalty=0.5, shortest=5, most=most) == [103, 112, 200], most


def test_without_noise_as_without_a_change_nothing_is_found_however_long_the_series():
    assert pelt(np.ones(500), penalty=0.1, shortest=5, most=70) == []
    assert pelt(np.ones(3), penalty=0.1, shortest=5) == []


def test_weeks_begin_on_mondays():
    monday = 1_767_571_200.0  # 2026-01-05 00:00 UTC
    assert week_of(monday) == week_of(monday + 7 * 86_400 - 1) == monday
    samples = [Sample(at=monday + 100, seconds=60.0), Sample(at=monday + 8 * 86_400, seconds=120.0)]
    rows = summarise(Samples.of(samples), By.WEEK)
    assert [float(row.key) for row in rows] == [monday, monday + 7 * 86_400]


def test_weeks_have_the_changes_of_the_whole_that_are_theirs():
    monday = 1_767_571_200.0
    values = noisy(200, 4)
    values[100:] = [2 * value for value in values[100:]]
    samples = [Sample(at=monday + i * WEEK_S / 50, seconds=600 * value) for i, value in enumerate(values)]
    rows = summarise(Samples.of(samples), By.WEEK)
    assert [[shift.at for shift in row.changes] for row in rows] == [[], [], [monday + 2 * WEEK_S], []]


def counted_by_time(rows):
    """The attempt of each row, by its runner: of one job on one commit each row without a run is another one."""
    found = {row.runner: row.attempt for row in rows}
    loose = {}
    for row in rows:
        if not row.run and row.commit:
            loose.setdefault((row.commit, row.job), []).append(row)
    for same in loose.values():
        same.sort(key=lambda row: (row.started or row.completed, row.attempt))
        if len(same) > 1:
            found |= {row.runner: number for number, row in enumerate(same, 1)}
    return found


def test_attempts_without_a_run_are_counted_by_time(tmp_path):
    rng = random.Random(5)
    rows = [
        JobRow(
            job=rng.choice("ab"), commit=rng.choice(("c", "d", "")), run=rng.choice(("", "", "7")),
            attempt=rng.choice((1, 2)), started=rng.choice((None, 1.7e9, 1.7e9 + number)),
            completed=1.7e9 + 100 + number, runner=f"runner-{number}", source="made",
            outcome=rng.choice((HistoryOutcome.PASSED, HistoryOutcome.FAILED)),
        )
        for number in range(60)
    ]  # fmt: skip
    with History(str(tmp_path / "h")) as history:
        history.add_jobs(rows)
        facts, kept = job_facts(history, Where()), history.jobs()
    columns = {facts.label.names[code]: attempt for code, attempt in zip(facts.label.codes, facts.attempt, strict=True)}
    assert columns == counted_by_time(kept)
    assert max(columns.values()) > 2


def test_attempts_of_a_run_that_nobody_counted_are_counted_by_time_too(tmp_path):
    table = tmp_path / "jobs.csv"
    table.write_text("commit,run,time,job,status\nc,7,2026-01-01T09:00,a,fail\nc,7,2026-01-01T10:00,a,pass\n")
    with History(str(tmp_path / "h")) as history:
        ingest(history, [str(table)], Options())
        facts = job_facts(history, Where())
    assert facts.attempt.tolist() == [1, 2]
    assert decide.cells(facts).is_flaky.tolist() == [True]


def test_a_job_that_waits_for_others_does_not_queue(tmp_path):
    waits = JobRow(
        run="1", job="test", commit="c", run_created=1e9, created=1e9, queued=1e9 + 3000, started=1e9 + 3010,
        completed=1e9 + 3100, outcome=HistoryOutcome.PASSED,
    )  # fmt: skip
    with History(str(tmp_path / "h")) as history:
        history.add_jobs([waits])
        facts = job_facts(history, Where())
    assert seconds(decide.queue_time(facts)) == [10]
    (sample,) = decide.job_time_to_signal(facts)
    assert (sample.seconds, sample.queue_s) == (3100, 10)


def test_a_job_whose_name_two_workflows_have_is_told_apart_and_any_other_keeps_its_name(tmp_path):
    rows = [
        JobRow(
            run=f"{flow}{i}", workflow=flow, job=name, commit=f"c{i}", created=1e9 + i, outcome=HistoryOutcome.PASSED
        )
        for i in range(2)
        for flow, name in (("linux", "build"), ("mac", "build"), ("linux", "lint"), ("", "build"))
    ]
    with History(str(tmp_path / "h")) as history:
        history.add_jobs(rows)
        job = job_facts(history, Where()).job
    assert Counter(job.names[code] for code in job.codes) == {
        "linux / build": 2,
        "mac / build": 2,
        "lint": 2,
        "build": 2,
    }
