"""Cases of one test that stand together in a table."""

import pytest

from sooner.analysis.sizing.ledger import Entry, Execution, Standing
from sooner.model.text import test_of as name_of
from sooner.report.coverage import ledger_text
from sooner.report.needs import NeedRow, needs_text


@pytest.mark.parametrize(
    ("node_id", "test"),
    [
        ("t.py::test_a[x]", "t.py::test_a"),
        ("t.py::A::test_a[b.py::c-[d]]", "t.py::A::test_a"),
        ("tests[old]/t.py::test_a[x]", "tests[old]/t.py::test_a"),
        ("tests[old]/t.py::test_b", "tests[old]/t.py::test_b"),
        ("Suite.test[x::y]", "Suite.test"),
        ("t.py::test_a", "t.py::test_a"),
        ("", ""),
    ],
)
def test_a_case_belongs_to_its_test_whatever_its_path_and_parameters_hold(node_id, test):
    assert name_of(node_id) == test


def need_row(nodeid, line):
    numbers = {"min": "2", "gpu_min": "2", "full": "2", "max": "-"}
    return NeedRow(nodeid=nodeid, profile={"2": "run"}, confidence="high", cases=2, lines=(line,), **numbers)


def test_cases_with_other_lines_that_decide_stand_alone_where_these_are_told():
    rows = [need_row("t.py::test_a[1]", "t.py:1: first"), need_row("t.py::test_a[2]", "t.py:2: second")]
    assert "test_a[...]" in needs_text(rows, 9, why=False)
    told = needs_text(rows, 9, why=True).splitlines()
    assert [line.strip() for line in told[2::2]] == ["t.py:1: first", "t.py:2: second"]


def entry(test, age_s):
    last = Execution(test=test, at=1.0, devices=2)
    return Entry(
        test=test, standing=Standing.TOO_SMALL, needs=4, within_s=60.0, last=None, last_any=last, age_s=age_s,
        why="it ran on 2 of 4 devices",
    )  # fmt: skip


def test_of_cases_one_that_never_ran_at_its_need_is_shown_rather_than_one_that_did():
    entries = [entry("t.py::test_a[1]", 86_400.0), entry("t.py::test_a[2]", None), entry("t.py::test_a[3]", 60.0)]
    _, row, _ = ledger_text(entries, entries, 9).splitlines()
    assert row.startswith("t.py::test_a[2] and 2 more of its cases")
    assert "ago" not in row
