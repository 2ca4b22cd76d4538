"""What to do about each signal: revert, run again, or hold. Pure: time arrives in the question.

A revert needs a posterior of `Limits.revert_probability` for one commit. Short of that the runs are asked for which
would lead there in one round if the suspect is the culprit: the suspect fails again, its parent passes again, both
while the machines are what they are now. Runs that are under way count as if they ended as expected, so nothing is
asked for twice.
"""

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from sooner.analysis.trunk.facts import (
    Again,
    Answer,
    Commit,
    Decision,
    Event,
    Hold,
    Policy,
    Question,
    Reason,
    Rerun,
    Revert,
    Signal,
    Status,
)
from sooner.analysis.trunk.posterior import BREAK_HAZARD, FLAKE_PRIOR_RUNS, Array, Posterior, posterior
from sooner.analysis.trunk.rules import decide_by_rules

LOOK_CLOSER: Final = 0.12
"""From this probability of a break on, runs are spent on it; below, the next commits' own runs tell soon enough."""
LIKELY: Final = 0.2
"""Below this probability of a break `FIRST_RUNS` are enough for a start."""
HALF_SURE: Final = 0.5
"""Below this probability of a break a gap of untested commits is not searched."""
FIRST_RUNS: Final = (1, 1)
"""Of the suspect and of its parent."""
DOCUMENTATION: Final = 0.005
"""How suspect a commit is that changes nothing but documentation, beside any other."""
BEFORE_WINDOW: Final = 4.0
"""How much more probable it is that the signal broke somewhere before the window than at one commit of it."""
ELSEWHERE: Final = 0.3
"""Of commits that break one signal, the share that breaks another given one; signals are never taken as independent."""
BURST_ELSEWHERE: Final = 40.0
"""How much more probable a burst of the machines is while another signal shows one."""
MENDED: Final = 0.1
"""Above this probability that the break is mended already nothing is reverted."""
SPREAD: Final = 0.04
"""A commit is a candidate from this share of the leading one's probability on."""
SOUND_RUNS: Final = 25
"""Passes in a row, newest commits first, from which on nothing older can be what is broken now."""
OUTAGE_BEFORE: Final = 0.02
"""Share of suspects that failed in an outage only, while a newer commit broke the signal."""
AT_ONCE_H: Final = 0.5
"""Runs that start within half an hour see the same machines."""
_DOCUMENTS: Final = (".md", ".rst", ".txt", ".adoc", ".png", ".svg", ".jpg", ".gif")
_DOCUMENT_NAMES: Final = frozenset({"license", "notice", "codeowners", "authors", "citation.cff", ".mailmap"})
_NOT_DOCUMENTS: Final = frozenset({"requirements.txt", "constraints.txt", "cmakelists.txt"})


def decide(question: Question, policy: Policy = Policy.BAYES) -> Answer:
    """Decide about every signal of a question."""
    if policy is Policy.RULES:
        found: list[Decision] = [decide_by_rules(question, signal) for signal in question.signals]
    else:
        found = list(_decide_by_posterior(question))
    return Answer(id=question.id, decisions=tuple(_together(found)))


def is_documentation(path: str) -> bool:
    """Whether a path cannot change what a test sees; when in doubt it can."""
    name = path.rsplit("/", 1)[-1].lower()
    if name in _NOT_DOCUMENTS or name.startswith("requirements"):
        return False
    return name.endswith(_DOCUMENTS) or name in _DOCUMENT_NAMES


class Window(NamedTuple):
    """The commits of a question, as all of its signals see them."""

    commits: tuple[Commit, ...]
    """Oldest first."""
    places: dict[str, int]
    suspicion: Array

    @classmethod
    def of(cls, commits: Sequence[Commit]) -> "Window":
        """Turn them around."""
        oldest_first = tuple(commits[::-1])
        places = {commit.sha: i for i, commit in enumerate(oldest_first)}
        return cls(oldest_first, places, np.array([suspicion_of(commit) for commit in oldest_first]))


