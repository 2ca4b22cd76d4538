"""The published rules, on columns written by hand. Newest commits first; a letter a run in the order of its start.

`F` failed, `S` succeeded, `P` pending; the number is the minute at which it started.
"""

import pytest

from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import (
    Commit,
    Decision,
    Event,
    Hold,
    Kind,
    Limits,
    Policy,
    Question,
    Reason,
    Rerun,
    Revert,
    Signal,
    Status,
)

STATUS = {"F": Status.FAILURE, "S": Status.SUCCESS, "P": Status.PENDING}


def judged(*columns: str, kind: Kind = Kind.TEST, limits: Limits | None = None) -> Decision:
    """The decision about commits `c0`, `c1`, ... (newest first), each a text such as "F4 F6"."""
    events = [
        Event(sha=f"c{i}", status=STATUS[run[0]], started_at=60 * float(run[1:]))
        for i, column in enumerate(columns)
        for run in column.split()
    ]
    commits = tuple(Commit(sha=f"c{i}", time=-i) for i in range(len(columns)))
    signal = Signal(key="signal", kind=kind, events=tuple(events))
    question = Question(now=1e6, commits=commits, signals=(signal,), limits=limits or Limits())
    (decision,) = decide(question, Policy.RULES).decisions
    return decision


def held(*columns: str, kind: Kind = Kind.TEST) -> Reason:
    decision = judged(*columns, kind=kind)
    assert isinstance(decision, Hold), decision
    return decision.reason


def again(*columns: str, kind: Kind = Kind.TEST, limits: Limits | None = None) -> set[str]:
    decision = judged(*columns, kind=kind, limits=limits)
    assert isinstance(decision, Rerun), decision
    assert all(one.count == 1 for one in decision.reruns)
    return {one.sha for one in decision.reruns}


def test_three_failures_two_successes_and_a_sandwich_are_a_revert() -> None:
    decision = judged("F7", "F5", "F4", "S3 S6")
    assert isinstance(decision, Revert)
    assert (decision.culprit, decision.failures, decision.successes) == ("c2", 3, 2)


@pytest.mark.parametrize("newest", ["S5", "P6 S5", "F1 S5"])
def test_a_success_on_the_newest_commit_with_a_result_means_fixed(newest: str) -> None:
    assert held("P9", newest, "F4", "S3") is Reason.FIXED


def test_without_any_success_there_is_nothing_to_divide() -> None:
    assert held("F5", "F4", "P3") is Reason.NO_SUCCESSES


def test_a_commit_with_both_outcomes_makes_the_signal_flaky() -> None:
    assert held("F7", "F5", "F4", "S3", "S2 F1") is Reason.FLAKY


def test_without_a_commit_of_pure_success_there_is_no_partition() -> None:
    assert held("F9", "F5 S6") is Reason.NO_PARTITION


def test_too_few_failures_and_successes_run_both_sides_again() -> None:
    assert again("F10", "S3") == {"c0", "c1"}


def test_too_few_failures_run_the_oldest_failure_again() -> None:
    assert again("F9", "F5", "S3 S7") == {"c1"}


def test_failures_that_all_start_after_the_successes_run_the_newest_success_again() -> None:
    assert again("F11", "F10", "F9", "S2 S3") == {"c3"}


def test_failures_that_all_start_before_the_successes_run_the_suspect_again() -> None:
    assert again("F1", "F2", "F3", "S5 S6") == {"c2"}


def test_a_pending_run_is_waited_for_instead_of_run_again() -> None:
    assert held("P4 F5", "S3 S7") is Reason.INSUFFICIENT_FAILURES
    assert held("F11", "F10", "F9", "S3 P8") is Reason.INFRA_NOT_CONFIRMED


def test_the_side_that_is_not_pending_still_runs_again() -> None:
    assert again("P5 F6", "S2 S4") == {"c1"}


def test_all_commits_of_a_gap_run() -> None:
    assert {"c1", "c2", "c3"} <= again("F9", "", "", "", "S3 S12")


def test_under_a_limit_the_middle_of_the_longest_stretch_of_a_gap_runs() -> None:
    asked = again("F9 F10 F11", "", "", "", "S3 S12", limits=Limits(bisection_limit=1))
    assert asked == {"c2"}


def test_runs_of_a_gap_that_are_pending_count_against_the_limit() -> None:
    decision = judged("F9 F10 F11", "", "P12", "", "S3 S12", limits=Limits(bisection_limit=1))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.PENDING_GAP


