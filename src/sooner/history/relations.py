"""The files of a table as one thing to select from, old versions included, each record once."""

from collections.abc import Sequence

from msgspec import Struct

from sooner.history.database import Database
from sooner.history.errors import HistoryError
from sooner.history.files import Folder, StoredFile
from sooner.history.known import KnownFiles, read_known, write_known
from sooner.history.statements import identifier, path_literal, sql
from sooner.history.tables import SCHEMA, Table


class Found(Struct, frozen=True):
    """The files of a table, and which keys have more than one record in them."""

    files: tuple[StoredFile, ...]
    repeated: tuple[int, ...]

    @property
    def known(self) -> KnownFiles:
        """The same as it is written down."""
        return KnownFiles(tuple(file.name for file in self.files), self.repeated)


def find(database: Database, folder: Folder, table: Table) -> Found:
    """List a table's files and look at those that nobody has looked at before."""
    files = tuple(folder.files(table.name))
    known = read_known(folder, table.name)
    seen = set(known.files)
    fresh = [file for file in files if file.name not in seen]
    if not fresh:
        return Found(files, known.repeated)
    rest = [file for file in files if file.name in seen]
    statement = sql("relations", "repeated", fresh=relation(table, fresh), rest=relation(table, rest))
    repeated = {*known.repeated, *(key for (key,) in database.rows(statement))}
    found = Found(files, tuple(sorted(repeated)))
    write_known(folder, table.name, found.known)
    return found


def relation(table: Table, files: Sequence[StoredFile]) -> str:
    """SQL for all rows of files, in the columns of the current version."""
    by_version: dict[int, list[str]] = {}
    for file in files:
        by_version.setdefault(file.version, []).append(file.path)
    parts = [_of_version(table, version, paths) for version, paths in sorted(by_version.items())]
    if len(parts) > 1:
        return "(" + " union all by name ".join(f"from {part}" for part in parts) + ")"
    return parts[0] if parts else sql("relations", "empty", columns=empty_columns(table))


def _of_version(table: Table, version: int, paths: Sequence[str]) -> str:
    files = "[" + ", ".join(map(path_literal, paths)) + "]"
    if version == SCHEMA:
        return sql("relations", "files", files=files)
    try:
        return sql("upgrades", f"{table.name}_{version}", files=files, key_parts=key_parts(table))
    except KeyError:
        raise HistoryError(f"{paths[0]}: version {version} of the table {table.name!r} cannot be read") from None


def empty_columns(table: Table) -> str:
    """The columns of a table, of no row."""
    kinds = {"key": "UBIGINT", **table.columns}
    return ", ".join(f"null::{kind} as {identifier(name)}" for name, kind in kinds.items())


def key_parts(table: Table) -> str:
    """What names a row, without nulls: they would vanish from the text that the key is a digest of."""
    return ", ".join(f"coalesce({part}, '')" for part in table.key)


def make_view(database: Database, table: Table, found: Found, name: str) -> None:
    """Let SQL read a table under a name: each record once."""
    rows = relation(table, found.files)
    if not found.repeated:
        database.run(sql("relations", "view", name=identifier(name), relation=rows))
        return
    held = identifier(f"{name}_repeated")
    database.run(sql("relations", "hold", name=held))
    keys = "[" + ", ".join(map(str, found.repeated)) + "]"
    database.run(sql("relations", "fill", name=held, keys=f"{keys}::ubigint[]"))
    places = {"name": identifier(name), "relation": rows, "repeated": held, "rank": table.rank}
    database.run(sql("relations", "view_of_best", **places))
