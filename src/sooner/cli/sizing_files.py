"""Files that the sizing verbs read: tables of jobs, declarations of pools, needs, durations. Text in, facts out."""

import csv
import datetime as dt
import gc
import gzip
import io
import itertools
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from sooner.cli.spans import iso_epoch
from sooner.model.errors import SoonerError

T = TypeVar("T")

Column = list[Any]

FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "label": ("label", "labels", "runner", "runner_label", "pool", "queue"),
    "created": ("created", "created_at", "queued", "queued_at", "arrival", "submitted"),
    "started": ("started", "started_at", "start", "start_time"),
    "completed": ("completed", "completed_at", "finished", "finished_at", "ended", "end", "ended_at"),
    "seconds": ("seconds", "duration", "duration_s", "duration_seconds"),
    "priority": ("priority",),
    "id": ("id", "job_id"),
    "needs": ("needs", "after", "depends_on"),
    "group": ("concurrency_group", "concurrency"),
    "workflow": ("workflow", "workflow_name"),
    "branch": ("branch", "head_branch"),
}
"""Columns of tables, by the names that people give them."""
_NOTHING: Final = frozenset({"", "nan", "none", "null", "nat", "n/a", "-"})
_MILLISECONDS: Final = 1e11
"""Epoch seconds reach this in the year 5138: larger numbers are milli-, micro- or nanoseconds."""


class SizingFileError(SoonerError):
    """A file that cannot be read as what it was given for.

    Args:
        path: The file.
        problem: What is wrong, and what to do next.
        line: 1-based, 0 where unknown.
    """

    def __init__(self, path: Path | str, problem: str, *, line: int = 0) -> None:
        self.path, self.line = path, line
        super().__init__(f"{path}:{line}: {problem}" if line else f"{path}: {problem}")


def data_of(path: Path) -> bytes:
    """A file's bytes, unpacked.

    Raises:
        SizingFileError: It cannot be read.
    """
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (OSError, EOFError, zlib.error) as error:
        raise SizingFileError(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def document(path: Path, data: bytes | None = None) -> Any:
    """A JSON or TOML file, or what was read from it already.

    Raises:
        SizingFileError: It is neither.
    """
    data = data_of(path) if data is None else data
    try:
        if path.suffix.lower() == ".toml":
            return tomllib.loads(data.decode("utf-8-sig"))
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.DecodeError, RecursionError) as error:
        raise SizingFileError(path, f"is no {path.suffix.lower().strip('.').upper() or 'JSON'}: {error}") from error


def table(path: Path, data: bytes | None = None) -> dict[str, Column]:
    """Columns of a table, by name in small letters; of what was read from it already, if that is given.

    Raises:
        SizingFileError: It cannot be read as a table.
    """
    gc.disable()  # a million rows that all stay: looking for garbage among them takes a third of the time
    try:
        return _table(path, data)
    finally:
        gc.enable()


def _table(path: Path, data: bytes | None) -> dict[str, Column]:
    if path.suffix.lower() in {".parquet", ".pq"}:
        return _parquet(path)
    data = data_of(path) if data is None else data
    head = data[:4096].lstrip(b"\xef\xbb\xbf \r\n\t")
    if data[:4] == b"PAR1":
        return _parquet(path)
    if head[:1] in {b"{", b"["}:
        return _columns(path, _objects(path, data))
    return _csv(path, data)


def _csv(path: Path, data: bytes) -> dict[str, Column]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SizingFileError(path, f"is no UTF-8 text: {error}") from error
    first = text.split("\n", 1)[0]
    delimiter = max(",;\t|", key=first.count)
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise SizingFileError(path, f"is no CSV: {error}") from error
    if not rows:
        raise SizingFileError(path, "is empty: a table needs a header")
    names = [name.strip().lower() for name in rows[0]]
    width = len(names)
    for line, row in enumerate(rows[1:], 2):
        if len(row) != width:
            raise SizingFileError(path, f"has {len(row)} cells where the header has {width}", line=line)
    columns = list(zip(*rows[1:], strict=True)) or [()] * width
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


