"""What the posterior makes of known stories. Commits land every half hour, runs take an hour and a half."""

import random
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.analysis.trunk.case import Case, Window, broken_until, start_of_doubt
from sooner.analysis.trunk.decide import decide, is_documentation
from sooner.analysis.trunk.facts import (
    Answer,
    Commit,
    Decision,
    Event,
    Hold,
    Limits,
    Policy,
    Question,
    Reason,
    Rerun,
    Revert,
    Signal,
    Status,
)
from sooner.analysis.trunk.outages import (
    BURST_END_HAZARD,
    BURST_HAZARD,
    BURST_STRENGTHS,
    BURST_WEIGHTS,
    left_to_an_outage,
    outage_of,
    streak_of,
)
from sooner.analysis.trunk.posterior import Evidence, posterior

HOUR = 3600.0
Fails = Callable[[int, float], bool]
"""Commit and hour of the start."""


def events_of(fails: Fails, *, commits: int, now: float, extra: dict[int, list[float]] | None = None) -> list[Event]:
    runs = [(i, i / 2) for i in range(commits)]
    runs += [(i, at) for i, starts in (extra or {}).items() for at in starts]
    return [
        Event(
            sha=f"c{i}",
            status=(Status.FAILURE if fails(i, at) else Status.SUCCESS) if at + 1.5 <= now else Status.PENDING,
            started_at=at * HOUR,
            ended_at=(at + 1.5) * HOUR if at + 1.5 <= now else None,
        )
        for i, at in runs
        if at <= now
    ]


def question(
    *signals: list[Event], now: float, commits: int, files: dict[int, tuple[str, ...]] | None = None
) -> Question:
    return Question(
        now=now * HOUR,
        commits=tuple(
            Commit(sha=f"c{i}", time=i / 2 * HOUR, files=(files or {}).get(i)) for i in reversed(range(commits))
        ),
        signals=tuple(Signal(key=f"s{k}", events=tuple(events)) for k, events in enumerate(signals)),
    )


def one(asked: Question) -> Decision:
    (decision,) = decide(asked).decisions
    return decision


def test_a_signal_that_never_failed_is_passing() -> None:
    decision = one(question(events_of(lambda _i, _t: False, commits=20, now=12), now=12, commits=20))
    assert decision == Hold(signal="s0", reason=Reason.PASSING, detail="no failure in the window")


@pytest.mark.parametrize(
    ("pending", "reason", "detail"),
    [
        (["c3", "c2"], Reason.WAITING, "no run has ended yet, 2 under way"),
        (["elsewhere"], Reason.NOT_ENOUGH_EVIDENCE, "it did not run in the window"),
        ([], Reason.NOT_ENOUGH_EVIDENCE, "it did not run in the window"),
    ],
)
def test_a_signal_of_which_no_run_has_ended_is_not_called_passing(
    pending: list[str], reason: Reason, detail: str
) -> None:
    events = [Event(sha=sha, status=Status.PENDING, started_at=HOUR) for sha in pending]
    assert one(question(events, now=2, commits=4)) == Hold(signal="s0", reason=reason, detail=detail)


def test_an_old_single_failure_is_a_flake() -> None:
    decision = one(question(events_of(lambda i, _t: i == 5, commits=20, now=12), now=12, commits=20))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.FLAKY


def test_the_first_failures_of_a_break_ask_for_runs_of_the_suspect_and_its_parent() -> None:
    decision = one(question(events_of(lambda i, _t: i >= 20, commits=26, now=12.1), now=12.1, commits=26))
    assert isinstance(decision, Rerun)
    assert decision.culprit == "c20"
    assert {again.sha for again in decision.reruns} == {"c20", "c19"}


@pytest.mark.parametrize(("flaked", "runs"), [((), {"c20": 3, "c19": 3}), ((9,), {"c20": 2, "c19": 2})])
def test_of_a_signal_that_hardly_flakes_runs_are_asked_for_to_spare(
    flaked: tuple[int, ...], runs: dict[str, int]
) -> None:
    """The slowest is then not waited for; who flakes is asked about for nothing too often to be given them."""
    events = events_of(lambda i, _t: i >= 20 or i in flaked, commits=26, now=12.8)
    decision = one(question(events, now=12.8, commits=26))
    assert isinstance(decision, Rerun)
    assert {again.sha: again.count for again in decision.reruns} == runs


