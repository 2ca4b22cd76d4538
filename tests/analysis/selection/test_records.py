"""Changes that ran everything tell whether what is left out stays green."""

import pytest

pytest.importorskip("scipy")

from sooner.analysis.selection.calibrate import promised_recall
from sooner.analysis.selection.records import Kept, Verdict, promise


def kept(count, *, everything=True, recall=0.97, dropped=("gpu", "docs")):
    return [Kept(identity=f"c{i}", everything=everything, recall=recall, dropped=dropped) for i in range(count)]


def outcome(i, job, *, passes=0, failures=0):
    return Verdict(identity=f"c{i}", job=job, passes=passes, failures=failures)


def test_misses_beyond_the_promise_are_an_alarm():
    verdicts = [outcome(i, "gpu", failures=1) for i in range(4)] + [outcome(i, "unit", failures=1) for i in (4, 5, 6)]
    found = promise(kept(20), verdicts, {"gpu": 0.01})
    assert (found.full, found.broken, found.missed) == (7, 7, 4)
    assert found.promised == pytest.approx(0.97)
    assert "4 broke only jobs that would have been left out" in found.alarm


def test_one_miss_of_many_is_what_was_promised():
    verdicts = [outcome(0, "gpu", failures=1), *(outcome(i, "unit", failures=1) for i in range(1, 20))]
    found = promise(kept(20), verdicts, {})
    assert (found.broken, found.missed, found.alarm) == (20, 1, "")


def test_who_has_caught_all_so_far_has_not_promised_to_miss_none():
    promised = promised_recall(recall=1.0, breakages=11.3, level=0.6)
    assert promised == pytest.approx(11.9 / 12.3)
    verdicts = [outcome(0, "gpu", failures=1), *(outcome(i, "unit", failures=1) for i in range(1, 20))]
    assert promise(kept(20, recall=promised), verdicts, {}).alarm == ""
    assert promised_recall(recall=1.0, breakages=0.0, level=0.6) == 0.6


def test_a_breakage_that_a_kept_job_saw_too_is_no_miss():
    found = promise(kept(1), [outcome(0, "gpu", failures=1), outcome(0, "unit", failures=1)], {})
    assert (found.broken, found.missed) == (1, 0)


def test_changes_that_did_not_run_everything_say_nothing_of_what_was_left_out():
    found = promise(kept(9, everything=False), [outcome(i, "gpu", failures=1) for i in range(9)], {})
    assert (found.recorded, found.full, found.broken, found.alarm) == (9, 0, 0, "")


def test_a_failure_that_flakes_explain_is_not_held_against_the_rule():
    flaky = [outcome(i, "gpu", failures=1) for i in range(9)]
    assert promise(kept(9), flaky, {"gpu": 0.2}).broken == 0
    assert promise(kept(9), [outcome(0, "gpu", failures=2)], {"gpu": 0.2}).broken == 1
    assert promise(kept(9), [outcome(0, "gpu", passes=1, failures=2)], {"gpu": 0.0}).broken == 0


def test_without_records_there_is_no_alarm():
    assert promise([], [], {}).alarm == ""
