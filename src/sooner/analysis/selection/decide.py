"""The choice of jobs for one commit: an order of the jobs, and how far down that order a budget reaches. Pure.

The order is greedy: next comes the job with the most hazard per minute that the jobs before it do not already cover.
Covered is what history shows to break together: of a past breakage that several jobs saw, one of them is enough, and
only as far as it was real (flakes that coincide cover nothing). Of what no past breakage tells, another job covers as
much as it has seen of this one's breakages (`together.py`). With the hazards of `hazard.py` this is the weighted
cover of breakage events with weights that fade, so it becomes the classical greedy cover where nothing ever fades. The
first tenth of all minutes is spent by classical greedy cover itself: at small budgets it is hard to beat. Where it has
been better all the way, it goes all the way (`policy.py`).
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np

from sooner.analysis.selection.cover import Constraints, beginning
from sooner.analysis.selection.facts import Flags, Numbers
from sooner.analysis.selection.hazard import View
from sooner.analysis.selection.together import Together

_REAL_ENOUGH: Final = 0.2
"""Reds less real than this cover nothing: not worth the arithmetic."""
STEADY_SHARE: Final = 0.1
"""As long as less than this share of all minutes is spent, greedy cover of the known breakages chooses. What little a
small budget buys goes to jobs that have paid for years. Chosen on made projects, with Ozone's table in view: 0.07 to
0.2 are alike, and without it small budgets fared worse than rolling greedy cover."""
GRACE_RUNS: Final = 10.0
"""A job is new until its verdict is known on so many commits."""
_LATELY: Final = 5
"""Commits. Of 0, 2, 5, 10 and 20, five saw the most red on the first half of Apache Ozone's table."""
_BANK: Final = 0.25
"""What one commit left of its budget, or overdrew, is carried to the next ones, up to this share of all minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The jobs of a commit, the most worthwhile first."""

    order: list[int]
    share: Numbers
    """By job: share of all minutes that is spent when the job is half done; 2.0 for jobs that do not exist now."""
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
    *,
    price: Numbers | None = None,
    pinned: Mapping[int, str] | None = None,
    together: Together | None = None,
    rules: Constraints | None = None,
    events: Flags | None = None,
    until: frozenset[int] | None = None,
) -> Ranking:
    """Put the jobs of a commit into order.

    Args:
        view: What is known.
        mixture: What each span counts for.
        price: Of a minute of each job, its queue included; 1 by default.
        pinned: Jobs that run in any case, and why.
        together: What jobs see of each other's breakages; without it only past breakages cover.
        rules: Floors and dependencies.
        events: [breakage, job]: what was really broken in the known breakages.
        until: The order may end where it holds all of these jobs that exist: only their shares are asked for.
    """
    cost = view.minutes * view.ran * view.present * (1.0 if price is None else price)
    total = float(cost[view.alive].sum())
    first = _first(view, pinned or {})
    score = mixture @ view.shares()
    begin = list(first)
    if events is not None:
        begin += beginning(events, cost, view.alive, begin, STEADY_SHARE * total)
    order = _greedy(_Cover(view, mixture, together), view, cost, begin, until)
    return Ranking(
        order=order,
        share=_shares(order, cost, total, first),
        cost=cost,
        total=total,
        score=score,
        first=first,
        rules=rules or Constraints(),
        steady=frozenset(begin[len(first) :]),
        red=frozenset(view.red_job[view.red_commit >= view.commit - _LATELY].tolist()),
    )


def cover_first(ranking: Ranking, alive: Flags, events: Flags) -> Ranking:
    """The same jobs; those first that greedy cover takes until nothing known is uncovered, whatever they cost."""
    begin = list(ranking.first)
    steady = beginning(events, ranking.cost, alive, begin, np.inf)
    taken = {*begin, *steady}
    order = [*begin, *steady, *(job for job in ranking.order if job not in taken)]
    share = _shares(order, ranking.cost, ranking.total, ranking.first)
    return replace(ranking, order=order, share=share, steady=frozenset(steady))


