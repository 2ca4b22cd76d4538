"""What selection is decided from. Pure data: `load.py` fills it from the history, tests write it by hand. Needs numpy.

An attempt is one execution of a job on a commit, a cell is a job on a commit with all its attempts together. All times
are epoch seconds. Commits are numbered in the order of their decision times, the moments at which somebody had to
choose their jobs; nothing that became known later may be used for that choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]


class State(IntEnum):
    """What is known of a job on a commit. Only PASSED and FAILED say anything about the code."""

    NOT_RUN = 0
    PASSED = 1
    FAILED = 2
    SKIPPED = 3
    BLOCKED = 4
    """Skipped because a job that it depends on had failed: a failed build hides its tests."""
    CANCELLED = 5
    INFRASTRUCTURE = 6


NEVER: Final = np.inf
"""The time of what has not happened."""
_DENSE: Final = 100_000_000
"""Up to so many commits x jobs a table of all is faster than sorting."""
_FEW_JOBS: Final = 1 << 16
"""So many jobs are sorted by their digits."""
_LEARNED: Final = 2_000_000
"""Attempts that are learned from: of a thousand jobs 2,000 commits. On made projects the latest 2,000 commits teach to
catch 1 to 3 % fewer breakages than 8,400 do, over five budgets (`bench/selection.py --only memory`)."""
_FEWEST_COMMITS: Final = 1000
_FEWEST_RUNS: Final = 50
_CELLS: Final = ("commit", "job", "passes", "failures", "first_known", "first_failure", "first_pass", "minutes")
FLOOR_MIN: Final = 0.05
"""No job costs less than a run of so many minutes."""
_FIRST_GUESS_MIN: Final = 10.0
"""Minutes of a job that never ended: only its first choice depends on this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """All attempts of all jobs of one branch."""

    commits: Sequence[str]
    decided: Numbers
    """When each commit's jobs had to be chosen, ascending: its earliest job was created or started then."""
    jobs: Sequence[str]
    commit: Indices
    """Of each attempt: index of its commit. Attempts are in the order of `known`."""
    job: Indices
    state: NDArray[np.int8]
    known: Numbers
    """When the attempt's outcome was known."""
    minutes: Numbers
    """NaN where unknown."""
    wait_min: Numbers
    """Minutes in the queue, NaN where unknown."""
    runner: Sequence[str]
    """Labels of the pool that each job last ran on; by job."""
    failure_lines: Mapping[tuple[int, int], str]
    """(commit, job) -> first failure line, where the history has one."""


