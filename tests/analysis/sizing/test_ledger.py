"""The coverage ledger."""

import re

import pytest

from sooner.analysis.sizing.ledger import Entry, Execution, Required, Rule, Standing, ledger, matches, span, with_skips
from sooner.analysis.sizing.needs import TestNeed

NOW = 1_000_000.0
DAY = 86_400.0


def need(full, **more):
    return TestNeed(nodeid="t", min=full, gpu_min=full, full=full, **more)


def ran(at, devices=None, **more):
    return Execution(test="t", at=NOW - at, devices=devices, **more)


def stand(full, *executions, rule=None, needs=True) -> Entry:
    rules = [rule or Rule(within_s=DAY)]
    (entry,) = ledger(["t"], {"t": need(full)} if needs else {}, executions, rules, NOW)
    return entry


@pytest.mark.parametrize(
    ("full", "executions", "standing"),
    [
        (2, [ran(10, 2)], Standing.COVERED),
        (2, [ran(10, 4)], Standing.COVERED),
        (4, [ran(10, 2)], Standing.TOO_SMALL),
        (4, [ran(10, 2), ran(20, 4)], Standing.COVERED),
        (4, [ran(10, 2), ran(2 * DAY, 4)], Standing.TOO_SMALL),
        (4, [ran(2 * DAY, 4)], Standing.LATE),
        (4, [ran(2 * DAY, 2)], Standing.LATE),
        (4, [ran(DAY, 4)], Standing.COVERED),
        (4, [ran(DAY, 2)], Standing.TOO_SMALL),
        (4, [], Standing.NEVER),
        (4, [ran(10)], Standing.NOT_PROVEN),
        (0, [ran(10)], Standing.COVERED),
        ("unknown", [ran(10, 8)], Standing.NOT_PROVEN),
        (2, [ran(10, 2, ranks=0)], Standing.NEVER),
        (2, [ran(-10, 2)], Standing.NEVER),
    ],
    ids=[
        "at its need", "on more", "on fewer", "the larger one counts", "the larger one was long ago", "long ago",
        "on fewer long ago", "at the limit", "on fewer at the limit", "never", "on nobody knows what", "a CPU test",
        "need unknown", "a vacuous pass with no ranks", "after the time of judgement",
    ],
)  # fmt: skip
def test_where_a_test_stands(full, executions, standing):
    assert stand(full, *executions).standing is standing


def test_the_last_execution_at_the_need_and_the_last_at_all_are_two_things():
    entry = stand(4, ran(10, 2, where="small"), ran(100, 4, where="large"))
    assert entry.last.where == "large"
    assert entry.last_any.where == "small"
    assert entry.age_s == 100


def test_a_policy_may_ask_for_less():
    assert stand(4, ran(10, 2), rule=Rule(within_s=DAY, at=Required.ANY)).standing is Standing.COVERED
    assert stand(4, ran(10), needs=False, rule=Rule(within_s=DAY, at=Required.ANY)).standing is Standing.COVERED
    assert stand(4, ran(10, 8), needs=False).standing is Standing.NOT_PROVEN


def test_a_test_that_never_uses_devices_needs_none_to_be_covered_on_them():
    rule = Rule(within_s=DAY, at=Required.GPU_MIN)
    needs = {"t": TestNeed(nodeid="t", min=0, gpu_min=None, full=0)}
    (entry,) = ledger(["t"], needs, [ran(10)], [rule], NOW)
    assert (entry.standing, entry.needs) == (Standing.COVERED, 0)


def test_the_first_rule_that_matches_counts_and_others_are_left_out():
    rules = [Rule(match="slow/*", within_s=7 * DAY), Rule(match="fast/*", within_s=DAY)]
    executions = [Execution(test=name, at=NOW - 2 * DAY) for name in ("slow/a.py::t", "fast/a.py::t", "x.py::t")]
    needs = {e.test: TestNeed(nodeid=e.test, min=0, full=0) for e in executions}
    found = {e.test: e.standing for e in ledger(needs, needs, executions, rules, NOW)}
    assert found == {"slow/a.py::t": Standing.COVERED, "fast/a.py::t": Standing.LATE}


@pytest.mark.parametrize("match", ["t.py::test_a[nccl-2]", "t.py::test_a[nccl-*]", "*::test_a[[]nccl-?[]]", "t.py"])
def test_a_rule_means_a_test_with_parameters_as_its_id_is_written(match):
    assert matches("t.py::test_a[nccl-2]", match)
    assert not matches("t.py::test_a[nccl-2]", "t.py::test_a[gloo-*]")


def test_exempt_tests_and_tests_that_can_never_run_are_said_to_be_so():
    assert stand(4, rule=Rule(within_s=DAY, exempt="flaky hardware")).why == "flaky hardware"
    (entry,) = ledger(["t"], {"t": TestNeed(nodeid="t", min=None, full=None)}, [], [Rule(within_s=DAY)], NOW)
    assert entry.standing is Standing.NEVER_RUNS


@pytest.mark.parametrize(
    ("text", "seconds"), [("24h", DAY), ("90 min", 5400), ("7d", 7 * DAY), ("1.5h", 5400), ("30s", 30)]
)
def test_spans(text, seconds):
    assert span(text) == seconds


@pytest.mark.parametrize("text", ["", "24", "h", "-3h", "1 fortnight"])
def test_what_is_no_span(text):
    with pytest.raises(ValueError, match=re.escape(text) + "$"):
        span(text)


def skipped(at, devices=None, outcome="skipped"):
    return Execution(test="t", at=NOW - at, devices=devices, outcome=outcome)


@pytest.mark.parametrize(
    ("executions", "skips", "is_told", "why"),
    [
        ([], [skipped(60, 2)], True, "it was skipped, last on 2 devices"),
        ([], [skipped(60)], True, "it was skipped"),
        ([], [skipped(60, 1, "skipped_no_devices"), skipped(90)], True, "it was skipped, last on 1 device, too few"),
        ([ran(2 * DAY, 4)], [skipped(60, 2)], True, "it ran too long ago, and was skipped since, last on 2 devices"),
        ([ran(2 * DAY, 4)], [skipped(3 * DAY, 2)], False, "it ran too long ago"),
        ([ran(60, 2)], [skipped(30, 2)], True, "it ran on 2 of 4 devices"),
        ([], [skipped(-60, 2)], False, "no execution is known"),
        ([], [], False, "no execution is known"),
    ],
    ids=[
        "never but skipped", "on nobody knows what", "for lack of devices", "skipped since", "skipped before",
        "too few devices", "after the time of judgement", "nothing known",
    ],
)  # fmt: skip
def test_a_skip_is_no_execution_and_said_to_be_why_there_is_none(executions, skips, is_told, why):
    entry = stand(4, *executions)
    (told,) = with_skips([entry], skips, NOW)
    assert (told.why, told.standing) == (why, entry.standing)
    assert told.last_skip == (skips[0] if is_told else None)
