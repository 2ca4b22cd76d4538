"""The rule that chooses jobs, as it learns: rankings commit by commit, and what earlier ones turned out to be worth.

Pure. A `Learner` goes through the commits once, in their order. It looks at outcomes only through `Sweep` and `judge`,
which hide what was not known yet.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np

from sooner.analysis.selection.alike import Resemblance
from sooner.analysis.selection.calibrate import Past, level_for
from sooner.analysis.selection.cover import Constraints
from sooner.analysis.selection.decide import Ranking, rank
from sooner.analysis.selection.doubt import doubted
from sooner.analysis.selection.facts import (
    NEVER,
    Cells,
    Flags,
    Indices,
    Numbers,
    Record,
    cells,
    mean_minutes,
    waits,
)
from sooner.analysis.selection.flakes import COUNTED, REAL, ROUNDS, Judged, Rates, judge
from sooner.analysis.selection.hazard import MIXTURE, Sweep, View, mixture, nearness, resemblance_tells
from sooner.analysis.selection.together import Together, together, word_groups
from sooner.analysis.selection.truth import lasting

_CALIBRATION: Final = 1000
"""Commits before the first choice whose breakages the level is learned from."""
_ENOUGH: Final = 200
"""Of these, so many that really broke, the latest: 99 without a miss would prove a recall of 97 %."""
_SELDOM: Final = 10
"""Before the first choice it learns anew so many times less often."""
_ROUNDS_MORE: Final = 3
"""Rounds of judging that go on from the rates learned last."""
_ENOUGH_QUIET: Final = 30
"""Commits of documentation alone that a job must have run on, never broken, before it is left out on such commits."""

Lineage = Callable[[int], Sequence[tuple[Sequence[int], int]]]
"""Jobs (old ones, a new one) that are the same by what is known when a commit's jobs are chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is asked for. Both may be given: the cheapest level that reaches the recall, but never above the budget."""

    recall: float | None = None
    budget: float | None = None

    def level(self, past: Past) -> float:
        """The share of all jobs' cost to spend."""
        wanted = 1.0 if self.recall is None else level_for(past, self.recall)
        if self.budget is None:
            return wanted
        return min(wanted, self.budget)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the project lays down, by job."""

    price: Numbers | None = None
    """Of a minute; 1 by default."""
    queue_weight: float = 0.0
    """What a minute in the queue costs, in minutes of running."""
    pinned: Mapping[int, str] = field(default_factory=dict)
    rules: Constraints = field(default_factory=Constraints)
    """Floors of facets, and jobs that need others."""

    def prices(self, facts: Record, *, before: float = NEVER) -> Numbers | None:
        """Of a minute of each job, with the queue as it was known before a time."""
        if not self.queue_weight:
            return self.price
        return self.queue_weight * waits(facts, before=before) + (1.0 if self.price is None else self.price)


class Learner:
    """Ranks the jobs of one commit after the other."""

    def __init__(
        self,
        facts: Record,
        *,
        every: int = 25,
        terms: Terms | None = None,
        lineage: Lineage | None = None,
        quiet: frozenset[int] = frozenset(),
        files: Mapping[int, Sequence[str]] | None = None,
    ) -> None:
        self.facts = facts
        self.all_cells: Cells = cells(facts)
        self._every, self.terms, self._lineage = every, terms or Terms(), lineage
        self._resemblance = Resemblance(files, len(facts.commits)) if files else None
        self._sweep = Sweep(facts, self.all_cells)
        self._mixture = np.array(MIXTURE)
        self._began = np.full(len(self.all_cells), np.nan)
        self._groups = word_groups(facts.jobs)
        none = cells(facts, before=-np.inf)
        self._together: Together = together(none, np.zeros(0), len(facts.jobs), self._groups)
        self.events: Flags = np.zeros((0, len(facts.jobs)), dtype=bool)
        """[breakage, job]: what really broke, as known when it learned last."""
        self._rates: Rates | None = None
        # A red cell's levels and likelihoods are noted when its commit is ranked, and looked at once it is known.
        self._level, self._width = np.full((2, len(self.all_cells)), np.nan)
        self._likelihood = np.full((len(MIXTURE), len(self.all_cells)), np.nan)
        self._red_cells = _by_commit(self.all_cells, len(facts.commits))
        self._trained = -1
        self._quiet = np.array(sorted(quiet), dtype=np.int64)
        self.harmless: frozenset[int] = frozenset()
        """Jobs that changes of documentation alone have never broken, often enough."""
        self.past = Past(commit=np.zeros(0, dtype=np.int64), real=np.zeros(0), level=np.zeros(0), width=np.zeros(0))
        """Earlier breakages, with their levels."""
        self.judged_cells: Cells | None = None
        self.judged: Judged | None = None
        self.minutes = np.zeros(len(facts.jobs))
        """Mean minutes of each job, as known when it learned last."""
        self.price = self.terms.price
        """Of a minute of each job, as known then; None where all are 1."""

    def warm_up(self, first: int) -> None:
        """Rank the commits before the first choice, as if choices had been made there already.

        Only commits on which something broke or red lasted, by what is known at the first choice: others teach nothing.
        """
        now = self.facts.decided[first] if first < len(self.facts.commits) else np.inf
        known = cells(self.facts, before=now, every=self.all_cells)
        begin = max(0, first - _CALIBRATION)
        broken: dict[int, set[int]] = {}
        began = doubted(known, judge(known, len(self.facts.jobs)), len(self.facts.jobs))
        for kind in (began > COUNTED, lasting(known)):
            at = np.flatnonzero(kind & (known.commit >= begin))
            at = at[np.isin(known.commit[at], np.unique(known.commit[at])[-_ENOUGH:])]
            for commit, job in zip(known.commit[at].tolist(), known.job[at].tolist(), strict=True):
                broken.setdefault(commit, set()).add(job)
        for commit in range(begin, first):
            if (commit - begin) % (_SELDOM * self._every) == 0:
                self.learn(commit)
            if commit in broken:
                self.ranked(commit, until=frozenset(broken[commit]))

    def learn(self, commit: int) -> None:
        """Judge what is known when this commit's jobs are chosen, and learn from it. At most once a commit."""
        if commit == self._trained:
            return
        self._trained = commit
        now = self.facts.decided[commit] if commit < len(self.facts.commits) else np.inf
        known = cells(self.facts, before=now, every=self.all_cells)
        rounds = ROUNDS if self._rates is None else _ROUNDS_MORE
        judged = judge(known, len(self.facts.jobs), start=self._rates, rounds=rounds)
        self._rates, self.judged_cells, self.judged = judged.rates, known, judged
        place = self._places(known)
        began = doubted(known, judged, len(self.facts.jobs))
        self._began[place] = began
        self._together = together(known, began, len(self.facts.jobs), self._groups)
        self.events = _breakages(known, began, len(self.facts.jobs))
        some = (began > COUNTED) & np.isfinite(self._level[place])
        at = place[some]
        self.past = Past(commit=known.commit[some], real=began[some], level=self._level[at], width=self._width[at])
        self._mixture = self._mixed(known, began, place)
        self.harmless = self._never_broken(known, judged)
        self.minutes = mean_minutes(self.facts, before=now)
        self.price = self.terms.prices(self.facts, before=now)
        self._sweep.advance(commit)
        if self._resemblance is not None:
            self._resemblance.learn(commit)
        if self._lineage is not None:
            for old, new in self._lineage(commit):
                self._sweep.inherit(old, new)

    def _mixed(self, known: Cells, began: Numbers, place: Indices) -> Numbers:
        """What each span counts for: it must foretell what is judged to have broken, and what others may call broken.

        Whether red that lasted was a spell of flakes is a matter of opinion, so that either reading has as much to say.
        """
        weight = np.where(began > COUNTED, began, 0.0)
        others = lasting(known) & (weight == 0.0)
        weight[others] = min((weight.sum() + 1.0) / max(int(others.sum()), 1), 1.0)
        some = (weight > 0.0) & np.isfinite(self._level[place])
        told, weight = self._likelihood[:, place[some]], weight[some]
        believed = weight * (began[some] > COUNTED)
        alike = self._resemblance is not None and resemblance_tells(told, believed, known.commit[some])
        return mixture(told, weight, alike=alike)

    def _never_broken(self, known: Cells, judged: Judged) -> frozenset[int]:
        quiet = np.isin(known.commit, self._quiet)
        runs = np.bincount(known.job[quiet], minlength=len(self.facts.jobs))
        broke = np.bincount(known.job[quiet & (judged.began >= COUNTED)], minlength=len(self.facts.jobs))
        return frozenset(np.flatnonzero((runs >= _ENOUGH_QUIET) & (broke == 0)).tolist())

    def without(self, commit: int) -> frozenset[int]:
        """Jobs that a commit cannot break, because it touches only documentation."""
        return self.harmless if commit in self._quiet else frozenset()

    def _places(self, known: Cells) -> Indices:
        """Where cells that are known so far stand among all cells."""
        width = max(1, len(self.facts.jobs))
        all_keys = self.all_cells.commit * width + self.all_cells.job
        return np.searchsorted(all_keys, known.commit * width + known.job)

    def ranked(
        self, commit: int, *, until: frozenset[int] | None = None, files: Sequence[str] = ()
    ) -> tuple[View, Ranking]:
        """The order of a commit's jobs, or as much of it as holds some. Call it with ascending commits.

        Args:
            commit: Its number.
            until: The jobs that the order must hold; all by default.
            files: That a change touches which is none of the commits.
        """
        alike = np.zeros(0) if self._resemblance is None else self._resemblance.to(commit, files)
        view = self._sweep.at(commit, self._began, alike)
        terms = self.terms
        ranking = rank(
            view,
            self._mixture,
            price=self.price,
            pinned=terms.pinned,
            together=self._together,
            rules=terms.rules,
            until=until,
        )
        if commit < len(self._red_cells) and len(reds := self._red_cells[commit]):
            jobs = self.all_cells.job[reds]
            share = ranking.share[jobs]
            # Of an order that ended early, nothing is known of the jobs behind its end.
            self._width[reds] = ranking.width[jobs]
            self._level[reds] = share if until is None else np.where(share <= 1.0, share, np.nan)
            self._likelihood[:, reds] = view.shares()[:, jobs]
        return view, ranking

    @property
    def listens_to_files(self) -> bool:
        """Whether the folders that commits touch have foretold breakages."""
        return nearness(self._mixture) > 0.0

    @property
    def mixture(self) -> Numbers:
        """What each span counts for by now."""
        return self._mixture


def _breakages(known: Cells, began: Numbers, jobs: int) -> Flags:
    """[breakage, job]: the job really broke."""
    real = began >= REAL
    commits, where = np.unique(known.commit[real], return_inverse=True)
    sees = np.zeros((len(commits), jobs), dtype=bool)
    sees[where, known.job[real]] = True
    return sees


def _by_commit(known: Cells, commits: int) -> list[Indices]:
    """Indices of the cells of each commit that failed at least once."""
    red = np.flatnonzero(known.failures > 0)
    bounds = np.searchsorted(known.commit[red], np.arange(commits + 1))
    return [red[begin:end] for begin, end in pairwise(bounds.tolist())]
