"""Rows of tests as signals."""

import pytest

from sooner.analysis.trunk.facts import Signal, Status
from sooner.analysis.trunk.load_digest import runs_of_jobs, runs_of_tests
from sooner.analysis.trunk.load_jobs import Jobs, landed_jobs
from sooner.analysis.trunk.load_tests import Tests
from sooner.history import History, HistoryOutcome, JobRow, TestRow, Where, of_requests
from sooner.history.branches import lands_on, trunk_among

FAILED, PASSED, RUNNING, SKIPPED = (
    HistoryOutcome.FAILED,
    HistoryOutcome.PASSED,
    HistoryOutcome.RUNNING,
    HistoryOutcome.SKIPPED,
)


@pytest.fixture
def tests_of(tmp_path):
    """What a history of these rows tells."""

    def told(*rows: TestRow) -> Tests:
        with History(tmp_path / "history") as history:
            history.add_tests(rows)
            return Tests(history, Where(branch="main"))

    return told


@pytest.fixture
def jobs_of(tmp_path):
    """Attempts of jobs that landed, of a history of these rows."""

    def told(*rows: JobRow) -> Jobs:
        with History(tmp_path / "jobs") as history:
            history.add_jobs(rows)
            return landed_jobs(history, Where())[0]

    return told


def case(outcome: HistoryOutcome = FAILED, **more) -> TestRow:
    given = {"job": "t", "node_id": "f.py::x", "kind": "case", "commit": "a", "started": 1.0, "unit": "f.py"}
    return TestRow(outcome=outcome, **{**given, **more})


def job(outcome: HistoryOutcome, **more) -> JobRow:
    return JobRow(**{"job": "t", "commit": "a", "run": "1", "outcome": outcome, "started": 0.0, **more})


def statuses(signal: Signal) -> dict[str, Status]:
    return {event.sha: event.status for event in signal.events}


def test_a_retry_that_passed_inside_of_a_job_is_a_success(tests_of) -> None:
    (signal,) = tests_of(case(commit="b"), case(), case(PASSED, attempt=2, started=2.0)).signals()
    assert statuses(signal) == {"a": Status.SUCCESS, "b": Status.FAILURE}
    assert [event.started_at for event in signal.events if event.sha == "a"] == [1.0]


def test_runs_of_one_commit_are_events_of_their_own(tests_of) -> None:
    (signal,) = tests_of(case(run="1"), case(PASSED, run="2", started=5.0), case(run="3", started=3.0)).signals()
    assert [(event.status, event.started_at) for event in signal.events] == [
        (Status.FAILURE, 1.0),
        (Status.FAILURE, 3.0),
        (Status.SUCCESS, 5.0),
    ]


def test_the_shards_of_a_job_hold_one_test_whichever_it_ran_in(tests_of) -> None:
    (signal,) = tests_of(case(job="t (x, 1, 2)"), case(PASSED, job="t (x, 2, 2)", commit="b")).signals()
    assert signal.key == "t (x) :: f.py::x"
    assert statuses(signal) == {"a": Status.FAILURE, "b": Status.SUCCESS}


def test_jobs_variants_and_units_have_signals_of_their_own(tests_of) -> None:
    rows = (case(), case(job="u"), case(job=""), case(variant="fast"), case(node_id="", kind="unit"))
    assert [signal.key for signal in tests_of(*rows).signals()] == [
        "f.py::x",
        "t :: f.py",
        "t :: f.py::x",
        "t :: f.py::x::fast",
        "u :: f.py::x",
    ]


@pytest.fixture
def two_workflows(tmp_path):
    """A history in which a job of one name is in two workflows, and its test fails in one of them alone."""
    ran = [(flow, i) for flow in ("linux", "mac") for i in range(3)]
    with History(tmp_path / "workflows") as history:
        history.add_jobs([job(PASSED, workflow=flow, run=f"{flow}{i}", commit=str(i)) for flow, i in ran])
        history.add_jobs([job(PASSED, workflow="mac", run="mac9", commit="9")])
        history.add_tests(
            [case(FAILED if flow == "mac" else PASSED, run=f"{flow}{i}", commit=str(i)) for flow, i in ran]
        )
        yield history


def test_the_jobs_of_two_workflows_that_share_a_name_are_two(two_workflows) -> None:
    jobs = landed_jobs(two_workflows, Where())[0]
    (signal,) = Tests(two_workflows, Where()).signals(jobs)
    assert signal.key == "mac / t :: f.py::x"
    assert statuses(signal) == {**dict.fromkeys("012", Status.FAILURE), "9": Status.SUCCESS}
    assert runs_of_tests(two_workflows, Where()).runs == []


