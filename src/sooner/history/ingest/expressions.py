"""SQL that makes a table's rows into rows of the history, in layers: cells, fields, fields that follow from others.

Each layer is a subquery, so that every cell is read once however many fields and checks look at it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from sooner.history.ingest.headers import Form, Reading
from sooner.history.statements import identifier, quoted, sql
from sooner.history.tables import TABLES

_TEXT: Final = "VARCHAR"
_NUMBER_TYPES: Final = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UINTEGER", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL")
_ENDLESS: Final = 9e18
"""What a column of whole numbers cannot hold."""
_LONGEST_S: Final = 1e9
"""Thirty years: a longer duration is some other number, and its end lies in no calendar."""
_MOST_DEVICES: Final = 100_000
_NOT_NEGATIVE: Final = frozenset({"duration", "attempt", "devices", "device_count", "peak_memory_mib"})
ORDINAL: Final = "sooner_ordinal"
UNKNOWN_DEVICE: Final = "?"
"""A device of which only is known that there was one."""


class Layers(Struct, frozen=True):
    """How rows are made of cells."""

    cells: Mapping[str, str]
    """SQL over the source's columns."""
    fields: Mapping[str, str]
    """SQL over cells."""
    following: Mapping[str, str]
    """SQL over fields."""
    reason: str
    """SQL over all of them: why a row is rejected, null where it is not."""
    naive: str
    """SQL over cells: whether a time in the row has no zone."""

    @property
    def given(self) -> dict[str, str]:
        """SQL expression by column of the history's table, over `relation`."""
        return {name: identifier(name) for name in (*self.fields, *self.following) if not name.startswith("sooner_")}

    def relation(self, source: str, *, numbered: bool = False) -> str:
        """What to select from: the fields, and why a row must be rejected."""
        ordinal = f"{ORDINAL}, " if numbered else ""
        return sql(
            "tables",
            "layers",
            source=source,
            cells=ordinal + _select(self.cells),
            fields=_select(self.fields),
            following=_select(self.following),
            reason=self.reason,
            naive=self.naive,
        )


def _select(expressions: Mapping[str, str]) -> str:
    return ", ".join(f"{expression} as {identifier(name)}" for name, expression in expressions.items()) or "null"


def cell(column: str) -> str:
    """The name of a column's cleaned cell."""
    return identifier(f"sooner_cell_{column}")


