"""Rows of the history as facts."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sooner.analysis.metrics.facts import Ending, JobFact, Sample
from sooner.history import History, HistoryOutcome, JobRow, MeasureRow, Where
from sooner.history.outcomes import BROKEN

STEP: Final = "step_seconds"
"""Name of the measure that holds the seconds of a step; its subject is the step's name."""
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
    return [_fact(row, steps) for row in history.jobs(where)]


_Key = tuple[str, str, int, str]


def _fact(row: JobRow, steps: Mapping[_Key, Mapping[str, float]]) -> JobFact:
    return JobFact(
        workflow=row.workflow,
        run=row.run,
        attempt=row.attempt,
        job=row.job,
        commit=row.commit,
        branch=row.branch,
        event=row.event,
        label=row.runner,
        ending=_ENDINGS.get(row.outcome, Ending.OTHER),
        run_created=row.run_created,
        created=row.created if row.created is not None else row.queued,
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
