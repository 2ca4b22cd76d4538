"""Simulated trunks, and how policies are scored on them."""

import pytest

from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import Answer, Hold, Policy, Question, Reason, Revert, Status
from sooner.analysis.trunk.scores import reliability, score, wilson
from sooner.analysis.trunk.simulate import SCENARIOS, Ending, Scenario, Verdict, simulate

SURE = Scenario(name="sure", flake_rate=0.01)


def test_the_same_seed_gives_the_same_trunk() -> None:
    assert simulate(SURE, decide, 3) == simulate(SURE, decide, 3)


def test_the_posterior_finds_the_culprit_of_an_easy_trunk() -> None:
    endings = [simulate(SURE, decide, seed) for seed in range(8)]
    assert {one.verdict for one in endings} == {Verdict.RIGHT}


def test_the_rules_decide_too() -> None:
    endings = [simulate(SURE, lambda question: decide(question, Policy.RULES), seed) for seed in range(8)]
    assert sum(one.verdict is Verdict.RIGHT for one in endings) >= 6


def test_nobody_is_reverted_for_an_outage() -> None:
    scenario = Scenario(name="outage", burst_h=3, has_culprit=False)
    assert all(simulate(scenario, decide, seed).verdict is Verdict.RIGHT for seed in range(6))


def test_what_ci_repeats_by_itself_is_seen_once_the_failure_before_it_has_ended() -> None:
    scenario = Scenario(name="repeated", burst_h=3, has_culprit=False, signals=2, repeated=1.0)
    seen: list[int] = []

    def look(question: Question) -> Answer:
        for signal in question.signals:
            runs = {(one.sha, one.attempt): one for one in signal.events}
            for (sha, attempt), one in runs.items():
                if attempt > 1:
                    before = runs[sha, attempt - 1]
                    assert before.status is Status.FAILURE
                    assert before.ended_at is not None
                    assert one.started_at is not None
                    assert before.ended_at <= min(one.started_at, question.now)
                    seen.append(attempt)
        return Answer(id=None, decisions=())

    simulate(scenario, look, 4)
    assert set(seen) == {2, 3}


def test_a_policy_that_always_accuses_the_newest_commit_is_wrong() -> None:
    def accuse(question: Question) -> Answer:
        revert = Revert(signals=("signal-0",), culprit=question.commits[0].sha, probability=1.0, reason="a whim")
        return Answer(id=None, decisions=(revert,))

    assert simulate(SURE, accuse, 0).verdict is Verdict.WRONG


def test_a_policy_that_never_speaks_has_no_verdict() -> None:
    hold = Answer(id=None, decisions=(Hold(signal="signal-0", reason=Reason.PASSING),))
    assert simulate(SURE, lambda _question: hold, 0).verdict is Verdict.NONE


def test_several_culprits_must_all_be_found() -> None:
    scenario = Scenario(name="two", signals=2, culprits=2)
    ending = simulate(scenario, decide, 1)
    assert ending.verdict is Verdict.RIGHT
    assert len(ending.stated) == 2


def test_scenarios_have_names_of_their_own() -> None:
    assert len({one.name for one in SCENARIOS}) == len(SCENARIOS)


def test_a_score_counts_verdicts_and_precision() -> None:
    endings = [
        Ending(verdict=Verdict.RIGHT, hours=4.0, reruns=2, stated=((0.999, True),)),
        Ending(verdict=Verdict.WRONG, hours=None, reruns=4, stated=((0.999, False),)),
    ]
    found = score(endings)
    assert (found.right, found.wrong, found.none, found.median_hours, found.mean_reruns) == (0.5, 0.5, 0.0, 4.0, 3.0)
    assert found.precision == 0.5


def test_reliability_sets_what_was_stated_beside_what_was_right() -> None:
    rows = reliability([(0.9992, True)] * 99 + [(0.9992, False)])
    assert [(row.reverts, row.right) for row in rows] == [(100, 0.99)]
    assert rows[0].right_low < 0.99 < rows[0].right_high


def test_the_interval_of_a_share_is_wilsons() -> None:
    low, high = wilson(8, 10)
    assert (low, high) == (pytest.approx(0.4902, abs=1e-4), pytest.approx(0.9433, abs=1e-4))


def test_signals_may_flake_differently() -> None:
    scenario = Scenario(name="spread", flake_rate=0.05, spread=1.0, signals=6)
    seen: list[Question] = []

    def watch(question: Question) -> Answer:
        seen.append(question)
        return Answer(id=None, decisions=())

    simulate(scenario, watch, 1)
    shares = [
        sum(event.status == "failure" for event in signal.events) / len(signal.events)
        for signal in seen[40].signals[6:]
    ]
    assert max(shares) > 3 * min(shares)