class Case:
    """One signal over the commits of a question, oldest first.

    What lies before `SOUND_RUNS` passes in a row is of no other use than to tell the flake rate: of a break that fails
    half of its runs one in thirty million would pass so often.
    """

    def __init__(self, question: Question, signal: Signal, window: Window) -> None:
        self.signal = signal
        self.commits, place, _ = window
        self.limits = question.limits
        failures, passes = [0.0] * len(place), [0.0] * len(place)
        self._known: list[Event] = []
        for event in signal.events:
            i = place.get(event.sha)
            if i is None:
                continue
            self._known.append(event)
            if event.status is not Status.PENDING:
                (failures if event.status is Status.FAILURE else passes)[i] += 1
        self.failures, self.passes = np.array(failures), np.array(passes)
        self.start = self._start_of_doubt(failures, passes)
        """The first commit that may have broken what is broken now."""
        self.is_sound = not any(failures[self.start :])
        """Nothing failed since `SOUND_RUNS` passes in a row."""
        self.burst_factor = 1.0
        self.runs: list[tuple[float, float]] = []
        self.done: list[tuple[int, float, float]] = []
        """Runs as (place, hour of the start, 1 for failed)."""
        self.pending: list[tuple[int, float]] = []
        self._old_runs = 0
        if not self.is_sound:
            self._look_closer(question, window)

    def _look_closer(self, question: Question, window: Window) -> None:
        _, place, suspicion = window
        self._known.sort(key=lambda event: event.started_at)
        for event in self._known:
            i, hour = place[event.sha], event.started_at / 3600
            if event.status is Status.PENDING:
                self.pending.append((i, hour))
                continue
            has_failed = float(event.status is Status.FAILURE)
            self.runs.append((hour, has_failed))
            self.done.append((i, hour, has_failed))
        self.now = question.now / 3600
        self.priors = suspicion.copy()
        for sha, factor in self.signal.priors.items():
            if sha in place:
                self.priors[place[sha]] *= factor
        if len(self.priors):
            self.priors[0] = max(self.priors[0], 1.0) * BEFORE_WINDOW
        if self.start:
            first = min((hour for i, hour, _ in self.done if i >= self.start), default=float("inf"))
            self._old_runs = bisect_left([hour for hour, _ in self.runs], first)

    @staticmethod
    def _start_of_doubt(failures: Sequence[float], passes: Sequence[float]) -> int:
        in_a_row = 0.0
        for i in range(len(failures) - 1, -1, -1):
            in_a_row = 0.0 if failures[i] else in_a_row + passes[i]
            if in_a_row >= SOUND_RUNS:
                return i
        return 0

    @property
    def flake_prior(self) -> tuple[float, float]:
        """Failures and runs that tell the flake rate and nothing else."""
        failures, runs = self.signal.flake_prior or (0.0, 0.0)
        share = min(1.0, FLAKE_PRIOR_RUNS / runs) if runs else 0.0
        old = float(self.failures[: self.start].sum())
        return failures * share + old, runs * share + old + float(self.passes[: self.start].sum())

    def weigh(self, extra: Sequence[tuple[int, float, float]] = ()) -> Posterior:
        """Probabilities of the explanations, with further runs (place, hour of the start, 1 for failed)."""
        start = self.start
        failures, passes = self.failures[start:].copy(), self.passes[start:].copy()
        for i, _, failed in extra:
            if i >= start:
                (failures if failed else passes)[i - start] += 1
        runs = sorted([*self.runs[self._old_runs :], *((hour, failed) for _, hour, failed in extra)])
        found = posterior(
            failures,
            passes,
            np.array(runs).reshape(-1, 2),
            flake_prior=self.flake_prior,
            priors=self.priors[start:],
            burst_factor=self.burst_factor,
        )
        return self._apart_in_time(found.after(start), [*self.done, *extra])

    @staticmethod
    def _apart_in_time(found: Posterior, runs: Sequence[tuple[int, float, float]]) -> Posterior:
        """Let an outage over the suspect, before a break by a newer commit, be an explanation too.

        It is none if the suspect failed once more after an older commit had passed again.
        """
        place = int(found.broken[1:].argmax()) + 1 if len(found.broken) > 1 else 0
        first = min((hour for i, hour, failed in runs if failed and i >= place), default=None)
        if not place or first is None:
            return found
        again = min((hour for i, hour, failed in runs if not failed and i < place and hour > first), default=None)
        if again is None or any(failed and i == place and hour >= again - AT_ONCE_H for i, hour, failed in runs):
            return found
        return found.doubted(place, OUTAGE_BEFORE)

    def expected(self, culprit: int) -> list[tuple[int, float, float]]:
        """The runs that are under way, as they end if this commit is the culprit."""
        return [(i, hour, float(i >= culprit)) for i, hour in self.pending]

    def runs_left(self, place: int) -> int:
        """How often a commit may run again."""
        under_way = sum(i == place for i, _ in self.pending)
        done = int(self.failures[place] + self.passes[place]) + under_way
        return max(0, self.limits.max_reruns_per_commit + (1 if done else 0) - done)


