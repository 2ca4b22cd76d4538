"""The Python files of a project on disk, as `sooner.plan.needs` wants them."""

import io
import os
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sooner.plan.needs import Sources

_LEFT_OUT: Final = frozenset(
    (
        ".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".eggs",
        "third_party", ".sooner", ".pytest_cache", ".mypy_cache", ".ruff_cache",
    )
)  # fmt: skip
_OF_A_PROJECT: Final = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_OUTPUTS: Final = ("build", "dist")
_MOST_FILES: Final = 60_000
_MOST_BYTES: Final = 4_000_000


def folders(root: Path) -> Iterator[tuple[str, list[str]]]:
    """Every folder of a project, with the names of its Python files; environments and build outputs are left out.

    Where pytest's root is the folder of the tests alone, those of the checkout around it come after its own.
    """
    yield from _walk(root)
    around = _checkout(root)
    if around is not None:
        yield from _walk(around, but=root.resolve())


def surroundings(root: Path) -> tuple[bool, str]:
    """Whether the files of the checkout around a project count, and where in it, or in its folder, the project lies.

    pytest's root is the folder of the tests itself where its settings lie there.
    """
    place = root.resolve()
    around = _checkout(place)
    return around is not None, place.relative_to(around or place.parent).as_posix()


def _checkout(root: Path) -> Path | None:
    """The checkout around a folder of tests with settings of pytest's, and nothing that makes it a project itself."""
    root = root.resolve()
    if _is_a_project(root):
        return None
    around = next((one for one in root.parents if _is_a_project(one)), None)
    # Looked at last: it imports what answers that are kept do without. People keep their settings under git.
    return around if around is not None and around != Path.home() and _holds_tests(root) else None


def _is_a_project(folder: Path) -> bool:
    return any((folder / each).exists() for each in _OF_A_PROJECT)


def _holds_tests(root: Path) -> bool:
    """Whether a folder's own name says that it holds tests; what lies in one may be a whole project for them."""
    from sooner.plan.needs.sources import is_test_code

    return is_test_code(f"{root.name}/module.py")


def _walk(root: Path, but: Path | None = None) -> Iterator[tuple[str, list[str]]]:
    for where, below, files in os.walk(root):
        if where != str(root) and _is_output(where, files):
            below.clear()
        below[:] = sorted(each for each in below if not _is_left_out(each) and Path(where, each) != but)
        # A link that leads nowhere is no file, and a pipe would be waited for.
        yield where, sorted(each for each in files if each.endswith(".py") and (Path(where) / each).is_file())


def _is_output(where: str, files: Iterable[str]) -> bool:
    """Whether a folder holds what was built; `dist` and `build` are source where Python lies in them."""
    return os.path.basename(where) in _OUTPUTS and not any(each.endswith(".py") for each in files)  # noqa: PTH119


def _is_left_out(name: str) -> bool:
    """Whether a folder is an environment, or what a tool keeps for itself."""
    return name in _LEFT_OUT or name.endswith(".egg-info")


def python_files(root: Path) -> Iterator[Path]:
    """All Python files below a folder."""
    for where, files in _walk(root):
        yield from (Path(where) / each for each in files)


def read_source(root: Path, path: str) -> str | None:
    """A file's text; None where it cannot be read or is too large to be a test."""
    return Contents(root).text(path)


class Contents:
    """The files of a project, each as it was when it was first read; digests tell when one has changed."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._sums: dict[str, bytes] = {}

    def text(self, path: str) -> str | None:
        """A file's text; None where it cannot be read or is too large to be a test."""
        content = self._read(path)
        if content is None or len(content) >= _MOST_BYTES:
            return None
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="replace").read()

    def sum(self, paths: Iterable[str]) -> str:
        """A digest of several files' paths and contents."""
        return digest(*(self._sum_of(path) for path in sorted(paths)))

    def _sum_of(self, path: str) -> bytes:
        if path not in self._sums:
            self._read(path)
        return self._sums[path]

    def _read(self, path: str) -> bytes | None:
        place = self._root / path
        try:
            content = place.read_bytes() if path.endswith(".py") or self._is_data(place) else None
        except (OSError, ValueError):  # a text that a test takes for a path may hold anything
            content = None
        found = b"" if content is None else blake2b(content, digest_size=16).digest()
        self._sums.setdefault(path, os.fsencode(path) + found)
        return content

    def _is_data(self, place: Path) -> bool:
        """Whether a file that a test names is one of the project's: tests are data, and a link may lead anywhere."""
        root = self._root.resolve()
        around = next((each for each in (root, *root.parents) if (each / ".git").exists()), root)
        is_inside = place.resolve().is_relative_to(root if around == Path.home() else around)
        return is_inside and place.is_file() and place.stat().st_size < _MOST_BYTES  # a pipe would be waited for


def digest(*parts: bytes) -> str:
    """A digest of several texts; where one ends and the next begins counts."""
    made = blake2b(digest_size=16)
    for part in parts:
        made.update(len(part).to_bytes(8, "big") + part)
    return made.hexdigest()


def listed(root: Path) -> list[str]:
    """All Python files of a project, relative to its root, with `/`."""
    found: list[str] = []
    for where, files in folders(root):
        folder = os.path.relpath(where, root).replace(os.sep, "/")
        found += files if folder == "." else [f"{folder}/{each}" for each in files]
        if len(found) >= _MOST_FILES:
            return found[:_MOST_FILES]
    return found


def sources_of(root: Path, contents: Contents | None = None) -> "Sources":
    """All Python files of a project, as sources; what is read of them comes from its contents."""
    from sooner.plan.needs import Sources

    _, inside = surroundings(root)
    return Sources(listed(root), (contents or Contents(root)).text, inside=inside)
