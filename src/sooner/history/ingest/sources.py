"""Tables as DuckDB reads them: CSV, JSON lines and Parquet, and where in them a row stands.

Well-formed files are read by DuckDB alone. One that is not (ragged rows, broken quotes, foreign bytes, lines that are
no JSON) is copied row by row first, so that what is broken is left out with its line, and the rest is kept.
"""

import codecs
import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from sooner.history.database import Database
from sooner.history.errors import HistoryError, IngestError
from sooner.history.ingest.json_items import Broken, items
from sooner.history.ingest.opening import compression, opened
from sooner.history.ingest.report import Report
from sooner.history.statements import path_literal, quoted, sql

LINE: Final = "sooner_line"
"""Column that says where a row stood in a file that was copied."""
_DELIMITERS: Final = ",;\t|"
_LOOKED_AT: Final = 1000
_LONGEST_FIELD: Final = 1 << 27
_BLOCK: Final = 1 << 20
WINDOWS: Final = "sooner_windows"
"""Reads bytes that are no UTF-8 as spreadsheets of Western Windows write them: names that differ stay different."""


def _of_windows(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - it only ever reads
    foreign = error.object[error.start : error.end]
    return "".join(bytes([byte]).decode("cp1252", "replace") for byte in foreign), error.end


codecs.register_error(WINDOWS, _of_windows)


class Source(Struct, frozen=True):
    """A table that SQL can read."""

    path: Path
    kind: str
    """`csv`, `jsonl` or `parquet`."""
    relation: str
    columns: Mapping[str, str]
    """SQL type by column."""
    has_lines: bool = False
    """Whether it has the column `sooner_line`."""
    delimiter: str = ","


def table_source(path: Path, kind: str) -> Source:
    """A source as it lies on the disk.

    Raises:
        IngestError: It has no columns, or cannot be read.
    """
    match kind:
        case "parquet":
            return Source(path, kind, sql("sources", "parquet", path=path_literal(path)), {})
        case "csv":
            delimiter, columns = _csv_header(path)
            return Source(
                path,
                kind,
                csv_relation(path, columns, delimiter),
                dict.fromkeys(columns, "VARCHAR"),
                delimiter=delimiter,
            )
        case _:
            columns = _json_keys(path)
            return Source(path, kind, json_relation(path, columns), dict.fromkeys(columns, "VARCHAR"))


def csv_relation(path: Path, columns: Sequence[str], delimiter: str) -> str:
    """SQL that reads a CSV file: any deviation from its header is an error."""
    return sql(
        "sources",
        "csv",
        path=path_literal(path),
        columns=_text_columns(columns),
        delimiter=quoted(delimiter),
        compression=quoted(compression(path)),
    )


def json_relation(path: Path, columns: Sequence[str]) -> str:
    """SQL that reads JSON lines: any line that is no object is an error."""
    return sql(
        "sources",
        "json_lines",
        path=path_literal(path),
        columns=_text_columns(columns),
        compression=quoted(compression(path)),
    )


def _text_columns(columns: Sequence[str]) -> str:
    return "{" + ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in columns) + "}"


def _csv_header(path: Path) -> tuple[str, list[str]]:
    with opened(path) as stream:
        reader = io.TextIOWrapper(stream, "utf-8-sig", errors=WINDOWS, newline="")
        first = next((line for line in reader if line.strip()), "")
        delimiter = max(_DELIMITERS, key=first.count)
    names = next(csv.reader([first], delimiter=delimiter), [])
    if not names:
        raise IngestError(str(path), "it is empty: a table needs a header")
    columns: list[str] = []
    for index, name in enumerate(names):
        stem = name.strip() or f"column_{index + 1}"
        # Names that differ in case only are one to SQL.
        taken = {column.lower() for column in columns}
        columns.append(stem if stem.lower() not in taken else f"{stem}_{index + 1}")
    return delimiter, columns


def _json_keys(path: Path) -> list[str]:
    """Keys of the first objects, in the order in which they come."""
    keys: dict[str, None] = {}
    with opened(path) as stream:
        for number, line in enumerate(stream):
            if number >= _LOOKED_AT:
                break
            keys.update(dict.fromkeys(_columns(_object(line) or {})))
    if not keys:
        raise IngestError(str(path), "none of its first lines is a JSON object")
    return list({key.lower(): key for key in reversed(keys)}.values())[::-1]


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def described(database: Database, source: Source) -> Source:
    """The same with its columns' types, for files that know them.

    Raises:
        IngestError: It is no such file.
    """
    if source.columns:
        return source
    try:
        rows = database.rows(sql("batches", "describe", view=f"(from {source.relation})"))
    except HistoryError as error:
        raise IngestError(str(source.path), str(error)) from error
    return Source(source.path, source.kind, source.relation, dict(rows))


