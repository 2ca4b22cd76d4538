"""The record behind `sooner rightsize`: pools, judged, and when the jobs came that options replace."""

from collections.abc import Iterable, Mapping
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from sooner.analysis.sizing import load
from sooner.analysis.sizing.facts import DAY_S, Queue, Steps
from sooner.analysis.sizing.judge import TOLERANCE, TRAIN, Judged, judge
from sooner.analysis.sizing.replay import Pool
from sooner.cli import sizing_files as files
from sooner.cli.sizing_declared import Declarations, declarations
from sooner.model.errors import UsageError

if TYPE_CHECKING:
    from sooner.analysis.sizing.declared import Crowd
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
    declared = declarations(pools)
    queues = {}
    positions = {}
    for label in sorted(set(found.labels)):
        rows = np.array([one == label for one in found.labels])
        created, started, completed = (array[rows] for array in found.times)
        queues[label], _ = load.queue_of(created, started, completed, np.full(int(rows.sum()), np.nan))
        positions[label] = found.times[0][rows & ours]
    queues = {label: queue for label, queue in queues.items() if len(queue)}
    known, refused, notes = _understood(queues, positions, declared)
    pushes = load.pushes(found.times[0][ours], [found.runs[i] for i in np.flatnonzero(ours)])
    span = (pushes[-1] - pushes[0]) / DAY_S if len(pushes) > 1 else 0.0
    since = min((pool.since for pool in known.values()), default=-np.inf)
    inside = tuple(at for at in pushes if at >= since)
    return known, refused, inside, (len(pushes) - 1) / span if span else None, [*declared.notes, *notes]


def _understood(
    queues: Mapping[str, Queue], replaced: Mapping[str, "Numbers"], declared: Declarations
) -> tuple[dict[str, Pool], dict[str, str], list[str]]:
    """Pools by which options can be ranked, why others are not, notes."""
    crowds, notes = declared.crowds(queues, TRAIN)
    known: dict[str, Pool] = {}
    refused: dict[str, str] = {}
    for label, queue in queues.items():
        crowd = crowds.get(label)
        judged = judge(queue, declared.spec(label), crowd=crowd)
        if crowd is not None and judged.fits and abs(judged.errors.get("declared", inf)) > TOLERANCE:
            refused[label] = f"what is declared of its machines is {judged.errors.get('declared', inf):+.0%} off at p90"
        elif judged.fits if crowd is not None else judged.can_rank and judged.steps is not None:
            known[label] = _pool(label, queue, judged, replaced[label], crowd)
        else:
            refused[label] = judged.reason if not judged.fits else "its waits come from others' load, not from ours"
    for shared in declared.shared:
        _same_for_all(shared.widths, known, refused)
    return known, refused, notes


def _same_for_all(labels: Iterable[str], known: dict[str, Pool], refused: dict[str, str]) -> None:
    """Labels that share nodes are understood together or not at all, those among them that had no job yet too."""
    why = next((f"shares nodes with {label}: {refused[label]}" for label in labels if label in refused), None)
    one = next((known[label] for label in labels if label in known), None)
    for label in labels:
        if why is not None:
            known.pop(label, None)
            refused.setdefault(label, why)
        elif one is not None and label not in known:
            known[label] = structs.replace(one, label=label)


def _pool(label: str, queue: Queue, judged: Judged, replaced: "Numbers", crowd: "Crowd | None") -> Pool:
    return Pool(
        label=label,
        queue=queue,
        capacity=judged.steps or Steps((0.0,), (1.0,)),
        delay_s=judged.delay_s,
        disorder=judged.disorder,
        ours=np.isin(queue.created, replaced).astype(np.float64),
        since=judged.since or 0.0,
        until=judged.until or 0.0,
        crowd=crowd,
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
