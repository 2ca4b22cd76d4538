"""Rows of jobs and tests as facts."""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from math import inf, isnan
from typing import Final, NamedTuple

import numpy as np

from sooner.analysis.sizing.facts import DAY_S, Flags, Indices, Numbers, Queue
from sooner.analysis.sizing.groups import released
from sooner.analysis.sizing.ledger import Execution
from sooner.history import History, HistoryOutcome
from sooner.history.reading import EVERYTHING, Where
from sooner.model.patterns import is_meant

_FEW: Final = 50
"""Jobs without a start at the end of a record that make it one whose end is to be predicted."""
_STILL: Final = 0.9
"""Share of such jobs that came before something last began or ended, where they only wait."""
_APART_S: Final = 2 * 365 * DAY_S
"""Times so far from all others are none: a clock that was never set, a zero for nothing, the year 9999."""


class Rows(NamedTuple):
    """Jobs, column by column; times are epoch seconds, NaN where they are not known."""

    labels: list[str]
    """Of the runner."""
    created: Numbers
    """When they could have started, but for a machine."""
    started: Numbers
    completed: Numbers
    seconds: Numbers
    """How long they took, where not both ends are known."""
    priority: Numbers | None = None
    """Higher ones go first; NaN is 0."""
    names: Sequence[str] = ()
    """Empty where nobody asked for them, as are `runs`."""
    runs: Sequence[str] = ()
    held: int = 0
    """Jobs that a concurrency group held back: `created` is when it let them go."""


class Label(NamedTuple):
    """The jobs of one label."""

    queue: Queue
    rows: Indices
    """Where each of the queue's jobs is among all rows."""


def by_label(rows: Rows) -> tuple[dict[str, Label], list[str]]:
    """Queues by label, the busiest first, and notes on rows that were left out."""
    names, codes = np.unique(np.asarray(rows.labels, dtype=object).astype(str), return_inverse=True)
    notes: list[str] = []
    if rows.held:
        notes.append(f"{rows.held} jobs were held by their concurrency group: their wait begins when it let them go")
    found: dict[str, Label] = {}
    order = np.argsort(codes, kind="stable")
    edges = np.searchsorted(codes[order], np.arange(len(names) + 1))
    first = None if rows.priority is None else np.nan_to_num(rows.priority)
    for index in np.argsort(-np.diff(edges), kind="stable").tolist():
        own = order[edges[index] : edges[index + 1]]
        created, started, completed, seconds = (
            column[own] for column in (rows.created, rows.started, rows.completed, rows.seconds)
        )
        queue, kept = queue_of(created, started, completed, seconds, None if first is None else first[own])
        if len(kept) < len(own):
            left_out = len(own) - len(kept)
            notes.append(f"{names[index]}: {left_out} of {len(own)} jobs left out: no time, or ended before they began")
        if len(queue):
            found[str(names[index])] = Label(queue, own[kept])
    return found, notes


def ready(
    created: Sequence[float], completed: Sequence[float], ids: Sequence[str], needs: Sequence[Sequence[str]]
) -> list[float]:
    """When jobs could have started: they were created, and all that they need (by its id, where known) had ended.

    What ended no sooner than the job itself, such as the job itself, is none that it waited for; nor is a later attempt
    of the same id.
    """
    ended: dict[str, list[float]] = {}
    told = [(end, one) for one, end in zip(ids, completed, strict=True) if not isnan(end)]
    for end, one in sorted(told):
        ended.setdefault(one, []).append(end)

    def before(one: str, own: float) -> float:
        ends = ended.get(one, ())
        count = len(ends) if isnan(own) else bisect_left(ends, own)
        return ends[count - 1] if count else -inf

    return [
        max(at, *(before(one, own) for one in needed), -inf)
        for at, own, needed in zip(created, completed, needs, strict=True)
    ]


