"""Where the Parquet files of a history lie, and how one is added so that nobody ever sees half of it.

    ROOT/v1/TABLE/day=2026-11-21/20261121-<content key>.parquet

The folder is the day of a file's first row, the number in its name the day of its last one, so a reader that asks for a
time skips files by their names alone. A file is written in `ROOT/.staging/`, synced, and renamed into its place: it is
there whole or not at all, whoever is killed. Its name is a digest of its content: written twice, it is the same file.
"""

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from sooner import __version__
from sooner.history.database import Database
from sooner.history.errors import HistoryError, NotWritable
from sooner.history.replaced import without_replaced
from sooner.history.statements import path_literal, quoted, sql
from sooner.history.tables import SCHEMA
from sooner.model.text import printable

_NO_DAY: Final = "unknown"
_NAME: Final = re.compile(r"day=([^/]+)/(\d{8}|unknown)-[^/]*\.parquet$")
_VERSION: Final = re.compile(r"v(\d+)")
_TRIES: Final = 10
_FORGOTTEN_S: Final = 86_400
"""A staging folder that nobody has touched for a day belongs to a writer that was killed."""


class StoredFile(Struct, frozen=True):
    """One Parquet file of a table."""

    path: str
    """What DuckDB opens."""
    version: int = SCHEMA

    @property
    def name(self) -> str:
        """Its place below the table's folder: the same on every machine."""
        return "/".join(self.path.split("/")[-2:])

    @property
    def days(self) -> tuple[str, str]:
        """First and last day in it (ISO); empty where it does not tell."""
        found = _NAME.search(self.path)
        if found is None or _NO_DAY in found.groups():
            return "", ""
        first, last = found.groups()
        return first, f"{last[:4]}-{last[4:6]}-{last[6:]}"


class Folder(Protocol):
    """What a history needs of the place where its files lie."""

    url: str

    def files(self, table: str) -> list[StoredFile]:
        """The files of a table, in a fixed order."""
        ...

    def staging(self) -> contextlib.AbstractContextManager[Path]:
        """A local folder for files that are not done yet."""
        ...

    def publish(self, staged: Path, table: str, name: str) -> StoredFile:
        """Put a file in its place, whole and on the disk when this returns."""
        ...

    def remove(self, files: Iterable[StoredFile]) -> None:
        """Take files away, for instance after their rows were written into another one."""
        ...

    def sizes(self, files: Iterable[StoredFile]) -> int | None:
        """Bytes of files, None where nobody counts them."""
        ...


def file_name(first: date | None, last: date | None, digest: str) -> str:
    """The name of a file below its table's folder."""
    day = first.isoformat() if first else _NO_DAY
    until = last.strftime("%Y%m%d") if last else _NO_DAY
    return f"day={day}/{until}-{digest}.parquet"


def metadata(table: str) -> str:
    """SQL of what a file says of itself, for whoever finds it somewhere else."""
    facts = {"sooner_schema": str(SCHEMA), "sooner_table": table, "written_by": f"sooner {__version__}"}
    return "{" + ", ".join(f"{name}: {quoted(value)}" for name, value in facts.items()) + "}"


def open_folder(root: str | os.PathLike[str], database: Database) -> Folder:
    """The folder of a path or a URL.

    Raises:
        HistoryError: It cannot be used as one.
    """
    text = os.fspath(root)
    if not text:  # a variable that is not set; as a path it would be the current folder
        raise HistoryError("the history has no name: pass the folder or the URL of one")
    parts = urlsplit(text)
    if parts.scheme == "file":
        return LocalFolder(Path(unquote(parts.path)))
    if "://" in text:
        database.extension("httpfs")
        return RemoteFolder(text.rstrip("/"), database)
    return LocalFolder(Path(text))


