"""How likely each job is to break on the next commit, from what is known by then. Pure.

Breakages come in bursts: a job that was red a few commits ago, even if somebody has mended it, or even if half of that
was flakes, breaks again far sooner than one that has been green for months (a self-exciting process; Hawkes 1971). On
Apache Ozone's published history, all of which was in view when this was designed, the rate of red over the last eight
commits ranks the jobs that break next better (AUC 0.85) than everything that is known of a job's breakages in the long
run (0.75). So the hazard of a job is a mixture of its rates of *unexplained red* (failed, and no repeat has passed so
far) over several spans, each shrunk towards a prior that knows only how long the job takes. One more span counts a past
breakage for more where its commit touched the folders that this one touches. It says nothing until it has foretold
breakages better than the same span that knows no folders; on Apache Ozone it never has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Final

import numpy as np

from sooner.analysis.selection.facts import FLOOR_MIN, NEVER, Cells, Flags, Indices, Numbers, Record, cells, numbered
from sooner.analysis.selection.flakes import COUNTED, guessed


class Counts(Enum):
    """What a span counts of a red cell."""

    RED = "all of it"
    BEGAN = "as far as the job really broke on this very commit"
    ALIKE = "the same, for more where that commit resembles the one that is decided, for less where it does not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One view of a job's past; what each is worth is learned (`mixture`)."""

    half_life: float
    """In commits."""
    counts: Counts
    power: float
    """Prior: a job twice as long has 2^power times as much in it that can break."""
    weight: float
    """What the span counts for before anything is learned of a project."""
    reds: float = 1.0
    """What the prior is worth, in reds: rare reds are shrunk over many commits, frequent ones over few."""


_ONLY_PRIOR: Final = 1e4
SPANS: Final = (
    Span(half_life=8.0, counts=Counts.RED, power=0.8, weight=0.3, reds=0.1),
    Span(half_life=40.0, counts=Counts.RED, power=0.8, weight=0.15, reds=0.3),
    Span(half_life=300.0, counts=Counts.RED, power=0.8, weight=0.1),
    Span(half_life=40.0, counts=Counts.BEGAN, power=0.5, weight=0.05),
    Span(half_life=300.0, counts=Counts.BEGAN, power=0.5, weight=0.1),
    Span(half_life=4000.0, counts=Counts.BEGAN, power=0.5, weight=0.2),
    Span(half_life=4000.0, counts=Counts.ALIKE, power=0.5, weight=0.0),
    Span(half_life=4000.0, counts=Counts.BEGAN, power=0.8, weight=0.1, reds=_ONLY_PRIOR),
)
"""A burst, a season, a character; what was really broken lately, within a year, ever; ever by changes like this one;
and long jobs more, whatever they did. Chosen on made projects of seeds 51 to 54, with all of Apache Ozone's table in
view."""
MIXTURE: Final = tuple(span.weight for span in SPANS)
_POWERS: Final = np.array([span.power for span in SPANS])
_WORTH: Final = np.array([[span.reds] for span in SPANS])
_ALIKE: Final = next(at for at, span in enumerate(SPANS) if span.counts is Counts.ALIKE)
_WHATEVER: Final = _ALIKE - 1
"""The same span, whatever the change touches."""
_LONG: Final = 300.0
"""Commits: spans of what really broke that last so long are what greedy cover knows."""
_ALIKE_WEIGHT: Final = 0.2
"""Of the span, before anything is learned, in a project in which folders foretell breakages."""
_SUPPORTED: Final = float(np.log(10.0))
"""They do where breakages so far were ten times likelier by it: strong evidence (Jeffreys 1961). Were they of no use,
at most one project in ten would ever see so much (Ville 1939)."""
_USUAL_BREAKAGES: Final = 1.0
"""Breakages on commits that resemble as much as usual, that not knowing anything of a job is worth."""
_STRENGTH: Final = 8.0
"""Breakages that `MIXTURE` is worth."""
_BASE_HALF_LIFE: Final = 2000.0
_BASE_REDS: Final = 1.0
_BASE_HOURS: Final = 20.0
_COST_HALF_LIFE: Final = 200.0
HORIZON: Final = 3000
"""Reds that are older (in commits) are left out."""
_FEWEST_GAPS: Final = 5.0
_GAPS: Final = 4.0
"""A job is alive unless it was away for four times as many commits as usual, and five at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is known when the jobs of a commit are chosen. Arrays are by job, unless said otherwise."""

    commit: int
    alive: Flags
    """The job has run lately, or the commit brings it."""
    runs: Numbers
    """Commits on which its verdict is known, its predecessors' included."""
    minutes: Numbers
    ran: Numbers
    """Share of the commits with the job on which it passed or failed, rather than being skipped."""
    present: Numbers
    """Share of the commits, since it appeared, that have the job at all: some run only at night, or on some paths."""
    rates: Numbers
    """[span, job]: red cells expected on a commit that has the job."""
    alike: Numbers
    """By earlier commit: how many times as much as usual the commit resembles it (`alike.py`); empty if that is not
    known."""
    lift: Numbers
    """How many times as likely as usual such changes broke the job; 1 where nothing is known."""
    red_commit: Indices
    """Of each red cell within the horizon, oldest first."""
    red_job: Indices

    def shares(self) -> Numbers:
        """[span, job]: of a breakage on this commit, the probability that it is this job's."""
        rates = self.rates * self.alive * self.present
        found: Numbers = rates / np.maximum(rates.sum(axis=1, keepdims=True), 1e-300)
        return found