@pytest.mark.parametrize(("failed", "most"), [(0.0, 4), (10.0, 2)])
def test_while_flakes_are_likelier_few_runs_are_asked_for_and_fewer_of_a_signal_that_flakes(
    failed: float, most: int
) -> None:
    events = events_of(lambda i, _t: i == 20, commits=21, now=11.6)
    asked = question(events, now=11.6, commits=21)
    signals = (msgspec.structs.replace(asked.signals[0], flake_prior=(failed, 200.0)),)
    decision = one(msgspec.structs.replace(asked, signals=signals))
    assert isinstance(decision, Rerun)
    assert sum(again.count for again in decision.reruns) == most


def test_runs_that_are_under_way_are_not_asked_for_again() -> None:
    first = question(events_of(lambda i, _t: i >= 20, commits=26, now=12.1), now=12.1, commits=26)
    asked = one(first)
    assert isinstance(asked, Rerun)
    extra = {int(again.sha[1:]): [12.1] * again.count for again in asked.reruns}
    events = events_of(lambda i, _t: i >= 20, commits=26, now=12.2, extra=extra)
    decision = one(question(events, now=12.2, commits=26))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.WAITING


def test_once_a_break_is_likely_what_is_still_missing_starts_beside_the_runs_that_are_under_way() -> None:
    under_way = {20: [11.6], 19: [11.6]}
    single = events_of(lambda i, _t: i == 20, commits=22, now=11.6, extra=under_way)
    assert isinstance(one(question(single, now=11.6, commits=22)), Hold)
    events = events_of(lambda i, _t: i >= 20, commits=26, now=12.1, extra=under_way)
    decision = one(question(events, now=12.1, commits=26))
    assert isinstance(decision, Rerun)
    assert {again.sha for again in decision.reruns} <= {"c20", "c19"}
    assert all(again.count < 3 for again in decision.reruns), "what is under way counts"


def test_the_first_run_of_the_suspect_is_waited_for_unless_it_is_overdue() -> None:
    """Commits 18 and 19 run when 20 and 21 have failed: which of the three it is, their own first runs tell."""
    events = [
        event if event.sha not in {"c18", "c19"} else Event(sha=event.sha, status=Status.PENDING, started_at=11 * HOUR)
        for event in events_of(lambda i, _t: i >= 20, commits=22, now=12.1)
    ]
    decision = one(question(events, now=12.1, commits=22))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.WAITING
    assert isinstance(one(question(events, now=13.5, commits=22)), Rerun)


def test_suspect_and_parent_that_do_as_expected_are_a_revert() -> None:
    events = events_of(lambda i, _t: i >= 20, commits=28, now=14, extra={20: [12.1] * 2, 19: [12.1] * 3})
    decision = one(question(events, now=14, commits=28))
    assert isinstance(decision, Revert)
    assert decision.culprit == "c20"
    assert decision.probability is not None
    assert decision.probability > 0.998


def test_an_outage_is_nobodys_fault() -> None:
    def out(_commit: int, at: float) -> bool:
        return 10 <= at < 14

    events = events_of(out, commits=30, now=15.6, extra={19: [12.1, 12.1], 20: [12.1, 14.05]})
    decision = one(question(events, now=15.6, commits=30))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.INFRASTRUCTURE


def test_a_break_that_somebody_mended_is_left_alone() -> None:
    events = events_of(lambda i, _t: 10 <= i < 14, commits=24, now=13.5, extra={9: [7.0], 10: [7.0]})
    decision = one(question(events, now=13.5, commits=24))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.FIXED


def test_what_always_failed_broke_before_the_window() -> None:
    decision = one(question(events_of(lambda _i, _t: True, commits=20, now=12), now=12, commits=20))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.ALREADY_BROKEN