def _decide_by_posterior(question: Question) -> Iterator[Decision]:
    window = Window.of(question.commits)
    cases: list[tuple[Case, Posterior]] = []
    for signal in question.signals:
        if not any(event.status is Status.FAILURE for event in signal.events):
            yield Hold(signal=signal.key, reason=Reason.PASSING, detail="no failure in the window")
            continue
        case = Case(question, signal, window)
        if case.is_sound:
            yield _sound(case)
        else:
            cases.append((case, case.weigh()))
    for case, found in _pooled(cases):
        yield _conclude(case, found)


def _sound(case: Case) -> Hold:
    """Everything has passed for long: what failed before is told apart by whether it failed on several commits."""
    failing = [i for i in range(len(case.failures)) if case.failures[i] or case.passes[i]]
    streak = any(case.failures[a] and case.failures[b] for a, b in itertools.pairwise(failing))
    if not case.failures.any():
        return Hold(signal=case.signal.key, reason=Reason.PASSING, detail="no failure in the window")
    reason, detail = (Reason.FIXED, "broken and fixed") if streak else (Reason.FLAKY, "single failures, passes since")
    return Hold(signal=case.signal.key, reason=reason, detail=detail)


def suspicion_of(commit: Commit) -> float:
    """How suspect a commit is before anything ran, beside any other."""
    if commit.files is None:
        return 1.0
    return DOCUMENTATION if all(map(is_documentation, commit.files)) else 1.0


def _pooled(cases: Sequence[tuple[Case, Posterior]]) -> Iterator[tuple[Case, Posterior]]:
    """Let signals learn from each other: of all others only the one that says it most clearly counts."""
    if len(cases) < 2:  # noqa: PLR2004 - there is no other
        yield from cases
        return
    broken = np.array([found.broken for _, found in cases])
    burst = np.array([found.burst_now for _, found in cases])
    first, second = _two_highest(broken)
    burst_first, burst_second = _two_highest(burst)
    for k, (case, found) in enumerate(cases):
        others = np.where(broken[k] >= first, second, first)
        others[0] = 0.0
        at_once = float(burst_second if burst[k] >= burst_first else burst_first)
        raised = float((found.broken * others).max()) * ELSEWHERE / BREAK_HAZARD
        if raised < SPREAD and at_once * (found.burst_now + found.none) < SPREAD:
            yield case, found
            continue
        case.priors = case.priors + ELSEWHERE * others / BREAK_HAZARD
        case.burst_factor = 1.0 + BURST_ELSEWHERE * at_once
        yield case, case.weigh()


def _two_highest(values: Array) -> tuple[Array, Array]:
    ordered = np.sort(values, axis=0)
    return ordered[-1], ordered[-2]


def _conclude(case: Case, found: Posterior) -> Decision:
    key = case.signal.key
    broken = float(found.broken[1:].sum())
    place = int(found.broken[1:].argmax()) + 1 if len(found.broken) > 1 else 0
    if not place or found.broken[0] > max(broken, 0.5):
        return Hold(signal=key, reason=Reason.ALREADY_BROKEN, detail="broken since before the window began")
    probability, culprit = found.guilt(place), case.commits[place].sha
    if probability >= case.limits.revert_probability and found.fixed[place] < MENDED:
        return _revert(case, place, probability)
    if broken < LOOK_CLOSER:
        return _quiet(case, found)
    reruns = _reruns(case, found, place)
    if reruns:
        reason = f"{probability:.1%} for the suspect: these runs would settle it"
        return Rerun(signal=key, reruns=reruns, reason=reason, culprit=culprit, probability=probability)
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