def _shares(order: list[int], cost: Numbers, total: float, first: Mapping[int, str]) -> Numbers:
    share = np.full(len(cost), 2.0)
    if order:
        done = np.cumsum(cost[order])
        share[order] = (done - cost[order] / 2) / max(total, 1e-9)
    share[list(first)] = 0.0
    return share


def _first(view: View, pinned: Mapping[int, str]) -> dict[int, str]:
    first = {job: why for job, why in pinned.items() if view.alive[job]}
    for job in np.flatnonzero(view.alive & (view.runs < GRACE_RUNS)).tolist():
        first.setdefault(job, f"new: known on {view.runs[job]:.0f} commits")
    return first


def _greedy(cover: "_Cover", view: View, cost: Numbers, first: list[int], until: frozenset[int] | None) -> list[int]:
    """Lazy greedy (Minoux 1978): gains only shrink, so a stale gain at the top is looked at again, no other is."""
    order, taken = list(first), set(first)
    jobs = [job for job in np.flatnonzero(view.alive).tolist() if job not in taken]
    wanted = None if until is None else {job for job in jobs if job in until}
    if wanted is not None and not wanted:
        return order
    for job in first:
        cover.take(job)
    price = cost.tolist()
    heap = [(-gain / price[job], job) for job, gain in zip(jobs, cover.gains(jobs), strict=True)]
    heapq.heapify(heap)
    while heap and (wanted is None or wanted):
        _, job = heap[0]
        now = -cover.gain(job) / price[job]
        heapq.heapreplace(heap, (now, job))
        if heap[0][1] == job:
            heapq.heappop(heap)
            cover.take(job)
            order.append(job)
            if wanted is not None:
                wanted.discard(job)
    return order


class _Cover:
    """What is still uncovered of the past reds, and so the gain of each job."""

    def __init__(self, view: View, mixture: Numbers, together: Together | None) -> None:
        fixed, worth = view.weights(mixture)
        truth = np.where(view.red_real > _REAL_ENOUGH, view.red_real, 0.0)
        commits, event = np.unique(view.red_commit, return_inverse=True)
        alone = np.bincount(event, truth > 0, len(commits)) < 2  # noqa: PLR2004 - nobody else saw it
        truth = np.where(alone[event], 0.0, truth)
        self._fixed = fixed + np.bincount(view.red_job, np.where(truth > 0, 0.0, worth), len(fixed))
        # [other, job], so that taking the other one reads one row.
        self._unheard = None if together is None else together.unheard
        self._alone = np.zeros(len(fixed)) if together is None else together.alone
        self._rest = 1.0 - self._alone
        self._open = np.ones(len(fixed))
        shared = np.flatnonzero(truth > 0)
        shared = shared[np.argsort(view.red_job[shared], kind="stable")]
        self._event, self._worth, self._truth = event[shared], worth[shared], truth[shared]
        self._unseen = np.ones(len(commits))
        bounds = np.searchsorted(view.red_job[shared], np.arange(len(fixed) + 1)).tolist()
        self._slices = [slice(begin, end) for begin, end in pairwise(bounds)]

    def gains(self, jobs: list[int]) -> list[float]:
        """`gain` of each of them."""
        fixed = (self._fixed * (self._alone + self._rest * self._open)).tolist()
        return [fixed[job] if self._slices[job].start == self._slices[job].stop else self.gain(job) for job in jobs]

    def gain(self, job: int) -> float:
        """Hazard of the job that no job taken so far would see."""
        at = self._slices[job]
        gain = float(self._fixed[job] * (self._alone[job] + self._rest[job] * self._open[job]))
        if at.start == at.stop:
            return gain
        seen = self._truth[at] * (1.0 - self._unseen[self._event[at]])
        return gain + float((self._worth[at] * (1.0 - seen)).sum())

    def take(self, job: int) -> None:
        """The job sees its real reds; a job's cell is an event's only one, so no index comes twice."""
        if self._unheard is not None:
            self._open *= self._unheard[job]
        at = self._slices[job]
        if at.start < at.stop:
            self._unseen[self._event[at]] *= 1.0 - self._truth[at]


