"""The Python files of a project on disk, as `sooner.plan.needs` wants them."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sooner.plan.needs import Sources

_LEFT_OUT: Final = frozenset(
    (
        ".git", ".hg", ".venv", "venv", "node_modules", "__pycache__", ".tox", ".nox", ".eggs",
        "third_party", ".pytest_cache", ".mypy_cache", ".ruff_cache",
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


def _checkout(root: Path) -> Path | None:
    """The checkout around a folder of tests with settings of pytest's, and nothing that makes it a project itself."""
    root = root.resolve()
    if any((root / each).exists() for each in _OF_A_PROJECT) or not _holds_tests(root):
        return None
    around = next((one for one in root.parents if any((one / each).exists() for each in _OF_A_PROJECT)), None)
    return None if around == Path.home() else around  # people keep their settings under git


def _holds_tests(root: Path) -> bool:
    """Whether a folder's own name says that it holds tests; what lies in one may be a whole project for them."""
    from sooner.plan.needs.sources import is_test_code

    return is_test_code(f"{root.name}/module.py")


def _walk(root: Path, but: Path | None = None) -> Iterator[tuple[str, list[str]]]:
    for where, below, files in os.walk(root):
        below[:] = sorted(each for each in below if not _is_left_out(where, each) and Path(where, each) != but)
        # A link that leads nowhere is no file, and a pipe would be waited for.
        yield where, sorted(each for each in files if each.endswith(".py") and (Path(where) / each).is_file())


def _is_left_out(where: str, name: str) -> bool:
    """Whether a folder is an environment or an output; `dist` and `build` are source where Python lies in them."""
    if name in _OUTPUTS:
        with contextlib.suppress(OSError):
            return not any(each.suffix == ".py" for each in Path(where, name).iterdir())
    return name in _LEFT_OUT or name.endswith(".egg-info")


def python_files(root: Path) -> Iterator[Path]:
    """All Python files below a folder."""
    for where, files in _walk(root):
        yield from (Path(where) / each for each in files)


def read_source(root: Path, path: str) -> str | None:
    """A file's text; None where it cannot be read or is too large to be a test."""
    place = root / path
    try:
        return place.read_text(encoding="utf-8-sig", errors="replace") if place.stat().st_size < _MOST_BYTES else None
    except OSError:
        return None


def listed(root: Path) -> list[str]:
    """All Python files of a project, relative to its root, with `/`."""
    found: list[str] = []
    for where, files in folders(root):
        folder = os.path.relpath(where, root).replace(os.sep, "/")
        found += files if folder == "." else [f"{folder}/{each}" for each in files]
        if len(found) >= _MOST_FILES:
            return found[:_MOST_FILES]
    return found


def sources_of(root: Path) -> "Sources":
    """All Python files of a project, as sources."""
    from sooner.plan.needs import Sources

    # pytest's root is the folder of the tests itself where its settings lie there.
    place = root.resolve()
    inside = place.relative_to(_checkout(place) or place.parent).as_posix()
    return Sources(listed(root), lambda path: read_source(root, path), inside=inside)
