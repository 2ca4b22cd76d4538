"""Attempts of jobs whose run nobody told. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from sooner.history.reading import Array, Columns
from sooner.history.tables import JobRow

_SAME = ("repository", "workflow", "commit", "job", "shard")
"""Rows without a run that agree in these are attempts of one thing."""


def told_apart(rows: Sequence[JobRow]) -> list[JobRow]:
    """The rows in their order; of one job on one commit each row without a run is another attempt, counted by time.

    A table without runs has a row an attempt, and often no column that counts them: taken for parts of one attempt, a
    failure and the pass after it would be one failure.
    """
    found = list(rows)
    same: dict[tuple[str, ...], list[int]] = {}
    for i, row in enumerate(found):
        if not row.run and row.commit:
            same.setdefault((row.repository, row.workflow, row.commit, row.job, row.shard), []).append(i)
    for places in same.values():
        if len(places) > 1:
            places.sort(key=lambda i: (_began(found[i]), found[i].attempt))
            for attempt, i in enumerate(places, 1):
                found[i] = replace(found[i], attempt=attempt)
    return found


def attempts_told_apart(rows: Columns, some: Array) -> Array:
    """The attempts of some rows of jobs, told apart in the same way. Needs numpy.

    Args:
        rows: With the columns `repository`, `workflow`, `commit`, `job`, `shard`, `run`, `attempt`, `started`,
            `created` and `completed`.
        some: Which rows.
    """
    import numpy as np

    attempt = np.nan_to_num(rows.number("attempt")[some].astype(np.float64), nan=1.0).astype(np.int64)
    columns = {name: _codes(rows, name)[some] for name in (*_SAME, "run")}
    loose = np.flatnonzero((columns["run"] < 0) & (columns["commit"] >= 0))
    began = np.zeros(len(loose))
    for name in ("completed", "created", "started"):
        at = rows.number(name)[some][loose]
        began = np.where(np.isnan(at), began, at)
    same = [columns[name][loose] for name in _SAME]
    order = np.lexsort((attempt[loose], began, *same))
    parted = np.logical_or.reduce([np.diff(column[order], prepend=-2) != 0 for column in same])
    first = np.flatnonzero(parted)
    counts = np.diff(first, append=len(order))
    several = np.repeat(counts > 1, counts)
    place = np.arange(len(order)) - np.repeat(first, counts)
    attempt[loose[order][several]] = place[several] + 1
    return attempt


def _codes(rows: Columns, name: str) -> Array:
    """Codes of a column of text; -1 also where the text is empty."""
    codes, names = rows.text(name)
    kept = codes.copy()
    if "" in names:
        kept[codes == names.index("")] = -1
    return kept


def _began(row: JobRow) -> float:
    return next((at for at in (row.started, row.created, row.completed) if at is not None), 0.0)
