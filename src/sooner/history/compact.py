"""Makes few large files of many small ones, beside readers and writers that do not wait.

Every `sooner run` adds a file; a thousand of them take a second to open. Rows are sorted by time, records that were
replaced are left out, files of old versions are written in the current one. At no moment is a record missing or counted
twice: the new file is there whole before an old one is removed, and a note says which of them count.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from sooner.history.commit import Facts
from sooner.history.database import Database
from sooner.history.errors import HistoryError
from sooner.history.files import LocalFolder, StoredFile, file_name, metadata
from sooner.history.known import known_path
from sooner.history.relations import find, relation
from sooner.history.replaced import Replacement, replacements, write_replacement
from sooner.history.statements import identifier, path_literal, quoted, sql
from sooner.history.store import History
from sooner.history.tables import SCHEMA, TABLES, Table

_LARGE_BYTES: Final = 128 * 1024 * 1024
"""A file of this size is left alone, and a new one grows no further."""


class Compacted(Struct, frozen=True):
    """What was done to a table."""

    table: str
    before: int
    """Files."""
    after: int
    rows: int
    """Rows in the files that were written."""


def compact(history: History, *, large_bytes: int = _LARGE_BYTES) -> list[Compacted]:
    """Compact all tables.

    Raises:
        HistoryError: The history is no local folder, or is being compacted.
    """
    folder = history.folder
    if not isinstance(folder, LocalFolder):
        raise HistoryError(f"{folder.url}: only a local folder can be compacted: copy it, compact it, copy it back")
    done = []
    with _lock(folder.root), folder.staging() as staging:
        for table in TABLES.values():
            _clean_up(folder, table)
            done.append(_Compaction(history.database, folder, table, staging).run(large_bytes))
    return [compacted for compacted in done if compacted.before]


class _Compaction:
    def __init__(self, database: Database, folder: LocalFolder, table: Table, staging: Path) -> None:
        self._database = database
        self._folder = folder
        self._table = table
        self._staging = staging
        self._places = {"rank": table.rank, "time": table.time, "metadata": metadata(table.name)}

    def run(self, large_bytes: int) -> Compacted:
        files = self._folder.files(self._table.name)
        rows = sum(self._merge(group) for group in self._groups(files, large_bytes))
        # What was known of the old files goes with them; what the new ones hold is written down for the next reader.
        known_path(self._folder, self._table.name).unlink(missing_ok=True)
        find(self._database, self._folder, self._table)
        return Compacted(self._table.name, len(files), len(self._folder.files(self._table.name)), rows)

    def _groups(self, files: Sequence[StoredFile], large_bytes: int) -> Iterator[list[StoredFile]]:
        """Neighbours in time that together become one file."""
        group: list[StoredFile] = []
        size = 0
        for file in sorted(files, key=lambda file: (file.days, file.name)):
            bytes_ = self._folder.sizes([file])
            if bytes_ >= large_bytes and file.version == SCHEMA:
                continue
            if size + bytes_ > large_bytes and group:
                yield group
                group, size = [], 0
            group.append(file)
            size += bytes_
        if group:
            yield group

    def _merge(self, group: Sequence[StoredFile]) -> int:
        if len(group) == 1 and group[0].version == SCHEMA:
            return 0
        merged, ordered = self._staging / "merged.parquet", self._staging / "ordered.parquet"
        source = relation(self._table, group)
        self._database.run(sql("compact", "repeated", source=source))
        self._run("merge", source=source, target=quoted(str(merged)))
        columns = ", ".join(map(identifier, ("key", *self._table.columns)))
        self._run("sort", source=path_literal(merged), columns=columns, target=quoted(str(ordered)))
        merged.unlink()
        facts = Facts(*self._database.rows(sql("compact", "facts", **self._places, staged=path_literal(ordered)))[0])
        self._replace(group, ordered, file_name(facts.first, facts.last, facts.digest))
        return facts.rows

    def _run(self, name: str, **places: str) -> None:
        self._database.run(sql("compact", name, **self._places, **places))

    def _replace(self, group: Sequence[StoredFile], staged: Path, name: str) -> None:
        notes = []
        for version in {file.version for file in group}:
            place = self._folder.table_path(self._table.name, version)
            files = tuple(file.name for file in group if file.version == version)
            if version == SCHEMA:
                notes.append(write_replacement(place, Replacement(name, files)))
        self._folder.publish(staged, self._table.name, name)
        kept = str(self._folder.table_path(self._table.name) / name)
        self._folder.remove(file for file in group if file.path != kept)
        for note in notes:
            note.unlink()


def _clean_up(folder: LocalFolder, table: Table) -> None:
    """Finish what a compaction that was killed has left."""
    place = folder.table_path(table.name)
    for note, replacement in list(replacements(place)):
        if (place / replacement.by).exists():
            for name in replacement.files:
                if name != replacement.by:
                    (place / name).unlink(missing_ok=True)
        note.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(root: Path) -> Iterator[None]:
    """One compaction at a time: two would do the same work."""
    if not root.is_dir():
        raise HistoryError(f"{root}: there is no history")
    fd = os.open(root / ".compact.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise HistoryError(f"{root} is being compacted by another process: wait for it") from None
    finally:
        os.close(fd)
