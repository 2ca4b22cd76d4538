"""The choice of jobs for one commit: an order of the jobs, and how far down that order a budget reaches. Pure.

The order is greedy: next comes the job with the most hazard per minute that the jobs before it do not already see. How
much of a job's next breakage they would see is told by its past ones, as far as there are any, and else by what jobs
see of each other (`together.py`). With hazards that never fade, and nothing but past breakages, this is the classical
weighted cover of breakage events. The first tenth of all minutes is spent by that cover itself: what little it buys is
best spent on jobs that have paid for years, and recent red, most of it flakes, only distracts from them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sooner.analysis.selection.cover import Constraints, beginning
from sooner.analysis.selection.facts import Flags, Numbers
from sooner.analysis.selection.hazard import View, nearness
from sooner.analysis.selection.together import Together

Needs = Mapping[int, Sequence[int]]
"""Job -> jobs that must run before it."""
STEADY_SHARE: Final = 0.1
"""As long as less than this share of all minutes is spent, greedy cover of the known breakages chooses. Without it the
rule caught 45 fewer than cover's 1,283 at a tenth of the cost, on 84 made projects of seeds 207 to 212."""
_ELSEWHERE: Final = 10.0
"""What is known of all jobs counts as much as so many past breakages of a job. On made projects 5 to 20 are alike; 1 is
worse at large budgets, 100 at small ones."""
GRACE_RUNS: Final = 10.0
"""A job is new until its verdict is known on so many commits."""
_LATELY: Final = 5
"""Commits. Of 0, 2, 5, 10 and 20, five saw the most red on the first half of Apache Ozone's table."""
_TOLD: Final = 2.0
"""A change is said to break a job more often than others if it does so twice as often."""
_NEEDED: Final = "another selected job needs it"
HALF: Final = 0.5
"""A job is paid for if so much of it fits."""
_BANK: Final = 0.25
"""What one commit left of its budget, or overdrew, is carried to the next ones, up to this share of all minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The jobs of a commit, the most worthwhile first."""

    order: list[int]
    share: Numbers
    """By job: share of all minutes that is spent when the job is half done, with all that it needs and that has not run
    by then; 2.0 for jobs that do not exist now."""
    width: Numbers
    """By job: how much of all minutes that is. A budget that ends within it pays for the job on some commits only."""
    cost: Numbers
    """By job: minutes x price x the probability that it runs at all."""
    total: float
    score: Numbers
    """By job: share of the hazard of all jobs that is its own, whatever other jobs cover."""
    first: Mapping[int, str]
    """Jobs that are taken first whatever they cost, and why."""
    rules: Constraints = field(default_factory=Constraints)
    """Floors of facets, and jobs that need others."""
    steady: frozenset[int] = frozenset()
    """Jobs that greedy cover chose."""
    red: frozenset[int] = frozenset()
    """Jobs that were lately red, and no repeat has passed."""
    lift: Mapping[int, float] = field(default_factory=dict)
    """Jobs that changes like this one broke more often than others, and how many times as often."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The jobs of one commit."""

    selected: list[int]
    cost: float
    total: float
    bank: float
    """What is left of the budget for later commits; negative if overdrawn."""
    added: Mapping[int, str] = field(default_factory=dict)
    """Jobs that are there for a floor, or because another one needs them, and why."""


def rank(
    view: View,
    mixture: Numbers,
    together: Together,
    *,
    price: Numbers | None = None,
    pinned: Mapping[int, str] | None = None,
    rules: Constraints | None = None,
    until: frozenset[int] | None = None,
) -> Ranking:
    """Put the jobs of a commit into order.

    Args:
        view: What is known.
        mixture: What each span counts for.
        together: Past breakages, and what jobs see of each other's.
        price: Of a minute of each job, its queue included; 1 by default.
        pinned: Jobs that run in any case, and why.
        rules: Floors and dependencies.
        until: The order may end where it holds all of these jobs that exist: only their shares are asked for.
    """
    cost = view.minutes * view.ran * view.present * (1.0 if price is None else price)
    total = float(cost[view.alive].sum())
    first = _first(view, pinned or {})
    score = mixture @ view.shares()
    begin = list(first)
    steady = beginning(
        together.sure, cost, view.alive, begin, STEADY_SHARE * total, counts=together.sure_counts,
        weight=_weight(view, mixture, together),
    )  # fmt: skip
    begin += steady
    rules = rules or Constraints()
    until = None if rules.floors else until  # the best job of a facet may stand far down
    order = _greedy(_Cover(score / cost, together), np.flatnonzero(view.alive).tolist(), begin, until)
    if rules.needs or rules.floors:
        share, width = _shares_by_rules(order, cost, total, first, rules=rules, alive=view.alive)
    else:
        share, width = _shares(order, cost, total, first)
    return Ranking(
        order=order,
        share=share,
        width=width,
        cost=cost,
        total=total,
        score=score,
        first=first,
        rules=rules,
        steady=frozenset(steady),
        lift=_lifted(view) if nearness(mixture) > 0.0 else {},
        red=frozenset(view.red_job[view.red_commit >= view.commit - _LATELY].tolist()),
    )


