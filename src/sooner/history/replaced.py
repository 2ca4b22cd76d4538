"""Files that a compaction has replaced: not read any more as soon as the file that replaces them is there.

A note `_replaced-<digest>.json` is written before the new file is renamed into its place. So readers change from the
old files to the new one in one moment, and when a compaction is killed, either the old ones count or the new one.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

_PREFIX: Final = "_replaced-"


class Replacement(Struct, frozen=True):
    """One file instead of others; names are relative to the table's folder."""

    by: str
    files: tuple[str, ...]


def write_replacement(table: Path, replacement: Replacement) -> Path:
    """Write the note; it is on the disk when this returns."""
    digest = hashlib.sha256(msgspec.json.encode(replacement)).hexdigest()[:16]
    path = table / f"{_PREFIX}{digest}.json"
    temporary = table / f".{path.name}.{os.getpid()}.tmp"
    with temporary.open("wb") as file:
        file.write(msgspec.json.encode(replacement))
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return path


def replacements(table: Path) -> Iterator[tuple[Path, Replacement]]:
    """All notes of a table."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for name in os.listdir(table):  # noqa: PTH208 - names are enough
            if name.startswith(_PREFIX):
                with contextlib.suppress(OSError, msgspec.MsgspecError):
                    yield table / name, msgspec.json.decode((table / name).read_bytes(), type=Replacement)


def without_replaced(table: Path, names: Sequence[str]) -> list[str]:
    """The files that count, of those that are there.

    The notes are read after the files were listed: a file that has been put in the place of others since then is not
    in the list, so the others still count.
    """
    there = set(names)
    gone = {old for _, note in replacements(table) if note.by in there for old in note.files if old != note.by}
    return [name for name in names if name not in gone]
