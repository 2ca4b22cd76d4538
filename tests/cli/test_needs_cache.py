"""What `sooner needs` keeps from one question to the next."""

import contextlib
import json
import signal
import textwrap

import pytest

from sooner.cli import needs_static
from sooner.door.needs import of_tests

HELPER = """
    import pytest
    import torch

    def need(n):
        return pytest.mark.skipif(torch.cuda.device_count() < n, reason="devices")
"""
TESTS = """
    import pytest
    import torch
    from helper import need

    @need(2)
    @pytest.mark.parametrize("size", [1, 2])
    @pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
    def test_two(device, size):
        torch.ones(size, device=device)
"""


@pytest.fixture
def suite(project):
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "tests").mkdir()
    (project / "tests" / "helper.py").write_text(textwrap.dedent(HELPER))
    (project / "tests" / "test_it.py").write_text(textwrap.dedent(TESTS))
    (project / "tests" / "test_host.py").write_text("import pytest\n@pytest.mark.wide\ndef test_host(): pass\n")
    return project


@pytest.fixture
def evaluated(monkeypatch):
    """The files that were evaluated, of all questions so far."""
    seen = []
    evaluate = needs_static.evaluated

    def recording(root, paths, *rest, **options):
        seen.extend(paths)
        return evaluate(root, paths, *rest, **options)

    monkeypatch.setattr(needs_static, "evaluated", recording)
    return seen


def test_a_second_question_is_answered_from_what_is_kept_word_for_word(here, suite, evaluated):
    first = here("needs", "tests", "--json")
    assert evaluated == ["tests/test_host.py", "tests/test_it.py"]
    assert here("needs", "tests", "--json") == first
    assert len(evaluated) == 2
    assert {each["full"] for each in json.loads(first.stdout)} == {0, 2}


def test_another_question_about_other_files_keeps_both(here, suite, evaluated):
    here("needs", "tests/test_it.py")
    here("needs", "tests/test_host.py", "--why")
    here("needs", "--min", "2")
    assert evaluated == ["tests/test_it.py", "tests/test_host.py"]


def test_only_what_follows_from_a_change_is_evaluated_again(here, suite, evaluated):
    here("needs", "tests")
    evaluated.clear()
    (suite / "tests" / "helper.py").write_text(textwrap.dedent(HELPER).replace("< n", "< 2 * n"))
    answer = json.loads(here("needs", "tests", "--json").stdout)
    assert evaluated == ["tests/test_it.py"]
    assert {each["min"] for each in answer} == {0, 4}


def test_without_a_cache_all_is_evaluated_and_nothing_is_written(here, suite, evaluated):
    for _ in range(2):
        assert here("needs", "tests", "--no-cache").returncode == 0
    assert len(evaluated) == 4
    assert not (suite / ".sooner").exists()


def test_what_is_kept_is_hidden_from_version_control(here, suite):
    here("needs", "tests")
    assert (suite / ".sooner" / ".gitignore").read_text() == "*\n"


def test_a_place_that_cannot_be_written_is_no_trouble(here, suite):
    (suite / ".sooner").write_text("somebody's own")
    done = here("needs", "tests", "--json")
    assert (done.returncode, done.stderr, len(json.loads(done.stdout))) == (0, "", 5)


def test_rules_are_checked_and_count_whatever_is_kept(here, suite, evaluated):
    here("needs", "tests")
    assert "cannot be read" in here("needs", "tests", "--rules", "missing.toml").stderr
    (suite / "own.toml").write_text("[[mark]]\nnames = ['wide']\nskip = 'N < 3'\n")
    answer = json.loads(here("needs", "tests", "--rules", "own.toml", "--json").stdout)
    assert {each["min"] for each in answer} == {2, 3}
    evaluated.clear()
    here("needs", "tests")
    here("needs", "tests", "--rules", "own.toml")
    assert evaluated == []
    (suite / "own.toml").write_text("[[mark]]\nnames = ['wide']\nskip = 'N < 4'\n")
    answer = json.loads(here("needs", "tests", "--rules", "own.toml", "--json").stdout)
    assert {each["min"] for each in answer} == {2, 4}


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_what_was_found_before_somebody_had_enough_is_kept(here, suite, evaluated, monkeypatch, signum):
    evaluate = needs_static.evaluated

    def interrupted(*given, done, **options):
        def take(path, answer):
            done(path, answer)
            signal.raise_signal(signum)

        return evaluate(*given, done=take, **options)

    with monkeypatch.context() as patch, contextlib.suppress(SystemExit):
        patch.setattr(needs_static, "evaluated", interrupted)
        assert here("needs", "tests").returncode == 130
    evaluated.clear()
    assert here("needs", "tests").returncode == 0
    assert len(evaluated) == 1


def test_pytests_door_takes_what_is_kept(here, suite):
    paths = ("tests/test_it.py", "tests/test_host.py")
    assert of_tests(suite, paths, seconds=-1.0).missing == paths
    here("needs", "tests")
    taken = of_tests(suite, paths, cache=suite / "cache" / "door.msgpack", seconds=-1.0)
    assert (taken.missing, taken.evaluated) == ((), 0)
    assert taken.by_nodeid == of_tests(suite, paths).by_nodeid
    (suite / ".sooner" / "needs.msgpack").unlink()
    assert of_tests(suite, paths, cache=suite / "cache" / "door.msgpack", seconds=-1.0).missing == ()
    (suite / "tests" / "helper.py").write_text("")
    assert of_tests(suite, paths, cache=suite / "cache" / "door.msgpack", seconds=-1.0).missing == paths[:1]