class InARow(NamedTuple):
    """Consecutive cells of one job (over the commits on which it was judged) without any pass: runs of red."""

    order: Indices
    """The cells by job, then by commit."""
    job: Indices
    """Of each cell in that order."""
    follows: Flags
    """Whether each cell in that order goes on with a run."""
    starts: Indices
    """[run]: its first place in that order."""
    places: Indices
    """Places of all red cells in that order ..."""
    run: Indices
    """... and the run that each is of."""
    closed: Flags
    """[run]: a pass followed."""


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Every job on every commit where it passed or failed at least once, sorted by (commit, job)."""

    commit: Indices
    job: Indices
    passes: Indices
    failures: Indices
    first_known: Numbers
    """When the first verdict was known, and so on; NEVER where there is none."""
    first_failure: Numbers
    first_pass: Numbers
    minutes: Numbers
    """Mean of the attempts, NaN where unknown."""

    def __len__(self) -> int:
        return len(self.commit)

    @cached_property
    def by_job(self) -> Indices:
        """The cells by job, those of a job in the order of commits."""
        few = self.job.astype(np.uint16) if len(self) and self.job.max() < _FEW_JOBS else self.job
        return np.argsort(few, kind="stable")

    @cached_property
    def in_a_row(self) -> InARow:
        """The runs of red."""
        order = self.by_job
        red, job = self.passes[order] == 0, self.job[order]
        follows = np.zeros(len(order), dtype=bool)
        follows[1:] = red[1:] & red[:-1] & (job[1:] == job[:-1])
        begins = red & ~follows
        starts, run = np.flatnonzero(begins), np.cumsum(begins)[red] - 1
        after = starts + np.bincount(run, minlength=len(starts))
        inside = np.minimum(after, len(order) - 1)
        closed = (after < len(order)) & (job[inside] == job[starts])
        return InARow(order, job, follows, starts, np.flatnonzero(red), run, closed)


def record(
    commits: Sequence[str],
    jobs: Sequence[str],
    attempts: Sequence[tuple[int, int, State, float, float]],
    *,
    runner: Sequence[str] = (),
) -> Record:
    """A record written by hand.

    Args:
        commits: sha of each commit.
        jobs: Names.
        attempts: (commit, job, state, started, minutes) of each; a commit is decided when its first attempt starts.
        runner: Labels by job.
    """
    table = np.array([(c, j, int(s), at, m) for c, j, s, at, m in attempts], dtype=np.float64).reshape(-1, 5)
    return recorded(
        commits,
        jobs,
        commit=table[:, 0].astype(np.int64),
        job=table[:, 1].astype(np.int64),
        state=table[:, 2].astype(np.int8),
        asked=table[:, 3],
        known=table[:, 3] + 60 * np.nan_to_num(table[:, 4]),
        minutes=table[:, 4],
        runner=runner,
    )


def recorded(
    commits: Sequence[str],
    jobs: Sequence[str],
    *,
    commit: Indices,
    job: Indices,
    state: NDArray[np.int8],
    asked: Numbers,
    known: Numbers,
    minutes: Numbers,
    wait_min: Numbers | None = None,
    runner: Sequence[str] = (),
    failure_lines: Mapping[tuple[int, int], str] | None = None,
) -> Record:
    """A record from columns in any order: commits are put into the order of their first attempt."""
    decided = np.full(len(commits), NEVER)
    np.minimum.at(decided, commit, asked)
    place = np.argsort(decided, kind="stable")
    rank = np.empty(len(commits), dtype=np.int64)
    rank[place] = np.arange(len(commits))
    order = np.argsort(known, kind="stable")
    waits = np.full(len(commit), np.nan) if wait_min is None else wait_min
    lines = {(int(rank[c]), j): line for (c, j), line in (failure_lines or {}).items()}
    return Record(
        commits=[commits[i] for i in place],
        decided=decided[place],
        jobs=list(jobs),
        commit=rank[commit][order],
        job=job[order],
        state=state[order],
        known=known[order],
        minutes=minutes[order],
        wait_min=waits[order],
        runner=list(runner) or [""] * len(jobs),
        failure_lines=lines,
    )


def cells(facts: Record, *, before: float = NEVER, every: Cells | None = None) -> Cells:
    """All cells, from the attempts whose outcome was known before a time.

    Args:
        facts: The record.
        before: The time.
        every: The cells of all attempts, where they are known: most of those before a time are the same.
    """
    seen = int(np.searchsorted(facts.known, before))  # attempts are in the order in which they were known
    if every is not None and len(facts.commits) * len(facts.jobs) <= _DENSE:
        return _before(facts, every, before, seen) if seen < len(facts.known) else every
    return _of_attempts(facts, slice(seen))


def _before(facts: Record, every: Cells, before: float, seen: int) -> Cells:
    """Those of all cells that were known before a time; where an attempt came later, they are counted anew."""
    width = max(1, len(facts.jobs))
    late = np.zeros(len(facts.commits) * width, dtype=bool)
    late[facts.commit[seen:] * width + facts.job[seen:]] = True
    kept = every.first_known < before
    first = len(kept) if kept.all() else int(np.argmin(kept))  # nearly all that are kept come before the others
    found = {
        name: np.concatenate([values[:first], values[first:][kept[first:]]])
        for name, values in ((name, getattr(every, name)) for name in _CELLS)
    }
    anew = _of_attempts(facts, np.flatnonzero(late[facts.commit[:seen] * width + facts.job[:seen]]))
    place = np.searchsorted(found["commit"] * width + found["job"], anew.commit * width + anew.job)
    for name, values in found.items():
        values[place] = getattr(anew, name)
    return Cells(**found)


def _of_attempts(facts: Record, seen: slice | Indices) -> Cells:
    state = facts.state[seen]
    counted = (state == State.PASSED) | (state == State.FAILED)
    keys = facts.commit[seen][counted] * max(1, len(facts.jobs)) + facts.job[seen][counted]
    failed = state[counted] == State.FAILED
    known, minutes = facts.known[seen][counted], facts.minutes[seen][counted]
    unique, where, count = numbered(keys, len(facts.commits) * len(facts.jobs))
    timed = np.isfinite(minutes)
    spent = np.bincount(where[timed], minutes[timed], count)
    some = np.bincount(where[timed], minlength=count)
    return Cells(
        commit=unique // max(1, len(facts.jobs)),
        job=unique % max(1, len(facts.jobs)),
        passes=np.bincount(where[~failed], minlength=count),
        failures=np.bincount(where[failed], minlength=count),
        first_known=_earliest(where, known, count),
        first_failure=_earliest(where[failed], known[failed], count),
        first_pass=_earliest(where[~failed], known[~failed], count),
        minutes=np.divide(spent, some, out=np.full(count, np.nan), where=some > 0),
    )


def numbered(keys: Indices, space: int) -> tuple[Indices, Indices, int]:
    """Distinct keys in order, the place of each key among them, and how many there are."""
    if space > _DENSE:
        unique, where = np.unique(keys, return_inverse=True)
        return unique, where, len(unique)
    present = np.zeros(space, dtype=bool)
    present[keys] = True
    unique = np.flatnonzero(present)
    place = np.zeros(space, dtype=np.int64)
    place[unique] = np.arange(len(unique))
    return unique, place[keys], len(unique)


def _earliest(where: Indices, known: Numbers, count: int) -> Numbers:
    """The first time at each place; times are ascending, so what is written last, backwards, is the first."""
    times = np.full(count, NEVER)
    times[where[::-1]] = known[::-1]
    return times


def mean_minutes(facts: Record, *, before: float = NEVER) -> Numbers:
    """Mean minutes of each job's attempts that passed or failed."""
    judged = (facts.state == State.PASSED) | (facts.state == State.FAILED)
    counted = judged & np.isfinite(facts.minutes) & (facts.known < before)
    spent = np.bincount(facts.job[counted], facts.minutes[counted], len(facts.jobs))
    count = np.bincount(facts.job[counted], minlength=len(facts.jobs))
    return np.where(count > 0, spent / np.maximum(count, 1), _FIRST_GUESS_MIN)


