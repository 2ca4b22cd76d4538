"""When each test case last ran, by how much it ran on."""

import pytest

from sooner.history import History, HistoryOutcome, JobRow, MeasureRow, TestRow

PASSED, FAILED, SKIPPED = HistoryOutcome.PASSED, HistoryOutcome.FAILED, HistoryOutcome.SKIPPED


@pytest.fixture
def history(tmp_path):
    with History(tmp_path / "history") as opened:
        yield opened


def case(at: float | None, **more) -> TestRow:
    given = {"node_id": "f.py::x", "kind": "case", "run": "1", "job": "j", "outcome": PASSED, "started": at}
    return TestRow(**{**given, **more})


def told(history, until: float = 100.0) -> list[tuple[str, float, int | None, str]]:
    found = history.last_runs([PASSED, FAILED], until)
    return [(row.node_id, row.at, row.devices, row.outcome) for row in found]


def test_of_each_number_of_devices_the_last_run_is_told(history) -> None:
    history.add_tests(
        [
            case(1.0, devices=("a", "b")),
            case(3.0, devices=("b", "c"), outcome=FAILED, run="2"),
            case(2.0, devices=("a",), run="4"),
            case(9.0, devices=("a",), outcome=SKIPPED, run="3"),
            case(4.0, node_id="f.py::y", outcome=SKIPPED),
        ]
    )
    assert told(history) == [("f.py::x", 2.0, 1, "passed"), ("f.py::x", 3.0, 2, "failed")]
    assert history.cases() == ["f.py::x", "f.py::y"]


def test_what_ran_later_is_not_looked_at(history) -> None:
    history.add_tests([case(1.0), case(2.0, run="2"), case(3.0, run="3")])
    assert told(history, until=2.0) == [("f.py::x", 2.0, None, "passed")]


def test_what_a_test_does_not_tell_its_job_does(history) -> None:
    history.add_tests([case(None), case(None, run="2", job="other")])
    first = JobRow(job="j", run="1", outcome=FAILED, started=5.0, runner="gpu.2", devices=2)
    again = JobRow(job="j", run="1", outcome=PASSED, started=7.0, runner="gpu.4", devices=4, attempt=2)
    history.add_jobs([first, again])
    (row,) = history.last_runs([PASSED], 100.0)
    assert (row.at, row.devices, row.runner) == (7.0, 4, "gpu.4")


@pytest.mark.parametrize(("source", "devices"), [("pytest", 0), ("sooner:out", 0), ("junit:a.xml", 4), ("", 4)])
def test_a_test_that_sooner_gave_no_device_had_none_whatever_its_job_has(history, source, devices) -> None:
    history.add_tests([case(6.0, source=source)])
    history.add_jobs([JobRow(job="j", run="1", outcome=PASSED, started=5.0, runner="gpu.4", devices=4)])
    assert told(history) == [("f.py::x", 6.0, devices, "passed")]


def test_a_test_ran_where_the_attempt_of_its_job_did(history) -> None:
    history.add_tests([case(6.0), case(9.0, node_id="f.py::y"), case(4.0, node_id="f.py::z")])
    ran = [(5.0, "gpu.2", 2), (8.0, "gpu.4", 4), (8.0, "gpu.8", 8), (None, "gpu.1", 1)]
    history.add_jobs(
        JobRow(job="j", run="1", outcome=PASSED, started=at, runner=runner, devices=n, attempt=number)
        for number, (at, runner, n) in enumerate(ran, 1)
    )
    found = {row.node_id: (row.at, row.devices, row.runner) for row in history.last_runs([PASSED], 100.0)}
    assert found == {"f.py::x": (6.0, 2, "gpu.2"), "f.py::y": (9.0, 8, "gpu.8"), "f.py::z": (4.0, 2, "gpu.2")}


def test_what_ran_on_no_rank_did_not_run(history) -> None:
    history.add_tests([case(1.0), case(2.0, run="2"), case(3.0, run="3")])
    ranks = {"1": 4.0, "2": float("nan"), "3": 0.0}
    history.add_measures(
        [MeasureRow(run=run, job="j", subject="f.py::x", name="ranks", value=n, at=1.0) for run, n in ranks.items()]
    )
    (row,) = history.last_runs([PASSED], 100.0)
    assert (row.at, row.ranks) == (2.0, None)


def test_units_and_summaries_are_no_cases(history) -> None:
    history.add_tests([case(1.0, node_id="", unit="f.py", kind="unit"), case(1.0, kind="summary")])
    assert (told(history), history.cases()) == ([], [])
