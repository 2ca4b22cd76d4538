"""Attempts of jobs on a trunk as signals. Read as columns: a large project's history holds millions. Needs numpy."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from sooner.analysis.trunk.attempts import Codes, Flags, branches_of, came_to, first_of_each, folded, is_any
from sooner.analysis.trunk.facts import Event, Kind, Signal, Status
from sooner.analysis.trunk.job_names import base_name
from sooner.history import Columns, History, Where, attempts_told_apart, of_requests, trunk_among
from sooner.model.errors import UsageError

_TEXTS = ("repository", "workflow", "job", "shard", "commit", "branch", "event", "outcome", "run")
_NUMBERS = ("attempt", "pull_request", "created", "started", "completed")


_STATUSES = (Status.FAILURE, Status.PENDING, Status.SUCCESS)


class Attempted(NamedTuple):
    """A row for each attempt of a job, its shards together, in the order of their first rows."""

    row: Codes
    """Its first row in `Jobs`."""
    is_a: dict[Status, Flags]
    """It fails with any of its shards, and passes with all of them.

    Nothing is known of one where a shard was cancelled, skipped or lost and no other one failed; nor where only some
    shards ran again, and what another one came to last was no pass.
    """
    began: NDArray[np.float64]
    """Epoch seconds, or NaN; so is the next."""
    ended: NDArray[np.float64]
    """Of the shards that have ended."""


class Jobs(NamedTuple):
    """A row for each attempt of a shard of a job, and what the numbers stand for; in the order of their times."""

    key: Codes
    """Of its signal: workflow and job, without shard and runner."""
    keys: list[str]
    job: Codes
    """The same without the workflow."""
    jobs: list[str]
    commit: Codes
    """-1 where nobody tells."""
    commits: list[str]
    run: Codes
    runs: list[str]
    attempt: Codes
    shard: Codes
    """The same for what is the same part of a job."""
    created: NDArray[np.float64]
    """Epoch seconds, or NaN; so are the next two."""
    started: NDArray[np.float64]
    completed: NDArray[np.float64]
    came_to: dict[Status, Flags]

    def first_seen(self) -> dict[str, float]:
        """When each commit was first run."""
        found = np.full(len(self.commits), np.inf)
        at = np.where(np.isnan(self.started), self.created, self.started)
        known = (self.commit >= 0) & ~np.isnan(at)
        np.minimum.at(found, self.commit[known], at[known])
        return {sha: float(at) for sha, at in zip(self.commits, found, strict=True) if np.isfinite(at)}

    def passed(self, names: Collection[str]) -> dict[str, dict[str, float]]:
        """Of some jobs, by their names with or without workflow, the commits on which they passed; and when first."""
        told = (self.commit >= 0) & ~np.isnan(self.started) & self.came_to[Status.SUCCESS]
        found: dict[str, dict[str, float]] = {}
        for codes, known in ((self.job, self.jobs), (self.key, self.keys)):
            wanted = np.array([name in names for name in known], dtype=bool)
            for row in np.flatnonzero(wanted[codes] & told).tolist():
                found.setdefault(known[codes[row]], {}).setdefault(
                    self.commits[self.commit[row]], float(self.started[row])
                )
        return found

    def attempted(self) -> Attempted:
        """The attempts of jobs: shards that agree in job, commit, run and attempt."""
        order = np.lexsort((self.attempt, self.run, self.commit, self.key))
        first = first_of_each(*(column[order] for column in (self.key, self.commit, self.run, self.attempt)))
        if not len(first):
            return Attempted(first, dict.fromkeys(_STATUSES, first > 0), self.started, self.completed)
        failed, runs = (
            np.logical_or.reduceat(self.came_to[status][order], first) for status in (Status.FAILURE, Status.PENDING)
        )
        passed = np.logical_and.reduceat(self.came_to[Status.SUCCESS][order], first)
        passed &= ~self._left_open(order, first)
        earliest = np.minimum.reduceat(order, first)
        again = np.argsort(earliest)
        return Attempted(
            row=earliest[again],
            is_a={
                Status.FAILURE: failed[again],
                Status.PENDING: (runs & ~failed)[again],
                Status.SUCCESS: passed[again],
            },
            began=np.fmin.reduceat(self.started[order], first)[again],
            ended=np.fmax.reduceat(self.completed[order], first)[again],
        )

    def _left_open(self, order: Codes, first: Codes) -> Flags:
        """Attempts of a job in which a shard did not run again that had not passed.

        Args:
            order: Rows, attempt by attempt.
            first: Where in it each attempt begins.
        """
        place = np.empty(len(order), dtype=np.int64)  # of each row its attempt
        place[order] = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
        begins = first_of_each(*(column[order[first]] for column in (self.key, self.commit, self.run)))
        behind = np.repeat(np.append(begins[1:], len(first)), np.diff(begins, append=len(first)))[place]
        by_shard = np.lexsort((place, self.shard, behind))
        at, again = place[by_shard], behind[by_shard]  # of each row its attempt, and that in which its shard ran next
        is_same = (np.diff(self.shard[by_shard]) == 0) & (np.diff(again) == 0)
        again[:-1][is_same] = at[1:][is_same]
        open_ = ~self.came_to[Status.SUCCESS][by_shard]
        change = np.zeros(len(first) + 1, dtype=np.int64)
        np.add.at(change, np.minimum(at + 1, again)[open_], 1)
        np.add.at(change, again[open_], -1)
        found: Flags = np.cumsum(change)[:-1] > 0
        return found

    def signals(self) -> list[Signal]:
        """One signal a job; its attempts whose commit and time are known are the events."""
        rows, is_a, began, ended = self.attempted()
        told = np.flatnonzero(np.logical_or.reduce([*is_a.values()]) & (self.commit[rows] >= 0) & ~np.isnan(began))
        told = told[np.argsort(self.key[rows[told]], kind="stable")]
        rows = rows[told]
        statuses = np.select([is_a[status][told] for status in _STATUSES], list(range(len(_STATUSES)))).tolist()
        ended = np.where(is_a[Status.PENDING], np.nan, ended)
        columns = (self.key[rows], self.commit[rows], began[told], ended[told], self.attempt[rows])
        events: dict[int, list[Event]] = {}
        for status, key, commit, start, end, attempt in zip(statuses, *(c.tolist() for c in columns), strict=True):
            event = Event(
                sha=self.commits[commit],
                status=_STATUSES[status],
                started_at=start,
                ended_at=None if end != end else end,  # noqa: PLR0124 - NaN is no time
                attempt=attempt,
            )
            events.setdefault(key, []).append(event)
        named = sorted((self.keys[key], tuple(some)) for key, some in events.items())
        return [Signal(key=name, kind=Kind.JOB, events=some) for name, some in named]


def every_job(history: History, where: Where) -> Jobs:
    """Attempts of all branches and requests that are asked for."""
    rows = history.columns("jobs", [*_TEXTS, *_NUMBERS], where)
    return _jobs(rows, np.arange(len(rows)))


def trunk_of(history: History, where: Where) -> str:
    """The branch that is the trunk, by the jobs, else by the commits, else by the tests; empty where nobody tells."""
    columns = history.columns("jobs", ["branch", "event", "pull_request"], where)
    told = _present(columns, "branch", ~of_requests(columns))
    told = told or Counter(row.branch for row in history.commits(where) if row.branch)
    return trunk_among(told or branches_of(history, where))


def landed_jobs(history: History, where: Where, as_of: float | None = None) -> tuple[Jobs, Where, list[str]]:
    """Attempts on one branch of one repository; which these are; and what a reader should know about that.

    Args:
        history: The history.
        where: Which rows.
        as_of: As they were known then, epoch seconds; None: as they are.

    Raises:
        UsageError: The history holds several repositories, and none was named.
    """
    rows = history.columns("jobs", [*_TEXTS, *_NUMBERS], where)
    chosen: Flags = ~of_requests(rows)
    if as_of is not None:
        chosen &= ~(np.fmin(rows.number("created"), rows.number("started")) > as_of)
    repositories = _present(rows, "repository", chosen)
    if len(repositories) > 1:
        raise UsageError(
            f"the history holds several repositories, name one with --repository: {_some(sorted(repositories))}"
        )
    branches = _present(rows, "branch", chosen)
    notes = []
    if len(branches) > 1 and not where.branch:
        where = replace(where, branch=trunk_among(branches))
        chosen &= is_any(rows.text("branch"), {where.branch})
        notes = [note_of(branches, where.branch)]
    return _jobs(rows, np.flatnonzero(chosen), as_of), where, notes


def note_of(branches: Collection[str], used: str) -> str:
    """What a reader should know where one branch of several was chosen."""
    return f"of {len(branches)} branches only {used!r} is used (--branch names another one)"


def _present(rows: Columns, name: str, chosen: Flags) -> Counter[str]:
    """Texts of a column and how many rows have them, the earliest first."""
    codes, names = rows.text(name)
    codes = codes[chosen]
    found, first, counts = np.unique(codes[codes >= 0], return_index=True, return_counts=True)
    order = np.argsort(first)
    return Counter({names[found[i]]: int(counts[i]) for i in order.tolist()})


def _jobs(rows: Columns, some: Codes, as_of: float | None = None) -> Jobs:
    jobs, base_of = folded(rows.text("job").names, base_name)
    job = base_of[rows.text("job").codes[some]]
    flows = rows.text("workflow")
    flow = flows.codes[some].astype(np.int64)
    pairs, place = np.unique(job * (len(flows.names) + 1) + flow + 1, return_inverse=True)
    jobs = [*jobs, ""]  # of no job
    names = [
        _key(flows.names, int(pair % (len(flows.names) + 1)) - 1, jobs[pair // (len(flows.names) + 1)])
        for pair in pairs
    ]
    keys, key_of = folded(names, str)
    started, completed = rows.number("started")[some], rows.number("completed")[some]
    outcomes = {status: flags[some] for status, flags in came_to(rows.text("outcome")).items()}
    if as_of is not None:  # shard by shard: a shard that has failed tells before the others end
        runs = (started > as_of) | (completed > as_of)
        outcomes = {one: flags | runs if one is Status.PENDING else flags & ~runs for one, flags in outcomes.items()}
        started, completed = (np.where(times > as_of, np.nan, times) for times in (started, completed))
    return Jobs(
        key=key_of[place],
        keys=keys,
        job=job,
        jobs=jobs,
        commit=rows.text("commit").codes[some].astype(np.int64),
        commits=rows.text("commit").names,
        run=rows.text("run").codes[some].astype(np.int64),
        runs=rows.text("run").names,
        attempt=attempts_told_apart(rows, some),
        shard=_shards(rows)[some],
        created=rows.number("created")[some],
        started=started,
        completed=completed,
        came_to=outcomes,
    )


def _shards(rows: Columns) -> Codes:
    names, shards = rows.text("job").codes.astype(np.int64), rows.text("shard")
    found: Codes = (names + 1) * (len(shards.names) + 1) + shards.codes + 1
    return found


def _key(workflows: Sequence[str], workflow: int, job: str) -> str:
    return f"{workflows[workflow]} / {job}" if workflow >= 0 else job


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")  # noqa: PLR2004 - a line