def _objects(path: Path, data: bytes) -> list[dict[str, Any]]:
    try:
        if data.lstrip()[:1] == b"[":
            found = msgspec.json.decode(data)
        else:
            found = msgspec.json.Decoder().decode_lines(data)
            if len(found) == 1 and isinstance(found[0], dict):
                inner = next((value for value in found[0].values() if isinstance(value, list)), None)
                found = inner if inner is not None else found
    except (msgspec.DecodeError, RecursionError) as error:
        raise SizingFileError(path, f"is no JSON: {error}") from error
    for line, one in enumerate(found, 1):
        if not isinstance(one, dict):
            raise SizingFileError(path, "holds something that is no object", line=line)
    return list(found)


def _columns(_path: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, Column]:
    names = dict.fromkeys(itertools.chain.from_iterable(rows[:1000]))
    return {name.lower(): [row.get(name) for row in rows] for name in names}


def _parquet(path: Path) -> dict[str, Column]:
    from sooner.history.database import Database
    from sooner.history.ingest.sources import described, table_source
    from sooner.history.statements import identifier

    if not path.is_file():
        raise SizingFileError(path, "is not there")
    database = Database()
    source = described(database, table_source(path, "parquet"))
    names = ", ".join(
        f"epoch({identifier(name)})" if kind.startswith("TIMESTAMP") else identifier(name)
        for name, kind in source.columns.items()
    )
    rows = database.rows(f"select {names} from {source.relation}")  # noqa: S608 - both are quoted
    columns = list(zip(*rows, strict=True)) or [()] * len(source.columns)
    return {name.lower(): list(column) for name, column in zip(source.columns, columns, strict=False)}


def column(found: Mapping[str, Column], field: str) -> Column | None:
    """The column of a field under any of its names."""
    return next((found[name] for name in FIELDS[field] if name in found), None)


def texts(values: Column) -> list[str]:
    """Labels: several ones of a job are joined by commas."""
    return [",".join(map(str, v)) if isinstance(v, list | tuple) else str(v if v is not None else "") for v in values]


def numbers(path: Path, name: str, values: Column, *, is_time: bool, line: int = 2) -> list[float]:
    """A column of numbers, or of times as epoch seconds; NaN for nothing. The first stands in a line, 0 for none.

    Raises:
        SizingFileError: A cell is neither.
    """
    try:
        found = list(map(float, values))
    except (TypeError, ValueError, OverflowError):
        found = [_number(path, name, at, value, is_time=is_time) for at, value in enumerate(values, line)]
    if is_time and any(value > _MILLISECONDS for value in found):
        found = [_as_seconds(value) for value in found]
    return found


def _as_seconds(value: float) -> float:
    while _MILLISECONDS < value < inf:
        value /= 1000.0
    return value


def _number(path: Path, name: str, line: int, value: Any, *, is_time: bool) -> float:
    if value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING):
        return float("nan")
    try:
        return float(value)
    except OverflowError:
        raise SizingFileError(path, f"{name} is too large a number", line=line) from None
    except (TypeError, ValueError):
        if is_time:
            return epoch(path, name, line, value)
        raise SizingFileError(path, f"{name} {value!r} is no number", line=line) from None


def names(cell: Any) -> list[str]:
    """Several names in one cell: a list, a JSON list, or separated by spaces, commas or semicolons."""
    if isinstance(cell, list):
        return texts(cell)
    text = "" if cell is None else str(cell).strip()
    if text.startswith("["):
        try:
            return texts(msgspec.json.decode(text.encode(), type=list[Any]))
        except (msgspec.DecodeError, RecursionError):
            text = text.strip("[]")
    return [] if text.lower() in _NOTHING else text.replace(",", " ").replace(";", " ").split()


def epoch(path: Path, name: str, line: int, value: Any) -> float:
    """A time: ISO 8601 (UTC where it names no zone), or a date and time of the file's own kind.

    Raises:
        SizingFileError: It is none.
    """
    try:
        text = value.isoformat() if isinstance(value, dt.datetime) else str(value).strip()
        return iso_epoch(text.removesuffix(" UTC"))
    except ValueError:
        raise SizingFileError(path, f"{name} {value!r} is no time (epoch seconds or ISO 8601)", line=line) from None
