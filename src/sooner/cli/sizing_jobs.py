"""The record of jobs that the sizing verbs look at: a table, or a history."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from sooner.analysis.sizing import load
from sooner.cli import sizing_files as files
from sooner.cli.histories import history_at

if TYPE_CHECKING:
    from sooner.analysis.sizing.facts import Numbers

_NAMES: Final = ("job", "job_name", "name")
_RUNS: Final = ("run", "run_id", "commit", "sha", "workflow_run")


def jobs_of(jobs: Path | None, root: str, *, by_name: bool = False) -> load.Rows:
    """All jobs that are known.

    Args:
        jobs: A table, or None for the history.
        root: The history.
        by_name: Whether a job's name and run are asked for.

    Raises:
        SizingFileError: The table cannot be read, or lacks a column.
        UsageError: There is no such history.
    """
    if jobs is not None:
        return _of_table(jobs, by_name=by_name)
    from sooner.history import History

    with History(history_at(root)) as history:
        return load.rows_of_history(history, by_name=by_name)


def _of_table(path: Path, *, by_name: bool) -> load.Rows:
    table = files.table(path)
    created, labels = files.column(table, "created"), files.column(table, "label")
    names = next((table[name] for name in _NAMES if name in table), None)
    if created is None or (by_name and names is None):
        wanted = "columns `job` and `created`" if by_name else "a column `created`"
        raise files.SizingFileError(path, f"needs {wanted}: there are {', '.join(table)}")
    runs = next((table[name] for name in _RUNS if name in table), None)
    count = len(created)

    def numbers(field: str, *, is_time: bool) -> "Numbers":
        values = files.column(table, field)
        if values is None:
            return np.full(count, np.nan)
        return np.array(files.numbers(path, field, values, is_time=is_time))

    found = load.Rows(
        names=files.texts(names) if by_name and names is not None else [],
        runs=files.texts(runs) if runs is not None else [],
        labels=files.texts(labels) if labels is not None else ["jobs"] * count,
        created=numbers("created", is_time=True),
        started=numbers("started", is_time=True),
        completed=numbers("completed", is_time=True),
        seconds=numbers("seconds", is_time=False),
        priority=None if files.column(table, "priority") is None else numbers("priority", is_time=False),
    )
    found = _let_go(table, found)
    return found._replace(created=_ready(table, found))


def _let_go(table: Mapping[str, files.Column], rows: load.Rows) -> load.Rows:
    """Jobs as the concurrency groups that the table names, or that are seen in it, let them go."""
    group, workflow, branch = (files.column(table, name) for name in ("group", "workflow", "branch"))
    if group is not None:
        return load.let_go(rows, files.texts(group))
    if workflow is not None and branch is not None:
        return load.let_go_by_workflow(rows, files.texts(workflow), files.texts(branch))
    return rows


def _ready(table: Mapping[str, files.Column], rows: load.Rows) -> "Numbers":
    """When each job could have started: it was created, and what it needs had ended."""
    ids, needs = files.column(table, "id"), files.column(table, "needs")
    if ids is None or needs is None:
        return rows.created
    needed = [files.names(cell) for cell in needs]
    return np.array(load.ready(rows.created.tolist(), rows.completed.tolist(), files.texts(ids), needed))