def _weight(view: View, mixture: Numbers, together: Together) -> Numbers | None:
    """Of each past breakage: more where its commit resembles this one, as far as that is known to tell something."""
    near = nearness(mixture)
    return 1.0 - near + near * view.alike[together.commit] if near > 0.0 and len(view.alike) else None


def _lifted(view: View) -> dict[int, float]:
    return {job: float(view.lift[job]) for job in np.flatnonzero(view.alive & (view.lift >= _TOLD)).tolist()}


def _shares(order: list[int], cost: Numbers, total: float, first: Mapping[int, str]) -> tuple[Numbers, Numbers]:
    share, width = np.full(len(cost), 2.0), np.zeros(len(cost))
    if order:
        done = np.cumsum(cost[order])
        share[order] = (done - cost[order] / 2) / max(total, 1e-9)
        width[order] = cost[order] / max(total, 1e-9)
    share[list(first)] = width[list(first)] = 0.0
    return share, width


def _shares_by_rules(
    order: list[int], cost: Numbers, total: float, first: Mapping[int, str], *, rules: Constraints, alive: Flags
) -> tuple[Numbers, Numbers]:
    """The same where floors are paid for first, and jobs bring along what they need, as `choose` takes them.

    The promise must know what that costs.
    """
    share, width, left = np.full(len(cost), 2.0), np.zeros(len(cost)), set(np.flatnonzero(alive).tolist())
    reserved = _reserved(order, rules, left.__contains__, first)
    share[reserved], spent = 0.0, float(cost[reserved].sum())
    left.difference_update(reserved)
    for job in order:
        if job not in left:
            continue
        fresh = _bundle(job, rules.needs, left.__contains__)
        price = float(cost[fresh].sum())
        if job in first:
            share[fresh] = 0.0
        else:
            share[fresh] = min(1.0, (spent + price / 2) / max(total, 1e-9))
            width[fresh] = price / max(total, 1e-9)
        left.difference_update(fresh)
        spent += price
    return share, width


def _reserved(
    order: list[int],
    rules: Constraints,
    exists: Callable[[int], bool],
    first: Collection[int],
    without: frozenset[int] = frozenset(),
) -> list[int]:
    """What runs whatever the level where there are floors: what is taken first, and the best jobs of each facet."""
    found: dict[int, None] = {}
    if rules.floors:
        for job in first:
            found |= dict.fromkeys(_bundle(job, rules.needs, exists))
    for job, _ in _for_floors(order, rules, found, without):
        found |= dict.fromkeys(_bundle(job, rules.needs, exists))
    return list(found)


def _bundle(job: int, needs: Needs, is_open: Callable[[int], bool]) -> list[int]:
    """What must run before a job, if it is open to be taken; then the job."""
    found, waiting = {job: None}, [job]
    while waiting:
        for need in needs.get(waiting.pop(), ()):
            if need not in found and is_open(need):
                found[need] = None
                waiting.append(need)
    return list(reversed(found))


def _first(view: View, pinned: Mapping[int, str]) -> dict[int, str]:
    first = {job: why for job, why in pinned.items() if view.alive[job]}
    for job in np.flatnonzero(view.alive & (view.runs < GRACE_RUNS)).tolist():
        first.setdefault(job, f"new: known on {_commits(int(view.runs[job]))}")
    return first


def _greedy(cover: "_Cover", alive: list[int], first: list[int], until: frozenset[int] | None) -> list[int]:
    order, left = list(first), set(alive).difference(first)
    wanted = left if until is None else left & until
    for job in first:
        cover.take(job)
    cover.leave_out(set(range(cover.jobs)).difference(left))
    while wanted:
        job = cover.best()
        cover.take(job)
        order.append(job)
        left.discard(job)
        wanted.discard(job)
    return order


class _Cover:
    """What the jobs taken so far would not see of the others' next breakages, and so which job gains most."""

    def __init__(self, value: Numbers, together: Together) -> None:
        self.jobs = len(value)
        self._seen, self._unheard, self._alone = together.seen, together.unheard, _ELSEWHERE * together.alone
        self._seen_by = together.seen_by
        self._left = together.weight.copy()
        self._value = value / (self._left + _ELSEWHERE)
        self._unseen = np.ones(len(self._seen), dtype=bool)
        self._open = np.full(self.jobs, _ELSEWHERE) - self._alone

    def best(self) -> int:
        """The job whose next breakage, as far as nobody would see it, is the likeliest for its cost."""
        return int((self._value * (self._left + self._alone + self._open)).argmax())

    def take(self, job: int) -> None:
        """The job sees its past breakages, and its share of what is unheard of.

        Was a breakage real for one of its jobs, it was for the others: none of them is worth more for being doubted.
        """
        events = self._seen_by[job]
        if len(events) and len(at := events[self._unseen[events]]):
            self._unseen[at] = False
            self._left -= self._seen[at].sum(axis=0)
        self._open *= self._unheard[job]
        self._value[job] = -1.0

    def leave_out(self, jobs: set[int]) -> None:
        """These are never the best."""
        self._value[list(jobs)] = -1.0