def test_of_one_workflow_only_its_tests_are_signals_and_those_of_which_none_is_known(two_workflows) -> None:
    two_workflows.add_tests([case(run="other"), case(run="mac0", commit="0", job="", node_id="f.py::y")])
    keys = [
        [signal.key for signal in Tests(two_workflows, Where(workflow=flow)).signals()] for flow in ("linux", "mac")
    ]
    assert keys == [["t :: f.py::x"], ["mac / t :: f.py::x", "mac :: f.py::y", "t :: f.py::x"]]


@pytest.mark.parametrize(
    "row",
    [case(PASSED), case(SKIPPED), case(commit=""), case(started=None), case(kind="summary"), case(RUNNING)],
    ids=["passed", "skipped", "no commit", "no time", "summary", "running"],
)
def test_a_test_that_never_failed_on_a_known_commit_has_no_signal(tests_of, row) -> None:
    assert tests_of(row).signals() == []


def test_what_has_not_ended_or_says_nothing_is_no_verdict(tests_of) -> None:
    rows = (case(), case(RUNNING, commit="b"), case(SKIPPED, commit="c"))
    (signal,) = tests_of(*rows).signals()
    assert statuses(signal) == {"a": Status.FAILURE, "b": Status.PENDING}


def test_a_test_that_never_passed_was_sound_where_its_job_ran_without_it(tests_of, jobs_of) -> None:
    jobs = jobs_of(job(PASSED), job(FAILED, commit="c", run="2"), job(PASSED, commit="d", job="other", run="3"))
    (signal,) = tests_of(case(commit="b")).signals(jobs)
    assert statuses(signal) == {"a": Status.SUCCESS, "b": Status.FAILURE}


def test_a_test_that_never_passed_was_sound_where_its_file_ran_without_it(tests_of) -> None:
    rows = (
        case(commit="b"),
        case(PASSED, commit="a", node_id="f.py::y", started=4.0),
        case(SKIPPED, commit="a", node_id="f.py::z", started=3.0),
        case(PASSED, commit="c", node_id="g.py::y"),
        case(PASSED, commit="d", node_id="f.py::y", job="other"),
        case(PASSED, commit="e", node_id="", kind="unit"),
    )
    (signal,) = tests_of(*rows).signals()
    assert {event.sha: (event.status, event.started_at) for event in signal.events} == {
        "a": (Status.SUCCESS, 3.0),
        "b": (Status.FAILURE, 1.0),
    }


def test_a_test_that_passed_once_is_not_thought_to_have_passed_elsewhere(tests_of, jobs_of) -> None:
    rows = (case(commit="b"), case(PASSED, commit="c"), case(PASSED, commit="a", node_id="f.py::y"))
    (signal,) = tests_of(*rows).signals(jobs_of(job(PASSED, commit="d")))
    assert statuses(signal) == {"b": Status.FAILURE, "c": Status.SUCCESS}


def test_a_commit_was_first_seen_by_its_earliest_test(tests_of) -> None:
    rows = (case(started=4.0), case(PASSED, started=2.0, node_id="f.py::y"), case(commit="b", started=None))
    assert tests_of(*rows).first_seen() == {"a": 2.0}
    assert tests_of().first_seen() == {"a": 2.0}


@pytest.fixture
def runs_of(tmp_path):
    """Runs that `flaky` looks at."""

    def told(*rows: TestRow, keep: tuple[str, ...] = ()) -> list[tuple[str, str, bool]]:
        with History(tmp_path / "history") as history:
            history.add_tests(rows)
            runs = runs_of_tests(history, Where(), keep=keep).runs
        return sorted((run.subject.id, run.code, run.failed) for run in runs)

    return told


def test_flakes_of_another_branch_are_not_the_trunks(tmp_path) -> None:
    rows = [(name, branch) for name, branch in (("main", "main"), ("topic", "topic"), ("any", ""))]
    with History(tmp_path / "history") as history:
        for name, branch in rows:
            both = (case(node_id=name, branch=branch), case(PASSED, node_id=name, branch=branch, run="2"))
            history.add_tests(both)
        found = runs_of_tests(history, Where(branch="main")).runs
        every = runs_of_tests(history, Where()).runs
    assert {run.subject.id for run in found} == {"main", "any"}
    assert {run.subject.id for run in every} == {"main", "any", "topic"}


@pytest.mark.parametrize(
    ("attempts", "trunk"),
    [({"topic": 9, "master": 2, "main": 1}, "main"), ({"topic": 9, "release": 10}, "release"), ({}, "")],
)
def test_the_trunk_is_what_is_usually_called_so_else_the_busiest_branch(attempts: dict[str, int], trunk: str) -> None:
    assert trunk_among(attempts) == trunk


