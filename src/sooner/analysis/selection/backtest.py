"""Rolling origin: every commit after the training share is decided as it would have been decided then. Pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.calibrate import Past, Point, recall_at
from sooner.analysis.selection.decide import Ranking, choose
from sooner.analysis.selection.facts import Indices, Numbers, Record, cells
from sooner.analysis.selection.flakes import judge
from sooner.analysis.selection.policy import Goal, Learner, Lineage, Terms
from sooner.analysis.selection.truth import Missed, Score, cost_share, interval, misses, score, truths

_WINDOW: Final = 100
"""Commits of a rolling window in which the stated bound must hold."""
_STRIDE: Final = 25
_JUST_BELOW: Final = 0.99
"""A budget is a bound, and minutes are foretold: aim a little below."""
_PAID_BACK_IN: Final = 50
"""Commits over which what was spent too much, or too little, is made up for."""
_STEERED: Final = 0.05
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a backtest is run."""

    goal: Goal
    train: float = 0.7
    """Share of the commits that is only learned from."""
    every: int = 25
    """Commits after which the rule learns anew."""
    full_every: int = 0
    """Every so many commits everything runs (a backstop), 0 for never; it counts as cost."""
    full_nightly: bool = False
    """The first commit of each day (UTC) runs everything."""


class Step(Struct, frozen=True, kw_only=True):
    """One commit's decision."""

    commit: int
    selected: frozenset[int]
    level: float
    stated: float
    """Lower bound of the recall that was stated then."""


class Windows(Struct, frozen=True, kw_only=True):
    """Whether what was stated held, window by window."""

    count: int
    held: int
    """Windows of 100 commits in which the recall was not provably below what had been stated."""
    empty: int
    """Of these, those without a breakage: any bound holds there."""


class Summary(Struct, frozen=True, kw_only=True):
    """What a backtest showed."""

    commits: int
    trained_on: int
    jobs: int
    cost: float
    """Share of the cost of running all jobs."""
    recall: float
    low: float
    high: float
    """Block bootstrap, 95 %, at least as wide as the exact interval."""
    breakages: int
    caught: int
    by_definition: dict[str, Score]
    level: float
    """Of the last decision."""
    expected: Point
    """What the last level would have caught of the calibration's breakages."""
    windows: Windows
    missed: tuple[Missed, ...]
    full_every: int
    full_nightly: bool
    red_hours: float
    """Of all missed breakages together, until a selected job or a full run saw them or somebody mended them."""
    seen_later: int
    """Missed breakages that a selected job or a full run saw later, while they were there."""
    detection_hours: float | None
    """Median of these, from the breaking commit to the one that saw it; None where there is none."""
    enough_evidence: bool
    """False where so few breakages are known that the recall asked for cannot be told from less."""


