"""The tables of the history: their rows, columns, keys and days. Version 1 of the layout.

A row is a frozen struct here and a line of a Parquet file on the disk. Times are seconds since 1970 (UTC) in Python and
`TIMESTAMP` (microseconds, UTC) in Parquet; text that is not known is empty in Python and null in Parquet; numbers and
times that are not known are None and null. A column is added with a new version and an upgrade in `sql/upgrades.sql`,
never in place. The garbage collector leaves rows alone (`gc=False`): they are many, and none holds another.
"""

import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Final, NewType

from msgspec import Struct
from msgspec.structs import fields

from sooner.history.errors import HistoryError
from sooner.history.outcomes import HistoryOutcome

SCHEMA: Final = 1
"""Version of the layout that this code writes: folder `v1/`, metadata `sooner_schema` of each file."""

Epoch = NewType("Epoch", float)
"""Seconds since 1970-01-01 00:00 UTC."""


class JobRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One attempt of a job of a CI system."""

    repository: str = ""
    """`owner/name`."""
    workflow: str = ""
    run: str = ""
    """The CI system's id of the run that the job is part of; the same for all attempts."""
    attempt: int = 1
    job: str
    """Its name, shard and configuration included, as the CI system shows it."""
    job_id: str = ""
    shard: str = ""
    """`2/5`, where the job's name or its source tells."""
    commit: str = ""
    parent: str = ""
    branch: str = ""
    pull_request: int | None = None
    event: str = ""
    """`push`, `pull_request`, `schedule`, ..."""
    run_created: Epoch | None = None
    """When this attempt of the run was asked for: time to signal counts from here."""
    created: Epoch | None = None
    """When the job came into being."""
    queued: Epoch | None = None
    """When it could have started: everything that it needs had ended. `started - queued` is time spent waiting."""
    started: Epoch | None = None
    completed: Epoch | None = None
    closed: Epoch | None = None
    """When the CI system gave up on it, where that is not when it ended (`completed` is then its last sign of life)."""
    runner: str = ""
    """Label of the pool of machines; several labels are joined by commas."""
    runner_name: str = ""
    devices: int | None = None
    outcome: HistoryOutcome
    failure_line: str = ""
    shadow: str = ""
    """`placeholder` or `copied`: a record that the CI system made without running anything; see `docs`."""
    source: str = ""
    """Format, and what it was read from."""
    as_of: Epoch | None = None
    """When this was true: of two records of an attempt that still ran, the later one counts."""


class RunRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One attempt of a run (of a workflow, a build, `sooner run`): what its jobs and tests have in common."""

    repository: str = ""
    workflow: str = ""
    run: str
    attempt: int = 1
    number: int | None = None
    commit: str = ""
    parent: str = ""
    branch: str = ""
    pull_request: int | None = None
    event: str = ""
    created: Epoch | None = None
    """When this attempt was asked for; a re-run has a time of its own."""
    first_created: Epoch | None = None
    """When the first attempt was asked for."""
    started: Epoch | None = None
    completed: Epoch | None = None
    outcome: HistoryOutcome
    devices: int | None = None
    source: str = ""
    as_of: Epoch | None = None


class TestRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One attempt of a unit or of a test case."""

    __test__: ClassVar[bool] = False  # pytest, this is not one of yours

    repository: str = ""
    run: str = ""
    job: str = ""
    """The job that it ran in, where there was one."""
    unit: str = ""
    """What was started on its own: a unit of a plan, a test file, a JUnit suite."""
    node_id: str = ""
    """A test case in it; empty for the unit itself."""
    variant: str = ""
    attempt: int = 1
    kind: str = "unit"
    """`unit`, `case`, or `summary` (a published average, not an attempt)."""
    outcome: HistoryOutcome
    seconds: float | None = None
    started: Epoch | None = None
    devices: tuple[str, ...] = ()
    """Ids of the devices that it held."""
    peak_memory_mib: float | None = None
    worker: str = ""
    message: str = ""
    """First line of what went wrong."""
    message_digest: str = ""
    """16 hex digits of the message without what changes between runs (numbers, addresses): equal faults look equal."""
    exit_code: int | None = None
    signal: int | None = None
    commit: str = ""
    branch: str = ""
    source: str = ""
    as_of: Epoch | None = None


class CommitRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One commit."""

    repository: str = ""
    sha: str
    parents: tuple[str, ...] = ()
    time: Epoch | None = None
    """Committer's time."""
    author: str = ""
    message: str = ""
    files: tuple[str, ...] = ()
    """Paths that it changed, against its first parent."""
    branch: str = ""
    source: str = ""
    as_of: Epoch | None = None


class RunnerRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What was known of a pool of runners at one time."""

    repository: str = ""
    label: str
    at: Epoch | None = None
    size: int | None = None
    """Machines that it may have."""
    online: int | None = None
    busy: int | None = None
    peak: int | None = None
    """Most jobs at the same time within the last `window_days`."""
    jobs: int | None = None
    """Jobs within the last `window_days`."""
    window_days: float | None = None
    note: str = ""
    source: str = ""
    as_of: Epoch | None = None


class MeasureRow(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One number that was measured in an attempt of a job, or about a part of it."""

    repository: str = ""
    workflow: str = ""
    run: str = ""
    attempt: int = 1
    job: str = ""
    job_id: str = ""
    commit: str = ""
    subject: str = ""
    """What the number is about, where it is not the whole job: a step, a unit, a file."""
    name: str
    """`step_seconds`, `sccache.cache_hits`, `peak_memory`, ..."""
    value: float
    unit: str = ""
    at: Epoch | None = None
    source: str = ""
    as_of: Epoch | None = None


