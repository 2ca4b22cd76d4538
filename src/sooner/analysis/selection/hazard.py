"""How likely each job is to break on the next commit, from what is known by then. Pure.

Breakages come in bursts: a job that was red a few commits ago, even if somebody has mended it, or even if half of that
was flakes, breaks again far sooner than one that has been green for months (a self-exciting process; Hawkes 1971). On
Apache Ozone's published history, all of which was in view when this was designed, the rate of red over the last eight
commits ranks the jobs that break next better (AUC 0.85) than everything that is known of a job's breakages in the long
run (0.75). So the hazard of a job is a mixture of its rates of *unexplained red* (failed, and no repeat has passed so
far) over several spans, each shrunk towards a prior that knows only how long the job takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from sooner.analysis.selection.facts import NEVER, Cells, Flags, Indices, Numbers, Record, cells, numbered

HALF_LIVES: Final = (8.0, 40.0, 500.0, 1000.0)
"""In commits: a burst, a season, a character; the last counts reds only as far as they were judged real. Between 5 and
25, 25 and 100, 200 and 1500 commits little changes."""
MIXTURE: Final = (0.35, 0.2, 0.15, 0.3)
"""What each span counts for before anything is learned of a project: half for red of late, half for the long run."""
PRIOR_CELLS: Final = (10.0, 10.0, 10.0, 100.0)
"""Cells that the prior is worth in each span."""
_REAL: Final = -1
"""The span that counts real breakages."""
_DURATION_POWER: Final = 0.8
"""Prior: a job twice as long has 2^0.8 times as much in it that can break."""
_BASE_HALF_LIFE: Final = 2000.0
_BASE_REDS: Final = 1.0
_BASE_HOURS: Final = 20.0
_COST_HALF_LIFE: Final = 200.0
HORIZON: Final = 3000
"""Reds that are older (in commits) are left out: three half-lives of the longest span."""
_FEWEST_GAPS: Final = 5.0
_GAPS: Final = 4.0
"""A job is alive unless it was away for four times as many commits as usual, and five at least."""
_FLOOR_MIN: Final = 0.05
_UNJUDGED: Final = 0.1
"""How real a red cell is that stands alone: of repeated failures on Apache Ozone 5 % stay red."""
_BELIEVED: Final = 0.8
"""What many red jobs on one commit add."""


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
    exposure: Numbers
    """[span, job]: commits on which it was judged, decayed."""
    prior: Numbers
    """[span, job]: red cells expected per commit of a job of this length."""
    red_commit: Indices
    """Of each red cell within the horizon, oldest first."""
    red_job: Indices
    red_cell: Indices
    """Index among the cells."""
    red_real: Numbers
    """How surely it was red for a reason."""
    red_weight: Numbers
    """[span, red cell]: how much of it is left."""

    def weights(self, mixture: Numbers) -> tuple[Numbers, Numbers]:
        """By job, what the prior alone gives; by red cell, what it adds to its job: together the jobs' hazards."""
        factor = mixture[:, None] / (self.exposure + np.array(PRIOR_CELLS)[:, None])
        fixed = (factor * np.array(PRIOR_CELLS)[:, None] * self.prior).sum(axis=0)
        return fixed, (factor[:, self.red_job] * self.red_weight).sum(axis=0)

    def shares(self) -> Numbers:
        """[span, job]: of a breakage on this commit, the probability that it is this job's."""
        count, cells = len(self.alive), np.array(PRIOR_CELLS)[:, None]
        reds = np.stack([np.bincount(self.red_job, weight, count) for weight in self.red_weight])
        rates = (reds + cells * self.prior) / (self.exposure + cells) * self.alive
        found: Numbers = rates / np.maximum(rates.sum(axis=1, keepdims=True), 1e-300)
        return found


