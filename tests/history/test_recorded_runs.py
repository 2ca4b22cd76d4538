"""Runs of `sooner run` become rows, and rows become expected durations."""

import json
import os
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows_by_hand import AT, unit

from sooner.history import (
    History,
    HistoryError,
    HistoryOutcome,
    Subject,
    TestRow,
    known_durations,
    record_run,
    surroundings,
)
from sooner.history.ingest.intake import Options
from sooner.history.ingest.take import ingest


def attempt(outcome="passed", begin=0.0, end=5.0, **more):
    return {"outcome": outcome, "started_at": AT + begin, "ended_at": AT + end, "devices": ["cuda:0"], **more}


def result(name, outcome="passed", attempts=None, **more):
    attempts = [attempt(outcome)] if attempts is None else attempts
    return {"unit": name, "variant": "", "outcome": outcome, "cause": "", "flaky": False, "attempts": attempts,
            "queued_s": 0.0, "duration_s": 5.0, "log": f"logs/{name}.log", **more}  # fmt: skip


def event(kind, at=0.0, **fields):
    return {"at": AT + at, "event": kind, **fields}


def started(name, at=0.0, number=1):
    return event("started", at, unit=name, attempt=number, devices=["cuda:0"], pid=1)


def finished(name, at=5.0, number=1, outcome="passed"):
    return event("finished", at, unit=name, attempt=number, result=attempt(outcome, at - 5, at))


BEGIN = event("run_started", run="results-77", units=3, pending=3)


@pytest.fixture
def folder(tmp_path):
    """Write a run folder."""

    def folder(results=None, events=(BEGIN,), junit=None, name="results"):
        path = tmp_path / name
        path.mkdir(exist_ok=True)
        for file, lines in (("results.jsonl", results), ("events.jsonl", events)):
            if lines is not None:
                (path / file).write_text("".join(json.dumps(line) + "\n" for line in lines))
        description = {"format": 1, "began_at": AT, "plan": {"source": "plan.toml", "units": []}, "devices": [{}, {}]}
        (path / "run.json").write_text(json.dumps(description))
        if junit:
            (path / "junit.xml").write_text(junit)
        return path

    return folder


def told(root):
    with History(root) as history:
        return {(row.unit, row.node_id, row.attempt): row.outcome for row in history.tests()}


def test_each_attempt_of_each_unit_becomes_a_row(folder, root):
    attempts = [attempt("failed", exit_code=1, cause="exit code 1", peak_rss_mib=64.5), attempt("passed", 6, 12)]
    record_run(folder([result("flaky", attempts=attempts, flaky=True), result("plain", variant="A=1")]), root)
    with History(root) as history:
        rows = {(row.unit, row.attempt): row for row in history.tests()}
        first = rows["flaky", 1]
        assert (first.outcome, first.exit_code, first.message, first.peak_memory_mib, first.seconds) == (
            "failed", 1, "exit code 1", 64.5, 5.0,
        )  # fmt: skip
        assert (first.devices, first.started, first.kind, first.run) == (
            ("cuda:0",), AT, "unit", f"results-77@{round(AT * 1000)}",
        )  # fmt: skip
        assert rows["flaky", 2].outcome == "passed"
        assert rows["plain", 1].variant == "A=1"


@pytest.mark.parametrize(
    ("outcome", "kept"),
    [
        ("passed", "passed"), ("failed", "failed"), ("timed_out", "timed_out"), ("crashed", "crashed"),
        ("out_of_memory", "out_of_memory"), ("worker_lost", "infrastructure"), ("hole", "skipped_no_devices"),
        ("skipped", "skipped"), ("not_run", "not_run"),
    ],
)  # fmt: skip
def test_outcomes_of_units_stay_apart(folder, root, outcome, kept):
    attempts = [] if outcome in ("hole", "skipped", "not_run") else None
    record_run(folder([result("u", outcome, attempts)]), root)
    assert told(root) == {("u", "", 1): kept}


def test_recording_a_run_again_adds_nothing(folder, root):
    path = folder([result("u")])
    assert record_run(path, root).added == 2
    assert record_run(path, root).added == 0


def test_two_runs_in_folders_of_one_name_are_two_runs(folder, root):
    record_run(folder([result("u")]), root)
    later = event("run_started", 60, run="results-99", units=1, pending=1)
    record_run(folder([result("u", attempts=[attempt(begin=61, end=66)])], events=[later]), root)
    with History(root) as history:
        assert len(history.tests()) == len(history.runs()) == 2


def test_a_run_without_a_journal_is_recorded(folder, root):
    path = folder([result("u")], events=None)
    assert (record_run(path, root).added, record_run(path, root).added) == (2, 0)


CASES = """<testsuites name="sooner"><testsuite name="suite|A=1"><properties>
<property name="sooner.outcome" value="failed"/>
<property name="sooner.variant" value="A=1"/><property name="sooner.devices" value="cuda:0"/></properties>
<testcase classname="tests.test_x" name="test_a" time="0.5"/>
<testcase classname="tests.test_x" name="test_b" time="0.1"><failure message="no">no</failure></testcase></testsuite>
<testsuite name="plain"><testcase classname="sooner" name="plain" time="5"/></testsuite></testsuites>"""