def choose(
    ranking: Ranking,
    level: float,
    bank: float = 0.0,
    without: frozenset[int] = frozenset(),
    *,
    part: float = HALF,
) -> Choice:
    """The jobs that a budget pays for.

    Args:
        ranking: Of the commit.
        level: Share of the cost of all jobs that may be spent, 0 to 1; from 1 on everything runs.
        bank: What earlier commits left, or overdrew.
        without: Jobs that this commit cannot break. Those that were lately red run all the same: are they still?
        part: A job is taken if so much of it fits. Who carries no bank on draws it from 0 to 1 for each change: the
            budget is then what changes cost on average.
    """
    without -= ranking.red
    budget = level * ranking.total + bank
    selected, added, saved = dict[int, None](), dict[int, str](), 0.0
    exists = (ranking.share <= 1.0).__getitem__
    reserved = frozenset(_reserved(ranking.order, ranking.rules, exists, ranking.first, without))
    spent = float(ranking.cost[list(reserved)].sum())
    for job in ranking.order:
        if job in selected:
            continue
        if job in without and job not in ranking.first and level < 1.0:
            # What a commit cannot break frees money for other commits, not for jobs further down.
            saved += 0.0 if job in reserved else float(ranking.cost[job])
            continue
        fresh = _with_needs(job, ranking, selected)
        price = float(ranking.cost[[one for one in fresh if one not in reserved]].sum())
        if job not in ranking.first and level < 1.0 and saved + spent + part * price > budget:
            break
        added |= dict.fromkeys(set(fresh) - {job}, _NEEDED)
        selected |= dict.fromkeys(fresh)
        spent += price
    for job, why in _for_floors(ranking.order, ranking.rules, selected, without):
        fresh = _with_needs(job, ranking, selected)
        added |= dict.fromkeys(fresh, _NEEDED) | {job: why}
        selected |= dict.fromkeys(fresh)
    if reserved:
        spent = float(ranking.cost[list(selected)].sum())
    most = _BANK * ranking.total
    left = min(max(budget - spent, -most), most)
    return Choice(selected=list(selected), cost=spent, total=ranking.total, bank=left, added=added)


def _with_needs(job: int, ranking: Ranking, selected: Mapping[int, None]) -> list[int]:
    """What must run before the job, of what exists now and is not chosen yet; then the job."""
    if not ranking.rules.needs:
        return [job]
    return _bundle(job, ranking.rules.needs, lambda need: need not in selected and ranking.share[need] <= 1.0)


def _for_floors(
    order: list[int], rules: Constraints, selected: Mapping[int, None], without: frozenset[int]
) -> Iterator[tuple[int, str]]:
    """The best jobs of each facet that has too few; those that the commit cannot break come last."""
    for floor in rules.floors:
        kind = set(floor.jobs)
        lacking = floor.least - len(kind & selected.keys())
        for job in sorted(order, key=without.__contains__):
            if lacking <= 0:
                break
            if job in kind and job not in selected:
                yield job, f"floor: at least {floor.least} of {floor.name}"
                lacking -= 1


def _commits(count: int) -> str:
    return "1 commit" if count == 1 else f"{count} commits"


def reasons(view: View, ranking: Ranking, choice: Choice) -> dict[int, str]:
    """For each job that exists: why it runs, or does not."""
    selected = set(choice.selected)
    last_red = dict(zip(view.red_job.tolist(), view.red_commit.tolist(), strict=True))
    found = {}
    for place, job in enumerate(ranking.order, 1):
        percent, minutes = 100 * ranking.score[job], view.minutes[job]
        often = (
            f", changes like this one break it {ranking.lift[job]:.1f} times as often" if job in ranking.lift else ""
        )
        red = f"last red {_commits(view.commit - last_red[job])} ago" if job in last_red else "not red for long"
        if job in choice.added:
            found[job] = choice.added[job]
        elif job in ranking.first:
            found[job] = ranking.first[job]
        elif job in selected:
            steady = ", broke most often for its cost" if job in ranking.steady else ""
            found[job] = f"{percent:.1f} % of the risk in {minutes:.0f} min, place {place}{steady}{often}: {red}"
        else:
            found[job] = f"{percent:.1f} % of the risk, not worth {minutes:.0f} min at this budget{often}: {red}"
    return found
