"""JUnit files that units write themselves: which are taken, what is in them, what a quarantine excuses."""

import os

import pytest

from sooner.model.events import Attempt
from sooner.model.outcomes import Outcome
from sooner.model.units import Unit
from sooner.run.attempts import attempt_of
from sooner.run.folder import RunFolder
from sooner.run.junit_files import keep_cases, read_cases
from sooner.run.quarantined import Quarantined
from sooner.run.supervision.client import Report

CASE = '<testcase classname="t" name="test_a">{}</testcase>'
FAILED, BROKE, SKIPPED = "<failure message='no'>text</failure>", "<error type='timed_out'/>", "<skipped/>"
NOW = 1_000_000.0


def junit(path, *insides, more=""):
    cases = "".join(CASE.format(inside).replace("test_a", f"test_{'abcdef'[i]}") for i, inside in enumerate(insides))
    path.write_text(f"{more}<testsuite>{cases}</testsuite>")
    os.utime(path, (NOW, NOW))
    return path


def test_cases_are_counted_by_what_they_came_to(tmp_path):
    found = read_cases(junit(tmp_path / "j.xml", "", FAILED, BROKE, SKIPPED, FAILED))
    assert (len(found.cases), found.failures, found.errors, found.skipped, found.excused) == (5, 2, 1, 1, 0)


@pytest.mark.parametrize(("newer_than", "is_kept"), [(NOW, True), (NOW + 2, True), (NOW + 3, False)])
def test_a_file_that_is_older_than_its_attempt_is_another_ones(tmp_path, newer_than, is_kept):
    copy = tmp_path / "kept" / "j.xml"
    copy.parent.mkdir()
    copy.write_text("of an earlier attempt")
    assert keep_cases(junit(tmp_path / "j.xml", ""), copy, newer_than=newer_than) is is_kept
    assert copy.exists() is is_kept


@pytest.mark.parametrize(("ahead", "outcome"), [(0.0, Outcome.CRASHED), (-300.0, Outcome.PASSED)])
def test_a_file_of_a_machine_whose_clock_is_slow_is_older_by_as_much(tmp_path, ahead, outcome):
    junit(tmp_path / "j.xml", "")
    report = Report(id="1", kind="ended", at=NOW + 301, started_at=NOW + 299, status=0, clock_ahead_s=ahead)
    attempt = attempt_of(
        report,
        Unit(name="u", command=("x",), junit=str(tmp_path / "j.xml")),
        folder=RunFolder(tmp_path),
        log="logs/u.log",
        devices=(),
        started_at=report.started_at,
        timeout_s=0.0,
        asked_to_stop=False,
        oom_kills=0,
        device_fault="",
    )
    assert attempt.outcome is outcome


def test_what_is_no_whole_junit_file_is_none(tmp_path):
    (tmp_path / "cut.xml").write_text("<testsuite><testcase")
    os.mkfifo(tmp_path / "pipe")
    bomb = junit(tmp_path / "bomb.xml", "", more='<!DOCTYPE x [<!ENTITY a "b">]>')
    for source in (tmp_path / "cut.xml", tmp_path / "pipe", tmp_path, bomb, tmp_path / "missing"):
        assert read_cases(source) is None
        assert not keep_cases(source, tmp_path / "kept" / "copy.xml", newer_than=0.0)


@pytest.fixture
def held(tmp_path):
    """Whether a unit that wrote these cases and exited so is excused where these tests are in quarantine."""

    def judge(*insides, ids=("t::test_b",), code=1, outcome=Outcome.FAILED, own="u", variant=""):
        folder = RunFolder(tmp_path)
        entries = "".join(f'[[test]]\nid = "{name}"\nvariant = "{variant}"\n' for name in ids)
        folder.quarantine.write_text(f"version = 1\n{entries}")
        unit = Unit(name=own, variant="A=1", command=("x",), junit="j.xml")
        attempt = Attempt(outcome=outcome, devices=(), started_at=0.0, ended_at=1.0, exit_code=code)
        return Quarantined(folder).holds(unit, outcome, (attempt,), junit(tmp_path / "j.xml", *insides))

    return judge


@pytest.mark.parametrize(
    ("insides", "more", "expected"),
    [
        (("", FAILED), {}, True),
        (("", BROKE), {}, True),
        (("", FAILED), {"variant": "A=1"}, True),
        (("", FAILED), {"variant": "A=2"}, False),
        ((FAILED, FAILED), {}, False),
        ((FAILED, ""), {}, False),
        (("", SKIPPED), {}, False),  # nothing of the failure is excused
        (("", FAILED), {"code": 2}, False),  # pytest was interrupted
        (("", FAILED), {"outcome": Outcome.TIMED_OUT}, False),
        ((FAILED, FAILED), {"ids": ("u",), "outcome": Outcome.CRASHED, "code": 139}, True),
        (("", FAILED), {"ids": ()}, False),
    ],
)
def test_a_unit_is_excused_if_nothing_failed_but_what_is_in_quarantine(held, insides, more, expected):
    assert held(*insides, **more) is expected


def test_an_excused_failure_is_a_skip_that_tells_what_it_really_was(held, tmp_path):
    assert held("", FAILED, BROKE, ids=("t::test_b", "t::test_c"))
    unit = Unit(name="u", command=("x",), junit="j.xml")
    found = Quarantined(RunFolder(tmp_path)).cases_of(unit, tmp_path / "j.xml")
    assert (found.failures, found.errors, found.skipped, found.excused) == (0, 0, 2, 2)
    assert 'name="sooner.quarantined" value="failed"' in found.cases[1]
    assert 'message="quarantined: no"' in found.cases[1]
    assert ">text</skipped>" in found.cases[1]
    assert 'name="sooner.quarantined" value="timed_out"' in found.cases[2]


def test_a_node_id_among_the_properties_counts_before_class_and_name(held):
    own = '<properties><property name="nodeid" value="tests/x.py::test_real[1]"/></properties>'
    assert held(own + FAILED, ids=("tests/x.py::test_real",))
    assert not held(own + FAILED, ids=("t::test_a",))
