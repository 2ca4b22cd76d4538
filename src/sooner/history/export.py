"""Tables as one file for other tools: each record once, placeholders and copies left out."""

import contextlib
import errno
import os
import re
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
    target = Path("/dev/stdout") if path == "-" else Path(path).with_name(f".{Path(path).name}.{os.getpid()}.tmp")
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
    try:
        rows = history.read(lambda: int(history.database.value(statement)))
        if path != "-":
            target.replace(path)
    except OSError as error:
        raise HistoryError(f"cannot write {path}: {error.strerror}") from error
    except HistoryError as error:
        why = _unwritten(error, target)
        if not why:
            raise
        if path == "-" and why == os.strerror(errno.EPIPE):
            raise BrokenPipeError from error  # whoever reads has enough
        raise HistoryError(f"cannot write {'standard output' if path == '-' else path}: {why}") from error
    finally:
        if path != "-":
            with contextlib.suppress(OSError):
                target.unlink()
    return rows


def _unwritten(error: HistoryError, target: Path) -> str:
    """Why DuckDB says that it cannot write a file; empty where it does not say so."""
    found = re.search(re.escape(str(target)) + r'\\*": ([^"]+)', str(error.__cause__ or error))
    return found[1] if found else ""