def waits(facts: Record, *, before: float = NEVER) -> Numbers:
    """Minutes that each job waits in the queue for every minute that it runs."""
    counted = np.isfinite(facts.wait_min) & np.isfinite(facts.minutes) & (facts.known < before)
    job, ran = facts.job[counted], np.maximum(facts.minutes[counted], FLOOR_MIN)
    waited = np.bincount(job, facts.wait_min[counted], len(facts.jobs))
    found: Numbers = waited / np.maximum(np.bincount(job, ran, len(facts.jobs)), FLOOR_MIN)
    return found


def latest(facts: Record, *, attempts: int = _LEARNED, commits: int = _FEWEST_COMMITS) -> Record:
    """The record without what is too old to be learned from where there is much: commits keep their numbers.

    Args:
        facts: The record.
        attempts: The latest commits that have at most so many together are kept whole, ...
        commits: ... but at least so many commits, and of jobs that run seldom their latest attempts (50).
    """
    have = np.cumsum(np.bincount(facts.commit, minlength=len(facts.commits))[::-1])
    first = len(facts.commits) - max(int(np.searchsorted(have, attempts, side="right")), commits)
    if first <= 0:
        return facts
    kept = facts.commit >= first
    lacking = _FEWEST_RUNS - np.bincount(facts.job[kept], minlength=len(facts.jobs))
    old = np.flatnonzero(~kept & (lacking > 0)[facts.job])[::-1]  # the latest first
    old = old[np.argsort(facts.job[old], kind="stable")]
    job = facts.job[old]
    begin = np.searchsorted(job, np.arange(len(facts.jobs)))
    kept[old[np.arange(len(old)) - begin[job] < lacking[job]]] = True
    return _only(facts, kept)


def _only(facts: Record, kept: Flags) -> Record:
    """The record with some of its attempts."""
    columns = ("commit", "job", "state", "known", "minutes", "wait_min")
    some: dict[str, Any] = {name: getattr(facts, name)[kept] for name in columns}
    return replace(facts, **some)


def until(facts: Record, commit: int) -> Record:
    """The record as it was when a commit's jobs were chosen: for tests that nothing later is used."""
    return _only(facts, facts.known < facts.decided[commit])
