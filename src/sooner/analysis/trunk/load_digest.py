"""Rows of the history as runs of tests and jobs, and as what landed; for `flaky` and `digest`. Needs numpy."""

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sooner.analysis.trunk.attempts import Attempts, Codes, Flags, are_among, is_any, name_of, read_attempts
from sooner.analysis.trunk.digest import Landed
from sooner.analysis.trunk.facts import Kind, Status
from sooner.analysis.trunk.flaky import Run, Subject
from sooner.analysis.trunk.job_names import base_name
from sooner.history import History, HistoryOutcome, JobRow, Where, of_requests, told_apart
from sooner.history.outcomes import BROKEN

_SEPARATOR: Final = " / "


def runs_of_tests(
    history: History, where: Where, *, keep: Collection[str] = ()
) -> tuple[list[Run], frozenset[tuple[str, str]]]:
    """Runs of every test that both failed and passed on some commit, and of those to keep; units with known tests.

    Args:
        history: The history.
        where: Which rows; tests know no workflow and no event, and those that know no branch are of any.
        keep: Ids of tests whose runs are wanted whatever they came to; also those of their parameters.
    """
    every = read_attempts(history, where)
    with_cases = _units_with_cases(every)
    some = _that_flaked(every.at(every.came_to[Status.SUCCESS] | every.came_to[Status.FAILURE]), keep)
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
    return runs, with_cases


def _that_flaked(every: Attempts, keep: Collection[str]) -> Attempts:
    """Runs of what both failed and passed on one commit, and of what is to be kept."""
    held = np.array([*(name in keep or name.partition("[")[0] in keep for name in every.names), False], dtype=bool)
    subject = _subjects(every)
    some = every.at(held[every.name] | are_among(subject, np.unique(subject[every.came_to[Status.FAILURE]])))
    subject = _subjects(some)
    mixed = np.unique(subject[_mixed(subject, _places(some), some.came_to[Status.FAILURE])])
    return some.at(held[some.name] | are_among(subject, mixed))


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


def runs_of_jobs(rows: Sequence[JobRow]) -> list[Run]:
    """Attempts of jobs, the shards of one attempt together: failed if any of them did, passed if all of them did."""
    return [
        _job_run(name, commit or f"run {run}", shards, failed=status is Status.FAILURE)
        for (name, commit, run, _), shards in _by_attempt(rows).items()
        if (status := _of_shards([row.outcome for row in shards])) in (Status.FAILURE, Status.SUCCESS)
    ]


def _by_attempt(rows: Sequence[JobRow]) -> dict[tuple[str, str, str, int], list[JobRow]]:
    """The shards of each attempt of a job, by the key of its signal, commit, run and attempt."""
    groups: dict[tuple[str, str, str, int], list[JobRow]] = {}
    for row in told_apart(rows):
        key = f"{row.workflow} / {base_name(row.job)}" if row.workflow else base_name(row.job)
        groups.setdefault((key, row.commit, row.run, row.attempt), []).append(row)
    return groups


def _of_shards(outcomes: Sequence[HistoryOutcome]) -> Status | None:
    """What an attempt came to: nothing where a shard was cancelled, skipped or lost and no other one failed."""
    if any(outcome in BROKEN for outcome in outcomes):
        return Status.FAILURE
    if any(outcome is HistoryOutcome.RUNNING for outcome in outcomes):
        return Status.PENDING
    passed = [outcome is HistoryOutcome.PASSED for outcome in outcomes]
    return Status.SUCCESS if all(passed) else None


def _job_run(name: str, code: str, shards: list[JobRow], *, failed: bool) -> Run:
    starts = [row.started for row in shards if row.started is not None]
    ends = [row.completed for row in shards if row.completed is not None]
    started = min(starts, default=None)
    return Run(
        subject=Subject(Kind.JOB, name),
        code=code,
        failed=failed,
        started=started,
        seconds=max(ends) - started if ends and started is not None else None,
    )


def landed(history: History, where: Where) -> list[Landed]:
    """Commits that came to a branch within a time, the oldest first.

    Where the history has commits only by the jobs that ran on them, these are taken, with the time of their first job.
    """
    told = history.commits(Where(repository=where.repository, since=where.since, until=where.until))
    elsewhere = _elsewhere(history, where)
    rows = [
        Landed(sha=row.sha, time=row.time or 0.0, author=row.author, message=row.message, files=row.files)
        for row in told
        if row.time is not None
        and (row.branch in ("", where.branch) or not where.branch)
        and (row.branch or row.sha not in elsewhere)
    ]
    if rows:
        return sorted(rows, key=lambda row: row.time)
    first: dict[str, float] = {}
    for job in history.jobs(where):
        at = job.run_created or job.created or job.started
        if job.commit and at is not None and job.event in ("push", ""):
            first[job.commit] = min(at, first.get(job.commit, at))
    return [Landed(sha=sha, time=at) for sha, at in sorted(first.items(), key=lambda one: one[1])]


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
