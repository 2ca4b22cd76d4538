"""The definitions. Pure: facts in, samples out; the time of "now" comes as an argument. Needs numpy.

Every metric has its own name because others measure other things under the same words: a dashboard that averages over
cancelled jobs and re-runs sees another "time to signal" than the author who waits for a green check.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sooner.analysis.metrics.facts import Codes, Ending, Facts, Flags, Numbers, Samples, Texts, grouped

_SKEW_S: Final = 300.0
"""Clocks that differ by more are none to measure with (Kerberos' customary limit, RFC 4120): somebody took a zone for
another one, or wrote another time."""


def _samples(facts: Facts, rows: Codes, seconds: Numbers) -> Samples:
    """Values of some attempts, filed under when their runs were asked for, else when they were, else their start."""
    known = seconds >= -_SKEW_S
    rows, seconds = rows[known], seconds[known]
    at = facts.run_created[rows]
    for instead in (facts.created, facts.started):
        at = np.where(np.isnan(at), instead[rows], at)
    return Samples(
        at=np.nan_to_num(at),
        seconds=np.maximum(seconds, 0.0),  # clocks differ
        workflow=facts.workflow.at(rows),
        job=facts.job.at(rows),
        label=facts.label.at(rows),
        commit=facts.commit.at(rows),
        queue_s=np.maximum(np.nan_to_num((facts.started - facts.created)[rows]), 0.0),
        steps={part: column[rows] for part, column in facts.steps.items()},
    )


def _that_count(facts: Facts, counts: Flags, seconds: Numbers) -> Samples:
    """Of the attempts that count, those whose seconds are known."""
    rows = np.flatnonzero(counts & ~np.isnan(seconds))
    return _samples(facts, rows, seconds[rows])


def job_time_to_signal(facts: Facts) -> Samples:
    """`completed - run_created` of first attempts, on pushes, that passed."""
    counts = (facts.attempt == 1) & facts.is_push & facts.ended(Ending.GREEN)
    return _that_count(facts, counts, facts.completed - facts.run_created)


def dashboard_time_to_signal(facts: Facts) -> Samples:
    """`completed - run_created` of all attempts with any conclusion: what PyTorch's dashboard shows."""
    return _that_count(facts, ~facts.ended(Ending.OPEN), facts.completed - facts.run_created)


def queue_time(facts: Facts, now: float | None = None) -> Samples:
    """`started - created`; for jobs that still wait, if `now` is given, `now - created`."""
    seconds = facts.started - facts.created
    if now is not None:
        waits = np.isnan(facts.started) & facts.ended(Ending.OPEN)
        seconds = np.where(waits, now - facts.created, seconds)
    return _that_count(facts, np.ones(len(seconds), dtype=bool), seconds)


def duration(facts: Facts) -> Samples:
    """`completed - started` of attempts that passed or failed."""
    return _that_count(facts, facts.ended(Ending.GREEN, Ending.RED), facts.completed - facts.started)


def commit_time_to_signal(facts: Facts, required: Sequence[str] = ()) -> Samples:
    """Of each pushed commit whose required workflows were all green at the first attempt: the time of the slowest.

    A workflow's time is that from its run's creation to the end of its last job. Jobs that were skipped do not count;
    one that was cancelled or lost was not green. Nor do runs count that repeat an earlier one: the same commit was
    pushed to another branch, or as a tag.

    Args:
        facts: Attempts.
        required: Names of the workflows that must be green; all that any commit was pushed with, if empty.
    """
    rows = _of_first_runs(facts, np.flatnonzero(facts.is_push & (facts.attempt == 1)))
    run, begins = grouped(facts.commit.codes[rows], facts.workflow.codes[rows])
    last, seconds = _slowest(facts, rows, run, len(begins))
    wanted, count = _wanted(facts.workflow, rows, required)
    counts = (last >= 0) & wanted[facts.workflow.codes[rows][begins]] & facts.commit.at(rows[begins]).is_told()
    commit, commits = grouped(facts.commit.codes[rows])
    commit = commit[begins]
    counts &= (np.bincount(commit[counts], minlength=len(commits)) == count)[commit]
    slowest = _largest(commit[counts], seconds[counts], len(commits))
    chosen = np.flatnonzero(counts)[slowest[slowest >= 0]]
    return _samples(facts, last[chosen], seconds[chosen])


def _of_first_runs(facts: Facts, rows: Codes) -> Codes:
    """Of some rows those that are not of a run that has a job which an earlier one had on its commit."""
    workflow, commit = facts.workflow.codes[rows], facts.commit.codes[rows]
    run, begins = grouped(commit, workflow, facts.run.codes[rows])
    job, jobs = grouped(commit, workflow, facts.job.codes[rows])
    asked, earliest = np.full(len(begins), np.inf), np.full(len(jobs), np.inf)
    np.minimum.at(asked, run, np.nan_to_num(facts.run_created[rows], nan=np.inf))
    np.minimum.at(earliest, job, asked[run])
    again = np.bincount(run[asked[run] > earliest[job]], minlength=len(begins)) > 0
    return rows[~again[run]]


def _slowest(facts: Facts, rows: Codes, run: Codes, runs: int) -> tuple[Codes, Numbers]:
    """[run]: the attempt that ended it, -1 where the run was not green or did not end; and its time."""
    ends, begins = facts.completed[rows], facts.run_created[rows]
    green = facts.ended(Ending.GREEN)[rows] & _is_time(ends) & _is_time(begins)
    others = ~facts.ended(Ending.OTHER)[rows] & ~green
    ended = np.flatnonzero(green & (np.bincount(run[others], minlength=runs) == 0)[run])
    largest = _largest(run[ended], ends[ended], runs)
    has = np.flatnonzero(largest >= 0)
    chosen = ended[largest[has]]
    begin = np.full(runs, np.inf)
    np.minimum.at(begin, run[ended], begins[ended])
    last, seconds = np.full(runs, -1, dtype=np.int64), np.full(runs, np.nan)
    last[has], seconds[has] = rows[chosen], ends[chosen] - begin[has]
    return last, seconds


def _largest(group: Codes, values: Numbers, groups: int) -> Codes:
    """[group]: the first of its rows with the largest value; -1 where it has none."""
    largest = np.full(groups, -np.inf)
    np.maximum.at(largest, group, values)
    rows = np.flatnonzero(values == largest[group])[::-1]
    found = np.full(groups, -1, dtype=np.int64)
    found[group[rows]] = rows
    return found


def _wanted(workflow: Texts, rows: Codes, required: Sequence[str]) -> tuple[Flags, int]:
    """Whether each workflow is asked for, and how many are; all of some rows where none is named."""
    names = set(required) or {workflow.names[code] for code in np.unique(workflow.codes[rows])}
    return np.array([name in names for name in workflow.names], dtype=bool), len(names)


def _is_time(seconds: Numbers) -> Flags:
    """Whether a time is known; 0 stands for none."""
    known: Flags = ~np.isnan(seconds) & (seconds != 0.0)
    return known


def time_to_red_signal(facts: Facts) -> Samples:
    """Of each pushed commit with a failed job: from the creation of that job's run to the earliest such end."""
    counts = facts.is_push & facts.ended(Ending.RED) & ~np.isnan(facts.completed) & _is_time(facts.run_created)
    reds = np.flatnonzero(counts)
    commit, commits = grouped(facts.commit.codes[reds])
    first = reds[_largest(commit, -facts.completed[reds], len(commits))]
    return _samples(facts, first, (facts.completed - facts.run_created)[first])


def strict_lag(facts: Facts, required: Sequence[str] = ()) -> Samples:
    """At each push: how old the newest commit is that was known to be green in all required workflows.

    A commit is as old as its first run; it is known to be green when the last of its required jobs has passed, at
    whatever attempt. Pushes before the first known green have no lag.
    """
    rows = np.flatnonzero(facts.is_push & facts.commit.is_told() & ~np.isnan(facts.run_created))
    commit, begins = grouped(facts.commit.codes[rows])
    names = [facts.commit.names[code] for code in facts.commit.codes[rows][begins]]
    pushed = np.full(len(begins), np.inf)
    np.minimum.at(pushed, commit, facts.run_created[rows])
    known = _known_green(facts, rows, commit, len(begins), required)
    greens = sorted((known[i], pushed[i]) for i in np.flatnonzero(np.isfinite(known)))
    newest, place, found = -np.inf, 0, []
    for at, name in sorted(zip(pushed.tolist(), names, strict=True)):
        while place < len(greens) and greens[place][0] <= at:
            newest = max(newest, greens[place][1])
            place += 1
        if place:
            found.append((at, max(0.0, at - newest), name))
    return _of_commits(found)


def _of_commits(found: Sequence[tuple[float, float, str]]) -> Samples:
    """Samples that tell a time, seconds and a commit alone."""
    at, seconds = (np.array([one[i] for one in found], dtype=np.float64) for i in (0, 1))
    none = Texts.of([""] * len(found))
    commit = Texts.of([one[2] for one in found])
    return Samples(
        at=at,
        seconds=seconds,
        workflow=none,
        job=none,
        label=none,
        commit=commit,
        queue_s=np.zeros(len(found)),
        steps={},
    )


def _known_green(facts: Facts, rows: Codes, commit: Codes, commits: int, required: Sequence[str]) -> Numbers:
    """[commit]: when the last of its required jobs had passed; inf where one never did, or one is missing."""
    wanted, count = _wanted(facts.workflow, rows, required)
    counts = wanted[facts.workflow.codes[rows]] & ~facts.ended(Ending.OTHER)[rows]
    commit, rows = commit[counts], rows[counts]
    workflow = facts.workflow.codes[rows]
    job, first = grouped(commit, workflow, facts.job.codes[rows])
    passed = np.full(len(first), np.inf)
    done = facts.ended(Ending.GREEN)[rows] & ~np.isnan(facts.completed[rows])
    np.minimum.at(passed, job[done], facts.completed[rows][done])
    known = np.full(commits, -np.inf)
    np.maximum.at(known, commit[first], passed)
    _, some = grouped(commit, workflow)
    known[np.bincount(commit[some], minlength=commits) < count] = np.inf
    return known


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One job on one commit, all attempts together: where it passed or failed at least once."""

    workflow: Texts
    job: Texts
    commit: Texts
    is_red: Flags
    """Every attempt failed."""
    is_flaky: Flags
    """Some attempts failed and some passed."""


def cells(facts: Facts) -> Cells:
    """Every job on every commit where it passed or failed at least once.

    Several jobs of one name in an attempt of a run, such as shards, are parts of one attempt: it failed where one did.
    """
    rows = np.flatnonzero(facts.ended(Ending.GREEN, Ending.RED) & facts.commit.is_told())
    cell, first = grouped(facts.workflow.codes[rows], facts.job.codes[rows], facts.commit.codes[rows])
    attempt, begins = grouped(cell, facts.run.codes[rows], facts.attempt[rows])
    is_red = np.bincount(attempt[facts.ended(Ending.RED)[rows]], minlength=len(begins)) > 0
    attempts = np.bincount(cell[begins], minlength=len(first))
    reds = np.bincount(cell[begins[is_red]], minlength=len(first))
    return Cells(
        workflow=facts.workflow.at(rows[first]),
        job=facts.job.at(rows[first]),
        commit=facts.commit.at(rows[first]),
        is_red=reds == attempts,
        is_flaky=(reds > 0) & (reds < attempts),
    )


METRICS: Final[Mapping[str, Callable[[Facts], Samples]]] = {
    "job_time_to_signal": job_time_to_signal,
    "dashboard_time_to_signal": dashboard_time_to_signal,
    "commit_time_to_signal": commit_time_to_signal,
    "time_to_red_signal": time_to_red_signal,
    "queue_time": queue_time,
    "duration": duration,
    "strict_lag": strict_lag,
}
"""By name; those that take more than facts are called with their defaults."""
