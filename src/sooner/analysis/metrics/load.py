"""Rows of the history as facts."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np

from sooner.analysis.metrics.facts import ENDINGS, PARTS, Codes, Ending, Facts, Flags, Numbers, Sample, Texts, grouped
from sooner.history import Columns, History, HistoryOutcome, Where, attempts_told_apart
from sooner.history.outcomes import BROKEN

STEP: Final = "step_seconds"
"""Name of the measure that holds the seconds of a step; its subject is the step's name."""
PUSH: Final = "push"
"""What attempts are taken for that tell neither their event nor a request: a plain table of a trunk."""
_PARTS: Final[Mapping[str, str]] = {
    "setup": r"set.?up|check.?out|install|download|pull|docker|container|cache|prepare|initiali",
    "build": r"build|compile|cmake|make\b|wheel|link",
    "test": r"test|pytest|verify|\brun\b",
}
"""Words in steps' names that tell a part of a job, the first that fits; other steps are of none."""
_ENDINGS: Final[Mapping[str, Ending]] = {
    HistoryOutcome.PASSED: Ending.GREEN,
    HistoryOutcome.RUNNING: Ending.OPEN,
    **dict.fromkeys(BROKEN, Ending.RED),
    **dict.fromkeys((HistoryOutcome.CANCELLED, HistoryOutcome.INFRASTRUCTURE), Ending.LOST),
}
_TEXTS: Final = ("repository", "workflow", "run", "job", "shard", "commit", "event", "runner", "outcome")
_NUMBERS: Final = ("attempt", "pull_request", "run_created", "created", "queued", "started", "completed")
_SECONDS: Final = frozenset({"s", "sec", "second", "seconds"})
_JOB: Final = ("repository", "run", "job")
"""With the attempt, what a step is of."""


def job_facts(history: History, where: Where) -> Facts:
    """Attempts of jobs in the order of their times; what their steps took is known where measures tell it."""
    rows = history.columns("jobs", [*_TEXTS, *_NUMBERS], where)
    texts = {name: _text(rows, name) for name in _TEXTS}
    attempt = attempts_told_apart(rows, np.arange(len(rows)))
    created, queued = rows.number("created"), rows.number("queued")
    return Facts(
        workflow=texts["workflow"],
        run=texts["run"],
        job=_jobs(texts["job"], texts["workflow"]),
        commit=texts["commit"],
        label=texts["runner"],
        attempt=attempt,
        is_push=_are_pushed(texts["event"], rows.number("pull_request")),
        ending=_coded(texts["outcome"], lambda name: ENDINGS.index(_ENDINGS.get(name, Ending.OTHER))),
        run_created=_known(rows.number("run_created"), _first_created(texts, attempt, _known(created, queued))),
        created=_known(queued, created),
        started=rows.number("started"),
        completed=rows.number("completed"),
        steps=_steps(history, where, texts, attempt),
    )


def _text(rows: Columns, name: str) -> Texts:
    """A column in which what is unknown is empty."""
    codes, names = rows.text(name)
    return Texts(codes.astype(np.int64) + 1, ["", *names])


def _jobs(job: Texts, workflow: Texts) -> Texts:
    """Names of jobs; one that several workflows have stands behind its workflow, or two jobs would be told as one."""
    pair, first = grouped(job.codes, workflow.codes)
    some = np.bincount(job.codes[first], minlength=len(job.names)) > 1
    told = workflow.is_told()
    names = [
        f"{workflow.names[workflow.codes[row]]} / {job.names[job.codes[row]]}"
        if some[job.codes[row]] and told[row] and job.names[job.codes[row]]
        else job.names[job.codes[row]]
        for row in first.tolist()
    ]
    unique = Texts.of(names)
    return Texts(unique.codes[pair], unique.names)


def _known(numbers: Numbers, instead: Numbers) -> Numbers:
    return np.where(np.isnan(numbers), instead, numbers)


def _coded(texts: Texts, code: Callable[[str], int]) -> Codes:
    return np.array([code(name) for name in texts.names], dtype=np.int64)[texts.codes]


