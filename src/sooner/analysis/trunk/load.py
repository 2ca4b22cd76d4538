"""Rows of the history as commits and signals.

A job's signal keeps its workflow, its name and its configuration; shard and runner are dropped ("test (default, 2, 5,
linux.gpu)" is "test (default)"), and its shards are one run. A test's signal is (job, node id); a retry that passed
inside of a job counts as passed. Cancelled, skipped and infrastructure say nothing about the code: they are no events.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from sooner.analysis.trunk.facts import Commit, Event, Kind, Signal, Status
from sooner.analysis.trunk.job_names import base_name
from sooner.analysis.trunk.landed import commits_of, first_seen, landed_jobs
from sooner.analysis.trunk.load_tests import Tests
from sooner.history import History, HistoryOutcome, JobRow, Where, told_apart
from sooner.history.outcomes import BROKEN


class Trunk(Struct, frozen=True, kw_only=True):
    """What a history knows of a branch."""

    commits: tuple[Commit, ...]
    """Oldest first."""
    signals: tuple[Signal, ...]
    """With all events of all commits."""
    notes: tuple[str, ...] = ()
    """What a reader should know about how they were chosen."""


def load_trunk(history: History, where: Where, *, kinds: Iterable[Kind] = (Kind.JOB,)) -> Trunk:
    """Commits of a branch and the signals over them.

    Raises:
        UsageError: The history holds several repositories, and none was named.
    """
    jobs, where, notes = landed_jobs(history, where)
    wanted = frozenset(kinds)
    tests = Tests(history, where) if Kind.TEST in wanted else None
    signals: list[Signal] = []
    if Kind.JOB in wanted:
        signals += job_signals(jobs)
    if tests:
        signals += tests.signals(jobs)
    commits = commits_of(history, where, first_seen(jobs) or (tests.first_seen() if tests else {}))
    return Trunk(commits=commits, signals=tuple(signals), notes=tuple(notes))


def job_signals(rows: Sequence[JobRow]) -> list[Signal]:
    """One signal a job, its shards together."""
    events: dict[str, list[Event]] = {}
    for (key, commit, _, attempt), shards in by_attempt(rows).items():
        status = of_shards([row.outcome for row in shards])
        starts = [row.started for row in shards if row.started is not None]
        if status is None or not commit or not starts:
            continue
        ends = [row.completed for row in shards if row.completed is not None]
        end = None if status is Status.PENDING else max(ends, default=None)
        events.setdefault(key, []).append(
            Event(sha=commit, status=status, started_at=min(starts), ended_at=end, attempt=attempt)
        )
    return [Signal(key=key, kind=Kind.JOB, events=tuple(found)) for key, found in sorted(events.items())]


def by_attempt(rows: Sequence[JobRow]) -> dict[tuple[str, str, str, int], list[JobRow]]:
    """The shards of each attempt of a job, by the key of its signal, commit, run and attempt."""
    groups: dict[tuple[str, str, str, int], list[JobRow]] = {}
    for row in told_apart(rows):
        key = f"{row.workflow} / {base_name(row.job)}" if row.workflow else base_name(row.job)
        groups.setdefault((key, row.commit, row.run, row.attempt), []).append(row)
    return groups


def of_shards(outcomes: Sequence[HistoryOutcome]) -> Status | None:
    """What an attempt came to: nothing where a shard was cancelled, skipped or lost and no other one failed."""
    if any(outcome in BROKEN for outcome in outcomes):
        return Status.FAILURE
    if any(outcome is HistoryOutcome.RUNNING for outcome in outcomes):
        return Status.PENDING
    passed = [outcome is HistoryOutcome.PASSED for outcome in outcomes]
    return Status.SUCCESS if all(passed) else None
