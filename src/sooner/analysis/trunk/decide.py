"""What to do about each signal: revert, run again, or hold. Pure: time arrives in the question.

A revert needs a posterior of `Limits.revert_probability` for one commit. Short of that the runs are asked for which
would lead there in one round if the suspect is the culprit: the suspect fails again, its parent passes again, both
while the machines are what they are now. Runs that are under way count as if they ended as expected, so nothing is
asked for twice.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
import numpy as np

from sooner.analysis.trunk.asking import HALF_SURE, SPREAD, can_wait, is_settled, probe, reruns
from sooner.analysis.trunk.case import Case, Window, is_documentation, suspect_of, suspicion_of
from sooner.analysis.trunk.facts import (
    Answer,
    Commit,
    Decision,
    Hold,
    Policy,
    Question,
    Reason,
    Rerun,
    Revert,
    Signal,
)
from sooner.analysis.trunk.outages import Array
from sooner.analysis.trunk.posterior import BREAK_HAZARD, Posterior
from sooner.analysis.trunk.rules import decide_by_rules
from sooner.analysis.trunk.walks import posteriors

__all__ = ["decide", "is_documentation", "suspicion_of"]

LOOK_CLOSER: Final = 0.05
"""From this probability of a break on, while flakes are likelier, runs may be spent on it."""
LOOK_PAST: Final = 0.12
"""The same while something else than flakes is likelier, an outage above all."""
ELSEWHERE: Final = 0.3
"""Of commits that break one signal, the share that breaks another given one; signals are never taken as independent."""
BURST_ELSEWHERE: Final = 300.0
"""How much more probable a burst of the machines is while another signal shows one; as much of a rise as `ELSEWHERE`
gives a break, or what fails together would always be a commit's fault."""
MENDED: Final = 0.1
"""Above this probability that the break is mended already nothing is reverted."""


def decide(question: Question, policy: Policy = Policy.BAYES) -> Answer:
    """Decide about every signal of a question.

    Of a commit that stands in it twice the newest place counts; a signal that does has the events of both places, each
    once: taken for two signals it would bear witness for itself.
    """
    once: dict[str, Commit] = {}
    for commit in question.commits:
        once.setdefault(commit.sha, commit)
    question = msgspec.structs.replace(question, commits=tuple(once.values()), signals=_once(question.signals))
    if policy is Policy.RULES:
        found: list[Decision] = [decide_by_rules(question, signal) for signal in question.signals]
    else:
        found = list(_decide_by_posterior(question))
    return Answer(id=question.id, decisions=tuple(_together(found)))


def _once(signals: Sequence[Signal]) -> tuple[Signal, ...]:
    found: dict[str, Signal] = {}
    for signal in signals:
        known = found.get(signal.key)
        if known is not None:
            events = tuple(dict.fromkeys((*known.events, *signal.events)))
            signal = msgspec.structs.replace(known, events=events)  # noqa: PLW2901 - both are this signal
        found[signal.key] = signal
    return tuple(found.values())


def _decide_by_posterior(question: Question) -> Iterator[Decision]:
    window = Window.of(question.commits)
    cases: list[Case] = []
    for signal in question.signals:
        case = Case(question, signal, window)
        if case.is_sound:
            yield _sound(case)
        else:
            cases.append(case)
    yield from _led(_pooled(_weigh_all(cases)))


def _weigh_all(cases: Sequence[Case]) -> list[tuple[Case, Posterior]]:
    found = posteriors([case.evidence() for case in cases])
    return [(case, case.weighed(one)) for case, one in zip(cases, found, strict=True)]


