"""Levels of isolation by evidence and budget: what a test showed in earlier runs decides where it runs next."""

POLLUTED = """
import builtins
def test_polluter(): builtins.polluted = True
def test_victim(): assert not hasattr(builtins, "polluted")
"""

LEAVES_A_THREAD = """
import threading
def test_thread(): threading.Thread(target=threading.Event().wait, daemon=True).start()
def test_next(): pass
def test_last(): pass
"""

SLOW = """
import time
def test_quick(): pass
def test_slow(): time.sleep(0.1)
def test_after(): pass
"""

NEEDS_EARLIER = """
import time, types
kept = types.SimpleNamespace()
def test_sets(): kept.value = 1
def test_needs(): time.sleep(0.1); assert kept.value == 1
"""


def levels(entries):
    return {name: entry["level"] for name, entry in entries.items()}


def test_a_test_that_others_spoilt_runs_alone_from_then_on(suite):
    suite.write(test_p=POLLUTED)
    first, entries = suite.journal("--reuse-stats")
    assert entries["test_victim"]["pollution"]
    assert "judged again: 1" in first.stdout
    second, entries = suite.journal("--reuse-stats")
    assert levels(entries) == {"test_polluter": "warm", "test_victim": "fork"}
    assert not entries["test_victim"]["pollution"]
    assert "judged again: 0" in second.stdout
    assert second.returncode == 0


def test_a_test_that_spoils_its_process_spoils_only_its_own_from_then_on(suite):
    suite.write(test_t=LEAVES_A_THREAD)
    suite.journal()
    _, entries = suite.journal()
    assert levels(entries) == {"test_thread": "fork", "test_next": "warm", "test_last": "warm"}
    assert "threads" in entries["test_thread"]["discard"]


def test_a_test_that_left_nothing_again_may_share_again(suite):
    suite.write(test_t=LEAVES_A_THREAD)
    suite.journal()
    suite.write(test_t=LEAVES_A_THREAD.replace(".start()", ""))
    suite.journal()
    _, entries = suite.journal()
    assert levels(entries)["test_thread"] == "warm"


def test_a_test_starts_alone_within_the_budget_and_is_promoted_after_three_clean_runs(suite):
    suite.write(test_s=SLOW)
    seen = [levels(suite.journal("--isolation-budget=0.5")[1]) for _ in range(5)]
    assert [run["test_slow"] for run in seen] == ["warm", "fork", "fork", "fork", "warm"]
    assert {run["test_quick"] for run in seen} == {"warm"}


def test_a_test_outside_the_budget_shares(suite):
    suite.write(test_s=SLOW)
    for _ in range(2):
        _, entries = suite.journal("--isolation-budget=0.01")
    assert set(levels(entries).values()) == {"warm"}


def test_a_failure_alone_of_a_test_that_needs_earlier_ones_keeps_the_verdict_of_plain_pytest(suite):
    suite.write(test_n=NEEDS_EARLIER)
    suite.journal("--isolation-budget=0.5")
    second, entries = suite.journal("--isolation-budget=0.5")
    assert second.returncode == 0, second.stdout
    assert entries["test_needs"]["depends"]
    assert "order: test_n.py::test_needs fails by itself" in second.stdout
    third, entries = suite.journal("--isolation-budget=0.5")
    assert levels(entries)["test_needs"] == "warm"
    assert third.returncode == 0


def test_a_failure_alone_is_a_failure(suite):
    suite.write(test_f=SLOW)
    suite.journal("--isolation-budget=0.5")
    suite.write(test_f=SLOW.replace("time.sleep(0.1)", "time.sleep(0.1); assert 0, 'by itself'"))
    done, entries = suite.journal("--isolation-budget=0.5")
    assert done.returncode == 1
    assert entries["test_slow"]["level"] == "fork"
    assert entries["test_slow"]["outcome"] == "failed"
    assert "by itself" in done.stdout


def test_a_mark_and_wider_fixtures_overrule_the_budget(suite):
    text = """
import pytest, time
@pytest.fixture(scope="module")
def wide(): pass
@pytest.fixture(scope="session")
def widest(): pass
def test_module(wide): time.sleep(0.1)
"""
    other = """
import pytest, time
@pytest.fixture(scope="session")
def widest(): pass
def test_session(widest): time.sleep(0.1)
@pytest.mark.isolation("warm")
def test_marked(): time.sleep(0.1)
def test_free(): time.sleep(0.1)
"""
    suite.write(test_wide=text, test_other=other)
    for _ in range(2):
        _, entries = suite.journal("--isolation-budget=0.5")
    assert levels(entries) == {
        "test_module": "warm", "test_session": "warm", "test_marked": "warm", "test_free": "fork",
    }  # fmt: skip


def test_without_a_cache_every_test_shares(suite):
    suite.write(test_p=POLLUTED)
    for _ in range(2):
        _, entries = suite.journal("-p", "no:cacheprovider")
    assert entries["test_victim"]["pollution"]


def test_an_impossible_budget_is_one_clear_error(suite):
    suite.write(test_p=POLLUTED)
    done = suite.pytest("--gpus=virtual:1", "--isolation-budget=much")
    assert done.returncode == 4
    assert "--isolation-budget" in done.stderr


def test_a_cache_that_somebody_spoilt_counts_as_empty(suite):
    suite.write(test_p="def test_p(): pass\n")
    suite.journal()
    folder = suite.folder / ".pytest_cache/v/sooner"
    (folder / "evidence").write_text('{"test_p.py::test_p": 3, "other": {"alone": 1}}')
    (folder / "durations").write_text("[]")
    done, _ = suite.journal("--isolation-budget=0.5")
    assert done.returncode == 0, done.stdout + done.stderr