def test_a_gap_that_is_pending_is_waited_for() -> None:
    assert held("F9 F10 F11", "P12", "S3 S13") is Reason.PENDING_GAP


def test_a_job_must_fail_twice_on_the_suspect() -> None:
    assert again("F7", "F5", "F4", "S3 S6", kind=Kind.JOB) == {"c2"}
    assert isinstance(judged("F7", "F5", "F4 F5", "S3 S6", kind=Kind.JOB), Revert)


def test_only_the_newest_breakage_is_judged() -> None:
    decision = judged("F7", "F5", "F4", "S3 S6", "F2", "S1")
    assert isinstance(decision, Revert)
    assert decision.successes == 2


# Situations that the published policy's own tests name, in columns of our own.


def test_a_success_on_the_newest_commit_means_fixed_even_beside_a_failure_of_it() -> None:
    assert held("F4 S5", "S3") is Reason.FIXED


def test_a_pending_newest_commit_is_passed_over_when_one_asks_whether_it_is_fixed() -> None:
    assert held("P1", "S1") is Reason.FIXED


def test_two_failures_and_a_success_run_both_sides_again() -> None:
    assert again("F5 F6", "S3") == {"c0", "c1"}


def test_without_a_success_anywhere_pending_runs_below_do_not_help() -> None:
    assert held("F5 F6", "P3") is Reason.NO_SUCCESSES


def test_the_success_side_runs_again_alone_while_the_failing_side_is_pending() -> None:
    assert again("P5 F6", "S2 S4") == {"c1"}


def test_a_pending_success_side_is_an_unconfirmed_outage_before_it_is_too_few_successes() -> None:
    assert held("F11", "F10", "F9", "S3 P8") is Reason.INFRA_NOT_CONFIRMED


def test_a_job_that_failed_twice_on_the_suspect_is_reverted_and_once_runs_again() -> None:
    assert again("F7", "F5", "F4", "S3 S6", kind=Kind.JOB) == {"c2"}
    decision = judged("F7", "F5", "F4 F6", "S3 S6", kind=Kind.JOB)
    assert isinstance(decision, Revert)
    assert decision.culprit == "c2"


def test_a_job_whose_suspect_runs_again_is_waited_for() -> None:
    assert held("F7", "F5", "F4 P6", "S3 S6", kind=Kind.JOB) is Reason.INSUFFICIENT_FAILURES


def test_a_gap_does_not_ask_a_job_for_its_second_failure_yet() -> None:
    assert again("F9", "F8 F7", "", "S3 S10", kind=Kind.JOB) == {"c2"}


def test_a_commit_with_both_outcomes_stays_on_the_failing_side_of_the_division() -> None:
    assert held("F7", "S4 F5", "S3") is Reason.FLAKY


GAP = ("F10", "F9", "F8")


@pytest.mark.parametrize(
    ("unknown", "limit", "expected"),
    [
        (("", "", "", ""), None, {"c3", "c4", "c5", "c6"}),
        (("", "", "", ""), 1, {"c4"}),
        (("", "", "", ""), 2, {"c4", "c5"}),
        (("", "", ""), 1, {"c4"}),
        (("", "P6", "", ""), 1, set()),
        (("P7", ""), 1, set()),
        (("", "", "P5", "", ""), 2, {"c3"}),
        (("", "", "", ""), 0, set()),
    ],
)
def test_a_limit_takes_the_middles_of_a_gap_and_counts_what_is_pending(
    unknown: tuple[str, ...], limit: int | None, expected: set[str]
) -> None:
    asked = again(*GAP, *unknown, "S1", limits=Limits(bisection_limit=limit))
    base = f"c{len(GAP) + len(unknown)}"
    assert asked == expected | {base}, "one success before the gap is too few as well"


def test_only_failures_and_successes_that_started_count_for_the_sandwich() -> None:
    assert again("P35 F34", "F33", "F32", "S10 S30") == {"c3"}
    assert again("F40", "F39", "F38", "S10 S20") == {"c3"}
    assert isinstance(judged("F40", "F39", "F20", "S10 S30"), Revert)


def test_a_sandwich_that_pending_runs_may_still_close_is_waited_for() -> None:
    assert held("F40", "F39", "F38", "S10 S20 P50") is Reason.INFRA_NOT_CONFIRMED


def test_one_commit_alone_divides_nothing() -> None:
    assert held("F3 F4") is Reason.NO_SUCCESSES
    assert held("F9", "F5 S6") is Reason.NO_PARTITION
