"""The file that needs are kept in from one start to the next, and when what is kept still holds."""

import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec
from msgspec import Struct

from sooner.door.needs_tree import Contents, digest, folders, surroundings

Rows = TypeVar("Rows")
"""What is kept of a test file, in whatever form."""
_EVALUATOR: Final = Path(__file__).parents[1] / "plan" / "needs"
_SETTLED_S: Final = 2
"""A folder that was changed less than so long before it was read may change again within the clock's resolution."""


class Answer(Struct, Generic[Rows], frozen=True):
    """What was found for a test file, and what it follows from."""

    rows: Rows
    files: list[str]
    """Files whose content counts."""
    names: list[str]
    """Last parts of module names that were looked for: files of such a name must not appear or go."""
    sums: str
    """Digest of the files' contents, as they were when they were read."""


class _Entry(Struct, Generic[Rows], array_like=True):
    rows: Rows
    files: list[int]
    """Positions in the document's `files`."""
    names: list[int]
    sums: str
    found: str
    """Digest of the paths of all files of those names."""


class _Document(Struct, Generic[Rows]):
    key: str = ""
    folders: dict[str, int] = {}
    """Time of change of every folder of the project, ns; 0 for one that is not to be trusted."""
    tree: str = ""
    """Digest of the paths of all Python files."""
    files: list[str] = []
    names: list[str] = []
    entries: dict[str, _Entry[Rows]] = {}


class Kept(Generic[Rows]):
    """Answers from the last start.

    Args:
        root: The project.
        place: The file; None keeps nothing.
        form: The type of what is kept of a test file.
        key: What else the answers follow from.
        rules: The users' rule tables.
    """

    def __init__(self, root: Path, place: Path | None, form: Any, *, key: str, rules: Sequence[Path]) -> None:
        self._root = root
        self._place = place
        self._contents = Contents(root)
        self._by_name: dict[str, list[str]] | None = None
        self._walked: dict[str, int] = {}
        evaluator = (*sorted(each for kind in ("*.py", "*.toml") for each in _EVALUATOR.rglob(kind)), *rules)
        key = digest(f"{key} {sys.version} {surroundings(root)}".encode(), *map(_content, evaluator))
        read: _Document[Rows] = _read(place, form)
        self._document = read if read.key == key else _Document(key=key)
        self._same_tree = bool(self._document.entries) and self._is_same_tree()

    def rows(self, path: str) -> Rows | None:
        """What is kept of a file; None where nothing is, or it no longer holds.

        Then the tree is looked at, as it is before somebody evaluates the file.
        """
        found = self.answer(path)
        if found is not None:
            return found.rows
        if self._place is not None:
            self._index()
        return None

    def answer(self, path: str) -> Answer[Rows] | None:
        """The same, with what it follows from, for who adds nothing."""
        entry = self._document.entries.get(path)
        if entry is None:
            return None
        files, names = ([known[i] for i in chosen] for known, chosen in self._behind(entry))
        if self._contents.sum(files) != entry.sums or (not self._same_tree and self._found(names) != entry.found):
            return None
        return Answer(entry.rows, files, names, entry.sums)

    def _behind(self, entry: _Entry[Rows]) -> Iterable[tuple[list[str], list[int]]]:
        return (self._document.files, entry.files), (self._document.names, entry.names)

    def add(self, answers: Mapping[str, Answer[Rows]]) -> None:
        """Take in new answers."""
        old = self._document
        files = {path: i for i, path in enumerate(old.files)}
        names = {name: i for i, name in enumerate(old.names)}
        for path, answer in answers.items():
            old.entries[path] = _Entry(
                rows=answer.rows,
                files=[files.setdefault(each, len(files)) for each in answer.files],
                names=[names.setdefault(each, len(names)) for each in answer.names],
                sums=answer.sums,
                found=self._found(answer.names),
            )
        old.files, old.names = list(files), list(names)

    def save(self) -> None:
        """Write everything; a place that cannot be written is left alone."""
        if self._place is None:
            return
        self._forget()
        self._document.folders, self._document.tree = self._walked, self._tree()
        temporary = self._place.with_name(f"{self._place.name}.{os.getpid()}.tmp")
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(msgspec.msgpack.encode(self._document))
            temporary.replace(self._place)
        except (OSError, UnicodeEncodeError):  # names of files need not be text
            with suppress(OSError):
                temporary.unlink(missing_ok=True)

    def _forget(self) -> None:
        """Leave out files that are gone, answers that another tree makes void, and what only they followed from."""
        document = self._document
        is_same = self._tree() == document.tree
        document.entries = {
            path: each
            for path, each in document.entries.items()
            if (self._root / path).is_file()
            and (is_same or self._found(document.names[i] for i in each.names) == each.found)
        }
        files, names = dict[str, int](), dict[str, int]()
        for each in document.entries.values():
            each.files = [files.setdefault(document.files[i], len(files)) for i in each.files]
            each.names = [names.setdefault(document.names[i], len(names)) for i in each.names]
        document.files, document.names = list(files), list(names)

    def _is_same_tree(self) -> bool:
        """Whether the project has the same Python files as when the answers were written: folders tell most cheaply."""
        known = self._document.folders
        if known and all(changed and _changed(self._root, folder) == changed for folder, changed in known.items()):
            return True
        self._index()
        return self._tree() == self._document.tree

    def _index(self) -> dict[str, list[str]]:
        if self._by_name is None:
            self._by_name = {}
            now = time.time_ns()
            for where, names in folders(self._root):
                folder = os.path.relpath(where, self._root).replace(os.sep, "/")
                changed = _changed(self._root, folder)
                self._walked[folder] = changed if changed < now - _SETTLED_S * 10**9 else 0
                for name in names:
                    path = name if folder == "." else f"{folder}/{name}"
                    self._by_name.setdefault(_tail(path), []).append(path)
        return self._by_name

    def _tree(self) -> str:
        return digest(*(os.fsencode(path) for _, paths in sorted(self._index().items()) for path in paths))

    def _found(self, names: Iterable[str]) -> str:
        index = self._index()
        return digest(*(os.fsencode(path) for name in sorted(names) for path in sorted(index.get(name, ()))))


def _read(place: Path | None, form: Any) -> _Document[Any]:
    try:
        return _Document() if place is None else msgspec.msgpack.decode(place.read_bytes(), type=_Document[form])
    except (OSError, msgspec.MsgspecError, IndexError):
        return _Document()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b"?"


def _changed(root: Path, folder: str) -> int:
    try:
        return (root / folder).stat().st_mtime_ns
    except OSError:
        return 0


def _tail(path: str) -> str:
    """As `sooner.plan.needs.sources.tail_of`, which is not imported for this."""
    stem = path.removesuffix(".py").removesuffix("/__init__")
    return stem.rpartition("/")[2].rpartition(".")[2]
