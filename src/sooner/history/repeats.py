"""Attempts of jobs whose run nobody told. Pure."""

from collections.abc import Sequence

from msgspec.structs import replace

from sooner.history.tables import JobRow


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


def _began(row: JobRow) -> float:
    return next((at for at in (row.started, row.created, row.completed) if at is not None), 0.0)