def _quiet(case: Case, found: Posterior) -> Hold:
    """Nothing is broken now: say what the failures were."""
    shares = {
        Reason.FLAKY: (found.none, f"flakes, about {found.flake_rate:.1%} of runs"),
        Reason.FIXED: (float(found.fixed.sum()), "broken and fixed"),
        Reason.INFRASTRUCTURE: (found.burst_over + found.burst_now, "failures follow the time, not the commit"),
        Reason.ALREADY_BROKEN: (float(found.broken[0]), "broken since before the window began"),
    }
    if case.failures.sum() < 2:  # noqa: PLR2004 - one failure is no outage
        shares[Reason.FLAKY] = (found.none + shares.pop(Reason.INFRASTRUCTURE)[0], shares[Reason.FLAKY][1])
    reason = max(shares, key=lambda one: shares[one][0])
    probability, detail = shares[reason]
    return Hold(signal=case.signal.key, reason=reason, detail=detail, probability=round(probability, 4))


# What to run


def _reruns(case: Case, found: Posterior, place: int) -> tuple[Again, ...]:
    """The runs that would settle it in one round, as far as limits let them."""
    wanted: dict[int, int] = {}
    most = case.limits.max_reruns_per_decision
    gap = _untested(case, found)
    if gap and float(found.broken[1:].sum()) < HALF_SURE:
        gap = _first_failing(case, gap[-1])
    for i in gap:
        if case.runs_left(i) and len(wanted) < most:
            wanted[i] = 1
    if not wanted:
        _confirm(case, place, wanted, most)
    return tuple(Again(case.commits[i].sha, wanted[i]) for i in sorted(wanted, reverse=True))


def _first_failing(case: Case, after: int) -> list[int]:
    """The oldest failing commit behind a gap, if it is not running: a flake is told before a gap is searched."""
    failing = next((i for i in range(after + 1, len(case.failures)) if case.failures[i]), None)
    return [] if failing is None or any(i == failing for i, _ in case.pending) else [failing]


MOST_OF_GAP: Final = 4
"""Untested commits that run at once: with four, a gap of 24 commits is closed in two rounds."""


def _untested(case: Case, found: Posterior) -> list[int]:
    """Of the candidates that never ran, those that divide what is probable into equal parts."""
    floor = found.broken[1:].max() * SPREAD
    candidates = [i for i in range(1, len(found.broken)) if found.broken[i] >= floor]
    ran = case.failures + case.passes
    under_way = {i for i, _ in case.pending}
    gap = [i for i in candidates if not ran[i]]
    if any(i in under_way for i in gap):
        return []  # the runs under way divide it already
    if len(gap) <= MOST_OF_GAP:
        return gap
    parts = MOST_OF_GAP + 1
    return sorted({gap[round(k * len(gap) / parts) - 1] for k in range(1, parts)})


def _confirm(case: Case, place: int, wanted: dict[int, int], most: int) -> None:
    """Add runs of the suspect and of its parent until, should they end as expected, it is settled."""
    extra = case.expected(place)
    if float(case.weigh().broken[1:].sum()) < LIKELY:
        _begin(case, place, extra, wanted)
        return
    found = case.weigh(extra)
    while found.guilt(place) < case.limits.revert_probability and sum(wanted.values()) < most:
        older = float(found.broken[:place].sum()) + found.burst_now  # what a success of the parent speaks against
        other = 1.0 - found.guilt(place) - older  # what a failure of the suspect speaks against
        sides = ((place, 1.0), (place - 1, 0.0)) if other >= older else ((place - 1, 0.0), (place, 1.0))
        run = next(((i, failed) for i, failed in sides if case.runs_left(i) > wanted.get(i, 0)), None)
        if run is None:
            return
        wanted[run[0]] = wanted.get(run[0], 0) + 1
        extra.append((run[0], case.now + 0.01 * len(extra), run[1]))
        found = case.weigh(extra)


def _begin(case: Case, place: int, under_way: Sequence[tuple[int, float, float]], wanted: dict[int, int]) -> None:
    """Ask for the runs that tell a flake from a break, and no more: most such failures are flakes."""
    for i, count in ((place, FIRST_RUNS[0]), (place - 1, FIRST_RUNS[1])):
        missing = min(count - sum(one == i for one, _, _ in under_way), case.runs_left(i))
        if missing > 0:
            wanted[i] = missing


def _together(decisions: Sequence[Decision]) -> Iterator[Decision]:
    """Reverts of one commit are one revert; the probability is the highest of them."""
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
    best = one if (one.probability or 0) >= (other.probability or 0) else other
    return Revert(
        signals=(*one.signals, *other.signals),
        culprit=one.culprit,
        probability=best.probability,
        reason=best.reason,
        failures=best.failures,
        successes=best.successes,
    )
