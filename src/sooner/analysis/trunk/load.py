"""Rows of the history as commits and signals.

A job's signal keeps its workflow, its name and its configuration; shard and runner are dropped ("test (default, 2, 5,
linux.gpu)" is "test (default)"), and its shards are one run. A test's signal is (job, node id); a retry that passed
inside of a job counts as passed. Cancelled, skipped and infrastructure say nothing about the code: they are no events.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sooner.analysis.trunk.facts import Commit, Event, Kind, Signal, Status
from sooner.analysis.trunk.landed import commits_of, first_seen, landed_jobs
from sooner.history import History, HistoryOutcome, JobRow, TestRow, Where
from sooner.history.outcomes import BROKEN

_MATRIX: Final = re.compile(r"^(?P<name>.*?)\((?P<inside>[^()]*)\)\s*$")
_NUMBER: Final = re.compile(r"^\d+$")
_SHARD: Final = re.compile(r"^(shard[ -]?)?\d+\s*(/|of)\s*\d+$", re.IGNORECASE)


class Trunk(Struct, frozen=True, kw_only=True):
    """What a history knows of a branch."""

    commits: tuple[Commit, ...]
    """Oldest first."""
    signals: tuple[Signal, ...]
    """With all events of all commits."""
    notes: tuple[str, ...] = ()
    """What a reader should know about how they were chosen."""


def base_name(job: str) -> str:
    """The name of a job without shard and runner."""
    match = _MATRIX.match(job)
    if match is None:
        return job
    parts = [part.strip() for part in match["inside"].split(",")]
    for i in range(len(parts) - 1):
        if _NUMBER.match(parts[i]) and _NUMBER.match(parts[i + 1]):
            parts = parts[:i]  # config, shard, number of shards, runner, ...
            break
    parts = [part for part in parts if not _SHARD.match(part)]
    return f"{match['name']}({', '.join(parts)})" if parts else match["name"].strip()


def load_trunk(history: History, where: Where, *, kinds: Iterable[Kind] = (Kind.JOB,)) -> Trunk:
    """Commits of a branch and the signals over them.

    Raises:
        UsageError: The history holds several repositories, and none was named.
    """
    jobs, where, notes = landed_jobs(history, where)
    wanted = frozenset(kinds)
    # Reports know their commit, but seldom their branch.
    tests = history.tests(replace(where, branch="", workflow="", event="")) if Kind.TEST in wanted else []
    signals: list[Signal] = []
    if Kind.JOB in wanted:
        signals += job_signals(jobs)
    if Kind.TEST in wanted:
        signals += born_red(test_signals(tests), jobs, tests)
    commits = commits_of(history, where, first_seen(jobs, tests))
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
        events.setdefault(key, []).append(
            Event(sha=commit, status=status, started_at=min(starts), ended_at=max(ends, default=None), attempt=attempt)
        )
    return [Signal(key=key, kind=Kind.JOB, events=tuple(found)) for key, found in sorted(events.items())]


def by_attempt(rows: Iterable[JobRow]) -> dict[tuple[str, str, str, int], list[JobRow]]:
    """The shards of each attempt of a job, by the key of its signal, commit, run and attempt."""
    groups: dict[tuple[str, str, str, int], list[JobRow]] = {}
    for row in rows:
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
    return Status.SUCCESS if passed and all(passed) else None


def test_signals(rows: Iterable[TestRow]) -> list[Signal]:
    """One signal a test that ever failed."""
    groups: dict[tuple[str, str, str, str], list[TestRow]] = {}
    for row in rows:
        if row.kind != "summary" and row.commit:
            name = "::".join(filter(None, (row.node_id or row.unit, row.variant)))
            groups.setdefault((base_name(row.job), name, row.commit, row.run), []).append(row)
    events: dict[str, list[Event]] = {}
    for (job, name, commit, _), attempts in groups.items():
        starts = [row.started for row in attempts if row.started is not None]
        status = _of_attempts([row.outcome for row in attempts])
        if status is not None and starts:
            key = f"{job} :: {name}" if job else name
            events.setdefault(key, []).append(Event(sha=commit, status=status, started_at=min(starts)))
    failing = {key for key, found in events.items() if any(one.status is Status.FAILURE for one in found)}
    return [Signal(key=key, events=tuple(found)) for key, found in sorted(events.items()) if key in failing]


def _of_attempts(outcomes: Sequence[HistoryOutcome]) -> Status | None:
    if HistoryOutcome.PASSED in outcomes:
        return Status.SUCCESS
    if any(outcome in BROKEN for outcome in outcomes):
        return Status.FAILURE
    return Status.PENDING if HistoryOutcome.RUNNING in outcomes else None


def born_red(signals: Sequence[Signal], jobs: Sequence[JobRow], tests: Sequence[TestRow] = ()) -> list[Signal]:
    """Tests that never passed: where their job, or their file in it, ran without them, that is a success."""
    ended: dict[tuple[str, str], dict[str, float]] = {}
    for row in jobs:
        if row.outcome is HistoryOutcome.PASSED and row.started is not None:
            ended.setdefault((base_name(row.job), ""), {}).setdefault(row.commit, row.started)
    for test in tests:
        if test.node_id and test.commit and test.started is not None and test.kind != "summary":
            ended.setdefault((base_name(test.job), _file_of(test.node_id)), {}).setdefault(test.commit, test.started)
    found = []
    for signal in signals:
        job, inside, name = signal.key.partition(" :: ")
        job, name = (job, name) if inside else ("", signal.key)
        ran = ended.get((job, _file_of(name)), {}) | ended.get((job, ""), {})
        found.append(_with_absences(signal, ran))
    return found


def _file_of(node_id: str) -> str:
    return node_id.partition("::")[0]


def _with_absences(signal: Signal, ran: Mapping[str, float]) -> Signal:
    if any(event.status is Status.SUCCESS for event in signal.events):
        return signal
    known = {event.sha for event in signal.events}
    absent = (
        Event(sha=sha, status=Status.SUCCESS, started_at=at, ended_at=at) for sha, at in ran.items() if sha not in known
    )
    return Signal(key=signal.key, kind=signal.kind, events=(*signal.events, *absent))
