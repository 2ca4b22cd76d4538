"""Rows of the history as runs of tests and jobs, and as what landed; for `flaky` and `digest`. Needs numpy."""

from collections.abc import Collection
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sooner.analysis.trunk.digest import Landed
from sooner.analysis.trunk.facts import Kind, Status
from sooner.analysis.trunk.flaky import Run, Subject
from sooner.analysis.trunk.job_names import base_name
from sooner.analysis.trunk.load import by_attempt, of_shards
from sooner.history import History, HistoryOutcome, JobRow, Texts, Where, of_requests
from sooner.history.outcomes import BROKEN

_FAILED: Final = frozenset(outcome.value for outcome in BROKEN)
_TEXTS: Final = ("job", "unit", "node_id", "variant", "commit", "run", "outcome", "kind", "branch")
_NUMBERS: Final = ("started", "seconds")
_SEPARATOR: Final = " / "


def runs_of_tests(
    history: History, where: Where, *, keep: Collection[str] = ()
) -> tuple[list[Run], frozenset[tuple[str, str]]]:
    """Runs of every test that failed at least once, and of those to keep; and the units whose tests are known.

    Args:
        history: The history.
        where: Which rows; tests know no workflow and no event, and those that know no branch are of any.
        keep: Ids of tests whose runs are wanted although they never failed; also those of their parameters.
    """
    told = Where(repository=where.repository, since=where.since, until=where.until)
    columns = history.columns("tests", [*_TEXTS, *_NUMBERS], told)
    if not len(columns):
        return [], frozenset()
    texts = {name: columns.text(name) for name in _TEXTS}
    failed = _where(texts["outcome"], _FAILED)
    counts = (failed | _where(texts["outcome"], {HistoryOutcome.PASSED.value})) & ~_where(texts["kind"], {"summary"})
    if where.branch:
        counts &= (texts["branch"].codes < 0) | _where(texts["branch"], {where.branch})
    names = np.zeros(len(columns), dtype=np.int64)
    for name in ("unit", "node_id", "variant"):
        names = names * (len(texts[name].names) + 1) + texts[name].codes + 1
    known, subject = np.unique(names, return_inverse=True)
    wanted = np.zeros(len(known), dtype=bool)
    wanted[subject[failed & counts]] = True
    if keep:
        held = _held(texts["node_id"].names, keep)[texts["node_id"].codes]
        held |= _held(texts["unit"].names, keep)[texts["unit"].codes] & (texts["node_id"].codes < 0)
        wanted[subject[held]] = True
    numbers = {name: columns.number(name) for name in _NUMBERS}
    bases = [base_name(name) for name in texts["job"].names]
    made: dict[int, Subject] = {}
    runs = []
    for i in np.flatnonzero(counts & wanted[subject]).tolist():
        one = made.get(int(subject[i]))
        if one is None:
            unit, node_id, variant = (_name(texts[name], i) for name in ("unit", "node_id", "variant"))
            one = made[int(subject[i])] = Subject(Kind.TEST, node_id or unit, variant)
        job = int(texts["job"].codes[i])
        runs.append(
            Run(
                subject=one,
                where=bases[job] if job >= 0 else "",
                code=_name(texts["commit"], i) or f"run {_name(texts['run'], i)}",
                failed=bool(failed[i]),
                started=_number(numbers["started"], i),
                seconds=_number(numbers["seconds"], i),
            )
        )
    return runs, _units_with_cases(*(texts[name] for name in ("unit", "variant", "node_id")))


def _units_with_cases(unit: Texts, variant: Texts, case: Texts) -> frozenset[tuple[str, str]]:
    """Units, with their variants, of which single cases are known."""
    widest = len(variant.names) + 1
    keys = unit.codes.astype(np.int64) * widest + variant.codes + 1
    known = np.unique(keys[case.codes >= 0]).tolist()
    names = [*unit.names, ""]  # -1 is nobody's name
    return frozenset((names[key // widest], ["", *variant.names][key % widest]) for key in known)


def _where(texts: Any, words: Collection[str]) -> NDArray[np.bool_]:
    flags: NDArray[np.bool_] = np.array([name in words for name in texts.names] + [False], dtype=bool)[texts.codes]
    return flags


def _held(names: list[str], keep: Collection[str]) -> NDArray[np.bool_]:
    return np.array([name in keep or name.partition("[")[0] in keep for name in names] + [False], dtype=bool)


def _name(texts: Any, i: int) -> str:
    code = int(texts.codes[i])
    return str(texts.names[code]) if code >= 0 else ""


def _number(column: Any, i: int) -> float | None:
    value = float(column[i])
    return None if np.isnan(value) else value


def runs_of_jobs(rows: Collection[JobRow]) -> list[Run]:
    """Attempts of jobs, the shards of one attempt together: failed if any of them did, passed if all of them did."""
    return [
        _job_run(name, commit or f"run {run}", shards, failed=status is Status.FAILURE)
        for (name, commit, run, _), shards in by_attempt(rows).items()
        if (status := of_shards([row.outcome for row in shards])) in (Status.FAILURE, Status.SUCCESS)
    ]


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
    is_here = (branches.codes < 0) | _where(branches, frozenset({where.branch})) if where.branch else True
    landed = is_here & ~of_requests(columns)
    known = commits.codes >= 0
    return frozenset(
        commits.names[code] for code in np.setdiff1d(commits.codes[known], commits.codes[known & landed]).tolist()
    )
