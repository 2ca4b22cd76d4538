"""Rows of the history as runs of tests and jobs, and as what landed; for `flaky` and `digest`. Needs numpy."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sooner.analysis.trunk.attempts import Attempts, Codes, Flags, are_among, is_any, name_of, read_attempts
from sooner.analysis.trunk.digest import Landed
from sooner.analysis.trunk.facts import Kind, Status
from sooner.analysis.trunk.flaky import Run, Subject
from sooner.analysis.trunk.landed import commits_between
from sooner.analysis.trunk.load_jobs import every_job
from sooner.history import History, Where, of_requests


class Found(NamedTuple):
    """Runs that tell of flakes."""

    runs: list[Run]
    attempts: int
    """How many there were that passed or failed, also of what never flaked."""
    with_cases: frozenset[tuple[str, str]] = frozenset()
    """Units, with their variants, of which single tests are known."""


def runs_of_tests(history: History, where: Where, *, keep: Collection[str] = ()) -> Found:
    """Runs of every test that both failed and passed on some commit, and of those to keep.

    Args:
        history: The history.
        where: Which rows; tests know no workflow and no event, and those that know no branch are of any.
        keep: Ids of tests whose runs are wanted whatever they came to; also those of their parameters.
    """
    every = read_attempts(history, where)
    with_cases = _units_with_cases(every)
    ended = every.at(every.came_to[Status.SUCCESS] | every.came_to[Status.FAILURE])
    some = _that_flaked(ended, keep)
    made: dict[int, Subject] = {}
    runs = []
    for i, key in enumerate(_subjects(some).tolist()):
        if key not in made:
            name, variant = name_of(some.names, some.name[i]), name_of(some.variants, some.variant[i])
            made[key] = Subject(Kind.TEST, name, variant)
        runs.append(
            Run(
                subject=made[key],
                where=name_of(some.jobs, some.job[i]),
                code=name_of(some.commits, some.commit[i]) or f"run {name_of(some.runs, some.run[i])}",
                failed=bool(some.came_to[Status.FAILURE][i]),
                started=_number(some.started, i),
                seconds=_number(some.seconds, i),
            )
        )
    return Found(runs, len(ended.run), with_cases)


def _that_flaked(every: Attempts, keep: Collection[str]) -> Attempts:
    """Runs of what both failed and passed on one commit, and of what is to be kept."""
    held = _held(every.names, keep)
    subject = _subjects(every)
    some = every.at(held[every.name] | are_among(subject, np.unique(subject[every.came_to[Status.FAILURE]])))
    subject = _subjects(some)
    mixed = np.unique(subject[_mixed(subject, _places(some), some.came_to[Status.FAILURE])])
    return some.at(held[some.name] | are_among(subject, mixed))


def _held(names: Sequence[str], keep: Collection[str]) -> Flags:
    """Which names are to be kept, and last one that is none: by name, or as the parameters of what has this name."""
    return np.array([*(name in keep or name.partition("[")[0] in keep for name in names), False], dtype=bool)


def _subjects(attempts: Attempts) -> Codes:
    """A number for each test or unit, with its variant."""
    found: Codes = (attempts.variant + 1) * (len(attempts.names) + 1) + attempts.name + 1
    return found


def _places(attempts: Attempts) -> Codes:
    """A number for each commit in each job; where no commit is known, for each run."""
    commits = len(attempts.commits)
    code = np.where(attempts.commit >= 0, attempts.commit, commits + 1 + attempts.run)
    found: Codes = (attempts.job + 1) * (commits + len(attempts.runs) + 2) + code
    return found


def _mixed(subject: Codes, place: Codes, failed: Flags) -> Flags:
    """Passes of a subject on a commit, in a job, where it failed too."""
    widest = int(place.max(initial=0)) + 1
    cells = np.unique(subject, return_inverse=True)[1] * widest + place
    return ~failed & are_among(cells, np.unique(cells[failed]))


def _units_with_cases(attempts: Attempts) -> frozenset[tuple[str, str]]:
    """Units, with their variants, of which single cases are known."""
    widest = len(attempts.variants) + 1
    known = np.unique((attempts.unit.astype(np.int64) * widest + attempts.variant + 1)[attempts.is_case]).tolist()
    return frozenset(
        (name_of(attempts.units, key // widest), name_of(attempts.variants, key % widest - 1)) for key in known
    )


def _number(column: NDArray[np.float64], i: int) -> float | None:
    value = float(column[i])
    return None if np.isnan(value) else value


def runs_of_jobs(history: History, where: Where, *, keep: Collection[str] = ()) -> Found:
    """Attempts of every job that both failed and passed on some commit, and of those to keep."""
    jobs = every_job(history, where)
    found = jobs.attempted()
    told = np.flatnonzero(found.is_a[Status.SUCCESS] | found.is_a[Status.FAILURE])
    rows, failed = found.row[told], found.is_a[Status.FAILURE][told]
    subject = jobs.key[rows]
    code = np.where(jobs.commit[rows] >= 0, jobs.commit[rows], len(jobs.commits) + 1 + jobs.run[rows])
    mixed = np.unique(subject[_mixed(subject, code, failed)])
    some = np.flatnonzero(_held(jobs.keys, keep)[subject] | are_among(subject, mixed))
    runs = []
    for i in some.tolist():
        row, started, ended = rows[i], _number(found.began, told[i]), _number(found.ended, told[i])
        runs.append(
            Run(
                subject=Subject(Kind.JOB, jobs.keys[jobs.key[row]]),
                code=name_of(jobs.commits, jobs.commit[row]) or f"run {name_of(jobs.runs, jobs.run[row])}",
                failed=bool(failed[i]),
                started=started,
                seconds=None if started is None or ended is None else ended - started,
            )
        )
    return Found(runs, len(told))


def landed(history: History, where: Where) -> list[Landed]:
    """Commits that came to a branch within a time, the oldest first.

    Where the history has commits only by the jobs that ran on them, these are taken, with the time of their first job.
    What ran on the branch, or lies between that, came to it, whichever branch the checkout was on that told of it.
    """
    told = history.commits(Where(repository=where.repository, since=where.since, until=where.until))
    elsewhere = _elsewhere(history, where)
    first_jobs = _first_jobs(history, where)
    seen = dict(first_jobs)
    here = seen.keys() | commits_between([sha for sha, _ in first_jobs], {row.sha: row for row in told}, seen)
    rows = [
        Landed(sha=row.sha, time=row.time or 0.0, author=row.author, message=row.message, files=row.files)
        for row in told
        if row.time is not None
        and (row.branch in ("", where.branch) or not where.branch or row.sha in here)
        and (row.branch or row.sha not in elsewhere)
    ]
    if rows:  # commits that landed together may be of one second, and clocks differ: parents come first
        place = {sha: i for i, sha in enumerate(history.commit_order(Where(repository=where.repository)))}
        return sorted(rows, key=lambda row: place[row.sha])
    return [Landed(sha=sha, time=at) for sha, at in first_jobs]


def _first_jobs(history: History, where: Where) -> list[tuple[str, float]]:
    """Commits of pushes, and when the first job of each was asked for; the oldest first."""
    times = ("run_created", "created", "started")
    columns = history.columns("jobs", ["commit", "event", *times], where)
    commits, events = columns.text("commit"), columns.text("event")
    at = np.full(len(columns), np.nan)
    for name in times:
        at = np.where(np.isnan(at), columns.number(name), at)
    is_push = (events.codes < 0) | is_any(events, {"push"})
    rows = np.flatnonzero(is_push & (commits.codes >= 0) & ~np.isnan(at))
    first = np.full(len(commits.names), np.inf)
    np.minimum.at(first, commits.codes[rows], at[rows])
    _, shown = np.unique(commits.codes[rows], return_index=True)
    known = commits.codes[rows[np.sort(shown)]]
    order = known[np.argsort(first[known], kind="stable")]
    return [(commits.names[code], float(first[code])) for code in order.tolist()]


def _elsewhere(history: History, where: Where) -> frozenset[str]:
    """Commits of which jobs tell only on other branches, or on requests."""
    columns = history.columns(
        "jobs", ["commit", "branch", "event", "pull_request"], replace(where, branch="", since=None)
    )
    commits, branches = columns.text("commit"), columns.text("branch")
    is_here = (branches.codes < 0) | is_any(branches, {where.branch}) if where.branch else True
    landed = is_here & ~of_requests(columns)
    known = commits.codes >= 0
    return frozenset(
        commits.names[code] for code in np.setdiff1d(commits.codes[known], commits.codes[known & landed]).tolist()
    )
