"""Files that pytest would not collect although they are named like tests: by its settings, or by a conftest.py."""

import ast
import os
import shlex
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

from sooner.plan.needs import values_of

_HIDDEN: Final = (".*",)
"""Of the folders that pytest does not enter unless told otherwise those that `python_files` has not left out."""
_CONFTEST: Final = ("collect_ignore", "collect_ignore_glob")


class Ignored:
    """What is left out of a walk; a file that is named is never asked about.

    Args:
        root: The project's root.
        options: Of its ini-file: `norecursedirs`, and `--ignore` and `--ignore-glob` in `addopts`.
    """

    def __init__(self, root: Path, options: Mapping[str, Any]) -> None:
        self._root = root
        self._folders = tuple(words_of(options.get("norecursedirs"))) or _HIDDEN
        words = words_of(options.get("addopts"))
        self._paths = frozenset(root / each for each in values_of(words, "--ignore"))
        self._globs = tuple(str(root / each) for each in values_of(words, "--ignore-glob"))
        self._told: dict[Path, tuple[frozenset[Path], tuple[str, ...]]] = {}

    def leaves_out(self, path: Path, start: Path) -> bool:
        """Whether a file is not collected where pytest is started on a folder above it."""
        between = [each for each in (path, *path.parents) if start in each.parents]
        if any(self._is_not_entered(folder) for folder in between[1:]):
            return True
        paths, globs = self._paths, self._globs
        for folder in path.parents:
            told = self._told_by(folder)
            paths, globs = paths | told[0], globs + told[1]
            if folder == self._root:
                break
        return any(each in paths or any(fnmatch(str(each), glob) for glob in globs) for each in between)

    def _is_not_entered(self, folder: Path) -> bool:
        return any(
            fnmatch(str(folder), each if each.startswith("/") else f"*/{each}")
            if os.sep in each
            else fnmatch(folder.name, each)
            for each in self._folders
        )

    def _told_by(self, folder: Path) -> tuple[frozenset[Path], tuple[str, ...]]:
        """`collect_ignore` and `collect_ignore_glob` of a folder's conftest.py, as far as they are written out."""
        if folder not in self._told:
            told = _lists(folder / "conftest.py")
            paths = frozenset(folder / each for each in told["collect_ignore"])
            self._told[folder] = paths, tuple(str(folder / each) for each in told["collect_ignore_glob"])
        return self._told[folder]


def words_of(value: Any) -> list[str]:
    """The words of a setting: a list, or a text as a shell takes it apart."""
    if isinstance(value, str):
        try:
            return shlex.split(value)
        except ValueError:
            return value.split()
    return [str(each) for each in value] if isinstance(value, list) else []


def _lists(path: Path) -> dict[str, list[str]]:
    """What a conftest.py always leaves out: lists at its top level; what hangs on a condition counts as collected."""
    found: dict[str, list[str]] = {name: [] for name in _CONFTEST}
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AugAssign(target=ast.Name(id=name), value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ) if name in found:
                kept = found[name] if isinstance(node, ast.AugAssign) else []
                found[name] = kept + _texts(value)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=how), args=[value])) if (
                name in found and how in ("append", "extend")
            ):
                found[name] += _texts(value)
    return found


def _texts(node: ast.expr) -> list[str]:
    parts = node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else [node]
    return [each.value for each in parts if isinstance(each, ast.Constant) and isinstance(each.value, str)]