def test_each_case_of_a_units_junit_file_becomes_a_row_and_the_units_own_case_does_not(folder, root):
    attempts = [attempt("failed"), attempt("failed", 6, 12, devices=["cuda:1"])]
    path = folder([result("suite", "failed", attempts, variant="A=1"), result("plain")], junit=CASES)
    record_run(path, root, about={"repository": "o/n", "commit": "c0", "branch": "main", "job": "gpu"})
    with History(root) as history:
        cases = [row for row in history.tests() if row.kind == "case"]
        told = {(row.unit, row.variant, row.node_id, row.attempt, row.outcome) for row in cases}
        assert told == {
            ("suite", "A=1", "tests/test_x.py::test_a", 2, "passed"),
            ("suite", "A=1", "tests/test_x.py::test_b", 2, "failed"),
        }
        assert {(row.repository, row.commit, row.branch, row.job, row.devices) for row in cases} == {
            ("o/n", "c0", "main", "gpu", ("cuda:1",))
        }
        assert history.durations(of=Subject.CASES) == {("tests/test_x.py::test_a", "A=1"): 0.5}
    assert record_run(path, root, about={"repository": "o/n"}).added > 0
    assert record_run(path, root, about={"repository": "o/n"}).added == 0


@pytest.mark.parametrize("line", ["", '{"task": "mmlu", "acc": 0.5}', '{"attempts": 3}', "[1]", "\0"])
def test_a_folder_in_which_others_keep_their_results_holds_no_run_of_ours(tmp_path, root, line):
    (tmp_path / "results.jsonl").write_text(f"{line}\n")
    (tmp_path / "junit.xml").write_text('<testsuite name="s"><testcase name="a"/></testsuite>')
    with pytest.raises(HistoryError, match="holds no run"):
        record_run(tmp_path, root)
    with History(root) as history:
        ingest(history, [str(tmp_path)], Options())
        assert ([row.node_id for row in history.tests()], history.runs()) == (["a"], [])


def test_the_run_itself_becomes_a_row(folder, root):
    end = event("run_finished", 20, run="results-77", exit_code=1)
    record_run(folder([result("u", "failed")], events=[BEGIN, end]), root)
    with History(root) as history:
        (row,) = history.runs()
    assert (row.outcome, row.created, row.completed, row.devices, row.workflow) == (
        "failed",
        AT,
        AT + 5,
        2,
        "plan.toml",
    )


def run_of(path, root):
    record_run(path, root)
    with History(root) as history:
        (row,) = history.runs()
    return row


def test_a_run_without_a_journal_began_with_its_first_and_ended_with_its_last_unit(folder, root):
    results = [result("b", attempts=[attempt(begin=3, end=9)]), result("a", attempts=[attempt(begin=1, end=4)])]
    row = run_of(folder(results, events=None), root)
    assert (row.created, row.completed, row.run[:8], len(row.run)) == (AT + 1, AT + 9, "results@", 24)


def test_a_run_without_a_unit_that_started_began_when_its_folder_says(folder, root):
    assert run_of(folder([result("u", "not_run", [])], events=None), root).created == AT


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        (["passed", "skipped"], "passed"),
        (["passed", "failed", "worker_lost"], "failed"),
        (["passed", "worker_lost"], "infrastructure"),
        (["passed", "not_run"], "infrastructure"),
    ],
)
def test_a_run_whose_end_is_not_told_came_to_what_its_units_did(folder, root, outcomes, expected):
    results = [result(f"u{i}", outcome, [] if outcome == "not_run" else None) for i, outcome in enumerate(outcomes)]
    assert run_of(folder(results), root).outcome == expected


def test_a_run_that_was_resumed_came_to_what_its_last_part_did(folder, root):
    ends = [event("run_finished", 9, run="x", exit_code=2), event("run_finished", 20, run="x", exit_code=0)]
    row = run_of(folder([result("u")], events=[BEGIN, *ends]), root)
    assert (row.outcome, row.as_of) == ("passed", AT + 20)


def test_a_journal_that_tells_less_of_a_unit_than_its_result_changes_nothing(folder, root):
    attempts = [attempt("failed"), attempt("passed", 6, 12)]
    path = folder([result("u", attempts=attempts)], events=[BEGIN, started("u"), finished("u", outcome="failed")])
    assert run_of(path, root).outcome == "passed"
    assert told(root) == {("u", "", 1): "failed", ("u", "", 2): "passed"}


def test_a_result_without_an_attempt_gives_way_to_what_the_journal_tells(folder, root):
    events = [BEGIN, started("u"), finished("u", outcome="failed"), started("u", 6, 2), finished("u", 11, 2)]
    row = run_of(folder([result("u", "not_run", [])], events=events), root)
    assert (row.outcome, row.completed) == ("passed", AT + 11)