class LocalFolder:
    """A history on a disk."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.url = str(self.root)
        if self.root.exists() and not self.root.is_dir():
            raise HistoryError(f"{root} is no folder: pass the folder of a history, or one that does not exist yet")
        if printable(self.url) != self.url:
            place = printable(self.url)
            raise HistoryError(f"{place} is not UTF-8, and DuckDB opens no such path: keep the history elsewhere")

    def files(self, table: str) -> list[StoredFile]:
        """The files of a table in all known versions, in the order of their days.

        Listed until twice the same is found: a listing of a folder that is compacted meanwhile may miss the new file,
        which had not been there yet, and the old ones, which were not there any more.
        """
        found = self._list(table)
        while (again := self._list(table)) != found:
            found = again
        return found

    def _list(self, table: str) -> list[StoredFile]:
        found = []
        for version, folder in self._versions():
            place = folder / table
            names = [
                f"{day}/{name}"
                for day in _entries(place)
                if day.startswith("day=")
                for name in _entries(place / day)
                if name.endswith(".parquet")
            ]
            found += [StoredFile(str(place / name), version) for name in without_replaced(place, names)]
        return found

    def table_path(self, table: str, version: int = SCHEMA) -> Path:
        """The folder of a table."""
        return self.root / f"v{version}" / table

    def _versions(self) -> Iterator[tuple[int, Path]]:
        for name in _entries(self.root):
            if found := _VERSION.fullmatch(name):
                if int(found[1]) > SCHEMA:
                    raise HistoryError(f"{self.root / name} was written by a newer sooner: update this one")
                yield int(found[1]), self.root / name

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A folder on the same file system, so that a rename puts a file in its place; removed with what is in it."""
        parent = self.root / ".staging"
        folder = parent / f"{os.getpid()}-{secrets.token_hex(4)}"
        with _writing(self.root):
            self._ignore()
            folder.mkdir(parents=True)
        _remove_forgotten(parent)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _ignore(self) -> None:
        """Version control ignores a history by itself."""
        self.root.mkdir(parents=True, exist_ok=True)
        ignore = self.root / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")

    def publish(self, staged: Path, table: str, name: str) -> StoredFile:
        """Sync the file, rename it into its place, sync the folders."""
        path = self.table_path(table) / name
        with _writing(path):
            _sync(staged)
            for folder in (path.parent, *_renamed(staged, path)):
                _sync(folder)
        return StoredFile(str(path))

    def remove(self, files: Iterable[StoredFile]) -> None:
        """Unlink files; who reads them still can."""
        for file in files:
            path = Path(file.path)
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.parent.rmdir()

    def sizes(self, files: Iterable[StoredFile]) -> int:
        """Bytes of files; one that is gone has none."""
        size = 0
        for file in files:
            with contextlib.suppress(FileNotFoundError):
                size += Path(file.path).stat().st_size
        return size


class RemoteFolder:
    """A history on an object store, reached through DuckDB alone: an object appears when it has been uploaded whole."""

    def __init__(self, url: str, database: Database) -> None:
        self.url = url
        self._database = database

    def files(self, table: str) -> list[StoredFile]:
        """The files of a table; a store that holds none of them has none."""
        found = self._database.rows(sql("files", "glob", pattern=quoted(f"{self.url}/v*/{table}/day=*/*.parquet")))
        return [self._file(path) for (path,) in found]

    def _file(self, path: str) -> StoredFile:
        version = int(path.removeprefix(self.url).split("/")[1].removeprefix("v"))
        if version > SCHEMA:
            raise HistoryError(f"{path} was written by a newer sooner: update this one")
        return StoredFile(path, version)

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """A temporary folder of this machine."""
        import tempfile

        with tempfile.TemporaryDirectory(prefix="sooner-history-") as name:
            yield Path(name)

    def publish(self, staged: Path, table: str, name: str) -> StoredFile:
        """Upload the file."""
        path = f"{self.url}/v{SCHEMA}/{table}/{name}"
        places = {"source": path_literal(staged), "target": quoted(path), "metadata": metadata(table)}
        self._database.run(sql("files", "upload", **places))
        return StoredFile(path)

    def remove(self, _files: Iterable[StoredFile]) -> None:
        """DuckDB cannot delete objects."""
        raise HistoryError(f"{self.url}: files of an object store cannot be removed from here: compact a local copy")

    def sizes(self, _files: Iterable[StoredFile]) -> None:
        """Nobody counts them."""


def _entries(folder: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name[0] not in "._")  # noqa: PTH208 - names are enough
    except (FileNotFoundError, NotADirectoryError):
        return []


def _renamed(staged: Path, path: Path) -> list[Path]:
    """Rename a file into a folder that may not be there yet; the parents whose entries have changed."""
    for _ in range(_TRIES):
        made = _make_folders(path.parent)
        with contextlib.suppress(FileNotFoundError):  # somebody who compacts has just removed the empty folder
            staged.rename(path)
            return made
    staged.rename(path)
    return []


def _make_folders(folder: Path) -> list[Path]:
    """Make folders that are missing; the parents whose entries have changed."""
    if folder.is_dir():
        return []
    parents = [*_make_folders(folder.parent), folder.parent]
    folder.mkdir(parents=True, exist_ok=True)
    return parents


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _remove_forgotten(staging: Path) -> None:
    for name in _entries(staging):
        with contextlib.suppress(OSError):
            touched = max(path.stat().st_mtime for path in (staging / name, *(staging / name).iterdir()))
            if time.time() - touched > _FORGOTTEN_S:
                shutil.rmtree(staging / name, ignore_errors=True)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotWritable(f"cannot write {path}: {error.strerror}; pass another --history DIR") from error