_NOTHING: Final = np.zeros(0)


class Sweep:
    """Goes through the commits in their order and says what was known at each. Use `at` with ascending commits."""

    def __init__(self, facts: Record, known: Cells | None = None) -> None:
        self._facts = facts
        self._cells = cells(facts) if known is None else known
        self._jobs = len(facts.jobs)
        self._next = -1
        spans = len(SPANS)
        self._decay = np.array([0.5 ** (1 / span.half_life) for span in SPANS])
        self._faded = self._decay[:, None] ** np.arange(len(facts.commits) + 2)
        self._exposure = np.zeros((spans, self._jobs))
        self._runs = np.zeros(self._jobs)
        self._base = np.zeros((2, self._jobs))  # judged, red
        self._spent = np.zeros((2, self._jobs))  # minutes, cells that have some
        self._by_known = np.argsort(self._cells.first_known, kind="stable")
        red = np.flatnonzero(self._cells.first_failure < self._cells.first_pass)
        self._by_failure = red[np.argsort(self._cells.first_failure[red], kind="stable")]
        self._known_times = self._cells.first_known[self._by_known]
        self._failure_times = self._cells.first_failure[self._by_failure]
        self._known = self._failed = self._taken = 0
        self._now = -NEVER
        self._reds = np.zeros(0, dtype=np.int64)
        self._red_jobs = np.zeros(0, dtype=np.int64)
        self._seen = _seen(facts)
        self._last = np.full(self._jobs, -1, dtype=np.int64)
        self._appeared = np.full(self._jobs, -1, dtype=np.int64)
        self._visits = np.zeros(self._jobs)
        self._judged = np.zeros(self._jobs)
        self._heirs: set[tuple[int, int]] = set()

    def at(self, commit: int, began: Numbers, alike: Numbers = _NOTHING) -> View:
        """What is known when this commit's jobs are chosen.

        Args:
            commit: Not before the one that was asked for last.
            began: By cell: how surely its job broke there, and not before; NaN where nobody has judged it yet.
            alike: As in `View`.
        """
        self.advance(commit)
        return self._view(commit, began, alike)

    def advance(self, commit: int) -> None:
        """Take in what is known when this commit's jobs are chosen."""
        while self._next < commit:
            if self._next >= 0:
                self._note_jobs(self._next)
            self._next += 1
            self._step(self._facts.decided[self._next] if self._next < len(self._facts.commits) else NEVER)

    def inherit(self, old: Sequence[int], new: int) -> None:
        """What is known of the old jobs is known of the new one from now on, once for each pair."""
        fresh = [job for job in old if (job, new) not in self._heirs]
        self._heirs.update((job, new) for job in fresh)
        if not fresh:
            return
        self._look_at_reds()
        self._exposure[:, new] += self._exposure[:, fresh].mean(axis=1)
        self._runs[new] += self._runs[fresh].max()
        # Shards that were cut anew have theirs from the same shards before: the same red is taken once.
        taken = np.unique(self._reds[np.isin(self._red_jobs, fresh)])
        self._reds = np.concatenate([self._reds, taken])
        self._red_jobs = np.concatenate([self._red_jobs, np.full(len(taken), new)])

    def _note_jobs(self, commit: int) -> None:
        present = self._seen[commit]
        self._last[present] = commit
        self._visits[present] += 1
        first = present[self._appeared[present] < 0]
        self._appeared[first] = commit

    def _step(self, now: float) -> None:
        """One commit further: everything decays, and what became known until now is taken in."""
        known = self._cells
        self._exposure *= self._decay[:, None]
        self._base *= 0.5 ** (1 / _BASE_HALF_LIFE)
        self._spent *= 0.5 ** (1 / _COST_HALF_LIFE)
        end = int(np.searchsorted(self._known_times, now, side="left"))
        index = self._by_known[self._known : end]
        self._known = end
        age = np.maximum(self._next - known.commit[index], 0)
        jobs, minutes = known.job[index], known.minutes[index]
        self._exposure += np.stack([np.bincount(jobs, faded[age], self._jobs) for faded in self._faded])
        came = np.bincount(jobs, minlength=self._jobs)
        self._runs += came
        self._judged += came
        self._base[0] += came
        timed = np.isfinite(minutes)
        self._spent[0] += np.bincount(jobs[timed], minutes[timed], self._jobs)
        self._spent[1] += np.bincount(jobs[timed], minlength=self._jobs)
        end = int(np.searchsorted(self._failure_times, now, side="left"))
        fresh = self._by_failure[self._failed : end]
        self._failed, self._now = end, now
        self._base[1] += np.bincount(known.job[fresh], minlength=self._jobs)

    def _look_at_reds(self) -> None:
        """Take in the cells that failed, and leave out those that passed since, or are too old by now."""
        known = self._cells
        fresh = self._by_failure[self._taken : self._failed]
        self._taken = self._failed
        reds = np.concatenate([self._reds, fresh])
        jobs = np.concatenate([self._red_jobs, known.job[fresh]])
        still = (known.first_pass[reds] >= self._now) & (known.commit[reds] > self._next - HORIZON)
        self._reds, self._red_jobs = reds[still], jobs[still]

    def _view(self, commit: int, began: Numbers, alike: Numbers) -> View:
        self._look_at_reds()
        order = np.argsort(self._cells.commit[self._reds], kind="stable")
        reds, jobs = self._reds[order], self._red_jobs[order]
        alive, minutes = self._alive(commit), self._minutes()
        believed = self._believed(reds, began, int(alive.sum()))
        rates, lift = (
            self._rates(commit, reds, jobs, believed, minutes),
            self._lift(commit, reds, jobs, believed, alike),
        )
        rates[_ALIKE] = rates[_WHATEVER] * lift
        return View(
            commit=commit,
            alive=alive,
            runs=self._runs.copy(),
            minutes=minutes,
            ran=self._ran(),
            present=self._present(),
            rates=rates,
            alike=alike,
            lift=lift,
            red_commit=self._cells.commit[reds],
            red_job=jobs,
        )

    def _rates(self, commit: int, reds: Indices, jobs: Indices, began: Numbers, minutes: Numbers) -> Numbers:
        """[span, job]: a gamma prior that knows only how long the jobs take, and what was seen of each."""
        size = (np.maximum(minutes, 1.0) / 60.0) ** _POWERS[:, None]
        hours = (self._base[0] * size).sum(axis=1) + _BASE_HOURS
        prior = ((self._base[1].sum() + _BASE_REDS) / hours)[:, None] * size
        age = np.maximum(commit - self._cells.commit[reds], 0)
        seen = np.empty_like(prior)
        for at, span in enumerate(SPANS):
            count = self._faded[at][age]
            if span.counts is not Counts.RED:
                count *= began
                prior[at] *= (began.sum() + 1.0) / (len(reds) + 10.0)
            seen[at] = np.bincount(jobs, count, self._jobs)
        found: Numbers = (seen + _WORTH) / (self._exposure + _WORTH / prior)
        return found

    def _lift(self, commit: int, reds: Indices, jobs: Indices, began: Numbers, alike: Numbers) -> Numbers:
        """By job: how much more than usual the commit resembles those that broke it, shrunk towards no more."""
        if not len(alike):
            return np.ones(self._jobs)
        at = self._cells.commit[reds]
        count = np.where(began > COUNTED, began, 0.0) * self._faded[_ALIKE][np.maximum(commit - at, 0)]
        near, whole = np.bincount(jobs, count * alike[at], self._jobs), np.bincount(jobs, count, self._jobs)
        found: Numbers = (near + _USUAL_BREAKAGES) / (whole + _USUAL_BREAKAGES)
        return found

    def _believed(self, reds: Indices, began: Numbers, alive: int) -> Numbers:
        """How surely jobs broke in these cells; where nobody has judged it yet, by how many others are red there."""
        if not len(reds):
            return np.zeros(0)
        commit = np.cumsum(np.diff(self._cells.commit[reds], prepend=-1) != 0) - 1  # they are in the order of commits
        by_chance = alive * self._base[1].sum() / max(self._base[0].sum(), 1.0)
        found = began[reds]
        fresh = np.flatnonzero(np.isnan(found))
        found[fresh] = guessed(np.bincount(commit)[commit[fresh]] - 1.0 - by_chance)
        return found

    def _minutes(self) -> Numbers:
        known = self._spent[1] > 0
        mean = self._spent[0] / np.maximum(self._spent[1], 1e-9)
        typical = float(np.median(mean[known])) if known.any() else 10.0
        found: Numbers = np.maximum(np.where(known, mean, typical), FLOOR_MIN)
        return found

    def _ran(self) -> Numbers:
        """Share of the commits that have a job on which it came to a verdict: most skip some jobs."""
        found: Numbers = np.minimum((self._judged + 1.0) / (self._visits + 1.0), 1.0)
        return found

    def _gap(self) -> Numbers:
        """Commits from one that has a job to the next."""
        found: Numbers = (self._last - self._appeared + 1) / np.maximum(self._visits, 1)
        return found

    def _present(self) -> Numbers:
        found = 1.0 / np.maximum(self._gap(), 1.0)
        found[self._last < 0] = 1.0
        return found

    def _alive(self, commit: int) -> Flags:
        gap = self._gap()
        alive: Flags = (self._last >= 0) & (commit - self._last <= np.maximum(_FEWEST_GAPS, _GAPS * gap))
        if commit < len(self._seen):
            alive[self._seen[commit]] = True  # new, or back after long
        return alive