def test_devices_of_a_run_that_does_not_tell_them_are_not_known(folder, root):
    path = folder([result("u")])
    (path / "run.json").write_text("{}")
    assert run_of(path, root).devices is None


def test_an_interrupted_run_is_recorded_from_its_journal(folder, root):
    events = [BEGIN, started("done"), finished("done"), started("going", 5)]
    record_run(folder(None, events=events), root)
    assert told(root) == {("done", "", 1): "passed", ("going", "", 1): "running"}
    with History(root) as history:
        assert [row.outcome for row in history.runs()] == ["running"]
        assert history.durations() == {("done", ""): 5.0}


def test_a_journal_that_was_cut_is_read_as_far_as_it_goes(folder, root):
    path = folder(None, events=[BEGIN, started("done"), finished("done")])
    with (path / "events.jsonl").open("a") as file:
        file.write('{"at": 17')
    record_run(path, root)
    assert told(root) == {("done", "", 1): "passed"}


def test_what_an_interrupted_run_came_to_after_it_was_resumed_replaces_what_was_open(folder, root):
    events = [BEGIN, started("done"), finished("done"), started("going", 5)]
    record_run(folder(None, events=events), root)
    lost = [
        result("done"),
        result("going", "worker_lost", [attempt("worker_lost", 5, 9)]),
        result("late", "not_run", []),
    ]
    record_run(folder(lost, events=[*events, event("run_finished", 9, run="x", exit_code=2)]), root)
    assert told(root)["going", "", 1] == "infrastructure"
    assert told(root)["late", "", 1] == "not_run"
    resumed = event("run_started", 60, run="results-88", units=3, pending=2)
    results = [
        result("done"),
        result("going", attempts=[attempt("worker_lost", 5, 9), attempt(begin=60, end=70)]),
        result("late", attempts=[attempt(begin=70, end=75)]),
    ]
    end = event("run_finished", 80, run="x", exit_code=0)
    record_run(folder(results, events=[*events, resumed, end]), root)
    assert told(root) == {
        ("done", "", 1): "passed", ("going", "", 1): "infrastructure", ("going", "", 2): "passed",
        ("late", "", 1): "passed",
    }  # fmt: skip
    with History(root) as history:
        assert [row.outcome for row in history.runs()] == ["passed"]


def test_a_folder_without_a_run_is_an_error(tmp_path, root):
    with pytest.raises(HistoryError, match="holds no run"):
        record_run(tmp_path, root)


def test_what_the_ci_tells_is_known():
    github = {
        "GITHUB_REPOSITORY": "o/n",
        "GITHUB_SHA": "c0",
        "GITHUB_REF_NAME": "main",
        "GITHUB_JOB": "gpu",
        "HOME": "/",
    }
    assert surroundings(github) == {"repository": "o/n", "commit": "c0", "branch": "main", "job": "gpu"}
    assert surroundings({}) == {}


# Durations.


def runs_of(name, *seconds, outcome=HistoryOutcome.PASSED, **more):
    """A run a second value, the oldest first."""
    rows = enumerate(seconds)
    return [
        unit(name, run=f"{name}{i}", seconds=float(s), started=AT + 3600 * i, outcome=outcome, **more) for i, s in rows
    ]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([10], 10),
        ([10, 600], 10),
        ([600, 10], 10),
        ([13] * 9 + [627], 13),
        ([10] * 5 + [500, 500], 10),
        ([10] * 20 + [20] * 5, 20),
        ([20] * 20 + [10] * 4, 10),
        ([99] * 100 + [5] * 20, 5),
    ],
)
def test_expected_durations_survive_outliers_and_follow_changes(history, seconds, expected):
    history.add_tests(runs_of("u", *seconds))
    assert history.durations() == {("u", ""): expected}


def test_only_what_passed_tells_how_long_a_unit_takes(history):
    history.add_tests(runs_of("u", 1, 2, outcome=HistoryOutcome.TIMED_OUT))
    history.add_tests([unit("n", seconds=None), unit("v", seconds=4.0, variant="A=1"), unit("i", seconds=float("inf"))])
    assert history.durations() == {("v", "A=1"): 4.0}


def test_a_history_that_is_not_there_knows_no_durations_and_loads_no_database(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert known_durations(tmp_path / "nothing") == {}


def test_durations_of_a_recorded_run_are_known(folder, root):
    record_run(folder([result("u")]), root)
    assert known_durations(os.fspath(root)) == {("u", ""): 5.0}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples=st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_an_expected_duration_is_one_that_was_measured(samples, tmp_path_factory):
    with History(tmp_path_factory.mktemp("h")) as history:
        history.add_tests(runs_of("u", *samples))
        assert history.durations()["u", ""] in samples[-20:]


def test_rows_of_the_door_may_name_cases_without_a_unit(history):
    history.add_tests([TestRow(node_id="t.py::a", kind="case", outcome=HistoryOutcome.PASSED, seconds=1.0, started=AT)])
    assert history.durations() == {}
    assert history.durations(of=Subject.CASES) == {("t.py::a", ""): 1.0}