@pytest.mark.parametrize(
    ("verdicts", "reason"), [("FS", Reason.FLAKY), ("SF", Reason.FLAKY), ("F", Reason.NOT_ENOUGH_EVIDENCE)]
)
def test_the_only_commit_of_a_window_is_not_called_broken_before_it(verdicts: str, reason: Reason) -> None:
    events = [
        Event(sha="c0", status=Status.SUCCESS if one == "S" else Status.FAILURE, started_at=i * HOUR, ended_at=i * HOUR)
        for i, one in enumerate(verdicts)
    ]
    decision = one(question(events, now=4, commits=1))
    assert isinstance(decision, Hold)
    assert decision.reason is reason


def test_untested_commits_between_the_last_success_and_a_sure_break_are_divided() -> None:
    events = [e for e in events_of(lambda i, _t: i >= 20, commits=30, now=15) if not 12 < int(e.sha[1:]) < 22]
    decision = one(question(events, now=15, commits=30))
    assert isinstance(decision, Rerun)
    places = sorted(int(again.sha[1:]) for again in decision.reruns)
    assert 1 < len(places) <= 4
    assert all(12 < place < 22 for place in places)


def test_documentation_is_not_reverted() -> None:
    events = events_of(lambda i, _t: i >= 20, commits=28, now=14, extra={20: [12.1] * 3, 19: [12.1] * 3})
    files = {20: ("docs/index.md", "README.md"), 21: ("src/a.py",)}
    decision = one(question(events, now=14, commits=28, files=files))
    assert not (isinstance(decision, Revert) and decision.culprit == "c20" and (decision.probability or 0) > 0.9999)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("README.md", True),
        ("docs/a/b.rst", True),
        ("LICENSE", True),
        ("requirements.txt", False),
        ("requirements-dev.txt", False),
        ("CMakeLists.txt", False),
        ("src/a.py", False),
        ("docs/conf.py", False),
        ("LICENSE.txt", True),
        ("docs/img/logo.png", True),
        (".github/ci_commit_pins/triton.txt", False),
        ("requirements/dev.txt", False),
        ("docs/requirements.txt", False),
        ("tests/golden/plot.png", False),
    ],
)
def test_what_cannot_change_a_test_is_documentation(path: str, expected: bool) -> None:
    assert is_documentation(path) is expected


def test_two_signals_of_one_culprit_are_one_revert() -> None:
    events = events_of(lambda i, _t: i >= 20, commits=28, now=14, extra={20: [12.1] * 3, 19: [12.1] * 3})
    decisions = decide(question(events, events, now=14, commits=28)).decisions
    assert [type(decision) for decision in decisions] == [Revert]
    assert isinstance(decisions[0], Revert)
    assert decisions[0].signals == ("s0", "s1")


def test_two_reverts_that_rules_decide_are_one_revert_too() -> None:
    events = events_of(lambda i, _t: i >= 20, commits=28, now=14, extra={20: [12.1] * 3, 19: [12.1] * 3})
    (decision,) = decide(question(events, events, now=14, commits=28), Policy.RULES).decisions
    assert isinstance(decision, Revert)
    assert (decision.signals, decision.probability) == (("s0", "s1"), None)


def test_what_a_revert_says_of_its_runs_does_not_depend_on_which_signal_came_first() -> None:
    events = events_of(lambda i, _t: i >= 20, commits=28, now=14, extra={20: [12.1] * 3, 19: [12.1] * 3})
    fewer = [event for event in events if event.sha != "c3"]
    told = {
        (decision.failures, decision.successes)
        for signals in ((events, fewer), (fewer, events))
        for decision in decide(question(*signals, now=14, commits=28), Policy.RULES).decisions
        if isinstance(decision, Revert)
    }
    assert told == {(9, 23)}


def test_where_no_run_is_allowed_it_says_so_and_waits_only_for_what_is_under_way() -> None:
    for now, reason in ((12.1, Reason.WAITING), (25.0, Reason.NOT_ENOUGH_EVIDENCE)):
        asked = question(events_of(lambda i, _t: i >= 20, commits=26, now=now), now=now, commits=26)
        decision = one(msgspec.structs.replace(asked, limits=Limits(max_reruns_per_commit=0)))
        assert isinstance(decision, Hold)
        assert (decision.reason, decision.culprit) == (reason, "c20")


