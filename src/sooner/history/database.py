"""DuckDB, opened in memory for one reader or writer; imported only here and only when it is needed.

Nothing is kept in DuckDB's own format: it reads and writes Parquet (see DEPENDENCIES: files of one version do not open
in another, and a writer locks all readers out).
"""

import contextlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sooner.history.errors import HistoryError, NotWritable
from sooner.history.statements import quoted, sql
from sooner.model.errors import REFUSALS

if TYPE_CHECKING:
    import duckdb

MEMORY_MIB: Final = 1024
"""What DuckDB may hold in memory before it goes to the disk; the process needs some 300 MiB beside that."""

_REFUSED: Final = re.compile("|".join(REFUSALS))
_BROKEN_FILE: Final = re.compile(r"file '([^']+/v\d+/\w+/day=[^']+\.parquet)'", re.IGNORECASE)
"""A file of a history, where DuckDB says that it is none of Parquet."""
_INSTALL: Final = "install it with `pip install 'sooner[history]'`"


class Database:
    """One connection.

    Args:
        memory_mib: Where DuckDB begins to use the disk.
            scratch: Folder for what does not fit; a temporary one by default.
    """

    def __init__(self, *, memory_mib: int = MEMORY_MIB, scratch: Path | None = None) -> None:
        self._connection = _connect()
        # A folder of its own: two processes that spill into one overwrite each other's files. Made only when needed.
        own = Path(tempfile.gettempdir(), f"sooner-duckdb-{os.getpid()}-{secrets.token_hex(4)}")
        folder = quoted(str(scratch or own))
        self.run(sql("settings", "settings", memory=quoted(f"{memory_mib}MiB"), scratch=folder))
        self.run(sql("settings", "macros"))

    def run(
        self, statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> "duckdb.DuckDBPyConnection":
        """Run statements; the result of the last one is fetched from what this returns.

        Raises:
            HistoryError: DuckDB cannot: memory, disk, files that are gone.
        """
        with translated():
            return self._connection.execute(statement, parameters)

    def rows(
        self, statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with translated():
            return self._connection.execute(statement, parameters).fetchall()

    def value(self, statement: str, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> Any:
        """The only value of a query's only row."""
        return self.rows(statement, parameters)[0][0]

    @contextlib.contextmanager
    def registered(self, name: str, data: object) -> Iterator[None]:
        """Let SQL read columns that lie in memory: a mapping of numpy arrays, or anything that speaks Arrow.

        Raises:
            HistoryError: It is neither.
        """
        with translated():
            self._connection.register(name, data)
        try:
            yield
        finally:
            self._connection.unregister(name)

    def extension(self, name: str) -> None:
        """Load an extension that DuckDB does not bring along; it is downloaded the first time.

        Raises:
            HistoryError: It is not there and cannot be had.
        """
        import duckdb

        try:
            self._connection.execute(sql("settings", "load", name=name))
        except duckdb.Error:
            try:
                self._connection.execute(sql("settings", "install", name=name))
            except duckdb.Error as error:
                raise HistoryError(
                    f"DuckDB's extension {name} cannot be loaded ({_first_line(error)}): run `INSTALL {name}` once in a"
                    " DuckDB that has a network, or copy the history to a local folder"
                ) from error

    def close(self) -> None:
        """Give memory and files back."""
        self._connection.close()


class Vanished(HistoryError):  # noqa: N818 - what the file did
    """A file was there when the folder was listed and is gone now: it was compacted. Listing again helps."""


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """DuckDB's errors as ours."""
    import duckdb

    try:
        yield
    except duckdb.IOException as error:
        text = _first_line(error)
        if "No such file" in text or "No files found" in text or "Cannot open file" in text:
            raise Vanished(text) from error
        if refused := _REFUSED.search(str(error)):
            what = f"{refused[0]}; {REFUSALS[refused[0]]} and repeat the command"
            raise NotWritable(f"cannot write: {what}: nothing is half-done") from error
        raise HistoryError(f"the history cannot be read or written: {text}") from error
    except duckdb.OutOfMemoryException as error:
        raise HistoryError(f"DuckDB ran out of memory: {_first_line(error)}; give it more with memory_mib") from error
    except duckdb.InterruptException as error:
        raise KeyboardInterrupt from error
    except duckdb.Error as error:
        text = _first_line(error)
        if isinstance(error, duckdb.InvalidInputException) and (broken := _BROKEN_FILE.search(text)):
            raise HistoryError(f"{broken[1]} is broken: {text}; move it away, and the rest can be read") from error
        raise HistoryError(f"the history's database refuses: {text}") from error
    except RuntimeError as error:
        if "interrupted" in str(error):  # Ctrl-C while it was at work
            raise KeyboardInterrupt from error
        # what its bindings say of text that they cannot encode, a path for instance
        raise HistoryError(f"the history's database takes no text that is not UTF-8 ({error})") from error


def _connect() -> "duckdb.DuckDBPyConnection":
    try:
        import duckdb
    except ModuleNotFoundError as error:
        raise HistoryError(f"the history needs DuckDB: {_INSTALL}") from error
    return duckdb.connect(config={"autoinstall_known_extensions": "false"})


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