def queue_of(
    created: Numbers, started: Numbers, completed: Numbers, seconds: Numbers, priority: Numbers | None = None
) -> tuple[Queue, Indices]:
    """A queue of one label, in order, and which row each of its jobs is. Equal priorities are none."""
    created = _together(created)
    started, completed = (np.where(np.abs(at - created) < _APART_S, at, np.nan) for at in (started, completed))
    completed = np.where(np.isnan(completed), started + seconds, completed)
    took = np.where(np.isnan(started + completed), seconds, completed - started)
    good = ~np.isnan(created) & ~(took < 0) & ~(completed < created)
    order = np.flatnonzero(good)[np.argsort(created[good], kind="stable")]
    created, started, completed, took = created[order], started[order], completed[order], took[order]
    predict = _to_predict(created, started, completed)
    # A job without a start and without an end waits still, or nobody knows: it tells nothing.
    kept = predict | ~np.isnan(started) | ~np.isnan(completed)
    created, started, completed, took = created[kept], started[kept], completed[kept], took[kept]
    predict = predict[kept]
    if priority is not None:
        priority = priority[order][kept]
        priority = priority if len(np.unique(priority)) > 1 else None
    running = ~np.isnan(started) & np.isnan(completed)
    horizon = np.nanmax(np.concatenate([created, completed])) + 1.0 if len(created) else 0.0
    queue = Queue(
        created=created,
        started=np.where(np.isnan(started), np.nan, np.maximum(started, created)),
        completed=np.where(predict, np.nan, np.where(running, horizon, completed)),
        seconds=took,
        to_predict=predict,
        priority=priority,
    )
    return queue, order[kept]


def _together(created: Numbers) -> Numbers:
    """Times, NaN where they are years away from most others."""
    known = np.sort(created[np.isfinite(created)])
    if not len(known):
        return np.full(len(created), np.nan)
    parts = np.split(known, 1 + np.flatnonzero(np.diff(known) > _APART_S))
    most = max(parts, key=len)
    return np.where((created >= most[0]) & (created <= most[-1]), created, np.nan)


def _to_predict(created: Numbers, started: Numbers, completed: Numbers) -> Flags:
    """Jobs at the end of a record, none of which has a start: they are asked for, not told.

    Where others began or ended until they had come, they only wait still: the record was cut, not blanked.
    """
    known = np.flatnonzero(~np.isnan(started))
    last = int(known[-1]) if len(known) else -1
    tail = np.arange(len(started)) > last
    is_asked = tail.sum() >= _FEW or (last < 0 and tail.any())
    if is_asked and last >= 0:
        goes_on_until = np.nanmax(np.concatenate([started[: last + 1], completed[: last + 1]]))
        is_asked = bool(goes_on_until < np.quantile(created[tail], _STILL))
    return tail if is_asked else np.zeros(len(started), dtype=np.bool_)


def rows_of_history(history: History, *, by_name: bool) -> Rows:
    """A history's jobs that have a runner."""
    columns = ["runner", "created", "queued", "started", "completed", "run", "workflow", "branch", "job"]
    columns = columns if by_name else columns[:-1]
    found = history.columns("jobs", columns, EVERYTHING)
    codes, labels = found.text("runner")
    kept = np.flatnonzero(codes >= 0)

    def text(name: str) -> list[str]:
        of, names = found.text(name)
        return [names[code] if code >= 0 else "" for code in of[kept]]

    def number(name: str) -> Numbers:
        values: Numbers = found.number(name).astype(np.float64)
        return values[kept]

    queued = number("queued")
    rows = Rows(
        labels=[labels[code] for code in codes[kept]],
        created=np.where(np.isnan(queued), number("created"), queued),
        started=number("started"),
        completed=number("completed"),
        seconds=np.full(len(kept), np.nan),
        names=text("job") if by_name else [],
        runs=text("run"),
    )
    return let_go_by_workflow(rows, text("workflow"), text("branch"))


def let_go(rows: Rows, groups: Sequence[str], labels: Sequence[str] = ()) -> Rows:
    """Jobs as their concurrency groups let them go; with `labels`, groups are only supposed."""
    created = released(rows.created, rows.started, rows.completed, groups, runs=rows.runs, labels=labels)
    return rows._replace(created=created, held=int((created > rows.created).sum()))