def _led(cases: Sequence[tuple[Case, Posterior]]) -> Iterator[Decision]:
    """Conclude; of signals that suspect the same commit one runs again, and the others wait for what it tells.

    That is the one with the most runs of the suspect and its parent, so that it stays the same one; of several that are
    alike the one whose key comes first, in whatever order they are told.
    """
    groups: dict[int, list[tuple[Case, Posterior]]] = {}
    for case, found in cases:
        groups.setdefault(suspect_of(found), []).append((case, found))
    for place, group in groups.items():
        group.sort(key=lambda one: (-one[0].runs_about(place), -one[1].guilt(place), one[0].signal.key))
        leading = ""
        for case, found in group:
            decision = _conclude(case, found, leading if place else "")
            yield decision
            if isinstance(decision, Revert):
                leading = f"the revert for {case.signal.key} tells whether it is the same commit"
            elif not leading and (isinstance(decision, Rerun) or _is_waiting(decision)):
                leading = f"runs of {case.signal.key} tell whether it is the same commit"


def _is_waiting(decision: Decision) -> bool:
    return isinstance(decision, Hold) and decision.reason is Reason.WAITING


def _sound(case: Case) -> Hold:
    """Everything has passed for long: what failed before is told apart by whether it failed on several commits."""
    if not case.failing:
        return _without_failures(case)
    ran = np.flatnonzero(case.failures + case.passes)
    streak = bool(((case.failures[ran[1:]] > 0) & (case.failures[ran[:-1]] > 0)).any())
    reason, detail = (Reason.FIXED, "broken and fixed") if streak else (Reason.FLAKY, "single failures, passes since")
    return Hold(signal=case.signal.key, reason=reason, detail=detail)


def _without_failures(case: Case) -> Hold:
    """Nothing failed; what never ended has not passed either."""
    reason, detail = Reason.PASSING, "no failure in the window"
    if not case.passes.any():
        known = {commit.sha for commit in case.commits}
        runs = sum(event.sha in known for event in case.signal.events)  # none of them has ended
        reason, detail = Reason.NOT_ENOUGH_EVIDENCE, "it did not run in the window"
        if runs:
            reason, detail = Reason.WAITING, f"no run has ended yet, {runs} under way"
    return Hold(signal=case.signal.key, reason=reason, detail=detail)


def _pooled(cases: list[tuple[Case, Posterior]]) -> list[tuple[Case, Posterior]]:
    """Let signals learn from each other: of all others only the one that says it most clearly counts."""
    if len(cases) < 2:  # noqa: PLR2004 - there is no other
        return cases
    broken = np.array([found.broken for _, found in cases])
    burst = np.array([found.burst_now + found.burst_over for _, found in cases])
    first, second = _two_highest(broken)
    burst_first, burst_second = _two_highest(burst)
    learning: list[int] = []
    for k, (case, found) in enumerate(cases):
        others = np.where(broken[k] >= first, second, first)
        others[0] = 0.0
        at_once = float(burst_second if burst[k] >= burst_first else burst_first)
        raised = float((found.broken * others).max()) * ELSEWHERE / BREAK_HAZARD
        if raised < SPREAD and at_once * (found.burst_now + found.none) < SPREAD:
            continue
        rise = ELSEWHERE * others / BREAK_HAZARD
        case.priors = case.priors + rise
        case.burst_factor = 1.0 + BURST_ELSEWHERE * at_once
        # Others show a break or an outage; that they show this one's is no reason to believe in both at once.
        case.beside_factor = max(1.0, case.burst_factor / (1.0 + float(rise.max())))
        learning.append(k)
    again = _weigh_all([cases[k][0] for k in learning])
    for k, weighed in zip(learning, again, strict=True):
        cases[k] = weighed
    return cases


def _two_highest(values: Array) -> tuple[Array, Array]:
    ordered = np.sort(values, axis=0)
    return ordered[-1], ordered[-2]


