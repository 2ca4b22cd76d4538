"""Attempts of jobs that nobody has counted. Pure."""

from sooner.history.reading import Array, Columns

_SAME = ("repository", "workflow", "commit", "job", "shard", "run")
"""Rows without a run, or without a count in it, that agree in these are attempts of one thing."""


def attempts_told_apart(rows: Columns, some: Array) -> Array:
    """The attempts of some rows of jobs: of one job on one commit each row that nobody counted is another, by its time.

    A table without runs has a row an attempt, one of pipelines an id for all of them, and often neither counts them:
    taken for parts of one attempt, a failure and the pass after it would be one failure. Needs numpy.

    Args:
        rows: With the columns `repository`, `workflow`, `commit`, `job`, `shard`, `run`, `attempt`, `started`,
            `created` and `completed`.
        some: Which rows.
    """
    import numpy as np

    told = rows.number("attempt")[some].astype(np.float64)
    attempt = np.nan_to_num(told, nan=1.0).astype(np.int64)
    columns = {name: rows.text(name).codes[some] for name in _SAME}
    loose = np.flatnonzero(((columns["run"] < 0) | np.isnan(told)) & (columns["commit"] >= 0))
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
