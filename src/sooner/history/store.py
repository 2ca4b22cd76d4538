"""`History`: the one door to a history, for those who add to it and those who read it."""

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self, TypeVar

from msgspec import Struct

from sooner.history.commit import Added, Commit, Repeats, select_list
from sooner.history.database import MEMORY_MIB, Database, Vanished
from sooner.history.durations import Subject, expected
from sooner.history.executions import LastRun, all_cases, last_runs
from sooner.history.files import Folder, StoredFile, open_folder
from sooner.history.outcomes import HistoryOutcome
from sooner.history.reading import (
    EVERYTHING,
    Columns,
    Where,
    condition,
    in_order,
    load_columns,
    load_rows,
    repositories,
)
from sooner.history.relations import find, make_view
from sooner.history.row_files import RowFile
from sooner.history.statements import sql
from sooner.history.tables import (
    SCHEMA,
    TABLES,
    CommitRow,
    JobRow,
    MeasureRow,
    Row,
    RunnerRow,
    RunRow,
    Table,
    TestRow,
    table_named,
)

DEFAULT_ROOT: Final = ".sooner/history"
_TRIES: Final = 8
"""How often a reader lists the folder again because somebody compacted it meanwhile."""
_PAUSE_S: Final = 0.05

T = TypeVar("T")


class TableInfo(Struct, frozen=True):
    """What there is of a table."""

    files: int
    rows: int
    """Each record once."""
    bytes: int | None
    first: float | None
    """Epoch seconds of the earliest row."""
    last: float | None