def test_one_signal_asks_for_all_whether_the_machines_still_fail() -> None:
    events = events_of(lambda _i, at: 10 <= at < 14, commits=28, now=15, extra={19: [12.1]})
    first, second = decide(question(events, events, now=15, commits=28)).decisions
    assert isinstance(first, Rerun)
    assert [(again.sha, again.count) for again in first.reruns] == [("c19", 1)]
    assert isinstance(second, Hold)
    assert second.reason is Reason.INFRASTRUCTURE
    running = events_of(lambda _i, at: 10 <= at < 14, commits=28, now=15, extra={19: [12.1, 14.9]})
    for decision in decide(question(running, running, now=15, commits=28)).decisions:
        assert isinstance(decision, Hold) or "c19" not in {again.sha for again in decision.reruns}


@pytest.mark.parametrize(("failed", "reason"), [({8, 9, 10}, Reason.FIXED), ({8, 10}, Reason.FLAKY)])
def test_what_has_long_been_sound_was_broken_if_commits_in_a_row_failed(failed: set[int], reason: Reason) -> None:
    decision = one(question(events_of(lambda i, _t: i in failed, commits=40, now=22), now=22, commits=40))
    assert isinstance(decision, Hold)
    assert decision.reason is reason


def test_doubt_begins_where_passes_in_a_row_begin() -> None:
    assert start_of_doubt([1] + [0] * 30, [0] + [1] * 30) == (6, False)
    assert start_of_doubt([0] * 20 + [1] + [0] * 20, [1] * 20 + [0] + [1] * 20) == (0, False)


@pytest.mark.parametrize(("passes", "expected"), [(4, (3, True)), (3, (0, False))])
def test_doubt_begins_behind_a_break_that_was_mended(passes: int, expected: tuple[int, bool]) -> None:
    failures = [2] * 3 + [0] * passes + [1]
    assert start_of_doubt(failures, [0] * 3 + [1] * passes + [0]) == expected
    assert broken_until([2, 2, 2, 0], [0, 0, 0, 0], 2) == [2, 1, 0]
    assert broken_until([1, 1, 2, 0], [0, 0, 0, 0], 2) == []


def test_what_is_told_of_flakes_from_long_ago_counts_as_eighty_runs() -> None:
    asked = question([], now=1, commits=1)
    signal = Signal(key="s", flake_prior=(100.0, 1000.0))
    assert Case(asked, signal, Window.of(asked.commits)).flake_prior == pytest.approx((8.0, 80.0))


def test_no_more_runs_of_a_commit_are_asked_for_than_the_limit_allows() -> None:
    events = events_of(lambda i, _t: i >= 20, commits=26, now=12.1)
    asked = msgspec.structs.replace(
        question(events, now=12.1, commits=26), limits=Limits(max_reruns_per_commit=1, max_reruns_per_decision=8)
    )
    decision = one(asked)
    assert isinstance(decision, Rerun)
    assert all(again.count == 1 for again in decision.reruns)


def test_runs_that_were_lost_count_against_the_limit_of_their_commit() -> None:
    lost = [Event(sha=sha, status=Status.PENDING, started_at=12.1 * HOUR) for sha in ("c19", "c20") for _ in range(2)]
    events = [*events_of(lambda i, _t: i >= 20, commits=26, now=40), *lost]
    asked = question(events, now=40, commits=26)
    decision = one(msgspec.structs.replace(asked, limits=Limits(max_reruns_per_commit=2)))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.NOT_ENOUGH_EVIDENCE


def test_answers_read_as_the_interface_says() -> None:
    events = events_of(lambda i, _t: i >= 20, commits=26, now=12.1)
    document = msgspec.to_builtins(decide(question(events, now=12.1, commits=26)))
    (decision,) = document["decisions"]
    assert decision["decision"] == "rerun"
    assert decision["signal"] == "s0"
    assert set(decision["reruns"][0]) == {"sha", "count"}


