"""Rows of the history as facts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sooner.analysis.metrics.facts import Ending, JobFact, Sample
from sooner.history import History, HistoryOutcome, JobRow, MeasureRow, Where, told_apart
from sooner.history.outcomes import BROKEN

STEP: Final = "step_seconds"
"""Name of the measure that holds the seconds of a step; its subject is the step's name."""
PUSH: Final = "push"
"""What attempts are taken for that tell neither their event nor a request: a plain table of a trunk."""
_PARTS: Final = (
    (
        "setup",
        re.compile(r"set.?up|check.?out|install|download|pull|docker|container|cache|prepare|initiali", re.IGNORECASE),
    ),
    ("build", re.compile(r"build|compile|cmake|make\b|wheel|link", re.IGNORECASE)),
    ("test", re.compile(r"test|pytest|verify|\brun\b", re.IGNORECASE)),
)
"""Parts of a job that its steps' names tell, the first that fits; other steps are part of neither."""

_ENDINGS: Final[Mapping[HistoryOutcome, Ending]] = {
    HistoryOutcome.PASSED: Ending.GREEN,
    HistoryOutcome.RUNNING: Ending.OPEN,
    **dict.fromkeys(BROKEN, Ending.RED),
}


def job_facts(history: History, where: Where) -> list[JobFact]:
    """Attempts of jobs; what their steps took is known where measures tell it."""
    steps = _steps(history.measures(Where(repository=where.repository)))
    rows = told_apart(history.jobs(where))
    asked = _first_created(rows)
    return [_fact(row, asked.get(_run_of(row)), steps) for row in rows]


_Key = tuple[str, str, int, str]
_RunKey = tuple[str, str, str, int]


def _run_of(row: JobRow) -> _RunKey:
    """The attempt of a run; where runs have no id, a workflow runs once a commit."""
    return row.repository, row.workflow, row.run or f"commit {row.commit}", row.attempt


def _created(row: JobRow) -> float | None:
    return row.created if row.created is not None else row.queued


def _first_created(rows: Iterable[JobRow]) -> dict[_RunKey, float]:
    """When the first job of each run was there: where nobody tells when the run was asked for, that is as good."""
    found: dict[_RunKey, float] = {}
    for row in rows:
        at = _created(row)
        if at is not None and (row.run or row.commit):
            key = _run_of(row)
            found[key] = min(at, found.get(key, at))
    return found


def _fact(row: JobRow, first_created: float | None, steps: Mapping[_Key, Mapping[str, float]]) -> JobFact:
    return JobFact(
        workflow=row.workflow,
        run=row.run,
        attempt=row.attempt,
        job=row.job,
        commit=row.commit,
        branch=row.branch,
        event=row.event or ("" if row.pull_request is not None else PUSH),
        label=row.runner,
        ending=_ENDINGS.get(row.outcome, Ending.OTHER),
        run_created=row.run_created if row.run_created is not None else first_created,
        created=_created(row),
        started=row.started,
        completed=row.completed,
        steps=steps.get((row.repository, row.run, row.attempt, row.job), {}),
    )


def _steps(rows: Iterable[MeasureRow]) -> dict[_Key, dict[str, float]]:
    found: dict[_Key, dict[str, float]] = {}
    for row in rows:
        part = next((part for part, words in _PARTS if words.search(row.subject)), "")
        if row.name == STEP and part:
            parts = found.setdefault((row.repository, row.run, row.attempt, row.job), {})
            parts[part] = parts.get(part, 0.0) + row.value
    return found


def measure_samples(history: History, name: str, where: Where) -> Iterator[Sample]:
    """Values of a measure (a cache's hit rate, the seconds of a set-up) over time, to be followed as times are."""
    for row in history.measures(Where(repository=where.repository, since=where.since, until=where.until)):
        if row.name == name and row.at is not None:
            yield Sample(at=row.at, seconds=row.value, workflow=row.workflow, job=row.job, commit=row.commit)
