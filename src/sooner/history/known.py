"""What has been found out about the files of a table, written down beside them for everybody who comes later.

Writers do not wait for each other, so two of them may add the same record at once, and a run that still went on is
recorded again when it has ended: readers must know which keys have several records. Finding out means reading all keys;
so whoever has done it writes it down. Never needed for what is read, only for how soon: files that are not mentioned
are looked at again.
"""

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from sooner.history.files import Folder, LocalFolder
from sooner.history.tables import SCHEMA

_MOST_REPEATED: Final = 50_000
"""More of them are quicker found than read from JSON."""


class KnownFiles(Struct, frozen=True):
    """Files of a table, and which keys have more than one record in them."""

    files: tuple[str, ...] = ()
    repeated: tuple[int, ...] = ()


def read_known(folder: Folder, table: str) -> KnownFiles:
    """What was found out about a table's files; nothing where nobody wrote it down."""
    if isinstance(folder, LocalFolder):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(known_path(folder, table).read_bytes(), type=KnownFiles)
    return KnownFiles()


def write_known(folder: Folder, table: str, known: KnownFiles) -> None:
    """Write down what was found out; best effort, because a reader may not be allowed to write."""
    if not isinstance(folder, LocalFolder) or len(known.repeated) > _MOST_REPEATED:
        return
    path = known_path(folder, table)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    with contextlib.suppress(OSError):
        try:
            temporary.write_bytes(msgspec.json.encode(known))
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def known_path(folder: LocalFolder, table: str) -> Path:
    """Begins with an underscore: Spark, Athena and their like skip such files."""
    return folder.root / f"v{SCHEMA}" / table / "_known.json"