@pytest.mark.parametrize(
    ("branch", "onto"),
    [
        ("gh-readonly-queue/main/pr-12-0a1b", "main"),
        ("gh-readonly-queue/release/2.1/pr-7-ffff", "release/2.1"),
        ("gh-readonly-queue/main", "gh-readonly-queue/main"),
        ("main", "main"),
    ],
)
def test_a_branch_of_a_merge_queue_is_for_the_branch_that_its_name_holds(branch: str, onto: str) -> None:
    assert lands_on(branch) == onto


REQUESTS = [("pull_request", None), ("pull_request_target", 7), ("", 7)]
LANDED = [("push", 7), ("push", None), ("", None), ("schedule", None)]


def test_an_attempt_is_a_requests_by_its_event_and_where_that_is_not_known_by_its_number(tmp_path) -> None:
    rows = [job(PASSED, run=str(i), event=event, pull_request=n) for i, (event, n) in enumerate(REQUESTS + LANDED)]
    with History(tmp_path / "history") as history:
        history.add_jobs(rows)
        columns = history.columns("jobs", ["event", "pull_request", "run"], Where())
        codes, names = columns.text("run")
        found = dict(zip((names[code] for code in codes), of_requests(columns).tolist(), strict=True))
    assert found == {str(i): i < len(REQUESTS) for i in range(len(rows))}


def test_only_what_failed_and_passed_on_one_commit_is_looked_at_for_flakes(runs_of) -> None:
    rows = (
        case(run="1"),
        case(PASSED, run="2"),
        case(PASSED, run="3", commit="b"),
        case(node_id="f.py::broken", run="4"),
        case(PASSED, node_id="f.py::broken", run="5", commit="b"),
        case(node_id="f.py::elsewhere", run="6"),
        case(PASSED, node_id="f.py::elsewhere", run="7", job="other"),
    )
    assert runs_of(*rows) == [("f.py::x", "a", False), ("f.py::x", "a", True), ("f.py::x", "b", False)]


def test_a_test_of_two_reports_with_units_of_their_own_is_one(runs_of) -> None:
    assert len(runs_of(case(run="1", unit="suite"), case(PASSED, run="2", unit="f.py"))) == 2


def test_where_no_commit_is_known_a_run_is_one(runs_of) -> None:
    rows = (case(commit="", run="1"), case(PASSED, commit="", run="1", attempt=2), case(PASSED, commit="", run="2"))
    expected = [("f.py::x", "run 1", False), ("f.py::x", "run 1", True), ("f.py::x", "run 2", False)]
    assert runs_of(*rows) == expected


def test_what_is_in_quarantine_is_looked_at_although_it_never_failed(runs_of) -> None:
    rows = (case(PASSED, node_id="f.py::x[1]"), case(PASSED, node_id="f.py::y"))
    assert runs_of(*rows, keep=("f.py::x",)) == [("f.py::x[1]", "a", False)]


def test_an_empty_history_has_no_tests(tmp_path) -> None:
    with History(tmp_path / "empty") as history:
        none = Tests(history, Where())
    assert (none.signals(), none.first_seen()) == ([], {})


def test_of_jobs_only_what_failed_and_passed_on_one_commit_and_what_is_kept_is_looked_at(tmp_path) -> None:
    rows = [
        job(FAILED, job="flaky (1/2)", started=5.0, completed=9.0),
        job(PASSED, job="flaky (2/2)", started=4.0, completed=7.0),
        job(PASSED, job="flaky (1/2)", run="2", started=20.0),
        job(PASSED, job="flaky (2/2)", run="2", started=20.0, completed=24.0),
        job(PASSED, job="half (1/2)"), job(RUNNING, job="half (2/2)"),
        job(FAILED, job="broken"), job(PASSED, job="broken", commit="b", run="2"),
        job(FAILED, job="loose", commit="", run="7"), job(PASSED, job="loose", commit="", run="7", attempt=2),
        job(PASSED, job="held"), job(PASSED, job="sound"),
    ]  # fmt: skip
    with History(tmp_path / "history") as history:
        history.add_jobs(rows)
        found = runs_of_jobs(history, Where(), keep=["held"])
    assert [(run.subject.id, run.code, run.failed, run.started, run.seconds) for run in found.runs] == [
        ("held", "a", False, 0.0, None),
        ("loose", "run 7", True, 0.0, None),
        ("loose", "run 7", False, 0.0, None),
        ("flaky", "a", True, 4.0, 5.0),
        ("flaky", "a", False, 20.0, 4.0),
    ]
    assert found.attempts == 8
