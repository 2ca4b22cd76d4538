"""The record behind `sooner rightsize`: pools, judged, and when the jobs came that options replace."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sooner.analysis.sizing import load
from sooner.analysis.sizing.facts import DAY_S, Queue, Steps
from sooner.analysis.sizing.judge import Judged, judge
from sooner.analysis.sizing.replay import Pool
from sooner.cli import sizing_files as files
from sooner.cli.sizing_pools import spec_of, specs_of
from sooner.model.errors import UsageError

if TYPE_CHECKING:
    from sooner.analysis.sizing.facts import Numbers


def record_of(
    jobs: Path | None, root: str, pattern: str, pools: Path | None
) -> tuple[dict[str, Pool], dict[str, str], tuple[float, ...], float | None, list[str]]:
    """Understood pools, why others are not, when the replaced jobs' runs came, how many a day, notes."""
    if not pattern:
        return {}, {}, (), None, ["say which jobs are replaced with --job PATTERN: queues are not predicted"]
    found = _rows(jobs, root)
    ours = load.meant(found.names, pattern)
    if not ours.any():
        raise UsageError(f"--job {pattern!r} means no job: there are {', '.join(sorted(set(found.names))[:10])}")
    specs = specs_of(pools)
    known: dict[str, Pool] = {}
    refused: dict[str, str] = {}
    for label in sorted(set(found.labels)):
        rows = np.array([one == label for one in found.labels])
        created, started, completed = (array[rows] for array in found.times)
        queue, _ = load.queue_of(created, started, completed, np.full(int(rows.sum()), np.nan))
        judged = judge(queue, specs.get(label) or spec_of(label))
        if judged.can_rank and judged.steps is not None:
            known[label] = _pool(label, queue, judged, found.times[0][rows & ours])
        else:
            refused[label] = judged.reason if not judged.fits else "its waits come from others' load, not from ours"
    pushes = load.pushes(found.times[0][ours], [found.runs[i] for i in np.flatnonzero(ours)])
    span = (pushes[-1] - pushes[0]) / DAY_S if len(pushes) > 1 else 0.0
    since = min((pool.since for pool in known.values()), default=-np.inf)
    inside = tuple(at for at in pushes if at >= since)
    return known, refused, inside, (len(pushes) - 1) / span if span else None, []


def _pool(label: str, queue: Queue, judged: Judged, replaced: "Numbers") -> Pool:
    return Pool(
        label=label,
        queue=queue,
        capacity=judged.steps or Steps((0.0,), (1.0,)),
        delay_s=judged.delay_s,
        disorder=judged.disorder,
        ours=np.isin(queue.created, replaced).astype(np.float64),
        since=judged.since or 0.0,
        until=judged.until or 0.0,
    )


def _rows(jobs: Path | None, root: str) -> "load.Rows":
    if jobs is None:
        from sooner.history import History

        with History(root) as history:
            return load.rows_of_history(history)
    table = files.table(jobs)
    names = next((table[name] for name in ("job", "job_name", "name") if name in table), None)
    created = files.column(table, "created")
    if names is None or created is None:
        raise files.SizingFileError(jobs, f"needs columns `job` and `created`: there are {', '.join(table)}")
    runs = next((table[name] for name in ("run", "run_id", "commit", "sha", "workflow_run") if name in table), None)
    labels = files.column(table, "label")
    count = len(created)
    times = []
    for field in ("created", "started", "completed"):
        values = files.column(table, field)
        times.append(
            np.full(count, np.nan) if values is None else np.array(files.numbers(jobs, field, values, is_time=True))
        )
    return load.Rows(
        names=files.texts(names),
        labels=files.texts(labels) if labels is not None else ["jobs"] * count,
        runs=files.texts(runs) if runs is not None else [""] * count,
        times=(times[0], times[1], times[2]),
    )
