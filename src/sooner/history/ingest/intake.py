"""What every format needs to hand its rows over: options, places to write, the report."""

from collections.abc import Callable, Mapping
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from msgspec import Struct

from sooner.history.commit import Repeats
from sooner.history.errors import HistoryError
from sooner.history.ingest.report import Report
from sooner.history.row_files import RowFile
from sooner.history.statements import quoted
from sooner.history.store import History
from sooner.history.tables import Row, Table, table_of
from sooner.model.text import printable

ROWS_A_BATCH: Final = 1_000_000
"""Rows are committed when so many have come: one file each, and what is lost when somebody kills an ingest."""

Progress = Callable[[str, int, int], None]
"""Takes the source, bytes (or items) done, and all of them (0: nobody knows)."""


class Options(Struct, frozen=True, kw_only=True):
    """How sources are to be read."""

    format: str = ""
    """Empty: find out."""
    mapping: Mapping[str, str] = {}
    """Field by column, for tables; an empty field: ignore the column."""
    constants: Mapping[str, str] = {}
    """Text by field, for rows that do not tell it themselves."""
    zone: str = "UTC"
    """What a time without a zone means."""
    since: float | None = None
    """Epoch seconds: how far back a live source is asked."""
    until: float | None = None

    @property
    def timezone(self) -> tzinfo:
        """The zone.

        Raises:
            HistoryError: There is none of this name.
        """
        try:
            return UTC if self.zone == "UTC" else ZoneInfo(self.zone)
        except (KeyError, ValueError, OSError):
            raise HistoryError(f"{self.zone!r} is no time zone: pass a name such as Europe/Berlin") from None


class Intake:
    """Takes rows from formats and commits them in batches.

    Args:
        history: Where they go.
        staging: A folder for rows on their way.
        options: How to read.
        report: What becomes of them.
        progress: Is told how far a source has been read.
    """

    def __init__(
        self, history: History, staging: Path, options: Options, report: Report, progress: Progress | None = None
    ) -> None:
        self.history = history
        self.staging = staging
        self.options = options
        self.report = report
        self.progress: Progress = progress or (lambda _path, _done, _all: None)
        self.seen: dict[str, int] = {}
        """Rows by the digest of the file that they were in."""
        self._waiting: dict[tuple[str, Repeats], RowFile] = {}

    def add(self, row: Row, repeats: Repeats = Repeats.DUPLICATES) -> None:
        """Take a row in."""
        self.row_file(table_of(row), repeats).add(row)
        self.flush_if_full()

    def flush_if_full(self) -> None:
        """Commit what waits, where it has become much."""
        if any(file.rows >= ROWS_A_BATCH for file in self._waiting.values()):
            self.flush()

    def row_file(self, table: Table, repeats: Repeats = Repeats.DUPLICATES) -> RowFile:
        """Where rows of a table wait."""
        key = (table.name, repeats)
        if key not in self._waiting:
            self._waiting[key] = RowFile(table, self.staging / f"{table.name}.{repeats}.jsonl")
        return self._waiting[key]

    def flush(self) -> None:
        """Commit everything that waits; runs last, because who sees a run expects its jobs."""
        waiting, self._waiting = self._waiting, {}
        for (_, repeats), file in sorted(waiting.items(), key=lambda pair: pair[1].table.name == "runs"):
            file.close()
            self.commit(file.table, file.source, file.given, repeats)
            file.path.unlink()

    def discard(self) -> None:
        """Forget what waits."""
        for file in self._waiting.values():
            file.close()
        self._waiting = {}

    def commit(self, table: Table, source: str, given: Mapping[str, str], repeats: Repeats) -> None:
        """Commit what SQL can read."""
        added = self.history.commit(table, source, self._completed(table, given), self.staging, repeats)
        self.report.add(table.name, added)

    def _completed(self, table: Table, given: Mapping[str, str]) -> dict[str, str]:
        """Constants where rows tell nothing."""
        completed = dict(given)
        for field, text in self.options.constants.items():
            if kind := table.columns.get(field):
                value = f"{quoted(printable(text))}::{kind}"
                completed[field] = f"coalesce(nullif({given[field]}, ''), {value})" if field in given else value
        return completed


def check_constants(constants: Mapping[str, str]) -> None:
    """Constants must be text columns of some table.

    Raises:
        HistoryError: A field is none.
    """
    fields = ("repository", "workflow", "run", "job", "commit", "branch", "event", "variant", "runner", "worker")
    for field in constants:
        if field not in fields:
            raise HistoryError(f"--set {field}=... is not possible: the fields are {', '.join(fields)}")
