"""`pytest --gpus --quarantine FILE`: what fails in it is an expected failure."""

import xml.etree.ElementTree as ET

import pytest

TESTS = """
import os
import pytest

@pytest.mark.parametrize("value", [1, 2])
def test_with(value): assert value == 1, "not <one>"
def test_crashes(): os._exit(3)
@pytest.fixture
def leaky():
    yield
    raise RuntimeError("in tear-down")
def test_leaks(leaky): pass
def test_passes(): pass
"""
ALL = ("test_a.py::test_with[2]", "test_a.py::test_crashes", "test_a.py::test_leaks")


def quarantine(suite, *ids):
    text = "version = 1\n" + "".join(f'[[test]]\nid = "{one}"\n' for one in ids)
    (suite.folder / "q.toml").write_text(text)
    suite.write(test_a=TESTS)
    return ("--gpus=virtual:2", "--quarantine=q.toml")


def test_failures_in_quarantine_are_expected_ones_and_fail_no_run(suite):
    done = suite.pytest(*quarantine(suite, *ALL), "--junitxml=j.xml")
    assert done.returncode == 0
    assert "3 passed, 3 xfailed" in done.stdout or "2 passed, 3 xfailed" in done.stdout
    assert "quarantined: test_a.py::test_with[2] failed: AssertionError: not <one>" in done.stdout
    assert "3 failed in quarantine, which fails no run" in done.stdout
    root = ET.parse(suite.folder / "j.xml").getroot()
    (found,) = root.iter("testsuite")
    assert (found.get("failures"), found.get("errors"), found.get("skipped")) == ("0", "0", "3")
    real = {
        case.get("name"): case.find("properties/property").get("value")
        for case in root.iter("testcase")
        if case.find("properties") is not None
    }
    assert real == {"test_with[2]": "failed", "test_crashes": "crashed", "test_leaks": "failed"}


def test_what_is_not_in_quarantine_still_fails_the_run(suite):
    done = suite.pytest(*quarantine(suite, *ALL[:2]))
    assert done.returncode == 1
    assert "1 error" in done.stdout


def test_a_function_in_quarantine_excuses_all_its_parameters(suite):
    assert suite.pytest(*quarantine(suite, "test_a.py::test_with"), "-k", "test_with").returncode == 0


def test_entries_that_the_session_does_not_have_are_noted(suite):
    done = suite.pytest(*quarantine(suite, "test_a.py::test_gone", "test_a.py::test_passes"), "-k", "test_passes")
    assert done.returncode == 0
    assert "note: q.toml also names what this run does not have: test_a.py::test_gone" in done.stdout


def test_a_broken_file_is_one_clear_error(suite):
    options = quarantine(suite)
    (suite.folder / "q.toml").write_text("version = 1\n[[test]]\nname = 'x'\n")
    done = suite.pytest(*options)
    assert done.returncode == 4
    assert "q.toml: test 1: 'name' is unknown" in done.stderr
    assert suite.pytest("--gpus=virtual:1", "--quarantine=nowhere.toml").returncode == 4


def test_the_history_keeps_what_they_really_were(suite):
    pytest.importorskip("duckdb")
    from sooner.history import History

    suite.pytest(*quarantine(suite, *ALL), f"--history={suite.folder}/h")
    with History(suite.folder / "h") as history:
        told = {row.node_id: row.outcome.value for row in history.tests()}
    assert told["test_a.py::test_with[2]"] == "failed"
    assert told["test_a.py::test_crashes"] == "crashed"
    assert told["test_a.py::test_leaks"] == "failed"
