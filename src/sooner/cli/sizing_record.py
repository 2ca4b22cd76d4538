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
from sooner.cli.sizing_declared import Declarations, declarations
from sooner.cli.sizing_jobs import jobs_of
from sooner.model.errors import UsageError
from sooner.report.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sooner.analysis.sizing.declared import Crowd


def record_of(
    jobs: Path | None, root: str, pattern: str, pools: Path | None
) -> tuple[dict[str, Pool], dict[str, str], tuple[float, ...], float | None, list[str]]:
    """Understood pools, why others are not, when the replaced jobs' runs came, how many a day, notes."""
    if not pattern:
        return {}, {}, (), None, ["say which jobs are replaced with --job PATTERN: queues are not predicted"]
    rows = jobs_of(jobs, root, by_name=True)
    ours = load.meant(rows.names, pattern)
    if not len(rows.names):
        unlabelled = f"{root}: no job names its runner, so no pool is known (a column `runner`, `label` or `pool`)"
        raise UsageError(f"there are no jobs in {jobs}" if jobs else unlabelled)
    if not ours.any():
        raise UsageError(f"--job {pattern!r} means no job: there are {', '.join(sorted(set(rows.names))[:10])}")
    declared = declarations(pools)
    queues, left_out = load.by_label(rows)
    known, refused, notes = _understood(queues, ours, declared)
    runs = [rows.runs[i] for i in np.flatnonzero(ours).tolist()] if rows.runs else []
    pushes = load.pushes(rows.created[ours], runs)
    if untold := int(ours.sum()) - sum(map(bool, runs)):
        told = f"{counted(untold, 'job')} of {pattern} name no run"
        left_out = [*left_out, f"{told}: those within a minute count as one, {counted(len(pushes), 'run')} in all"]
    span = (pushes[-1] - pushes[0]) / DAY_S if len(pushes) > 1 else 0.0
    since = min((pool.since for pool in known.values()), default=-np.inf)
    inside = tuple(at for at in pushes if at >= since)
    return known, refused, inside, (len(pushes) - 1) / span if span else None, [*left_out, *declared.notes, *notes]


def _understood(
    queues: Mapping[str, load.Label], ours: "NDArray[np.bool_]", declared: Declarations
) -> tuple[dict[str, Pool], dict[str, str], list[str]]:
    """Pools by which options can be ranked, why others are not, notes. `ours` are the jobs to replace, of all rows."""
    crowds, notes = declared.crowds({label: one.queue for label, one in queues.items()}, TRAIN)
    known: dict[str, Pool] = {}
    refused: dict[str, str] = {}
    for label, (queue, rows) in queues.items():
        crowd = crowds.get(label)
        judged = judge(queue, declared.spec(label), crowd=crowd)
        if crowd is not None and judged.fits and abs(judged.errors.get("declared", inf)) > TOLERANCE:
            refused[label] = f"what is declared of its machines is {judged.errors.get('declared', inf):+.0%} off at p90"
        elif judged.fits if crowd is not None else judged.can_rank and judged.steps is not None:
            known[label] = _pool(label, queue, judged, ours[rows], crowd)
        else:
            refused[label] = judged.reason if not judged.fits else "its waits come from others' load, not from ours"
    for shared in declared.shared:
        _same_for_all(shared.widths, known, refused)
    return known, refused, [*declared.unused(queues), *notes]


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


def _pool(label: str, queue: Queue, judged: Judged, ours: "NDArray[np.bool_]", crowd: "Crowd | None") -> Pool:
    return Pool(
        label=label,
        queue=queue,
        capacity=judged.steps or Steps((0.0,), (1.0,)),
        delay_s=judged.delay_s,
        disorder=judged.disorder,
        ours=ours.astype(np.float64),
        since=judged.since or 0.0,
        until=judged.until or 0.0,
        crowd=crowd,
    )