def _conclude(case: Case, found: Posterior, leading: str = "") -> Decision:
    """Decide about one signal; what another one that leads is already asked, is not asked of this one."""
    key = case.signal.key
    broken = float(found.broken[1:].sum())
    place = suspect_of(found)
    if found.broken[0] > max(broken, 0.5):
        return Hold(signal=key, reason=Reason.ALREADY_BROKEN, detail="broken since before the window began")
    if not place:
        return _alone(case, found)
    probability, culprit = found.guilt(place), case.commits[place].sha
    if is_settled(case, found, place) and found.fixed[place] < MENDED:
        return _revert(case, place, probability)
    if broken < (LOOK_CLOSER if found.none > HALF_SURE else LOOK_PAST):
        return (None if leading else probe(case, found)) or _quiet(case, found)
    if leading:
        return Hold(signal=key, reason=Reason.WAITING, detail=leading, culprit=culprit, probability=probability)
    if can_wait(case, found, place):
        detail = "runs that are under way tell soon"
        return Hold(signal=key, reason=Reason.WAITING, detail=detail, culprit=culprit, probability=probability)
    wanted = reruns(case, found, place)
    if wanted:
        reason = f"{probability:.1%} for the suspect: these runs tell most"
        return Rerun(signal=key, reruns=wanted, reason=reason, culprit=culprit, probability=probability)
    if case.pending:
        detail = f"{len(case.pending)} runs are under way"
        return Hold(signal=key, reason=Reason.WAITING, detail=detail, culprit=culprit, probability=probability)
    detail = "no run that is still allowed would tell more"
    return Hold(signal=key, reason=Reason.NOT_ENOUGH_EVIDENCE, detail=detail, culprit=culprit, probability=probability)


def _revert(case: Case, place: int, probability: float) -> Revert:
    failures, successes = int(case.failures[place:].sum()), int(case.passes[:place].sum())
    return Revert(
        signals=(case.signal.key,),
        culprit=case.commits[place].sha,
        probability=probability,
        reason=f"{failures} failures from it on, {successes} successes before it",
        failures=failures,
        successes=successes,
    )


def _alone(case: Case, found: Posterior) -> Hold:
    """A window of one commit: only passes of its own tell flakes from what was broken before."""
    if case.passes.sum():
        return _quiet(case, found)
    detail = "there is no older commit to compare with"
    return Hold(signal=case.signal.key, reason=Reason.NOT_ENOUGH_EVIDENCE, detail=detail)


def _quiet(case: Case, found: Posterior) -> Hold:
    """Nothing is broken now: say what the failures were."""
    shares = {
        Reason.FLAKY: (found.none, f"flakes, about {found.flake_rate:.1%} of runs"),
        Reason.FIXED: (float(found.fixed.sum()), "broken and fixed"),
        Reason.INFRASTRUCTURE: (found.burst_over + found.burst_now, "failures follow the time, not the commit"),
        Reason.ALREADY_BROKEN: (float(found.broken[0]), "broken since before the window began"),
    }
    failed = [has_failed for _, has_failed, _ in case.runs]
    if not any(map(min, failed, failed[1:])):  # failures that passes lie between are no outage
        shares[Reason.FLAKY] = (found.none + shares.pop(Reason.INFRASTRUCTURE)[0], shares[Reason.FLAKY][1])
    reason = max(shares, key=lambda one: shares[one][0])
    probability, detail = shares[reason]
    return Hold(signal=case.signal.key, reason=reason, detail=detail, probability=round(probability, 4))


def _together(decisions: Sequence[Decision]) -> Iterator[Decision]:
    """Reverts of one commit are one revert, with what is said of the surest signal, else of the one with most runs."""
    reverts: dict[str, Revert] = {}
    rest: list[Decision] = []
    for decision in decisions:
        if not isinstance(decision, Revert):
            rest.append(decision)
            continue
        known = reverts.get(decision.culprit)
        reverts[decision.culprit] = decision if known is None else _joined(known, decision)
    yield from reverts.values()
    yield from rest


def _joined(one: Revert, other: Revert) -> Revert:
    best = max(one, other, key=lambda revert: (revert.probability or 0, revert.failures, revert.successes))
    return Revert(
        signals=(*one.signals, *other.signals),
        culprit=one.culprit,
        probability=best.probability,
        reason=best.reason,
        failures=best.failures,
        successes=best.successes,
    )
