"""Breakages of a whole history, and what was known at a moment."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from sooner.analysis.trunk.breakages import Breakage, Series, _range, find_breakages, flake_rates_of, series_of
from sooner.analysis.trunk.decide import suspicion_of
from sooner.analysis.trunk.facts import Commit, Event, Kind, Signal, Status
from sooner.analysis.trunk.job_names import base_name
from sooner.analysis.trunk.load_jobs import landed_jobs
from sooner.analysis.trunk.replay import question_at
from sooner.history import History, HistoryOutcome, JobRow, Where


def series(text: str) -> Series:
    """A commit a letter: F failed, S passed, m both, - did not run, and D failed twice."""
    failures = {"F": 1, "m": 1, "D": 2}
    passes = {"S": 1, "m": 1}
    return Series(
        key="signal",
        failures=tuple(failures.get(letter, 0) for letter in text),
        passes=tuple(passes.get(letter, 0) for letter in text),
    )


def only(text: str) -> Breakage:
    (found,) = find_breakages([series(text)])
    return found


def test_a_stretch_of_failures_is_a_breakage_with_its_culprit_and_fix() -> None:
    found = only("S" * 30 + "FFFF" + "S" * 30)
    assert (found.culprit, found.first, found.last, found.fixed, found.failures) == (30, 30, 30, 34, 4)
    assert found.probability > 0.94


def test_what_was_never_seen_sound_names_no_culprit() -> None:
    found = only("--FFFFFFF" + "S" * 20)
    assert (found.is_older, found.probability, found.fixed) == (True, 0.0, 9)
    assert not only("S" * 10 + "FFFF").is_older


def test_single_failures_between_passes_are_flakes() -> None:
    assert not list(find_breakages([series("S" * 10 + "F" + "S" * 10 + "F" + "S" * 10)]))


def test_a_failure_that_passed_when_run_again_is_a_flake() -> None:
    assert not list(find_breakages([series("S" * 20 + "mm" + "S" * 20)]))


def test_commits_that_did_not_run_widen_the_range() -> None:
    found = only("S" * 30 + "---" + "FFFF" + "S" * 30)
    assert (found.first, found.last) == (30, 33)
    assert found.probability == pytest.approx(0.25, abs=0.05)


def test_documentation_in_the_range_is_not_the_culprit() -> None:
    text = "S" * 30 + "-" + "FFFF" + "S" * 30
    suspicion = [1.0] * len(text)
    suspicion[31] = 0.005
    (found,) = find_breakages([series(text)], suspicion)
    assert found.culprit == 30


def test_what_fails_at_the_end_is_still_broken() -> None:
    assert only("S" * 30 + "FFF").fixed is None


def test_only_runs_with_a_verdict_on_known_commits_are_counted() -> None:
    told = [("a", Status.FAILURE), ("b", Status.PENDING), ("b", Status.SUCCESS), ("c", Status.FAILURE)]
    events = [Event(sha=sha, status=status, started_at=0.0) for sha, status in told]
    found = series_of("s", events, {"a": 0, "b": 1})
    assert (found.failures, found.passes) == ((1, 0), (0, 1))


@pytest.mark.parametrize(
    ("shares", "expected"), [([0.05, 0.55, 0.4], (1, 2)), ([0.1, 0.5, 0.4], (0, 2)), ([0.4, 0.55, 0.05], (0, 1))]
)
def test_the_range_grows_towards_what_is_more_probable(shares: list[float], expected: tuple[int, int]) -> None:
    assert _range(np.array(shares), 1) == expected


def test_two_breakages_are_two() -> None:
    found = list(find_breakages([series("S" * 30 + "FFF" + "S" * 30 + "FFFF" + "S" * 9)]))
    assert [one.culprit for one in found] == [30, 63]


def test_the_flake_rate_leaves_breakages_out() -> None:
    broken, flaky = flake_rates_of([series("S" * 100 + "F" * 50 + "S" * 150), series("SSSSF" * 60)])
    assert broken < 0.02
    assert flaky == pytest.approx(0.2, abs=0.04)


@pytest.mark.parametrize(
    ("job", "base"),
    [
        ("linux / test (default, 2, 5, linux.gpu.2)", "linux / test (default)"),
        ("test (distributed, 1, 3)", "test (distributed)"),
        ("build (3/8)", "build"),
        ("acceptance (secure)", "acceptance (secure)"),
        ("unit", "unit"),
        ("test (py3.11, cuda)", "test (py3.11, cuda)"),
        ("test (default, 3)", "test (default, 3)"),
        ("test (default, 3, cuda)", "test (default, 3, cuda)"),
        ("test (2, 5)", "test"),
        ("test (0, 4)", "test"),
        ("test (cuda, 12, 8)", "test (cuda, 12, 8)"),
        ("test (cuda, 12, 8, 1, 3)", "test (cuda, 12, 8)"),
    ],
)
def test_a_job_keeps_its_configuration_and_loses_shard_and_runner(job: str, base: str) -> None:
    assert base_name(job) == base


def job(name: str, outcome: HistoryOutcome, *, run: str = "1", started: float = 0.0) -> JobRow:
    return JobRow(job=name, commit="a", run=run, outcome=outcome, started=started, completed=started + 9)


@pytest.fixture
def job_signals(tmp_path: Path) -> Callable[[list[JobRow]], list[Signal]]:
    """What a history of these rows tells."""

    def told(rows: list[JobRow]) -> list[Signal]:
        with History(tmp_path / f"history{len(list(tmp_path.iterdir()))}") as history:
            history.add_jobs(rows)
            return landed_jobs(history, Where())[0].signals()

    return told


def test_the_shards_of_a_job_are_one_run_that_fails_with_any_of_them(job_signals) -> None:
    rows = [
        job("t (x, 1, 2)", HistoryOutcome.PASSED),
        job("t (x, 2, 2)", HistoryOutcome.TIMED_OUT, started=5.0),
        job("t (x, 1, 2)", HistoryOutcome.PASSED, run="2"),
        job("t (x, 2, 2)", HistoryOutcome.PASSED, run="2"),
    ]
    (signal,) = job_signals(rows)
    assert [(event.status, event.started_at) for event in signal.events] == [
        (Status.FAILURE, 0.0),
        (Status.SUCCESS, 0.0),
    ]


def test_a_shard_that_was_cancelled_leaves_open_whether_the_job_passed(job_signals) -> None:
    passed, cancelled = job("t (x, 1, 2)", HistoryOutcome.PASSED), job("t (x, 2, 2)", HistoryOutcome.CANCELLED)
    assert job_signals([passed, cancelled]) == []
    failed = job("t (x, 1, 2)", HistoryOutcome.FAILED)
    (signal,) = job_signals([failed, cancelled])
    assert signal.events[0].status is Status.FAILURE


def test_one_shard_that_passes_when_it_is_run_again_is_no_pass_while_another_one_is_red(job_signals) -> None:
    one, other = "t (x, 1, 2)", "t (x, 2, 2)"
    rows = [
        job(one, HistoryOutcome.FAILED),
        job(other, HistoryOutcome.FAILED),
        replace(job(one, HistoryOutcome.PASSED, started=20.0), attempt=2),
        replace(job(other, HistoryOutcome.PASSED, started=40.0), attempt=3),
        job(one, HistoryOutcome.PASSED, run="2", started=60.0),
    ]
    (signal,) = job_signals(rows)
    assert [(event.status, event.started_at) for event in signal.events] == [
        (Status.FAILURE, 0.0),
        (Status.SUCCESS, 40.0),
        (Status.SUCCESS, 60.0),
    ]


def test_a_job_of_which_a_shard_still_runs_has_no_end(job_signals) -> None:
    running = JobRow(job="t (x, 2, 2)", commit="a", run="1", outcome=HistoryOutcome.RUNNING, started=3.0)
    (signal,) = job_signals([job("t (x, 1, 2)", HistoryOutcome.PASSED), running])
    (event,) = signal.events
    assert (event.status, event.started_at, event.ended_at) == (Status.PENDING, 0.0, None)


def test_a_job_is_named_with_its_workflow_where_one_is_known(job_signals) -> None:
    rows = [job("t", HistoryOutcome.PASSED), job("t", HistoryOutcome.PASSED, run="2")]
    rows[1] = replace(rows[1], workflow="trunk")
    assert [signal.key for signal in job_signals(rows)] == ["t", "trunk / t"]


def test_rows_of_one_job_on_one_commit_without_a_run_are_attempts_by_their_time(job_signals) -> None:
    rows = [
        job("t", HistoryOutcome.PASSED, run="", started=20.0),
        job("t", HistoryOutcome.FAILED, run=""),
        job("u (x, 1, 2)", HistoryOutcome.FAILED, run=""),
        job("u (x, 2, 2)", HistoryOutcome.PASSED, run="", started=1.0),
        job("u (x, 1, 2)", HistoryOutcome.PASSED, run="", started=30.0),
    ]
    one, other = job_signals(rows)
    for signal in (one, other):
        assert [(event.status, event.attempt) for event in sorted(signal.events, key=lambda one: one.started_at)] == [
            (Status.FAILURE, 1),
            (Status.SUCCESS, 2),
        ]


@pytest.mark.parametrize(
    "outcome", [HistoryOutcome.CANCELLED, HistoryOutcome.SKIPPED, HistoryOutcome.INFRASTRUCTURE, HistoryOutcome.NOT_RUN]
)
def test_what_says_nothing_about_the_code_is_no_event(job_signals, outcome: HistoryOutcome) -> None:
    assert job_signals([job("t", outcome)]) == []


def test_a_question_holds_what_was_known_then() -> None:
    commits = [Commit(sha=f"c{i}", time=float(i)) for i in range(6)]
    events = tuple(
        Event(sha=f"c{i}", status=Status.FAILURE if i == 1 else Status.SUCCESS, started_at=i + 0.1, ended_at=i + 1.5)
        for i in range(6)
    )
    later = Event(sha="c3", status=Status.FAILURE, started_at=4.3, ended_at=4.4)
    asked = question_at(commits, [Signal(key="s", kind=Kind.JOB, events=(*events, later))], 4.2, window=3)
    assert [commit.sha for commit in asked.commits] == ["c4", "c3", "c2"]
    (signal,) = asked.signals
    assert [event.status for event in signal.events] == [Status.SUCCESS, Status.PENDING, Status.PENDING]
    assert signal.flake_prior is not None
    assert signal.flake_prior[1] == 2


def test_the_window_counts_commits_that_something_ran_on() -> None:
    commits = [Commit(sha=f"c{i}", time=float(i)) for i in range(10)]
    events = tuple(Event(sha=f"c{i}", status=Status.SUCCESS, started_at=i + 0.1) for i in (0, 3, 6))
    asked = question_at(commits, [Signal(key="s", kind=Kind.JOB, events=events)], 9.5, window=2)
    assert [commit.sha for commit in asked.commits] == ["c9", "c8", "c7", "c6", "c5", "c4", "c3"]


def test_a_commit_of_which_no_file_is_told_is_as_suspect_as_any() -> None:
    assert suspicion_of(Commit(sha="a", time=0.0, files=("README.md",))) < suspicion_of(
        Commit(sha="a", time=0.0, files=())
    )
    assert suspicion_of(Commit(sha="a", time=0.0, files=())) == suspicion_of(Commit(sha="a", time=0.0))