def mended(source: Source, folder: Path, report: Report) -> Source:
    """A copy without the rows that are broken; they are reported."""
    copy = folder / f"mended.{source.kind}"
    columns = list(source.columns)
    if source.kind == "csv":
        with copy.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([*columns, LINE])
            writer.writerows(_whole_records(source, report))
        if not _is_utf_8(source.path):
            report.note(f"{source.path.name}: it is not UTF-8, what is not was read as Windows-1252")
        relation = csv_relation(copy, [*columns, LINE], ",")
    else:
        with copy.open("w", encoding="utf-8", errors="replace") as file:
            file.writelines(_whole_objects(source, report))
        relation = json_relation(copy, [*columns, LINE])
    kinds = dict.fromkeys([*columns, LINE], "VARCHAR")
    return Source(source.path, source.kind, relation, kinds, has_lines=True)


def _is_utf_8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with opened(path) as stream:
        try:
            for block in iter(partial(stream.read, _BLOCK), b""):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def of_items(path: Path, folder: Path, report: Report) -> Source:
    """A list of JSON objects as lines.

    Raises:
        IngestError: There is no object in it.
    """
    copy = folder / "items.jsonl"
    columns: dict[str, None] = {}
    with opened(path) as stream, copy.open("w", encoding="utf-8", errors="replace") as file:
        for item in items(stream):
            if isinstance(item, Broken) or not isinstance(item.value, dict):
                report.reject(str(path), item.line, item.reason if isinstance(item, Broken) else "no object")
                continue
            columns.update(dict.fromkeys(_columns(item.value)))
            file.write(_line(item.value | {LINE: item.line}))
    if not columns:
        raise IngestError(str(path), "there is no JSON object in it")
    kinds = dict.fromkeys([*{name.lower(): name for name in columns}.values(), LINE], "VARCHAR")
    return Source(path, "jsonl", json_relation(copy, list(kinds)), kinds, has_lines=True)


def _records(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Line and fields of each record after the header; empty lines are none."""
    csv.field_size_limit(_LONGEST_FIELD)
    with opened(source.path) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors=WINDOWS, newline="")
        reader = csv.reader((line.replace("\0", "") for line in text), delimiter=source.delimiter)
        is_header, line = True, 1
        for fields in reader:
            if fields and not is_header:
                yield line, fields
            is_header = is_header and not fields
            line = reader.line_num + 1


def _whole_records(source: Source, report: Report) -> Iterator[list[str]]:
    width = len(source.columns)
    for line, fields in _records(source):
        if len(fields) == width:
            yield [*fields, str(line)]
        else:
            report.reject(str(source.path), line, f"{len(fields)} fields under a header of {width}")


def _whole_objects(source: Source, report: Report) -> Iterator[str]:
    with opened(source.path) as stream:
        for number, line in enumerate(stream, 1):
            if not line.strip():
                continue
            value = _object(line)
            if value is None:
                report.reject(str(source.path), number, "no JSON object")
            else:
                yield _line(value | {LINE: number})


def _line(value: Mapping[str, Any]) -> str:
    """An object as a line that the database takes; half a character becomes `?` where it is written."""
    return json.dumps(_finite(value), ensure_ascii=False, allow_nan=False) + "\n"


def _columns(value: Mapping[str, Any]) -> Iterator[str]:
    """The keys of an object as they are in such a line; an empty one is no name that SQL knows."""
    return (key.encode("utf-8", "replace").decode() for key in value if key)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value).replace("inf", "Infinity")
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list) else value


def lines_of(source: Source, ordinals: Sequence[int]) -> dict[int, int]:
    """Lines of the n-th rows (from 1); Parquet has none, there it is the row's own number."""
    wanted = set(ordinals)
    if source.kind == "parquet":
        return {ordinal: ordinal for ordinal in wanted}
    numbers = (line for line, _ in _records(source)) if source.kind == "csv" else _line_numbers(source)
    found = {}
    for ordinal, line in enumerate(numbers, 1):
        if ordinal in wanted:
            found[ordinal] = line
            if len(found) == len(wanted):
                break
    return found


def _line_numbers(source: Source) -> Iterator[int]:
    with opened(source.path) as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                yield number