class Expressions:
    """Makes the layers for one source.

    Args:
        reading: What its header means.
        kinds: SQL type by column.
        outcome: SQL that turns the SQL of a status into that of an outcome.
        zone: What a time without a zone means.
        iso: Columns that seem to hold nothing but ISO 8601 times, which are read soonest.
    """

    def __init__(
        self,
        reading: Reading,
        kinds: Mapping[str, str],
        outcome: Callable[[str], str],
        zone: str,
        iso: frozenset[str] = frozenset(),
    ) -> None:
        self._reading = reading
        self._kinds = kinds
        self._outcome_of = outcome
        self._zone = zone
        self._iso = iso
        self._types = TABLES[reading.table].columns
        self._cells: dict[str, str] = {}
        self._fields: dict[str, str] = {}
        self._following: dict[str, str] = {}
        self._reasons: list[tuple[str, str]] = []
        self._naive: list[str] = []

    def layers(self) -> Layers:
        """All layers."""
        for field, columns in self._reading.fields.items():
            if field not in ("duration", "classname", "device_count", "outcome"):
                self._fields[field] = self._field(field, columns)
        for field, name, kind in (("duration", "seconds", "DOUBLE"), ("device_count", "count", "BIGINT")):
            if field in self._reading.fields:
                self._fields[f"sooner_{name}"] = self._number(field, self._reading.fields[field][0], kind)
        self._wide()
        if "outcome" in self._reading.fields or self._reading.form is Form.WIDE_STATUS:
            self._outcome()
        finish = {"jobs": self._finish_job, "tests": self._finish_test}.get(self._reading.table)
        if finish:
            finish()
        if "attempt" in self._types and "attempt" not in self._fields and self._reading.table != "jobs":
            self._following["attempt"] = "1"  # jobs that nobody has counted are told apart by time when they are read
        self._require()
        cases = " ".join(f"when {condition} then {reason}" for condition, reason in self._reasons)
        return Layers(
            self._cells,
            self._fields,
            self._following,
            f"case {cases} end" if cases else "null",
            " or ".join(self._naive) or "false",
        )

    def status(self) -> str:
        """SQL over the source's columns: the status as it is spelled."""
        if self._reading.form is Form.WIDE_STATUS:
            return "blank_or(sooner_cell)"
        return f"coalesce({', '.join(self._cleaned(name) for name in self._reading.fields['outcome'])})"

    def _cleaned(self, column: str) -> str:
        name, kind = identifier(column), self._kinds.get(column, _TEXT)
        if kind.endswith("[]"):
            return f"blank_or(array_to_string({name}, ','))"
        return f"blank_or({name})" if kind == _TEXT else f"blank_or({name}::varchar)"

    def _text(self, column: str) -> str:
        """A cell as text, null where it says nothing."""
        self._cells[f"sooner_cell_{column}"] = self._cleaned(column)
        return cell(column)

    def _native(self, column: str) -> str:
        """A cell as it is, of a source that has types."""
        name, kind = identifier(column), self._kinds[column]
        self._cells[f"sooner_cell_{column}"] = f"nullif({name}, 'nan')" if kind in {"FLOAT", "DOUBLE"} else name
        return cell(column)

    def _field(self, field: str, columns: Sequence[str]) -> str:
        kind = self._types[field]
        if kind == _TEXT:
            return self._text_of(columns)
        if kind == "VARCHAR[]":
            is_list = self._kinds[columns[0]].endswith("[]")
            return self._native(columns[0]) if is_list else f"list_of({self._text(columns[0])})"
        return self._time(columns[0]) if kind == "TIMESTAMP" else self._number(field, columns[0], kind)

    def _text_of(self, columns: Sequence[str]) -> str:
        if len(columns) > 1:
            return f"nullif(concat_ws(' / ', {', '.join(map(self._text, columns))}), '')"
        return f"plain_text({self._text(columns[0])})"

    def _time(self, column: str) -> str:
        kind = self._kinds[column]
        if kind == "TIMESTAMP WITH TIME ZONE":
            native = self._native(column)
            value = f"case when isfinite({native}) then make_timestamp(epoch_us({native})) end"
        elif kind.startswith("TIMESTAMP") or kind == "DATE":
            value = f"{self._native(column)}::timestamp"
        elif kind.startswith(_NUMBER_TYPES):
            value = f"time_of_number({self._native(column)}::double)"
        else:
            text = self._text(column)
            value = f"{'time_of_iso' if column in self._iso else 'time_of'}({text})"
            if self._zone != "UTC":
                value = f"time_of_in({text}, {quoted(self._zone)})"
            self._naive.append(f"({text} like '%:%' and not has_zone({text}))")
        if not kind.startswith(_NUMBER_TYPES):
            macro = "moment_cell" if kind.startswith(("TIMESTAMP", "DATE")) else "time_cell"
            self._cells[f"sooner_cell_{column}"] = f"{macro}({self._cells[f'sooner_cell_{column}']})"
        value = f"in_calendar({value})"
        self._reject(column, f"{self._parsed(column, value)} is null", "is no time")
        return self._parsed(column, value)

    def _number(self, field: str, column: str, kind: str) -> str:
        text = self._text(column)
        number = self._parsed(column, f"try_cast({text} as double)")
        self._reject(column, f"{number} is null or not isfinite({number})", "is no number")
        if field in _NOT_NEGATIVE:
            self._reject(column, f"{number} < 0", "is negative")
        if field == "device_count":
            self._reject(column, f"{number} > {_MOST_DEVICES}", "is no number of devices")
        if field == "duration":
            self._reject(column, f"{number} > {_LONGEST_S}", "is no duration in seconds")
        if kind == "BIGINT":
            beyond = f"abs({number}) >= {_ENDLESS}"
            self._reject(column, f"{number} <> round({number}) or {beyond}", "is no whole number")
            return f"try_cast({number} as bigint)"
        return number

    def _parsed(self, column: str, expression: str) -> str:
        """A value that was made of a cell: later columns of the same subquery may name it."""
        name = f"sooner_value_{column}"
        self._fields.setdefault(name, expression)
        return identifier(name)

    def _reject(self, column: str, condition: str, what: str) -> None:
        text = f"{cell(column)}::varchar"
        reason = f"{quoted(column + ': ')} || left({text}, 80) || {quoted(' ' + what)}"
        self._reasons.append((f"{cell(column)} is not null and ({condition})", reason))

    def _wide(self) -> None:
        """The name and the number that a wide table has in its header and its cells."""
        if self._reading.form is Form.WIDE_STATUS:
            self._fields["job"] = "sooner_column"
            self._cells["sooner_column"] = "sooner_column"
        if self._reading.form is Form.WIDE_NUMBERS:
            self._cells |= {"sooner_column": "sooner_column", "sooner_cell": "blank_or(sooner_cell)"}
            self._fields |= {"name": "sooner_column", "value": "try_cast(sooner_cell as double)"}
            self._fields["unit"] = "unit_of_column(sooner_column)"
            self._reasons.append(
                ('"value" is null', "sooner_column || ': ' || left(sooner_cell, 80) || ' is no number'")
            )

    def _outcome(self) -> None:
        self._cells["sooner_status"] = self.status()
        self._fields["outcome"] = self._outcome_of("sooner_status")
        self._reasons.append(("sooner_status is null", quoted("no status")))
        self._reasons.append(("outcome is null", "'status ' || left(sooner_status, 80) || ' is unknown'"))

    def _finish_job(self) -> None:
        has = self._fields.keys().__contains__
        if has("sooner_seconds") and has("started") and not has("completed"):
            self._following["completed"] = "started + to_microseconds(round(sooner_seconds * 1e6)::bigint)"
        elif has("sooner_seconds") and has("completed") and not has("started"):
            self._following["started"] = "completed - to_microseconds(round(sooner_seconds * 1e6)::bigint)"
        times = [name for name in ("completed", "started", "queued", "created") if has(name) or name in self._following]
        if times:
            self._following["as_of"] = f"coalesce({', '.join(times)})"
        if not has("shard"):
            self._following["shard"] = "shard_of(job)"

    def _finish_test(self) -> None:
        if "sooner_seconds" in self._fields:
            self._fields["seconds"] = "sooner_seconds"
        if "sooner_count" in self._fields and "devices" not in self._fields:
            unknown = f"list_transform(range(sooner_count), lambda i: {quoted(UNKNOWN_DEVICE)})"
            # Of rows that are rejected it is worked out, too: a list for a billion devices takes twenty seconds.
            self._following["devices"] = f"case when sooner_count <= {_MOST_DEVICES} then {unknown} end"
        if "classname" in self._reading.fields and "node_id" in self._fields:
            classname = self._text(self._reading.fields["classname"][0])
            self._fields["node_id"] = f"concat_ws('::', {classname}, {self._fields['node_id']})"
        kind = "case" if "node_id" in self._fields else "unit"
        if "outcome" not in self._fields:
            # A published average says how long a test takes when it passes, and nothing else.
            self._following["outcome"], kind = "'passed'", "summary"
        self._following["kind"] = quoted(kind)
        named = [name for name in ("node_id", "unit") if name in self._fields]
        self._reasons.insert(0, (f"coalesce({', '.join(named)}) is null", quoted("no test")))
        if "message" in self._fields:
            self._following["message_digest"] = "message_digest_of(message)"

    def _require(self) -> None:
        for field in TABLES[self._reading.table].required - {"outcome"}:
            if field in self._fields:
                self._reasons.insert(0, (f"{identifier(field)} is null", quoted(f"no {field}")))
