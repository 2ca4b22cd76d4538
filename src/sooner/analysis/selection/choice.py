"""The selection as of now, explained: each job's reason, cost and misses; the frontier; the best fixed set. Pure."""

from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.calibrate import Point, frontier, recall_at, trials_for
from sooner.analysis.selection.cover import Constraints, Proof, Solution, exact, greedy
from sooner.analysis.selection.decide import choose, reasons
from sooner.analysis.selection.facts import Flags, Numbers
from sooner.analysis.selection.policy import Goal, Learner
from sooner.analysis.selection.settings import JobSettings, constraints

_FEWEST: Final = 10
"""Breakages below which a fixed set is not proposed."""
_DEFAULT_RECALL: Final = 0.97


class JobLine(Struct, frozen=True, kw_only=True):
    """A job, and what became of it."""

    job: str
    selected: bool
    why: str
    minutes: float
    cost_share: float
    risk_share: float
    breakages: int
    """Of the job, that are known."""
    alone: int
    """Of these, those that none of the other selected jobs would have seen: what dropping it would have missed."""


class FixedSet(Struct, frozen=True, kw_only=True):
    """The cheapest set of jobs that sees enough of the known breakages, if the same jobs had to run every time."""

    jobs: tuple[str, ...]
    cost_share: float
    covered: int
    breakages: int
    gap: float
    """How much dearer than the proven bound it is."""
    proven: bool
    by: str
    """`greedy` or `exact`, whichever was cheaper."""


class Selection(Struct, frozen=True, kw_only=True):
    """What to run now."""

    jobs: tuple[JobLine, ...]
    level: float
    cost_share: float
    expected: Point
    frontier: tuple[Point, ...]
    breakages: int
    enough_evidence: bool
    needed: int
    """Breakages without a miss that would prove the recall asked for."""
    fixed: FixedSet | None
    note: str


def selection(learner: Learner, goal: Goal, settings: JobSettings, *, solver_s: float = 5.0) -> Selection:
    """Choose for the commit after the last one."""
    facts = learner.facts
    view, ranking = learner.ranked(len(facts.commits))
    level = goal.level(learner.past)
    choice = choose(ranking, level)
    expected = recall_at(learner.past, level)
    why = reasons(view, ranking, choice)
    sees = learner.events
    selected = set(choice.selected)
    seen_by = sees[:, sorted(selected)].sum(axis=1)
    lines = [
        JobLine(
            job=facts.jobs[job],
            selected=job in selected,
            why=why[job],
            minutes=float(view.minutes[job]),
            cost_share=float(ranking.cost[job] / max(ranking.total, 1e-9)),
            risk_share=float(ranking.score[job]),
            breakages=int(sees[:, job].sum()),
            alone=int((sees[:, job] & (seen_by == (job in selected))).sum()),
        )
        for job in ranking.order
    ]
    recall = goal.recall if goal.recall is not None else _DEFAULT_RECALL
    enough = goal.recall is None or expected.low >= goal.recall
    fixed = fixed_set(learner, ranking.cost, view.alive, recall, settings=settings, solver_s=solver_s)
    return Selection(
        jobs=tuple(lines),
        level=level,
        cost_share=choice.cost / max(choice.total, 1e-9),
        expected=expected,
        frontier=tuple(frontier(learner.past)),
        breakages=len(sees),
        enough_evidence=enough,
        needed=trials_for(recall),
        fixed=fixed,
        note="" if enough or level >= 1.0 else _doubt(len(sees), recall, expected),
    )


def _doubt(count: int, recall: float, expected: Point) -> str:
    """Why a recall is not promised: it was missed before, too little is known to tell, or both."""
    told = []
    if expected.recall < recall:
        told.append(
            f"not reached: {100 * recall:g} % were asked for, and of the breakages so far this level would have caught"
            f" {100 * expected.recall:.1f} %"
        )
    if not told or count < trials_for(recall):
        told.append(
            f"not enough evidence: {count} breakage{' is' if count == 1 else 's are'} known,"
            f" {trials_for(recall)} without a miss would prove {100 * recall:g} %;"
            " jobs of which little is known are kept as far as the budget reaches"
        )
    return "; ".join(told)


def fixed_set(
    learner: Learner, cost: Numbers, alive: Flags, recall: float, *, settings: JobSettings, solver_s: float
) -> FixedSet | None:
    """The best fixed set; None where too little is known."""
    sees = learner.events
    jobs = np.flatnonzero(alive)
    some = sees[:, jobs]
    some = some[some.any(axis=1)]
    if len(some) < _FEWEST:
        return None
    names = [learner.facts.jobs[job] for job in jobs.tolist()]
    rules = constraints(names, settings, frozenset(i for i, job in enumerate(jobs) if job in learner.terms.pinned))
    weight, price = np.ones(len(some)), np.maximum(cost[jobs], 1e-3)
    best, proof, by = solved(some, weight, price, recall * len(some), rules, solver_s=solver_s)
    return FixedSet(
        jobs=tuple(names[i] for i in best.jobs),
        cost_share=best.cost / float(price.sum()),
        covered=round(best.covered),
        breakages=len(some),
        gap=(best.cost - proof.bound) / proof.bound if proof.bound > 0 else 0.0,
        proven=proof.proven,
        by=by,
    )


def solved(
    sees: Flags, weight: Numbers, cost: Numbers, bound: float, rules: Constraints, *, solver_s: float
) -> tuple[Solution, Proof, str]:
    """Greedy and exact; the cheaper of the two, the solver's bound, and whose it is."""
    found = greedy(sees, weight, cost, bound, rules, improve=False)
    proof = exact(sees, weight, cost, bound, rules, found=found, time_s=solver_s)
    if not proof.proven:
        found = greedy(sees, weight, cost, bound, rules)
    if proof.best is not None and proof.best.cost < found.cost - 1e-9:
        return proof.best, proof, "exact"
    return found, proof, "greedy"