def let_go_by_workflow(rows: Rows, workflows: Sequence[str], branches: Sequence[str]) -> Rows:
    """The same where the runs of a workflow on a branch are seen to wait for each other."""
    keys = [f"{one}@{branch}" if one and branch else "" for one, branch in zip(workflows, branches, strict=True)]
    return let_go(rows, keys, rows.labels) if any(keys) else rows


def meant(names: Sequence[str], pattern: str) -> Flags:
    """Which jobs a pattern means."""
    known = {name: is_meant(name, pattern) for name in set(names)}
    return np.array([known[name] for name in names], dtype=np.bool_)


def pushes(created: Numbers, runs: Sequence[str]) -> tuple[float, ...]:
    """When each run of some jobs came: the first of its jobs; those that name no run are one within a minute."""
    first: dict[str, float] = {}
    untold = []
    for at, run in zip(created.tolist(), runs or [""] * len(created), strict=True):
        if np.isnan(at):
            continue
        if run:
            first[run] = min(at, first.get(run, at))
        else:
            untold.append(at)
    ordered = np.sort(np.array(untold))
    alone = ordered[np.diff(ordered, prepend=-np.inf) > _ONE_PUSH_S]
    return tuple(sorted([*first.values(), *alone.tolist()]))


_ONE_PUSH_S: Final = 60.0
_RAN: Final = frozenset(
    {
        HistoryOutcome.PASSED,
        HistoryOutcome.FAILED,
        HistoryOutcome.TIMED_OUT,
        HistoryOutcome.CRASHED,
        HistoryOutcome.OUT_OF_MEMORY,
    }
)
"""Outcomes of tests whose body ran: skips, cancellations, losses and errors before the body (fixtures) are none."""


_SKIPPED: Final = frozenset({HistoryOutcome.SKIPPED, HistoryOutcome.SKIPPED_NO_DEVICES})


def executions(history: History, sizes: Mapping[str, int], until: float, where: Where = EVERYTHING) -> list[Execution]:
    """The last executions of single tests, for each number of devices that they had.

    How many devices a test had is the number that it held, else that of its job, else what `sizes` says of its runner.

    Args:
        history: Where from.
        sizes: Devices by label of a runner, or pattern of labels.
        until: Epoch seconds, included: what ran later is not looked at.
        where: Repository and branch.
    """
    return _last(history, _RAN, sizes, until, where)


def skips(history: History, sizes: Mapping[str, int], until: float, where: Where = EVERYTHING) -> list[Execution]:
    """When single tests were last skipped, in the same way: no executions, with what they would have had."""
    return _last(history, _SKIPPED, sizes, until, where)


def _last(
    history: History, outcomes: Collection[HistoryOutcome], sizes: Mapping[str, int], until: float, where: Where
) -> list[Execution]:
    return [
        Execution(
            test=row.node_id,
            at=row.at,
            where=" / ".join(filter(None, (row.job, row.runner or row.worker, row.commit[:12]))) or row.run,
            devices=_size(row.runner, sizes) if row.devices is None else row.devices,
            ranks=row.ranks,
            outcome=str(row.outcome),
            is_pretended=row.is_pretended,
        )
        for row in history.last_runs(outcomes, until, where)
    ]


def runner_labels(history: History, where: Where = EVERYTHING) -> set[str]:
    """What a size may be told of: each label of each runner that a job ran on, and those of one runner together."""
    codes, names = history.columns("jobs", ["runner"], Where(repository=where.repository), ordered=False).text("runner")
    return {label for code in set(codes.tolist()) if code >= 0 for label in _labels(names[code])} - {""}


def fits(pattern: str, labels: Iterable[str]) -> bool:
    """Whether a runner that is named so, or by such a pattern, has one of these labels."""
    return any(label and (label == pattern or fnmatchcase(label, pattern)) for label in labels)


def _labels(runner: str) -> list[str]:
    return [runner, *(one.strip() for one in runner.split(","))]  # a runner may have several: `self-hosted,gpu.4`


def _size(runner: str, sizes: Mapping[str, int]) -> int | None:
    each = _labels(runner)
    if named := [sizes[one] for one in each if one in sizes]:
        return named[0]
    return next((size for pattern, size in sizes.items() if fits(pattern, each)), None)