def choose(ranking: Ranking, level: float, bank: float = 0.0, without: frozenset[int] = frozenset()) -> Choice:
    """The jobs that a budget pays for.

    Args:
        ranking: Of the commit.
        level: Share of the cost of all jobs that may be spent, 0 to 1; from 1 on everything runs.
        bank: What earlier commits left, or overdrew.
        without: Jobs that this commit cannot break. Those that were lately red run all the same: are they still?
    """
    without -= ranking.red
    budget = level * ranking.total + bank
    selected, added, spent, saved = dict[int, None](), dict[int, str](), 0.0, 0.0
    for job in ranking.order:
        if job in selected:
            continue
        if job in without and job not in ranking.first and level < 1.0:
            # What a commit cannot break frees money for other commits, not for jobs further down.
            saved += float(ranking.cost[job])
            continue
        fresh = _with_needs(job, ranking, selected)
        price = float(ranking.cost[fresh].sum())
        if job not in ranking.first and level < 1.0 and saved + spent + price / 2 > budget:
            break
        added |= {one: "another selected job needs it" for one in fresh if one != job}
        selected |= dict.fromkeys(fresh)
        spent += price
    for job, why in _for_floors(ranking, selected, without):
        fresh = _with_needs(job, ranking, selected)
        added |= dict.fromkeys(fresh, why)
        selected |= dict.fromkeys(fresh)
        spent += float(ranking.cost[fresh].sum())
    most = _BANK * ranking.total
    left = min(max(budget - spent, -most), most)
    return Choice(selected=list(selected), cost=spent, total=ranking.total, bank=left, added=added)


def _with_needs(job: int, ranking: Ranking, selected: Mapping[int, None]) -> list[int]:
    """What must run before the job, of what exists now and is not chosen yet; then the job."""
    if not ranking.rules.needs:
        return [job]
    found, waiting = {job: None}, [job]
    while waiting:
        for need in ranking.rules.needs.get(waiting.pop(), ()):
            if need not in found and need not in selected and ranking.share[need] <= 1.0:
                found[need] = None
                waiting.append(need)
    return list(reversed(found))


def _for_floors(ranking: Ranking, selected: Mapping[int, None], without: frozenset[int]) -> Iterator[tuple[int, str]]:
    """The best jobs of each facet that has too few; a change of documentation alone needs none that it cannot break."""
    for floor in ranking.rules.floors:
        kind = set(floor.jobs)
        lacking = floor.least - len(kind & selected.keys())
        for job in ranking.order:
            if lacking <= 0:
                break
            if job in kind and job not in selected and job not in without:
                yield job, f"floor: at least {floor.least} of {floor.name}"
                lacking -= 1


def reasons(view: View, ranking: Ranking, choice: Choice) -> dict[int, str]:
    """For each job that exists: why it runs, or does not."""
    selected = set(choice.selected)
    last_red = dict(zip(view.red_job.tolist(), view.red_commit.tolist(), strict=True))
    found = {}
    for place, job in enumerate(ranking.order, 1):
        percent, minutes = 100 * ranking.score[job], view.minutes[job]
        red = f"last red {view.commit - last_red[job]} commits ago" if job in last_red else "not red for long"
        if job in choice.added:
            found[job] = choice.added[job]
        elif job in ranking.first:
            found[job] = ranking.first[job]
        elif job in selected:
            steady = ", broke most often for its cost" if job in ranking.steady else ""
            found[job] = f"{percent:.1f} % of the risk in {minutes:.0f} min, place {place}{steady}: {red}"
        else:
            found[job] = f"{percent:.1f} % of the risk, not worth {minutes:.0f} min at this budget: {red}"
    return found
