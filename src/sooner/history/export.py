"""Tables as one file for other tools: each record once, placeholders and copies left out."""

import contextlib
import os
import re
import select
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from sooner.history.errors import HistoryError
from sooner.history.reading import EVERYTHING, Where, condition
from sooner.history.statements import identifier, quoted, sql
from sooner.history.store import History
from sooner.history.tables import table_named

_OPTIONS: Final = {
    "parquet": "format parquet, compression zstd",
    "csv": "format csv, header true",
    "jsonl": "format json",
}
_SUFFIXES: Final = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_STDOUT: Final = 1
_CHUNK: Final = 1 << 16


def export(history: History, table: str, path: str, *, format_: str = "", where: Where = EVERYTHING) -> int:
    """Write a table's rows in the order of their times; returns how many.

    Args:
        history: Where they are.
        table: Which table.
        path: The file; `-` is stdout (CSV, or what `format_` says, but not Parquet).
        format_: `parquet`, `csv` or `jsonl`; by default what the file's name says.
        where: Which rows.

    Raises:
        HistoryError: There is no such table or format, or the file cannot be written.
        BrokenPipeError: Nobody reads stdout any more.
    """
    wanted = table_named(table)
    kind = format_ or ("csv" if path == "-" else _SUFFIXES.get(Path(path).suffix, ""))
    if kind not in _OPTIONS or (path == "-" and kind == "parquet"):
        raise HistoryError(f"{path}: say with --format how to write it: {', '.join(_OPTIONS)} (on stdout csv or jsonl)")
    if path != "-" and not Path(path).absolute().parent.is_dir():
        raise HistoryError(f"cannot write {path}: its folder does not exist")
    try:
        with _standard_output() if path == "-" else _beside(Path(path)) as target:
            statement = sql(
                "export",
                "rows",
                columns=", ".join(map(identifier, wanted.columns)),
                table=identifier(table),
                condition=condition(wanted.columns, wanted.time, where),
                time=wanted.time,
                target=quoted(str(target)),
                options=_OPTIONS[kind],
            )
            return _written(history, statement, target, path)
    except BrokenPipeError as error:
        raise BrokenPipeError from error  # without its number, of which Click would make a failure
    except OSError as error:
        raise HistoryError(f"cannot write {'standard output' if path == '-' else path}: {error.strerror}") from error


def _written(history: History, statement: str, target: Path, path: str) -> int:
    """How many rows were written."""
    try:
        return history.read(lambda: int(history.database.value(statement)))
    except HistoryError as error:
        if why := _unwritten(error, target):
            raise HistoryError(f"cannot write {path}: {why}") from error
        raise


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A file that takes the place of another one when it is whole."""
    target = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield target
        target.replace(path)
    finally:
        with contextlib.suppress(OSError):
            target.unlink()


@contextlib.contextmanager
def _standard_output() -> Iterator[Path]:
    """A pipe to standard output: opened by its own name, a file that it goes to (`>> rows.csv`) would begin anew."""
    reading, writing = os.pipe()
    with ThreadPoolExecutor(1) as pool:
        poured = pool.submit(_pour, reading)
        try:
            yield Path(f"/dev/fd/{writing}")
        finally:
            os.close(writing)
            poured.result()  # what went wrong behind the pipe is why it could not be written


def _pour(reading: int) -> None:
    with os.fdopen(reading, "rb") as source:
        while chunk := source.read1(_CHUNK):
            rest = memoryview(chunk)
            while rest:
                select.select([], [_STDOUT], [])  # a pipe that is full for the moment is waited for
                rest = rest[os.write(_STDOUT, rest) :]


def _unwritten(error: HistoryError, target: Path) -> str:
    """Why DuckDB says that it cannot write a file; empty where it does not say so."""
    found = re.search(re.escape(str(target)) + r'\\*": ([^"]+)', str(error.__cause__ or error))
    return found[1] if found else ""
