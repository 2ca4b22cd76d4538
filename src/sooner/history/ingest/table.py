"""Generic tables: CSV, JSON lines and Parquet with a header that can be understood, or that `--map` explains.

Long form: a row an attempt (`commit,time,job,status,...`). Wide form: commits x jobs with a status in each cell, or
numbers in columns. Everything happens in DuckDB: ten million rows take seconds, and no row passes through Python.
What `history export` wrote is known by its columns, and comes back as it was.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from sooner.history.commit import Repeats
from sooner.history.database import Database
from sooner.history.errors import HistoryError, IngestError, NotWritable
from sooner.history.ingest.cells import cells_of
from sooner.history.ingest.expressions import Expressions, Layers
from sooner.history.ingest.headers import Form, Reading, understand
from sooner.history.ingest.intake import Intake
from sooner.history.ingest.report import MOST_REJECTED
from sooner.history.ingest.sources import LINE, Source, described, lines_of, mended, of_items, table_source
from sooner.history.outcomes import spelled
from sooner.history.statements import identifier, quoted, sql
from sooner.history.tables import TABLES, Table, table_named
from sooner.model.text import printable

_MOST_NAMED: Final = 5
_MOST_WORDS: Final = 500
"""A column with more different values than that is no status."""
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_WINDOW: Final = re.compile(r"^jobs_(\d+)d$")
_STOP: Final = "sooner: a row must be rejected"


def take_table(path: Path, intake: Intake, kind: str) -> None:
    """Read a table.

    Raises:
        IngestError: It cannot be read as one, or nobody knows what its columns are.
    """
    database = intake.history.database
    database.run(sql("tables", "macros"))
    if kind == "json":
        _Taking(database, of_items(path, intake.staging, intake.report), intake).carefully()
        return
    source = described(database, table_source(path, kind))
    own = None if intake.options.mapping else _exported(source)
    if own is not None:
        _take_again(source, own, intake)
        return
    try:
        _Taking(database, source, intake).soon()
    except (IngestError, NotWritable):
        raise
    except HistoryError as error:
        if _STOP in str(error):
            _Taking(database, source, intake).carefully()
        elif kind == "parquet":
            raise IngestError(str(path), str(error)) from error
        else:
            # DuckDB stops at the first row that is not as the header says: leave such rows out.
            _Taking(database, mended(source, intake.staging, intake.report), intake).carefully()


def _exported(source: Source) -> Table | None:
    """The table of a history whose columns a source has, all of them and no others: `history export` wrote it."""
    return next((table for table in TABLES.values() if table.columns.keys() == source.columns.keys()), None)


def _take_again(source: Source, table: Table, intake: Intake) -> None:
    """Take rows in as they are, where they came from and when included."""
    given = {name: _as_written(source.kind, name, kind) for name, kind in table.columns.items()}
    try:
        intake.commit(table, source.relation, given, Repeats.DUPLICATES)
    except NotWritable:
        raise
    except HistoryError as error:
        what = f"it has the columns of the table {table.name}, as `sooner history export` writes it, but not its values"
        raise IngestError(str(source.path), f"{what}: {error}") from error


def _as_written(form: str, name: str, kind: str) -> str:
    """SQL of a column as `history export` writes it."""
    column = identifier(name)
    if form == "parquet":
        return column
    if form == "jsonl" and kind.endswith("[]"):
        return f"from_json({column}, '[\"VARCHAR\"]')"
    return f"nullif({column}, '')"


class _Taking:
    """One way through one source: soon, in the hope that all rows are good, or carefully."""

    def __init__(self, database: Database, source: Source, intake: Intake) -> None:
        self._database = database
        self._source = source
        self._intake = intake
        self._zone = intake.options.zone
        columns = [column for column in source.columns if column != LINE]
        self._cells = cells_of(database, source, columns)
        kinds = {name: look.kind for name, look in self._cells.items()}
        self._reading = self._counted(understand(str(source.path), columns, intake.options.mapping, kinds))
        self._relation = _relation(source, source.relation, self._reading)

    def _counted(self, reading: Reading) -> Reading:
        """Devices of tests that are numbers, none of them 0, are how many a test had: ids begin at 0."""
        column = next(iter(reading.fields.get("devices", ())), None)
        if reading.table != "tests" or column is None or column in self._intake.options.mapping:
            return reading
        look = self._cells[column]
        if look.kind != "number" or look.least < 1 or "device_count" in reading.fields:
            return reading
        name = self._source.path.name
        self._intake.report.note(f"{name}: {column} has numbers and no 0: taken for how many, not for which")
        fields = {"device_count" if field == "devices" else field: found for field, found in reading.fields.items()}
        return replace(reading, fields=fields)

    def soon(self) -> None:
        """Read everything once; stops where a row must be rejected."""
        layers = self._layers(frozenset(name for name, look in self._cells.items() if look.is_iso))
        column = identifier(next(iter(layers.given)))
        rows = sql("tables", "good_or_stop", rows=layers.relation(self._relation), column=column, stop=_STOP)
        self._commit(layers, rows)
        self._note(layers)

    def carefully(self) -> None:
        """Find the rows that must be rejected first."""
        layers = self._layers(frozenset())
        rows = layers.relation(self._relation)
        count, rejected = self._database.rows(sql("tables", "counted", rows=rows))[0]
        if rejected:
            self._reject(layers, rejected)
            rows = sql("tables", "good", rows=rows)
        if count > rejected:
            self._commit(layers, rows)
        self._note(layers)

    def _layers(self, iso: frozenset[str]) -> Layers:
        reading, kinds = self._reading, self._source.columns
        plain = Expressions(reading, kinds, lambda status: status, self._zone, iso)
        if reading.form is not Form.WIDE_STATUS and "outcome" not in reading.fields:
            return plain.layers()
        words = self._words(plain.status())
        return Expressions(reading, kinds, lambda status: _case(status, words), self._zone, iso).layers()

    def _words(self, status: str) -> dict[str, str]:
        """Outcome by status, for those that are known."""
        statement = sql("tables", "words", word=status, source=self._relation, most=str(_MOST_WORDS + 1))
        found = [word for (word,) in self._database.rows(statement) if word is not None]
        if len(found) > _MOST_WORDS:
            hint = "say with --map which column it is"
            raise IngestError(str(self._source.path), f"more than {_MOST_WORDS} different statuses: {hint}")
        return {word: outcome for word in found if (outcome := spelled(word)) is not None}

    def _note(self, layers: Layers) -> None:
        name, report = self._source.path.name, self._intake.report
        if self._reading.unused:
            report.note(f"{name}: columns that are not used: {', '.join(self._reading.unused)}")
        if self._reading.form is Form.WIDE_STATUS and (self._reading.unused or len(self._reading.cells) == 1):
            jobs = ", ".join(self._reading.cells[:_MOST_NAMED]) + (", ..." if self._reading.cells[_MOST_NAMED:] else "")
            how = f"read as a row a commit with a column a job: {jobs}"
            report.note(f"{name}: {how} (else say with --map what columns are)")
        if self._zone == "UTC" and any(look.is_naive for look in self._cells.values()):
            count = self._database.value(sql("tables", "count_naive", rows=layers.relation(self._relation)))
            if count:
                report.note(f"{name}: times without a zone were read as UTC", count)

    def _reject(self, layers: Layers, count: int) -> None:
        source, report = self._source, self._intake.report
        name = "numbered_copy" if source.has_lines else "numbered"
        numbered = _relation(source, sql("tables", name, source=source.relation), self._reading)
        rows = layers.relation(numbered, numbered=True)
        found = self._database.rows(sql("tables", "rejected", rows=rows, most=str(MOST_REJECTED)))
        if not source.has_lines:
            lines = lines_of(source, [ordinal for ordinal, _ in found])
            found = [(lines.get(ordinal, 0), reason) for ordinal, reason in found]
        for line, reason in found:
            report.reject(str(source.path), line, reason)
        report.reject_more(count - len(found))

    def _commit(self, layers: Layers, rows: str) -> None:
        reading, name = self._reading, self._source.path.name
        table = table_named(reading.table)
        given = layers.given
        if reading.table in ("runners", "measures") and "at" not in given and (day := _DATE.search(name)):
            given["at"] = f"{quoted(day.group())}::timestamp"
        if found := _WINDOW.search(reading.fields.get("jobs", ("",))[0]):
            given["window_days"] = found[1]
        if reading.table == "commits":
            columns = ", ".join(
                f"{given.get(column, f'null::{kind}')} as {identifier(column)}"
                for column, kind in table.columns.items()
            )
            rows = sql("tables", "commits", columns=columns, rows=rows)
            given = {column: identifier(column) for column in given}
        given["source"] = quoted(f"table:{printable(name)}")
        is_numbered = reading.table in ("tests", "jobs") and not {"attempt", "job_id"} & reading.fields.keys()
        repeats = Repeats.DIFFERENT_ATTEMPTS if is_numbered else Repeats.DUPLICATES
        self._intake.commit(table, rows, given, repeats)


def _relation(source: Source, relation: str, reading: Reading) -> str:
    if reading.form is Form.LONG:
        return relation
    cells = ", ".join(map(identifier, reading.cells))
    if source.kind == "parquet":
        # Cells of several types cannot share a column.
        texts = ", ".join(f"{identifier(cell)}::varchar as {identifier(cell)}" for cell in reading.cells)
        relation = f"(select * replace ({texts}) from {relation})"  # noqa: S608 - identifiers are quoted
    return sql("tables", "unpivoted", source=relation, cells=cells)


def _case(status: str, words: Mapping[str, str]) -> str:
    cases = " ".join(f"when {quoted(word)} then {quoted(outcome)}" for word, outcome in words.items())
    return f"case {status} {cases} end" if cases else "null::varchar"
