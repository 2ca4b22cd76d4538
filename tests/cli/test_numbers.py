"""Numbers that cannot be are refused with one line, before anything is done."""

import pytest


@pytest.mark.parametrize(("verb", "option"), [("select", "--solver-seconds"), ("correlate", "--cut")])
def test_what_is_no_number_is_refused(sooner, project, verb, option):
    done = sooner("jobs", verb, option, "nan")
    assert done.returncode == 4
    assert "'nan' is not a valid float" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("trunk", "simulate", "--jobs", "-1"),
        ("trunk", "digest", "--limit", "-1"),
        ("trunk", "flaky", "--limit", "-1"),
        ("needs", ".", "--jobs", "-1"),
        ("needs", ".", "--limit", "-1"),
        ("coverage", "--limit", "-1"),
        ("tts", "--limit", "-1"),
        ("simulate-pool", "--jobs", "pool.csv", "--seed", "-1"),
        ("jobs", "select", "--solver-seconds", "-1"),
        ("jobs", "correlate", "--cut", "-1"),
    ],
    ids=" ".join,
)
def test_a_number_below_zero_is_refused(sooner, project, arguments):
    done = sooner(*arguments)
    assert done.returncode == 4
    assert not done.stdout
    assert "-1" in done.stderr
    assert len(done.stderr.splitlines()) == 2
