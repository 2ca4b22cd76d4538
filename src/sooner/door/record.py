"""The record of a pytest session in the history: a row a test, written when the session ends, also when interrupted."""

import contextlib
import importlib.util
import os
import pickle
import signal
import sys
from pathlib import Path
from typing import IO, Any, Final, NoReturn

import pytest

from sooner.model.errors import SoonerError
from sooner.run import clock
from sooner.run.supervision import kernel
from sooner.warm.forking import fork_refusal

_DEFAULT: Final = ".sooner/history"


class Record:
    """Gathers rows and writes them.

    Args:
        setting: `--history`: a folder or URL, `none`, or `auto` (below the root folder, where DuckDB is installed).
        root: The root folder of the session.
    """

    def __init__(self, setting: str, root: Path) -> None:
        is_possible = importlib.util.find_spec("duckdb") is not None
        if not is_possible and setting not in ("auto", "none"):
            raise pytest.UsageError("--history needs DuckDB: pip install 'sooner[history]'")
        self._root = "" if setting == "none" or not is_possible else setting
        if self._root == "auto":
            self._root = str(root / _DEFAULT)
        self._rows: list[dict[str, Any]] = []
        self._began_at = clock.now()
        self._writer = 0
        self._pipe: IO[bytes] | None = None

    def add(
        self, nodeid: str, *, outcome: str, seconds: float, devices: tuple[str, ...], worker: int, message: str
    ) -> None:
        """Note one test.

        Args:
            nodeid: Its id.
            outcome: As the history names it.
            seconds: Of all its phases.
            devices: Ids of the devices that it held.
            worker: Number of its process.
            message: First line of what went wrong.
        """
        if self._root:
            self._rows.append(
                {
                    "node_id": nodeid,
                    "unit": nodeid.split("::", maxsplit=1)[0],
                    "outcome": outcome,
                    "seconds": seconds,
                    "devices": devices,
                    "worker": str(worker),
                    "message": message[:300],
                    "started": clock.now() - seconds,
                }
            )

    def prepare(self) -> None:
        """Begin what takes longest, the import of DuckDB, in a process that waits for the rows while tests run."""
        if not self._root or fork_refusal():
            return
        read, write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        self._writer = os.fork()
        if self._writer == 0:
            os.close(write)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            kernel.die_with_parent(signal.SIGTERM, parent)
            self._serve(read)
        os.close(read)
        self._pipe = os.fdopen(write, "wb")

    def _serve(self, read: int) -> NoReturn:
        """Write what comes, unless nothing does: the session was killed."""
        try:
            from sooner.history.store import History  # noqa: F401 - so that it is there when rows come

            with os.fdopen(read, "rb") as file, contextlib.suppress(EOFError):
                # Not up to the end of the pipe: what tests left running holds its other side too.
                self._rows = pickle.load(file)  # noqa: S301 - the parent's
                self._write()
            sys.stderr.flush()
        finally:
            os._exit(0)

    def write(self) -> None:
        """Write all rows, and wait until they are written."""
        pipe, self._pipe = self._pipe, None
        if pipe is None:
            self._write()
            return
        try:
            with pipe:
                pickle.dump(self._rows, pipe)
        except BrokenPipeError:  # somebody killed it
            self._write()
        os.waitpid(self._writer, 0)

    def _write(self) -> None:
        """Write all rows; a history that cannot be written costs the session a line."""
        if not self._rows:
            return
        from sooner.history import HistoryOutcome, TestRow
        from sooner.history.store import History
        from sooner.history.surroundings import surroundings

        about: Any = {"run": f"pytest-{int(self._began_at * 1000):x}-{os.getpid()}", **surroundings(os.environ)}
        try:
            with History(self._root) as history:
                history.add_tests(
                    TestRow(**{**row, "outcome": HistoryOutcome(row["outcome"])}, kind="case", source="pytest", **about)
                    for row in self._rows
                )
        except (SoonerError, OSError) as error:
            sys.stderr.write(f"sooner: the session is not in the history: {error}\n")
