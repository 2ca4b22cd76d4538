"""Rows of the history become the record of one branch: which attempts count, under which names."""

import pytest

pytest.importorskip("duckdb")

from sooner.analysis.selection.facts import State
from sooner.analysis.selection.load import (
    DROPPED_MEASURE,
    EVERYTHING_MEASURE,
    RECALL_MEASURE,
    changed_files,
    kept_changes,
    trunk,
)
from sooner.history import History, HistoryOutcome, JobRow, MeasureRow, Where
from sooner.history.tables import CommitRow
from sooner.model.errors import UsageError

AT = 1_750_000_000.0
FAILED, PASSED, SKIPPED = HistoryOutcome.FAILED, HistoryOutcome.PASSED, HistoryOutcome.SKIPPED


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "h") as opened:
        yield opened


def job(name, commit="c1", at=0.0, outcome=PASSED, **fields):
    """A job that takes a minute."""
    times = {"created": AT + at, "started": AT + at, "completed": AT + at + 60} | fields
    return JobRow(**{"job": name, "commit": commit, "run": f"{commit}-{times['created']}", "outcome": outcome, **times})


def record(history, *rows, **where):
    history.add_jobs(list(rows))
    return trunk(history, Where(**where))


def states(facts):
    return {
        (facts.commits[c], facts.jobs[j]): State(s).name
        for c, j, s in zip(facts.commit, facts.job, facts.state, strict=True)
    }


def test_a_name_that_two_workflows_have_stands_behind_its_workflow(history):
    facts, _ = record(history, job("build", workflow="linux"), job("build", workflow="mac", at=1), job("lint", at=2))
    assert sorted(facts.jobs) == ["lint", "linux / build", "mac / build"]


def test_what_failed_is_told_of_a_job_whose_name_two_workflows_have(history):
    facts, _ = record(
        history,
        job("build", workflow="linux", outcome=FAILED, failure_line="no space"),
        job("build", workflow="mac", at=1, outcome=FAILED, failure_line="no compiler"),
        job("lint", at=2, outcome=FAILED, failure_line="too long"),
    )
    told = {facts.jobs[j]: line for (_, j), line in facts.failure_lines.items()}
    assert told == {"linux / build": "no space", "mac / build": "no compiler", "lint": "too long"}


def test_a_job_that_was_left_out_is_found_again_though_two_workflows_have_its_name(history):
    rows = [job("build", workflow=flow, at=i) for i, flow in enumerate(("linux", "mac"))]
    on_change = [job("build", "p1", 9, FAILED, workflow="mac", event="pull_request"), job("lint", "p1", 10)]
    facts, _ = record(history, *rows, job("lint", at=2), *on_change)
    say = {"repository": "", "commit": "p1", "at": AT + 0.001}
    history.add_measures([
        MeasureRow(name=EVERYTHING_MEASURE, value=1.0, **say | {"at": AT}),
        MeasureRow(name=RECALL_MEASURE, value=0.9, **say),
        MeasureRow(name=DROPPED_MEASURE, value=1.0, subject="mac / build", **say),
    ])  # fmt: skip
    (kept,), verdicts = kept_changes(history, Where(), facts.jobs)
    assert (kept.identity, kept.everything, kept.recall, kept.dropped) == ("p1", True, 0.9, ("mac / build",))
    assert {(one.job, one.passes, one.failures) for one in verdicts} == {("mac / build", 0, 1), ("lint", 1, 0)}


def test_of_two_records_of_a_change_the_last_counts(history):
    facts, _ = record(history, job("lint"))
    for i, (everything, dropped) in enumerate([(1.0, "lint"), (0.0, "")]):
        say = {"repository": "", "commit": "p1"}
        rows = [MeasureRow(name=EVERYTHING_MEASURE, value=everything, at=AT + i, **say)]
        if dropped:
            rows.append(MeasureRow(name=DROPPED_MEASURE, value=1.0, subject=dropped, at=AT + i + 0.001, **say))
        history.add_measures(rows)
    (kept,), _ = kept_changes(history, Where(), facts.jobs)
    assert (kept.everything, kept.dropped, kept.recall) == (False, (), 1.0)


def test_requests_and_other_branches_are_left_out_and_said(history):
    facts, notes = record(
        history,
        job("a", "c1", branch="main"),
        job("a", "c2", 10, branch="main"),
        job("a", "x1", 20, branch="release/2"),
        job("a", "p1", 30, branch="topic", event="pull_request"),
    )
    assert list(facts.commits) == ["c1", "c2"]
    assert "of 2 branches only 'main' is used (--branch names another one)" in notes
    assert any(note.startswith("2 attempts say nothing here") for note in notes)


def test_a_branch_that_was_named_needs_no_choice(history):
    rows = [job("a", "c1", branch="main"), job("a", "x1", 20, branch="release/2")]
    facts, notes = record(history, *rows, branch="release/2")
    assert (list(facts.commits), notes) == (["x1"], [])


@pytest.mark.parametrize("where", [{}, {"branch": "main"}])
def test_what_a_merge_queue_runs_for_a_branch_is_about_the_branch(history, where):
    def queued(name, number, at):
        branch = f"gh-readonly-queue/main/pr-{number}-{'0a' * 20}"
        return job(name, f"c{number}", at, branch=branch, event="merge_group")

    rows = [queued("unit", 1, 0), queued("unit", 2, 10), job("nightly", "c2", 20, branch="main", event="schedule")]
    other = job("unit", "x1", 30, branch="gh-readonly-queue/release/1/pr-9-ab")
    facts, notes = record(history, *rows, other, **where)
    assert (list(facts.commits), facts.jobs) == (["c1", "c2"], ["nightly", "unit"])
    assert ("of 2 branches only 'main' is used (--branch names another one)" in notes) is not bool(where)