class Sweep:
    """Goes through the commits in their order and says what was known at each. Use `at` with ascending commits."""

    def __init__(self, facts: Record, known: Cells | None = None) -> None:
        self._facts = facts
        self._cells = cells(facts) if known is None else known
        self._jobs = len(facts.jobs)
        self._next = -1
        spans = len(HALF_LIVES)
        self._decay = np.array([0.5 ** (1 / span) for span in HALF_LIVES])
        self._exposure = np.zeros((spans, self._jobs))
        self._runs = np.zeros(self._jobs)
        self._base = np.zeros((2, self._jobs))  # judged, red
        self._spent = np.zeros((2, self._jobs))  # minutes, cells that have some
        self._by_known = np.argsort(self._cells.first_known, kind="stable")
        red = self._cells.first_failure < self._cells.first_pass
        by_failure = np.argsort(self._cells.first_failure, kind="stable")
        self._by_failure = by_failure[red[by_failure]]
        self._known_times = self._cells.first_known[self._by_known]
        self._failure_times = self._cells.first_failure[self._by_failure]
        self._known = self._failed = 0
        self._reds = np.zeros(0, dtype=np.int64)
        self._red_jobs = np.zeros(0, dtype=np.int64)
        self._seen = _seen(facts)
        self._last = np.full(self._jobs, -1, dtype=np.int64)
        self._appeared = np.full(self._jobs, -1, dtype=np.int64)
        self._visits = np.zeros(self._jobs)
        self._judged = np.zeros(self._jobs)
        self._heirs: set[tuple[int, int]] = set()

    def at(self, commit: int, real: Numbers) -> View:
        """What is known when this commit's jobs are chosen.

        Args:
            commit: Not before the one that was asked for last.
            real: By cell: how surely it was red for a reason, NaN where nobody has judged it yet.
        """
        self.advance(commit)
        return self._view(commit, real)

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
        self._exposure[:, new] += self._exposure[:, fresh].mean(axis=1)
        self._runs[new] += self._runs[fresh].max()
        taken = np.isin(self._red_jobs, fresh)
        self._reds = np.concatenate([self._reds, self._reds[taken]])
        self._red_jobs = np.concatenate([self._red_jobs, np.full(int(taken.sum()), new)])

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
        for span, decay in enumerate(self._decay):
            np.add.at(self._exposure[span], known.job[index], decay**age)
        np.add.at(self._runs, known.job[index], 1.0)
        np.add.at(self._judged, known.job[index], 1.0)
        np.add.at(self._base[0], known.job[index], 1.0)
        timed = index[np.isfinite(known.minutes[index])]
        np.add.at(self._spent[0], known.job[timed], known.minutes[timed])
        np.add.at(self._spent[1], known.job[timed], 1.0)
        end = int(np.searchsorted(self._failure_times, now, side="left"))
        fresh = self._by_failure[self._failed : end]
        self._failed = end
        np.add.at(self._base[1], known.job[fresh], 1.0)
        reds = np.concatenate([self._reds, fresh])
        jobs = np.concatenate([self._red_jobs, known.job[fresh]])
        still = (known.first_pass[reds] >= now) & (known.commit[reds] > self._next - HORIZON)
        self._reds, self._red_jobs = reds[still], jobs[still]

    def _view(self, commit: int, real: Numbers) -> View:
        minutes = self._minutes()
        size = (np.maximum(minutes, 1.0) / 60.0) ** _DURATION_POWER
        order = np.argsort(self._cells.commit[self._reds], kind="stable")
        reds, jobs = self._reds[order], self._red_jobs[order]
        age = np.maximum(commit - self._cells.commit[reds], 0)
        alive = self._alive(commit)
        truth = self._believed(reds, real, int(alive.sum()))
        weight = self._decay[:, None] ** age
        weight[_REAL] *= truth
        hours = (self._base[0] * size).sum() + _BASE_HOURS
        prior = np.repeat((self._base[1].sum() + _BASE_REDS) / hours * size[None], len(HALF_LIVES), axis=0)
        prior[_REAL] *= (truth.sum() + 1.0) / (len(reds) + 10.0)
        return View(
            commit=commit,
            alive=alive,
            runs=self._runs.copy(),
            minutes=minutes,
            ran=self._ran(),
            exposure=self._exposure.copy(),
            prior=prior,
            red_commit=self._cells.commit[reds],
            red_job=jobs,
            red_cell=reds,
            red_real=truth,
            red_weight=weight,
        )

    def _believed(self, reds: Indices, real: Numbers, alive: int) -> Numbers:
        """How real reds are; those that nobody has judged yet by how many others their commit has beyond chance."""
        if not len(reds):
            return np.zeros(0)
        _, commit = np.unique(self._cells.commit[reds], return_inverse=True)
        others = np.bincount(commit)[commit] - 1.0
        by_chance = alive * self._base[1].sum() / max(self._base[0].sum(), 1.0)
        guess = _UNJUDGED + _BELIEVED * (1.0 - np.exp(-np.maximum(others - by_chance, 0.0)))
        found: Numbers = np.where(np.isnan(real[reds]), guess, real[reds])
        return found

    def _minutes(self) -> Numbers:
        known = self._spent[1] > 0
        mean = self._spent[0] / np.maximum(self._spent[1], 1e-9)
        typical = float(np.median(mean[known])) if known.any() else 10.0
        found: Numbers = np.maximum(np.where(known, mean, typical), _FLOOR_MIN)
        return found

    def _ran(self) -> Numbers:
        """Share of the commits that have a job on which it came to a verdict: most skip some jobs."""
        found: Numbers = np.minimum((self._judged + 1.0) / (self._visits + 1.0), 1.0)
        return found

    def _alive(self, commit: int) -> Flags:
        gap = (self._last - self._appeared + 1) / np.maximum(self._visits, 1)
        alive: Flags = (self._last >= 0) & (commit - self._last <= np.maximum(_FEWEST_GAPS, _GAPS * gap))
        if commit < len(self._seen):
            alive = alive.copy()
            new = self._seen[commit]
            alive[new[self._last[new] < 0]] = True
        return alive


def _seen(facts: Record) -> list[Indices]:
    """The jobs of each commit, whatever became of them: its own workflow files name them."""
    keys, _, _ = numbered(facts.commit * max(1, len(facts.jobs)) + facts.job, len(facts.commits) * len(facts.jobs))
    commits, jobs = keys // max(1, len(facts.jobs)), keys % max(1, len(facts.jobs))
    bounds = np.searchsorted(commits, np.arange(len(facts.commits) + 1))
    return [jobs[begin:end] for begin, end in pairwise(bounds.tolist())]


def mixture(likelihoods: Numbers, weights: Numbers, *, strength: float = 3.0) -> Numbers:
    """What each span counts for, from the breakages so far; shrunk towards `MIXTURE`.

    Args:
        likelihoods: [span, breakage]: what each span gave the job that then broke (`View.shares`).
        weights: How real each breakage was.
        strength: Breakages that the prior is worth.
    """
    prior = np.array(MIXTURE)
    found = prior.copy()
    for _ in range(50):
        parts = found[:, None] * likelihoods
        parts *= weights / np.maximum(parts.sum(axis=0), 1e-300)
        found = parts.sum(axis=1) + strength * prior
        found /= found.sum()
    return found