class History:
    """A history: rows in, typed rows and columns out. Closed by `with` or `close`.

    Args:
        root: Its folder, or a `file://` or `s3://` URL. It need not exist to be read (there is nothing) or written.
        memory_mib: What DuckDB may hold in memory; more is put on the disk.
    """

    def __init__(self, root: str | os.PathLike[str] = DEFAULT_ROOT, *, memory_mib: int = MEMORY_MIB) -> None:
        self._database = Database(memory_mib=memory_mib)
        self.folder: Folder = open_folder(root, self._database)
        self._viewed: dict[str, tuple[str, ...]] = {}

    def close(self) -> None:
        """Give memory and files back."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Adding.

    def add_jobs(self, rows: Iterable[JobRow] | object) -> Added:
        """Add attempts of jobs; see `add`."""
        return self.add("jobs", rows)

    def add_runs(self, rows: Iterable[RunRow] | object) -> Added:
        """Add attempts of runs; see `add`."""
        return self.add("runs", rows)

    def add_tests(self, rows: Iterable[TestRow] | object) -> Added:
        """Add attempts of units and test cases; see `add`."""
        return self.add("tests", rows)

    def add_commits(self, rows: Iterable[CommitRow] | object) -> Added:
        """Add commits; see `add`."""
        return self.add("commits", rows)

    def add_runners(self, rows: Iterable[RunnerRow] | object) -> Added:
        """Add sizes of pools; see `add`."""
        return self.add("runners", rows)

    def add_measures(self, rows: Iterable[MeasureRow] | object) -> Added:
        """Add measured numbers; see `add`."""
        return self.add("measures", rows)

    def add(self, name: str, rows: Iterable[Row] | object) -> Added:
        """Add rows to a table: all of them or, if this process is killed, none. What is there already is left out.

        Args:
            name: The table.
            rows: Structs of the table's row, or columns: a mapping of numpy arrays, or anything that speaks Arrow
                (pyarrow, polars, pandas). Times in columns are timestamps or epoch seconds.

        Raises:
            HistoryError: The history cannot be written, or columns are not those of the table.
        """
        table = table_named(name)
        with self.folder.staging() as staging:
            if isinstance(rows, Mapping) or not isinstance(rows, Iterable) or hasattr(rows, "__arrow_c_stream__"):
                return self._add_columns(table, rows, staging)
            with RowFile(table, staging / f"{name}.jsonl") as file:
                file.extend(rows)
            return self.commit(table, file.source, file.given, staging)

    def _add_columns(self, table: Table, data: object, staging: Path) -> Added:
        from sooner.history.batches import given_columns

        with self._database.registered("batch", data):
            return self.commit(table, "batch", given_columns(self._database, table, "batch"), staging)

    def commit(
        self,
        table: Table,
        source: str,
        given: Mapping[str, str],
        staging: Path,
        repeats: Repeats = Repeats.DUPLICATES,
    ) -> Added:
        """Add what SQL can read: the door for `ingest`.

        Args:
            table: The table.
            source: What to select from.
            given: SQL expression by column of the table.
            staging: A folder from `folder.staging()`.
            repeats: What it means that the source names a thing several times.
        """
        commit = Commit(self._database, self.folder, staging, table)
        return self._again(lambda: commit(source, select_list(table, given), repeats))

    @property
    def database(self) -> Database:
        """For SQL of one's own: after `views()` it finds the tables under their names."""
        return self._database

    # Reading.

    def jobs(self, where: Where = EVERYTHING) -> list[JobRow]:
        """Attempts of jobs by time, with what their runs tell; placeholders and copies are hidden."""
        return self.read(lambda: load_rows(self._database, TABLES["jobs"], JobRow, where))

    def runs(self, where: Where = EVERYTHING) -> list[RunRow]:
        """Attempts of runs."""
        return self.read(lambda: load_rows(self._database, TABLES["runs"], RunRow, where))

    def tests(self, where: Where = EVERYTHING) -> list[TestRow]:
        """Attempts of units and test cases."""
        return self.read(lambda: load_rows(self._database, TABLES["tests"], TestRow, where))

    def commits(self, where: Where = EVERYTHING) -> list[CommitRow]:
        """Commits, in the order of their times; see `commit_order`."""
        return self.read(lambda: load_rows(self._database, TABLES["commits"], CommitRow, where))

    def runners(self, where: Where = EVERYTHING) -> list[RunnerRow]:
        """Sizes of pools over time."""
        return self.read(lambda: load_rows(self._database, TABLES["runners"], RunnerRow, where))

    def measures(self, where: Where = EVERYTHING) -> list[MeasureRow]:
        """Measured numbers."""
        return self.read(lambda: load_rows(self._database, TABLES["measures"], MeasureRow, where))

    def columns(self, name: str, columns: Sequence[str], where: Where = EVERYTHING, *, ordered: bool = True) -> Columns:
        """Columns of a table as numpy arrays.

        Args:
            name: A table, or `changes`: `commit`, `file`, `time`, `repository` of each file of each commit.
            columns: Which columns.
            where: Which rows.
            ordered: Whether in the order of their times; without it, hundreds of millions of rows come sooner.
        """
        table = None if name == "changes" else table_named(name)
        return self.read(lambda: load_columns(self._database, table, columns, where, ordered=ordered))

    def commit_order(self, where: Where = EVERYTHING) -> list[str]:
        """Shas of all commits that commits or jobs tell of: parents before children, else by time."""
        jobs, commits = TABLES["jobs"], TABLES["commits"]
        shared = Where(repository=where.repository)
        places = {
            "time": jobs.time,
            "jobs_condition": condition(jobs.columns, jobs.time, where),
            "commits_condition": condition(commits.columns, commits.time, shared),
        }
        return in_order(self.read(lambda: self._database.rows(sql("reading", "commits_in_order", **places))))

    def durations(self, where: Where = EVERYTHING, *, of: Subject = Subject.UNITS) -> dict[tuple[str, str], float]:
        """Expected seconds by (unit, variant), or by (node id, variant): robust, the last runs count most.

        What has never passed is left out.
        """
        table = TABLES["tests"]
        which = condition(table.columns, table.time, where)
        return self.read(lambda: expected(self._database, which, of), "tests")

    def last_runs(self, outcomes: Iterable[HistoryOutcome], until: float, where: Where = EVERYTHING) -> list[LastRun]:
        """When each test case last ended so, for each number of devices and each label of a runner.

        What ran on no rank at all did not run.

        Args:
            outcomes: What counts.
            until: Epoch seconds, included: what ran later is not looked at.
            where: Its repository and branch; a branch that a test does not tell is that of its job.
        """
        time, tables = TABLES["jobs"].time, ("tests", "jobs", "runs", "measures")
        return self.read(lambda: last_runs(self._database, time, outcomes, until, where), *tables)

    def cases(self, repository: str = "") -> list[str]:
        """Node ids of all test cases that were ever seen, run or not; sorted."""
        return self.read(lambda: all_cases(self._database, repository), "tests")

    def repositories(self, name: str, where: Where = EVERYTHING) -> list[str]:
        """Repositories that rows of a table are of; sorted."""
        return self.read(lambda: repositories(self._database, table_named(name), where), name)

    def info(self) -> dict[str, TableInfo]:
        """What there is, by table."""
        return self.read(lambda: {name: self._info(table) for name, table in TABLES.items()})

    def _info(self, table: Table) -> TableInfo:
        files = self.folder.files(table.name)
        statement = sql("info", "table", table=records(table.name), time=table.time)
        rows, first, last = self._database.rows(statement)[0]
        return TableInfo(len(files), rows, self.folder.sizes(files), first, last)

    # What reading stands on.

    def views(self, *names: str) -> None:
        """Make SQL's views of tables (all, if none is named) show what is there now."""
        wanted = [TABLES[name] for name in names or TABLES]
        changed = [self._refresh(table) for table in wanted]
        if "jobs" in (table.name for table in wanted) and any(changed):
            self._view_jobs()
        if "commits" in (table.name for table in wanted):
            self._database.run(sql("reading", "changes"))

    def _refresh(self, table: Table) -> bool:
        """Look at the folder; says whether something has changed."""
        found = find(self._database, self.folder, table)
        names = tuple(file.name for file in found.files)
        if self._viewed.get(table.name) == names:
            return False
        make_view(self._database, table, found, records(table.name))
        self._viewed[table.name] = names
        return True

    def _view_jobs(self) -> None:
        if self._database.value(sql("reading", "any_shadow")):
            self._database.run(sql("reading", "hide_shadows"))
        else:
            self._database.run(sql("reading", "hide_nothing"))
        self._database.run(sql("reading", "jobs_of_runs" if self._viewed.get("runs") else "jobs"))

    def read(self, read: Callable[[], T], *names: str) -> T:
        """Read what is there now, through the views of tables (all, if none is named)."""

        def viewed() -> T:
            self.views(*names)
            return read()

        return self._again(viewed)

    def _again(self, act: Callable[[], T]) -> T:
        """Act; once more where a file that was listed has been compacted away."""
        for turn in range(_TRIES):
            with contextlib.suppress(Vanished):
                return act()
            self._viewed.clear()
            time.sleep(_PAUSE_S * turn)
        return act()

    def files(self) -> Iterator[tuple[Table, list[StoredFile]]]:
        """The files of each table."""
        for table in TABLES.values():
            yield table, self.folder.files(table.name)


def records(name: str) -> str:
    """The view with all records of a table, also those that its readers do not see."""
    return "job_records" if name == "jobs" else name


def known_durations(root: str | os.PathLike[str] = DEFAULT_ROOT) -> dict[tuple[str, str], float]:
    """Expected seconds by (unit, variant) from a history that need not be there; then DuckDB is not needed either.

    Raises:
        HistoryError: There is one, but it cannot be read.
    """
    if "://" not in os.fspath(root) and not Path(root, f"v{SCHEMA}", "tests").is_dir():
        return {}
    with History(root) as history:
        return history.durations()
