"""How rows of any source become a file of the history: typed, under their keys, each once, whole or not at all.

One source, one file, one rename. What the history holds already is left out, so the same source adds nothing the second
time. Two writers that add the same rows in the same moment cannot see each other's: readers sort that out by the keys.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct

from sooner.history.database import Database
from sooner.history.files import Folder, file_name, metadata
from sooner.history.known import write_known
from sooner.history.relations import Found, find, key_parts, relation
from sooner.history.statements import identifier, path_literal, quoted, sql
from sooner.history.tables import Table

_MOST_SCOPES: Final = 64
"""Up to so many runs, Parquet's bloom filters find the files that hold them sooner than a scan of all keys."""


class Repeats(StrEnum):
    """What it means that a source names the same thing several times."""

    DUPLICATES = "duplicates"
    """The same record again: the best of them counts."""
    ATTEMPTS = "attempts"
    """Another attempt, each."""
    DIFFERENT_ATTEMPTS = "different_attempts"
    """The same record again where it is equal, another attempt where it is not."""


class Added(Struct, frozen=True):
    """What became of the rows of a source."""

    rows: int = 0
    added: int = 0
    contradicted: int = 0
    """Rows that were left out although they tell another end of the same attempt than the history does."""

    @property
    def duplicates(self) -> int:
        """Rows that the history, or the source itself, held already."""
        return self.rows - self.added

    def __add__(self, other: "Added") -> "Added":
        return Added(self.rows + other.rows, self.added + other.added, self.contradicted + other.contradicted)


class Facts(Struct, frozen=True):
    """What a staged file holds."""

    rows: int
    first: date | None
    last: date | None
    digest: str


def select_list(table: Table, given: Mapping[str, str]) -> str:
    """SQL for all columns of a table, from an expression for each that is known; empty text becomes null."""
    parts = []
    for name, kind in table.columns.items():
        value = f"({given[name]})::{kind}" if name in given else f"null::{kind}"
        parts.append(f"{f'nullif({value}, {chr(39) * 2})' if kind == 'VARCHAR' else value} as {identifier(name)}")
    return ", ".join(parts)


class Commit:
    """Adds sources to one table of a history.

    Args:
        database: To work in.
        folder: Where the history lies.
        staging: A local folder for files that are not done.
        table: The table.
    """

    def __init__(self, database: Database, folder: Folder, staging: Path, table: Table) -> None:
        self._database = database
        self._folder = folder
        self._staging = staging
        self._table = table
        self._places = {
            "key_parts": key_parts(table),
            "metadata": metadata(table.name),
            "outcome": "outcome" if "outcome" in table.columns else "''",
            "rank": table.rank,
            "scope": identifier(table.scope),
            "time": table.time,
        }

    def __call__(self, source: str, columns: str, repeats: Repeats = Repeats.DUPLICATES) -> Added:
        """Add what `select COLUMNS from SOURCE` gives.

        Raises:
            HistoryError: The source cannot be read, or the history not be written.
        """
        staged = self._staging / f"{self._table.name}.staged.parquet"
        self._run("stage", source=source, columns=columns, target=quoted(str(staged)))
        rows: int = self._database.value(sql("commit", "count", staged=path_literal(staged)))
        is_repeated = self._look_for_repeats(staged)
        if is_repeated and repeats is not Repeats.DUPLICATES:
            staged = self._numbered(staged, repeats)
            is_repeated = self._look_for_repeats(staged)
        found = find(self._database, self._folder, self._table)
        recorded, improvable = self._look_up(staged, found)
        contradicted = self._contradicted(staged) if recorded else 0
        if recorded == rows and not improvable and not is_repeated:
            return Added(rows, 0, contradicted)
        if recorded or is_repeated:
            staged = self._only_new(staged)
        facts = self._facts(staged)
        if facts.rows:
            self._publish(staged, facts, found, superseding=improvable > 0)
        staged.unlink(missing_ok=True)
        return Added(rows, facts.rows, contradicted)

    def _run(self, name: str, **places: str) -> None:
        self._database.run(sql("commit", name, **self._places, **places))

    def _facts(self, staged: Path) -> Facts:
        rows = self._database.rows(sql("commit", "facts", **self._places, staged=path_literal(staged)))
        return Facts(*rows[0])

    def _look_for_repeats(self, staged: Path) -> bool:
        self._run("repeated", staged=path_literal(staged))
        return bool(self._database.value(sql("commit", "count_repeated")))

    def _numbered(self, staged: Path, repeats: Repeats) -> Path:
        which = "all_repeats" if repeats is Repeats.ATTEMPTS else "different_repeats"
        source = path_literal(staged)
        target = self._staging / f"{self._table.name}.numbered.parquet"
        self._run(
            "number_attempts",
            staged=source,
            repeats=sql("commit", which, **self._places, staged=source),
            target=quoted(str(target)),
        )
        return target

    def _look_up(self, staged: Path, found: Found) -> tuple[int, int]:
        """How many staged things are known, and of how many a better record may come; fills the table `recorded`."""
        source = path_literal(staged)
        scopes = self._database.value(
            sql("commit", "scopes", **self._places, staged=source, limit=str(_MOST_SCOPES + 1))
        )
        existing = relation(self._table, found.files)
        name = "best_recorded" if found.repeated else "recorded"
        self._run(name, staged=source, existing=existing, in_scope=self._in_scope(scopes or ()))
        recorded, improvable = self._database.rows(sql("commit", "count_recorded", best=str(self._table.best)))[0]
        return recorded, improvable

    def _contradicted(self, staged: Path) -> int:
        return int(self._database.value(sql("commit", "contradicted", **self._places, staged=path_literal(staged))))

    def _in_scope(self, scopes: Sequence[str | None]) -> str:
        if not scopes or len(scopes) > _MOST_SCOPES or None in scopes:
            return "true"
        return f"{self._places['scope']} in ({', '.join(quoted(str(scope)) for scope in scopes)})"

    def _only_new(self, staged: Path) -> Path:
        target = self._staging / f"{self._table.name}.new.parquet"
        self._run("keep_new", staged=path_literal(staged), target=quoted(str(target)))
        staged.unlink()
        return target

    def _publish(self, staged: Path, facts: Facts, found: Found, *, superseding: bool) -> None:
        again = self._database.value(sql("commit", "superseding", staged=path_literal(staged))) if superseding else ()
        file = self._folder.publish(staged, self._table.name, file_name(facts.first, facts.last, facts.digest))
        files = (*(known for known in found.files if known.name != file.name), file)
        repeated = tuple(sorted({*found.repeated, *again}))
        write_known(self._folder, self._table.name, Found(files, repeated).known)