def _seen(facts: Record) -> list[Indices]:
    """The jobs of each commit, whatever became of them: its own workflow files name them."""
    keys, _, _ = numbered(facts.commit * max(1, len(facts.jobs)) + facts.job, len(facts.commits) * len(facts.jobs))
    commits, jobs = keys // max(1, len(facts.jobs)), keys % max(1, len(facts.jobs))
    bounds = np.searchsorted(commits, np.arange(len(facts.commits) + 1))
    return [jobs[begin:end] for begin, end in pairwise(bounds.tolist())]


def nearness(counts: Numbers) -> float:
    """How much of what is known of breakages in the long run is said by changes that resemble this one.

    Args:
        counts: What each span counts for.
    """
    long = [span.counts is not Counts.RED and span.half_life >= _LONG and span.reds < _ONLY_PRIOR for span in SPANS]
    return float(counts[_ALIKE] / max(counts[long].sum(), 1e-9))


def resemblance_tells(likelihoods: Numbers, weights: Numbers, commits: Indices) -> bool:
    """Whether breakages so far were foretold far better by changes that resemble those which broke a job before.

    Each was foretold before it was known, so that the product of the ratios is evidence by itself (Dawid 1984): by half
    of each span against the one that knows no folders. Jobs of the same commit are one breakage.

    Args:
        likelihoods: As for `mixture`.
        weights: As for `mixture`.
        commits: Of each breakage.
    """
    better = likelihoods[_ALIKE] / np.maximum(likelihoods[_WHATEVER], 1e-300)
    _, which = np.unique(commits, return_inverse=True)
    whole = np.bincount(which, weights)
    told = np.bincount(which, weights * np.log(0.5 + 0.5 * better))
    return bool((told / np.maximum(whole, 1.0)).sum() >= _SUPPORTED)


def mixture(likelihoods: Numbers, weights: Numbers, *, strength: float = _STRENGTH, alike: bool = False) -> Numbers:
    """What each span counts for, from the breakages so far; shrunk towards `MIXTURE`.

    Args:
        likelihoods: [span, breakage]: what each span gave the job that then broke (`View.shares`).
        weights: How real each breakage was.
        strength: Breakages that the prior is worth.
        alike: Whether it is known to tell something which folders are touched.
    """
    prior = np.array(MIXTURE)
    if alike:
        prior *= 1.0 - _ALIKE_WEIGHT
        prior[_ALIKE] = _ALIKE_WEIGHT
    found = prior.copy()
    for _ in range(50):
        parts = found[:, None] * likelihoods
        parts *= weights / np.maximum(parts.sum(axis=0), 1e-300)
        found = parts.sum(axis=1) + strength * prior
        found /= found.sum()
    return found