class _Spender:
    """What one goal takes of each commit's ranking."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.steps: list[Step] = []
        self._bank, self._level, self._stated = 0.0, 1.0, 0.0
        self._spent: dict[int, Indices] = {}

    def learn(self, learner: Learner) -> None:
        """Find the level anew."""
        goal = self.plan.goal
        level = goal.level(learner.past)
        self._stated = recall_at(learner.past, level).low
        self._level = _steered(learner, level, self._spent) if level == goal.budget and level < 1.0 else level

    def decide(self, learner: Learner, commit: int, ranking: Ranking) -> None:
        """Choose the jobs of a commit."""
        full = self._is_full(learner, commit)
        choice = choose(ranking, 1.0 if full else self._level, self._bank, learner.without(commit))
        if not full:
            self._bank = choice.bank
            self._spent[commit] = np.array(choice.selected, dtype=np.int64)
        self.steps.append(
            Step(commit=commit, selected=frozenset(choice.selected), level=self._level, stated=self._stated)
        )

    def _is_full(self, learner: Learner, commit: int) -> bool:
        """Whether a backstop runs everything here."""
        day, before = (int(learner.facts.decided[at] // _DAY_S) for at in (commit, commit - 1))
        nightly = self.plan.full_nightly and (commit == 0 or before < day)
        return nightly or (self.plan.full_every > 0 and len(self.steps) % self.plan.full_every == 0)


def compared(learner: Learner, plans: Sequence[Plan], progress: Callable[[int, int], None]) -> list[list[Step]]:
    """Decide commit after commit, for several goals at once: all start, and learn anew, on the same commits.

    What became known after a commit was decided does not reach its decision.
    """
    facts, train, every = learner.facts, plans[0].train, plans[0].every
    first = int(train * len(facts.commits))
    learner.warm_up(first)
    spenders = [_Spender(plan) for plan in plans]
    for commit in range(first, len(facts.commits)):
        if (commit - first) % every == 0:
            learner.learn(commit)
            for spender in spenders:
                spender.learn(learner)
            progress(commit - first, len(facts.commits) - first)
        _, ranking = learner.ranked(commit)
        for spender in spenders:
            spender.decide(learner, commit, ranking)
    return [spender.steps for spender in spenders]


def _steered(learner: Learner, budget: float, selected: Mapping[int, Indices]) -> float:
    """The level that makes up for what was foretold wrongly of the minutes so far: a budget holds on average."""
    seen, width = learner.judged_cells, len(learner.minutes)
    if seen is None or not selected:
        return budget * _JUST_BELOW
    cost = (learner.minutes * (1.0 if learner.price is None else learner.price))[seen.job]
    decided = np.isin(seen.commit, list(selected))
    keys = np.concatenate([commit * width + jobs for commit, jobs in selected.items()])
    paid = float(cost[decided & np.isin(seen.commit * width + seen.job, keys)].sum())
    whole = float(cost[decided].sum())
    if whole <= 0.0:
        return budget * _JUST_BELOW
    debt = (paid / whole - budget * _JUST_BELOW) * len(selected) / _PAID_BACK_IN
    return budget * _JUST_BELOW - min(max(debt, -_STEERED), _STEERED)


def summary(
    facts: Record, plan: Plan, steps: list[Step], past: Past | None = None, price: Numbers | None = None
) -> Summary:
    """Compare decisions with what is known today.

    Args:
        facts: The record.
        plan: How it was decided.
        steps: The decisions.
        past: Breakages that the last level was learned from.
        price: Of a minute of each job; 1 by default.
    """
    known = cells(facts)
    judged = judge(known, len(facts.jobs))
    found = truths(facts, known, judged)
    selected = {step.commit: step.selected for step in steps}
    scores = {name: score(truth, selected) for name, truth in found.items()}
    low, high = interval(found["judged"], selected)
    missed = misses(facts, found["judged"], selected)
    later = [one.red_hours for one in missed if one.detected_after_commits is not None and one.red_hours is not None]
    level = steps[-1].level if steps else 1.0
    expected = recall_at(past, level) if past is not None else Point(level=level, recall=0.0, low=0.0, breakages=0.0)
    return Summary(
        commits=len(steps),
        trained_on=len(facts.commits) - len(steps),
        jobs=len(facts.jobs),
        cost=cost_share(facts, selected, price),
        recall=scores["judged"].recall,
        low=low,
        high=high,
        breakages=scores["judged"].breakages,
        caught=scores["judged"].caught,
        by_definition=scores,
        level=level,
        expected=expected,
        windows=windows(found["judged"].by_commit(), steps),
        missed=tuple(missed),
        full_every=plan.full_every,
        full_nightly=plan.full_nightly,
        seen_later=len(later),
        detection_hours=float(np.median(later)) if later else None,
        red_hours=float(np.sum([one.red_hours or 0.0 for one in missed])),
        enough_evidence=plan.goal.recall is None or expected.low >= plan.goal.recall,
    )


def windows(broken: dict[int, list[int]], steps: list[Step]) -> Windows:
    """Rolling windows; one fails where so many misses would be rare (1 in 20) if the stated bound were true."""
    from scipy.stats import binom

    count = held = empty = 0
    for begin in range(0, max(1, len(steps) - _WINDOW + 1), _STRIDE):
        some = [step for step in steps[begin : begin + _WINDOW] if step.commit in broken]
        hits = sum(not step.selected.isdisjoint(broken[step.commit]) for step in some)
        stated = max((step.stated for step in some), default=0.0)
        count += 1
        empty += not some
        held += int(not some or binom.cdf(hits, len(some), stated) > 0.05)  # noqa: PLR2004 - 1 in 20
    return Windows(count=count, held=held, empty=empty)


class Backtest(Struct, frozen=True, kw_only=True):
    """Decisions and what they were worth."""

    steps: list[Step]
    summary: Summary

    @classmethod
    def run(
        cls,
        facts: Record,
        plan: Plan,
        *,
        terms: Terms | None = None,
        lineage: Lineage | None = None,
        quiet: frozenset[int] = frozenset(),
        files: Mapping[int, Sequence[str]] | None = None,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> "Backtest":
        """Decide all commits after the training share, then look at what became of them.

        Args:
            facts: The record.
            plan: How.
            terms: What the project lays down.
            lineage: Which jobs are known to go on under another name.
            quiet: Commits that touch only documentation.
            files: That commits touch, as far as they are known.
            progress: Called with how many of how many commits are decided.
        """
        learner = Learner(facts, every=plan.every, terms=terms, lineage=lineage, quiet=quiet, files=files)
        (steps,) = compared(learner, [plan], progress)
        return cls(steps=steps, summary=summary(facts, plan, steps, learner.past, learner.terms.prices(facts)))
