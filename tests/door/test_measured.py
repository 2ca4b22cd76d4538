"""`pytest --gpus --cov`: what is measured is what plain pytest measures, in whatever process a test ran."""

import json
import subprocess
import sys

TESTED = """
def choose(value):
    if value == 1:
        return "one"
    if value == 2:
        return "two"
    if value == 3:
        return "three"
    return "other"
"""
TESTS = """
import pytest, tested
def test_one(): tested.choose(1)
@pytest.mark.gpus(2)
def test_two(): tested.choose(2)
@pytest.mark.isolation("fresh")
def test_three(): tested.choose(3)
"""


def contexts(suite, *arguments):
    """Line -> the tests and phases that ran it. By the tracer: sys.monitoring tells the first test of a line."""
    done = suite.pytest("--cov=tested", "--cov-context=test", *arguments, COVERAGE_CORE="ctrace")
    assert done.returncode == 0, done.stdout + done.stderr
    command = [sys.executable, "-m", "coverage", "json", "-q", "--show-contexts"]
    subprocess.run(command, cwd=suite.folder, check=True)
    told = json.loads((suite.folder / "coverage.json").read_text())["files"]["tested.py"]["contexts"]
    return {line: sorted(tests) for line, tests in told.items()}


def test_lines_and_their_tests_are_those_of_plain_pytest(suite):
    suite.write(tested=TESTED, test_choose=TESTS)
    assert contexts(suite, "--gpus=virtual:2") == contexts(suite)


def test_a_process_whose_tests_run_nothing_that_is_measured_says_nothing(suite):
    suite.write(tested=TESTED, test_other=TESTS.replace("tested.choose(2)", "pass"))
    done = suite.pytest("--cov=tested", "--gpus=virtual:2")
    assert done.returncode == 0
    assert done.stderr == ""
