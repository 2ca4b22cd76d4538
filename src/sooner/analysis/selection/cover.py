"""One fixed set of jobs that sees enough breakages at the least cost: weighted partial cover. Pure; needs scipy.

Choosing jobs S at least cost such that the weight of the breakages that some job of S sees reaches a bound is the
weighted partial set cover problem (NP-hard; greedy is within H(n): Slavik 1997). Solved twice: lazily greedy with swaps
afterwards, and exactly as a mixed integer program, so the distance to the optimum is known rather than believed.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.facts import Flags, Indices, Numbers

_TINY: Final = 1e-9
_RUINS: Final = 1500
"""Attempts to improve. After 600 the gap to the optimum was below 1 % in random covers of 200 jobs."""
_FEWEST_RUINS: Final = 200
_WORK: Final = 1_000_000_000
"""Attempts x jobs x breakages: above 600,000 of these there are fewer attempts, so that it ends within seconds."""
_RUINED: Final = (0.05, 0.1, 0.2, 0.4)
_MOST_RUINED: Final = 20
_BLUR: Final = 0.25
_TOLERATED: Final = 0.002
"""A slightly worse set may be gone on from: it is a way out of a dead end."""


class Floor(Struct, frozen=True, kw_only=True):
    """At least so many jobs of a kind must stay: one CUDA job, one ASAN job."""

    name: str
    jobs: tuple[int, ...]
    least: int = 1


class Constraints(Struct, frozen=True, kw_only=True):
    """What a set must fulfil besides its recall."""

    fixed: frozenset[int] = frozenset()
    """Jobs that stay: pinned, new."""
    floors: tuple[Floor, ...] = ()
    needs: Mapping[int, tuple[int, ...]] = {}
    """Job -> jobs that must run before it, such as the build of a test."""


class Solution(Struct, frozen=True, kw_only=True):
    """A set of jobs."""

    jobs: tuple[int, ...]
    cost: float
    covered: float
    """Weight of the breakages that it sees."""


class Proof(Struct, frozen=True, kw_only=True):
    """What the exact solver says."""

    best: Solution | None
    bound: float
    """No set that reaches the recall costs less."""
    gap: float
    """How much more the greedy set costs, as a share of the bound."""
    proven: bool
    """Whether `best` is the optimum; else the time ran out."""


class _Problem:
    """What is to be covered: breakages that the same jobs saw are one, with their weights together."""

    def __init__(self, sees: Flags, weight: Numbers, cost: Numbers, bound: float, rules: Constraints) -> None:
        patterns, self.weight = _patterns(sees, weight)
        self.sees = np.ascontiguousarray(patterns.T).astype(np.int64)
        self._weighed_rows = patterns * self.weight[:, None]
        self._weighed = np.ascontiguousarray(self._weighed_rows.T)
        self.cost, self.rules = cost, rules
        self.bound = min(bound, float(self.weight.sum()))

    def counts(self, jobs: set[int]) -> Indices:
        """By breakage: how many of the jobs see it."""
        found: Indices = self.sees[min(jobs)] if len(jobs) == 1 else self.sees[sorted(jobs)].sum(axis=0)
        return found

    def total(self, jobs: set[int]) -> float:
        """Cost of a set."""
        return float(self.cost[sorted(jobs)].sum())

    def gains(self, counts: Indices) -> Numbers:
        """By job: weight that it would add."""
        found: Numbers = self._weighed @ (counts == 0)
        return found

    def losses(self, fresh: Indices) -> Numbers:
        """By job: weight that it no longer adds, once these breakages are seen."""
        found: Numbers = self._weighed_rows[fresh].sum(axis=0)
        return found

    def alone(self, jobs: Indices, counts: Indices) -> Numbers:
        """By chosen job: weight that no other one sees."""
        found: Numbers = (self._weighed @ (counts == 1))[jobs]
        return found


def greedy(
    sees: Flags, weight: Numbers, cost: Numbers, bound: float, rules: Constraints, *, improve: bool = True
) -> Solution:
    """The cheapest set that greedy, and then ruining and recreating it, finds.

    Args:
        sees: [breakage, job]: the job really broke in it.
        weight: Of each breakage.
        cost: Of each job, above 0.
        bound: Weight that must be covered; what no job sees is not asked for.
        rules: Constraints.
        improve: Whether to ruin and recreate.
    """
    problem = _Problem(sees, weight, cost, bound, rules)
    first = _with_floors(set(rules.fixed), sees, weight, cost, rules)
    found = _completed(first, problem, cost) or set(range(len(cost)))
    return _solution(_improved(found, problem) if improve else _slimmed(found, problem), sees, weight, cost)


def beginning(
    sees: Flags,
    cost: Numbers,
    among: Flags,
    taken: Sequence[int],
    room: float,
    *,
    counts: Indices | None = None,
    weight: Numbers | None = None,
) -> list[int]:
    """The jobs that greedy cover takes first, as far as some room in the budget reaches.

    Args:
        sees: [breakage, job].
        cost: Of each job.
        among: Jobs that may be taken.
        taken: Jobs that are taken already.
        room: What those that are taken may cost together, these too.
        counts: By job: how many breakages it saw, for who asks often.
        weight: Of each breakage; 1 by default.
    """

    def worth(some: Flags) -> Any:
        return sees[some].sum(axis=0) if weight is None else weight[some] @ sees[some]

    left: Flags = sees[:, list(taken)].sum(axis=1) == 0
    gains = counts - worth(~left) if counts is not None and weight is None else worth(left)
    gains = np.where(among, gains, 0.0)
    price, spent = np.maximum(cost, _TINY), float(cost[list(taken)].sum())
    found: list[int] = []
    while gains.size:
        job = int(np.argmax(gains / price))
        if gains[job] <= _TINY or spent + price[job] / 2 > room:
            break
        found.append(job)
        spent += price[job]
        fresh = left & sees[:, job]
        left &= ~fresh
        gains -= np.where(among, worth(fresh), 0.0)
    return found


def _completed(chosen: set[int], problem: _Problem, cost: Numbers) -> set[int] | None:
    """Jobs added greedily until the bound is reached; None where floors are not met in the end."""
    chosen = _closed(chosen, problem.rules)
    counts = problem.counts(chosen)
    gains, missing = problem.gains(counts), problem.bound - _weight(problem.weight, counts)
    while missing > _TINY:
        # More than what is missing is not worth paying for (Wolsey 1982).
        worth = np.minimum(gains, missing)
        value = np.where(worth > _TINY, worth / _extra_costs(chosen, cost, problem.rules), 0.0)
        job = int(np.argmax(value))
        if value[job] <= 0:
            return None
        fresh = _closed({job}, problem.rules) - chosen
        chosen = chosen | fresh
        more = problem.counts(fresh)
        seen = np.flatnonzero((counts == 0) & (more > 0))
        gains, missing = gains - problem.losses(seen), missing - float(problem.weight[seen].sum())
        counts = counts + more
    return chosen if _allowed(chosen, problem.rules) else None


def _weight(weight: Numbers, counts: Indices) -> float:
    return float(weight[counts > 0].sum())


def _solution(chosen: set[int], sees: Flags, weight: Numbers, cost: Numbers) -> Solution:
    jobs = sorted(chosen)
    seen = sees[:, jobs].any(axis=1) if jobs else np.zeros(len(weight), dtype=bool)
    return Solution(jobs=tuple(jobs), cost=float(cost[jobs].sum()), covered=float(weight[seen].sum()))


def _closed(jobs: set[int], rules: Constraints) -> set[int]:
    """With everything that they need."""
    found, waiting = set(jobs), list(jobs)
    while waiting:
        for need in rules.needs.get(waiting.pop(), ()):
            if need not in found:
                found.add(need)
                waiting.append(need)
    return found


def _extra_costs(chosen: set[int], cost: Numbers, rules: Constraints) -> Numbers:
    """By job: what it costs with everything it needs; endless for those that are chosen."""
    extra = np.maximum(cost, _TINY).copy()
    for job in rules.needs:
        extra[job] = max(float(cost[sorted(_closed({job}, rules) - chosen)].sum()), _TINY)
    extra[sorted(chosen)] = np.inf
    return extra


def _with_floors(chosen: set[int], sees: Flags, weight: Numbers, cost: Numbers, rules: Constraints) -> set[int]:
    worth = (weight @ sees) / cost
    for floor in rules.floors:
        lacking = floor.least - len(chosen & set(floor.jobs))
        candidates = sorted(set(floor.jobs) - chosen, key=lambda job: (-worth[job], cost[job], job))
        chosen = chosen | set(candidates[: max(0, lacking)])
    return chosen


def _allowed(chosen: set[int], rules: Constraints) -> bool:
    floors = all(len(chosen & set(floor.jobs)) >= min(floor.least, len(floor.jobs)) for floor in rules.floors)
    return (
        floors
        and rules.fixed <= chosen
        and all(chosen.issuperset(rules.needs[job]) for job in rules.needs if job in chosen)
    )


def _slimmed(chosen: set[int], problem: "_Problem") -> set[int]:
    """Without jobs that are not needed, the dearest first."""
    counts = problem.counts(chosen)
    slack = _weight(problem.weight, counts) - problem.bound + _TINY
    # What only one job sees is lost with it: most jobs see more alone than may be lost, and need not be tried.
    jobs = np.array(sorted(chosen), dtype=np.int64)
    alone = problem.alone(jobs, counts)
    for job in sorted(jobs[alone <= slack].tolist(), key=lambda job: -problem.cost[job]):
        less = counts - problem.sees[job]
        if _weight(problem.weight, less) >= problem.bound - _TINY and _allowed(chosen - {job}, problem.rules):
            chosen, counts = chosen - {job}, less
    return chosen


def _improved(start: set[int], problem: "_Problem") -> set[int]:
    """Ruin and recreate (Schrimpf et al. 2000): leave out a part, complete it greedily with blurred costs.

    Chance comes from a fixed seed: the same history gives the same set.
    """
    chance = np.random.default_rng(0)
    best = _slimmed(start, problem)
    current = best
    for _ in range(min(_RUINS, max(_FEWEST_RUINS, _WORK // max(1, problem.sees.size)))):
        loose = sorted(current - problem.rules.fixed)
        if not loose:
            return best
        share = chance.choice(_RUINED)
        size = min(max(1, round(share * len(loose))), _MOST_RUINED)
        out = set(chance.choice(loose, size=size, replace=False).tolist())
        blurred = problem.cost * np.exp(_BLUR * chance.standard_normal(len(problem.cost)))
        found = _completed(current - out, problem, blurred)
        if found is None:
            continue
        found = _slimmed(found, problem)
        cost = problem.total(found)
        if cost <= problem.total(current) * (1 + _TOLERATED):
            current = found
        if cost < problem.total(best) - _TINY:
            best = current = found
    return best


def exact(
    sees: Flags,
    weight: Numbers,
    cost: Numbers,
    bound: float,
    rules: Constraints,
    *,
    found: Solution,
    time_s: float = 5.0,
) -> Proof:
    """The optimum, or a bound for it, by mixed integer programming (HiGHS).

    Args:
        sees: [breakage, job].
        weight: Of each breakage.
        cost: Of each job.
        bound: Weight that must be covered.
        rules: Constraints.
        found: What greedy found, for the gap.
        time_s: The solver stops then.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    patterns, patterns_weight = _patterns(sees, weight)
    events, jobs = patterns.shape
    bound = min(bound, float(patterns_weight.sum()))
    matrix, low = _rows(patterns, patterns_weight, bound, jobs, rules)
    lower = np.zeros(jobs + events)
    lower[sorted(rules.fixed)] = 1.0
    answer = milp(
        np.concatenate([cost, np.zeros(events)]),
        integrality=np.ones(jobs + events),
        bounds=Bounds(lower, np.ones(jobs + events)),
        constraints=LinearConstraint(matrix, low, np.full(len(low), np.inf)),
        options={"time_limit": time_s, "mip_rel_gap": 1e-6},
    )
    least = float(answer.mip_dual_bound) if answer.mip_dual_bound is not None else 0.0
    best = None
    if answer.x is not None:
        best = _solution(set(np.flatnonzero(answer.x[:jobs] > 0.5).tolist()), sees, weight, cost)  # noqa: PLR2004
    gap = (found.cost - least) / least if least > _TINY else 0.0
    return Proof(best=best, bound=least, gap=max(gap, 0.0), proven=answer.status == 0)