@given(st.lists(st.tuples(st.integers(0, 11), st.booleans(), st.floats(0, 30)), max_size=40), st.integers(0, 3))
@settings(max_examples=60)
def test_every_signal_has_exactly_one_decision_whatever_happened(
    runs: list[tuple[int, bool, float]], pending: int
) -> None:
    events = [
        Event(sha=f"c{i}", status=Status.FAILURE if failed else Status.SUCCESS, started_at=at * HOUR)
        for i, failed, at in runs
    ]
    events += [Event(sha=f"c{i}", status=Status.PENDING, started_at=30 * HOUR) for i in range(pending)]
    answer: Answer = decide(question(events, now=31, commits=12))
    assert len(answer.decisions) == 1


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30))
@settings(max_examples=60)
def test_the_explanations_are_all_there_is(counts: list[tuple[int, int]]) -> None:
    failures, passes = (np.array(column, float) for column in zip(*counts, strict=True))
    runs = [(0.5 * i, 1.0, i) for i, n in enumerate(failures) for _ in range(int(n))]
    runs += [(0.5 * i + 0.1, 0.0, i) for i, n in enumerate(passes) for _ in range(int(n))]
    rows = np.array(sorted(runs), float).reshape(-1, 3)
    found = posterior(Evidence(failures, passes, rows, flake_prior=None, priors=np.ones(len(counts))))
    total = found.none + found.burst_over + found.burst_now + found.broken.sum() + found.fixed.sum()
    assert total == pytest.approx(1.0)


def test_a_run_that_never_ends_is_not_waited_for_without_end() -> None:
    events = events_of(lambda i, _t: i == 19, commits=20, now=12, extra={})
    lost = [Event(sha="c19", status=Status.PENDING, started_at=9.6 * HOUR)] * 2
    soon = one(question([*events, *lost], now=12.1, commits=20))
    late = one(question([*events, *lost], now=40, commits=20))
    assert isinstance(soon, Hold)
    assert soon.reason is Reason.WAITING
    assert isinstance(late, Rerun)


def test_reruns_that_were_lost_are_asked_for_again() -> None:
    asked = question(events_of(lambda i, _t: i >= 20, commits=26, now=12.1), now=12.1, commits=26)
    first = one(asked)
    assert isinstance(first, Rerun)
    lost = [
        Event(sha=again.sha, status=Status.PENDING, started_at=12.1 * HOUR)
        for again in first.reruns
        for _ in range(again.count)
    ]
    events = [*events_of(lambda i, _t: i >= 20, commits=26, now=40), *lost]
    assert isinstance(one(question(events, now=13, commits=26)), Hold)
    second = one(question(events, now=40, commits=26))
    assert isinstance(second, Rerun)
    assert second.culprit == first.culprit


def with_prior(asked: Question, prior: tuple[float, float]) -> Question:
    signals = tuple(msgspec.structs.replace(signal, flake_prior=prior) for signal in asked.signals)
    return msgspec.structs.replace(asked, signals=signals)


def test_where_flakes_are_common_a_suspect_must_fail_once_more() -> None:
    """Two failures of one commit are one flake too many in ten thousand at 1 %, and a hundred at 10 %."""
    events = events_of(lambda i, _t: i >= 20, commits=28, now=14, extra={20: [12.1], 19: [12.0, 12.1, 12.2]})
    asked = question(events, now=14, commits=28)
    assert isinstance(one(with_prior(asked, (1.0, 400.0))), Revert)
    decision = one(with_prior(asked, (40.0, 400.0)))
    assert isinstance(decision, Rerun)
    assert decision.culprit == "c20"
    assert "c20" in {again.sha for again in decision.reruns}


def test_failures_of_an_earlier_outage_do_not_hold_up_a_revert() -> None:
    """Commits 16 to 19 failed in an outage from 8.0 to 9.6; commit 21 breaks it."""
    extra = {20: [12.1, 12.2, 12.3], 19: [12.1, 12.2], 21: [12.1] * 3}
    events = events_of(lambda i, at: i >= 21 or 8 <= at < 9.6, commits=28, now=14.1, extra=extra)
    decision = one(question(events, now=14.1, commits=28))
    assert isinstance(decision, Revert)
    assert decision.culprit == "c21"