def test_attempts_without_a_commit_or_a_time_are_left_out_and_said(history):
    facts, notes = record(
        history, job("a"), job("a", "", 5), job("b", "c2", 9, created=None, started=None, completed=None)
    )
    assert list(facts.commits) == ["c1"]
    assert notes[0] == "1 attempts without commit or job are left out"


def test_a_skip_behind_a_failure_of_its_run_is_blocked_and_another_one_is_not(history):
    run = {"run": "r1"}
    facts, _ = record(
        history,
        job("build", outcome=FAILED, **run),
        job("test", at=100, outcome=SKIPPED, **run),
        job("docs", at=-100, outcome=SKIPPED, **run),
        job("lint", at=100, outcome=SKIPPED, run="r2"),
    )
    told = {name: state for (_, name), state in states(facts).items()}
    assert told == {"build": "FAILED", "test": "BLOCKED", "docs": "SKIPPED", "lint": "SKIPPED"}


def test_a_failure_without_a_time_hides_no_other_of_its_run(history):
    untimed = {"created": None, "started": None, "completed": None}
    facts, _ = record(
        history,
        job("build", outcome=FAILED, run="r1"),
        job("lint", outcome=FAILED, run="r1", **untimed),
        job("test", at=100, outcome=SKIPPED, run="r1"),
    )
    assert states(facts) == {("c1", "build"): "FAILED", ("c1", "test"): "BLOCKED"}


def test_a_job_without_an_end_is_known_as_late_as_others_take(history):
    facts, _ = record(history, job("a"), job("b", at=1), job("c", at=2, completed=None))
    assert sorted((facts.known - AT).tolist()) == [60, 61, 62]


def test_a_history_of_requests_alone_is_told_as_such(history):
    history.add_jobs([job("a", "p1", event="pull_request"), job("a", "p2", 9, event="pull_request")])
    with pytest.raises(UsageError, match="all 2 attempts are on pull requests: ingest those of the trunk"):
        trunk(history, Where())


def test_several_repositories_are_no_trunk(history):
    history.add_jobs([job("a", repository="o/n"), job("a", repository="o/m")])
    with pytest.raises(UsageError, match="o/m, o/n"):
        trunk(history, Where())


def test_files_of_a_commit_are_those_that_are_told(history):
    history.add_commits([CommitRow(sha="c1", files=("a", "b")), CommitRow(sha="c2")])
    assert changed_files(history, Where()) == {"c1": ("a", "b")}


def test_no_outcome_is_known_before_its_job_was_asked_for(history):
    facts, _ = record(history, job("unit"), job("lint", "c2", 100, outcome=FAILED, completed=AT - 300))
    assert facts.known.tolist() == [AT + 60, AT + 100]
    assert facts.decided.tolist() == [AT, AT + 100]


def test_clocks_that_differ_make_no_minutes_below_zero(history):
    facts, _ = record(history, job("unit"), job("lint", at=1, completed=AT - 300))
    assert sorted(facts.minutes.tolist()) == [0.0, 1.0]


@pytest.mark.parametrize("places", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_pool_of_a_job_is_where_it_ran_last_in_whatever_order_its_rows_come(history, places):
    runs = [
        job("unit", "c1", 0, runner="small"),
        job("unit", "c2", 100, runner="large"),
        job("unit", "c3", 200, SKIPPED, started=None, completed=None),  # no machine: it did not run
    ]
    facts, _ = record(history, *(runs[i] for i in places))
    assert facts.runner == ["large"]


@pytest.mark.parametrize("outcome", [SKIPPED, HistoryOutcome.CANCELLED])
@pytest.mark.parametrize("part", ["test (a)", "test / a", "test (b) / a (c)"])
def test_a_matrix_or_a_called_workflow_that_was_skipped_whole_is_no_job(history, part, outcome):
    facts, notes = record(history, job(part), job("test", "c2", 100, outcome), job("lint", "c2", 100))
    assert facts.jobs == ["lint", part]
    assert "skipped whole, so these names are no jobs: 'test'" in notes


def test_a_name_that_github_never_filled_in_is_no_job(history):
    facts, _ = record(history, job("test a"), job("test ${{ matrix.part }}", "c2", 100, SKIPPED))
    assert facts.jobs == ["test a"]


def test_a_job_that_runs_beside_others_that_begin_with_its_name_keeps_its_skips(history):
    rows = [job("test (a)"), job("test", "c1", 5), job("test", "c2", 100, SKIPPED)]
    rows += [job("nightly", "c2", 100, SKIPPED), job("nightly (b)", workflow="other")]
    facts, notes = record(history, *rows)
    assert states(facts)["c2", "test"] == "SKIPPED"
    assert "nightly" in facts.jobs  # the other is another workflow's
    assert notes == []


def test_a_job_that_was_skipped_before_it_was_cut_into_a_matrix_was_one(history):
    rows = [job("test"), job("test", "c2", 100, SKIPPED), job("test (a)", "c3", 200), job("test", "c4", 300, SKIPPED)]
    facts, _ = record(history, *rows)
    assert {commit for commit, name in states(facts) if name == "test"} == {"c1", "c2"}