Row = JobRow | RunRow | TestRow | CommitRow | RunnerRow | MeasureRow


class Table(Struct, frozen=True, kw_only=True):
    """How a kind of row is stored."""

    name: str
    row: type[Row]
    key: tuple[str, ...]
    """SQL expressions that together name the thing that a row is a record of."""
    time: str
    """SQL expression of the time that decides in which day's folder a row lies."""
    scope: str = "run"
    """A column that is equal in all records of one thing, and lets Parquet skip files that do not hold it."""
    rank: str = "1"
    """SQL expression: of two records of one thing the higher one counts; where both are 0, the one with the later
    `as_of`. What is settled stays as it was first recorded."""
    best: int = 1
    """The highest rank: nothing takes the place of such a record."""

    @property
    def columns(self) -> Mapping[str, str]:
        """SQL type by column, without `key`."""
        return _columns(self.row)

    @property
    def defaults(self) -> Mapping[str, str]:
        """SQL of what a column holds where a row does not say; columns that are null then are left out."""
        return _defaults(self.row)

    @property
    def required(self) -> frozenset[str]:
        """Columns without which there is no row."""
        return frozenset(field.name for field in fields(self.row) if field.required)


_SETTLED: Final = "(outcome not in ('running', 'not_run'))::int"
_RUN: Final = """coalesce(run, 'commit ' || "commit", '')"""

TABLES: Final[Mapping[str, Table]] = {
    table.name: table
    for table in (
        Table(
            name="jobs",
            row=JobRow,
            # A job's id alone would merge placeholders that share one; its name alone, two jobs of the same name.
            # A copy that a re-run made of a job is one thing in however many attempts it is shown.
            key=(
                "repository",
                _RUN,
                "case when shadow = 'copied' then 'copied' else coalesce(attempt, 1)::varchar end",
                "job",
                (
                    "case when shadow = 'copied' then epoch_us(started)::varchar"
                    " else coalesce(job_id, coalesce(epoch_us(coalesce(started, created, completed))::varchar, '')"
                    # A run is of one workflow; a commit is not, and jobs of one name may start at once on it.
                    " || case when run is null then coalesce(' ' || workflow, '') || coalesce(' ' || shard, '')"
                    # One that the name does not tell.
                    " else coalesce(' ' || nullif(shard, shard_of(job)), '') end) end"
                ),
            ),
            time="coalesce(created, queued, started, completed, run_created, as_of)",
            rank=_SETTLED,
        ),
        Table(
            name="runs",
            row=RunRow,
            key=("repository", "run", "attempt::varchar"),
            time="coalesce(created, started, completed, as_of)",
            # An interrupted run may be resumed, and then comes to another end.
            rank="case when outcome in ('running', 'not_run') then 0"
            " when outcome in ('cancelled', 'infrastructure') then 1 else 2 end",
            best=2,
        ),
        Table(
            name="tests",
            row=TestRow,
            key=(
                "repository",
                _RUN,
                "job",
                "unit",
                "node_id",
                "variant",
                "attempt::varchar",
                "case when run is null then epoch_us(started)::varchar end",
            ),
            time="coalesce(started, as_of)",
            rank=_SETTLED,
        ),
        Table(
            name="commits",
            row=CommitRow,
            key=("repository", "sha"),
            time='"time"',
            scope="sha",
            # Sources know different parts of a commit: the record that knows most counts.
            rank='("time" is not null)::int + (message is not null)::int + (parents is not null)::int'
            " + (files is not null)::int",
            best=4,
        ),
        Table(
            name="runners",
            row=RunnerRow,
            key=("repository", "label", "note", 'epoch_us("at")::varchar'),
            time='"at"',
            scope="label",
        ),
        Table(
            name="measures",
            row=MeasureRow,
            key=(
                "repository",
                _RUN,
                "attempt::varchar",
                "job",
                "job_id",
                "subject",
                "name",
                'case when run is null then epoch_us("at")::varchar end',
            ),
            time='"at"',
        ),
    )
}

_SQL_TYPES: Final[Mapping[Any, str]] = {
    str: "VARCHAR",
    int: "BIGINT",
    float: "DOUBLE",
    bool: "BOOLEAN",
    Epoch: "TIMESTAMP",
    tuple[str, ...]: "VARCHAR[]",
}


@cache
def _columns(row: type[Row]) -> Mapping[str, str]:
    hints = typing.get_type_hints(row)
    return MappingProxyType({field.name: _sql_type(hints[field.name]) for field in fields(row)})


@cache
def _defaults(row: type[Row]) -> Mapping[str, str]:
    values = {field.name: field.default for field in fields(row) if field.default}
    return MappingProxyType({name: repr(each) for name, each in values.items() if isinstance(each, str | int)})


def _sql_type(kind: Any) -> str:
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        kind = next(part for part in typing.get_args(kind) if part is not type(None))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return "VARCHAR"
    return _SQL_TYPES[kind]


def table_named(name: str) -> Table:
    """The table of a name.

    Raises:
        HistoryError: There is none.
    """
    if name not in TABLES:
        raise HistoryError(f"there is no table {name!r}: the tables are {', '.join(TABLES)}")
    return TABLES[name]


_TABLE_OF: Final = {table.row: table for table in TABLES.values()}


def table_of(row: Row) -> Table:
    """The table that a row belongs to."""
    return _TABLE_OF[type(row)]