def _are_pushed(event: Texts, pull_request: Numbers) -> Flags:
    is_push = _coded(event, lambda name: name == PUSH).astype(bool)
    return is_push | (~event.is_told() & np.isnan(pull_request))


def _first_created(texts: Mapping[str, Texts], attempt: Codes, created: Numbers) -> Numbers:
    """When the first job of each attempt's run was there: as good, where nobody tells when the run was asked for."""
    run, commit = texts["run"], texts["commit"]
    # Where runs have no id, a workflow runs once a commit.
    of = np.where(run.is_told(), run.codes, len(run.names) + commit.codes)
    group, first = grouped(texts["repository"].codes, texts["workflow"].codes, of, attempt)
    earliest = np.full(len(first), np.inf)
    told = ~np.isnan(created) & (run.is_told() | commit.is_told())
    np.minimum.at(earliest, group[told], created[told])
    return np.where(np.isfinite(earliest), earliest, np.nan)[group]


def _part_of(step: str) -> int:
    """The place among the parts; -1 for none."""
    return next((i for i, part in enumerate(PARTS) if re.search(_PARTS[part], step, re.IGNORECASE)), -1)


def _place(places: Mapping[str, int], text: str) -> int:
    return places.get(text, len(places))


def _steps(history: History, where: Where, jobs: Mapping[str, Texts], attempt: Codes) -> dict[str, Numbers]:
    rows = history.columns(
        "measures", [*_JOB, "name", "subject", "attempt", "value"], Where(repository=where.repository), ordered=False
    )
    part = _coded(_text(rows, "subject"), _part_of)
    some = np.flatnonzero((part >= 0) & _coded(_text(rows, "name"), lambda name: name == STEP).astype(bool))
    if not len(some):
        return {}
    of_jobs, of_steps = [attempt], [np.nan_to_num(rows.number("attempt"), nan=1.0).astype(np.int64)[some]]
    for name in _JOB:
        places = {text: i for i, text in enumerate(jobs[name].names)}
        of_jobs.append(jobs[name].codes)
        of_steps.append(_coded(_text(rows, name), partial(_place, places))[some])
    group, first = grouped(*(np.concatenate(both) for both in zip(of_jobs, of_steps, strict=True)))
    found = {}
    for i, name in enumerate(PARTS):
        chosen = part[some] == i
        of_part = group[len(attempt) :][chosen]
        seconds = np.bincount(of_part, rows.number("value")[some][chosen], len(first)).astype(np.float64)
        seconds[np.bincount(of_part, minlength=len(first)) == 0] = np.nan
        if len(of_part):
            found[name] = seconds[group[: len(attempt)]]
    return found


def measure_samples(history: History, name: str, where: Where) -> Iterator[Sample]:
    """Values of a measure (a cache's hit rate, the seconds of a set-up) over time, to be followed as times are.

    A measure names no branch: that of the jobs of its run counts.
    """
    about = Where(repository=where.repository, workflow=where.workflow, since=where.since, until=where.until)
    runs = _runs_on(history, where) if where.branch else None
    for row in history.measures(about):
        is_meant = runs is None or (row.repository, row.run) in runs
        if row.name == name and row.at is not None and is_meant:
            yield Sample(at=row.at, seconds=row.value, workflow=row.workflow, job=row.job, commit=row.commit)


def _runs_on(history: History, where: Where) -> set[tuple[str, str]]:
    rows = history.columns("jobs", ["repository", "run"], Where(repository=where.repository, branch=where.branch))
    repository, run = _text(rows, "repository"), _text(rows, "run")
    pairs = set(zip(repository.codes.tolist(), run.codes.tolist(), strict=True))
    return {(repository.names[one], run.names[other]) for one, other in pairs if run.names[other]}


def is_of_seconds(history: History, measure: str) -> bool:
    """Whether the values of a measure are times, by their unit."""
    rows = history.columns("measures", ["name", "unit"], ordered=False)
    name, unit = _text(rows, "name"), _text(rows, "unit")
    of_measure = _coded(name, lambda each: each == measure).astype(bool)
    units = {unit.names[code] for code in np.unique(unit.codes[of_measure])}
    return bool(units) and units <= _SECONDS