def _patterns(sees: Flags, weight: Numbers) -> tuple[Flags, Numbers]:
    """Breakages that the same jobs saw are one, with their weights together."""
    seen = sees.any(axis=1)
    rows, where = np.unique(sees[seen], axis=0, return_inverse=True)
    return rows, np.bincount(where.ravel(), weight[seen], len(rows)).astype(np.float64)


def _rows(sees: Flags, weight: Numbers, bound: float, jobs: int, rules: Constraints) -> tuple[Numbers, Numbers]:
    events = len(weight)
    rows: list[Numbers] = [np.concatenate([np.zeros(jobs), weight])]
    low = [bound - _TINY]
    for event in range(events):
        row = np.zeros(jobs + events)
        row[:jobs] = sees[event]
        row[jobs + event] = -1.0
        rows.append(row)
        low.append(0.0)
    for floor in rules.floors:
        row = np.zeros(jobs + events)
        row[list(floor.jobs)] = 1.0
        rows.append(row)
        low.append(float(min(floor.least, len(floor.jobs))))
    for job, needs in rules.needs.items():
        for need in needs:
            row = np.zeros(jobs + events)
            row[need], row[job] = 1.0, -1.0
            rows.append(row)
            low.append(0.0)
    return np.array(rows), np.array(low)