def runs_at(text: str, *, step: float = 1.0) -> np.ndarray:
    """A run an hour, each of the next commit: `P` or `F`."""
    return np.array([(i * step, float(letter == "F"), i) for i, letter in enumerate(text)], float).reshape(-1, 3)


@pytest.mark.parametrize(
    ("text", "streak", "expected"),
    [
        ("PPPFFFPP", 8, (3.0, 5.0)),
        ("PFPFFFPP", 8, (3.0, 5.0)),
        ("PFFPFFFFPP", 10, (4.0, 7.0)),
        ("PPPFPPPFPP", 10, None),  # flakes
        ("PPPFPPFFFF", 6, None),  # what the break may have failed is no outage
        ("", 0, None),
    ],
)
def test_an_outage_is_the_stretch_of_most_failures_on_older_commits(
    text: str, streak: int, expected: tuple[float, float] | None
) -> None:
    assert outage_of(runs_at(text), streak) == expected


def test_an_outage_is_less_probable_the_longer_it_lasts_and_the_more_passes_in_it() -> None:
    inside, short = left_to_an_outage(runs_at("PFFP"), (1.0, 2.0), 1.0)
    assert inside[:, 0].tolist() == [1.0, 2.0]
    _, long = left_to_an_outage(runs_at("PFFP", step=3.0), (3.0, 6.0), 1.0)
    assert long - short == pytest.approx(2 * np.log1p(-BURST_END_HAZARD))
    share = (BURST_WEIGHTS * BURST_STRENGTHS**2).sum()
    assert short == pytest.approx(np.log(BURST_HAZARD / BURST_END_HAZARD * share) + np.log1p(-BURST_END_HAZARD))
    _, likelier = left_to_an_outage(runs_at("PFFP"), (1.0, 2.0), 10.0)
    assert likelier - short == pytest.approx(np.log(10.0))
    _, with_a_pass = left_to_an_outage(runs_at("PFPF"), (1.0, 3.0), 1.0)
    assert with_a_pass < short


@pytest.mark.parametrize(
    ("failures", "passes", "expected"),
    [([1, 0, 1, 1], [0, 1, 0, 0], 2), ([1, 1], [1, 0], 1), ([1, 0], [0, 1], 2), ([0, 1], [0, 0], 1)],
)
def test_a_streak_begins_with_the_oldest_failure_after_the_last_pass(
    failures: list[float], passes: list[float], expected: int
) -> None:
    assert streak_of(np.array(failures), np.array(passes)) == expected


def test_a_suspect_that_failed_in_an_outage_only_runs_again_before_it_is_reverted() -> None:
    """The machines fail from 9.9 to 12.15; commit 21 breaks it; 20 failed before the outage ended, 19 passed after."""

    def fails(commit: int, at: float) -> bool:
        return commit >= 21 or 9.9 <= at < 12.15

    early = {20: [11.0, 12.1, 12.12], 19: [11.9, 12.3, 12.35, 12.4]}
    events = events_of(fails, commits=29, now=14.4, extra=early)
    decision = one(question(events, now=14.4, commits=29))
    assert not isinstance(decision, Revert)
    later = {**early, 20: [*early[20], 14.5, 14.52], 21: [14.5, 14.52]}
    events = events_of(fails, commits=33, now=16.2, extra=later)
    decision = one(question(events, now=16.2, commits=33))
    assert not (isinstance(decision, Revert) and decision.culprit == "c20")


def test_no_more_than_three_runs_of_a_commit_are_asked_for_at_once() -> None:
    flaky = events_of(lambda i, _t: i >= 20 or i % 3 == 0, commits=28, now=13.1)
    decision = one(question(flaky, now=13.1, commits=28))
    assert isinstance(decision, Rerun)
    assert [again.count for again in decision.reruns] == [3, 3]


def test_a_second_break_after_the_first_was_mended_is_found() -> None:
    """Commits 8 to 15 are broken, 16 to 21 are sound, 22 breaks it again."""

    def fails(commit: int, _at: float) -> bool:
        return 8 <= commit < 16 or commit >= 22

    extra = {22: [13.2, 13.3], 21: [13.2, 13.3]}
    decision = one(question(events_of(fails, commits=30, now=15, extra=extra), now=15, commits=30))
    assert isinstance(decision, Revert)
    assert decision.culprit == "c22"


def test_what_was_broken_and_mended_does_not_count_as_flakes() -> None:
    events = events_of(lambda i, _t: 4 <= i < 16 or i == 26, commits=30, now=16)
    decision = one(question(events, now=16, commits=30))
    assert isinstance(decision, Hold | Rerun)
    assert not isinstance(decision, Revert)
    assert decision.probability is not None


def test_a_break_that_is_mended_and_quiet_since_is_fixed() -> None:
    events = events_of(lambda i, _t: 10 <= i < 16, commits=28, now=15.6)
    decision = one(question(events, now=15.6, commits=28))
    assert isinstance(decision, Hold)
    assert decision.reason is Reason.FIXED


def test_a_parent_that_passed_twice_may_still_be_a_culprit_that_fails_most_of_its_runs() -> None:
    """A break that fails 80 % of its runs passes twice in 4 % of cases: the parent runs once more."""
    events = events_of(lambda i, _t: i >= 20, commits=26, now=13.8, extra={20: [12.1, 12.15], 19: [12.12]})
    decision = one(question(events, now=13.8, commits=26))
    assert isinstance(decision, Rerun)
    assert {again.sha for again in decision.reruns} == {"c19"}
    events = events_of(lambda i, _t: i >= 20, commits=26, now=13.8, extra={20: [12.1, 12.15], 19: [12.12, 12.13]})
    assert isinstance(one(question(events, now=13.8, commits=26)), Revert)


def test_failures_that_passes_lie_between_are_flakes_also_while_something_else_fails() -> None:
    """Single reds of a flaky job, each green when repeated, beside a job that was red for a while, twice."""

    def ran(commit: int, hour: float, status: Status) -> Event:
        return Event(sha=f"c{commit}", status=status, started_at=hour * HOUR, ended_at=(hour + 0.1) * HOUR)

    def hourly(red: set[int]) -> list[Event]:
        return [ran(i, i, Status.FAILURE if i in red else Status.SUCCESS) for i in range(60)]

    flaky = hourly({9, 23, 33, 37, 47}) + [ran(i, i + 1.1, Status.SUCCESS) for i in (9, 23, 33, 37, 47)]
    asked = question(flaky, hourly({0, 1, 2, 40, 41, 42}), now=60, commits=60)
    signals = (msgspec.structs.replace(asked.signals[0], flake_prior=(34.0, 374.0)), asked.signals[1])
    found = decide(msgspec.structs.replace(asked, signals=signals)).decisions
    reasons = {each.signal: each.reason for each in found if isinstance(each, Hold)}
    assert reasons["s0"] is Reason.FLAKY


@pytest.mark.parametrize("seed", [10, 37, 58, 92, 135])
def test_many_signals_that_fail_in_one_outage_accuse_no_commit(seed: int) -> None:
    """Each failed run is repeated with 40 %. That others fail too had spoken for a break and an outage at once."""
    draw = random.Random(seed)
    first = draw.randint(38, 44)
    begin = (first + draw.random()) / 2
    end = begin + draw.choice([1, 2, 4])
    flakes = draw.choice([0.0, 0.01, 0.05])
    runs: list[list[tuple[int, float, bool]]] = [[] for _ in range(20)]
    for i in range(60):
        for ran in runs:
            at = i / 2 + draw.random() / 6
            for _ in range(3):
                failed = begin <= at < end or draw.random() < flakes
                ran.append((i, at, failed))
                if not failed or draw.random() < 0.6:
                    break
                at += 1.2
    for later in (3, 5, 8, 12, 16):
        now = (first + later) / 2
        signals = [
            [
                Event(
                    sha=f"c{i}",
                    status=Status.PENDING if at + 1 > now else (Status.FAILURE if failed else Status.SUCCESS),
                    started_at=at * HOUR,
                    ended_at=(at + 1) * HOUR if at + 1 <= now else None,
                )
                for i, at, failed in ran
                if at <= now
            ]
            for ran in runs
        ]
        found = decide(question(*signals, now=now, commits=first + later + 1)).decisions
        assert not [each for each in found if isinstance(each, Revert)]
