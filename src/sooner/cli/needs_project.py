"""The files of a project for `sooner needs`: where its root is, which files are tests, what it says of itself."""

import configparser
import os
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import Struct

from sooner.cli.settings import project_table
from sooner.door.needs_tree import python_files
from sooner.model.errors import SettingsError, UsageError
from sooner.plan.needs import Names

_INI_FILES: Final = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


class Project(Struct, frozen=True, kw_only=True):
    """A project as pytest would see it."""

    root: Path
    """pytest's rootdir: node ids are relative to it."""
    names: Names
    tests: tuple[str, ...]
    """The test files that were asked for, relative to the root."""
    rules: tuple[Path, ...]
    """The project's own rule tables (`needs-rules`)."""
    lists: frozenset[str] = frozenset()
    """Of the files, those whose tests are entries of a list: pytest cannot be asked about them."""


def find_project(paths: Sequence[str]) -> Project:
    """The project that some paths belong to.

    Raises:
        UsageError: A path that is not there, or none that is a test file.
    """
    given = [Path(path) for path in paths]
    for path in given:
        if not path.exists():
            raise UsageError(f"there is no {path}: name test files or folders of the project")
    places = [path.resolve() for path in given]
    root, options = _root(places)
    names = _names(options)
    tests = tuple(dict.fromkeys(each for place in places for each in _tests(root, place, names)))
    lists = frozenset(each for each in tests if not _is_usual(each, names) and _has_a_list(root / each))
    return Project(root=root, names=names, tests=tests, rules=_own_rules(root), lists=lists)


def _root(places: Sequence[Path]) -> tuple[Path, dict[str, Any]]:
    """By pytest's rule: the nearest ancestor with an ini-file of pytest's, else setup.py, else the common ancestor."""
    common = Path(os.path.commonpath(places))
    start = common if common.is_dir() else common.parent
    for folder in (start, *start.parents):
        for name in _INI_FILES:
            options = _ini_options(folder / name)
            if options is not None:
                return folder, options
    for folder in (start, *start.parents):
        if (folder / "setup.py").is_file():
            return folder, {}
    for folder in (start, *start.parents):
        if (folder / "pyproject.toml").is_file() or (folder / ".git").exists():
            return folder, {}
    shared = Path(os.path.commonpath([Path.cwd(), start]))
    return (start if shared == Path(shared.root) else shared), {}


def _ini_options(path: Path) -> dict[str, Any] | None:
    """The options of pytest's in a file; None where it has none."""
    if not path.is_file():
        return None
    if path.suffix == ".toml":
        document = _toml(path)
        options = document.get("tool", {}).get("pytest", {})
        return options.get("ini_options") if isinstance(options, dict) else None
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return {} if path.name.endswith("pytest.ini") else None
    section = "tool:pytest" if path.name == "setup.cfg" else "pytest"
    if parser.has_section(section):
        return dict(parser.items(section))
    return {} if path.name.endswith("pytest.ini") else None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _names(options: dict[str, Any]) -> Names:
    usual = Names()

    def listed(key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value = options.get(key)
        words = value.split() if isinstance(value, str) else [str(each) for each in value] if value else []
        return tuple(words) or default

    return Names(
        files=listed("python_files", usual.files),
        classes=listed("python_classes", usual.classes),
        functions=listed("python_functions", usual.functions),
    )


def _own_rules(root: Path) -> tuple[Path, ...]:
    path, tool = project_table(root)
    value = tool.get("needs-rules", [])
    listed = [value] if isinstance(value, str) else value
    if path is None or not listed:
        return ()
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise SettingsError(f"{path}: tool.sooner.needs-rules must be a path or a list of paths, not {value!r}")
    return tuple(path.parent / each for each in listed)


def _tests(root: Path, place: Path, names: Names) -> Iterator[str]:
    if place.is_file():
        yield _relative(root, place)
        return
    for path in python_files(place):
        relative = _relative(root, path)
        if _is_usual(relative, names) or ("test" in relative and _has_a_list(path)):
            yield relative


def _is_usual(relative: str, names: Names) -> bool:
    """Whether pytest would collect a file."""
    name = relative.rpartition("/")[2]
    return any(fnmatch(name, pattern) or fnmatch(relative, pattern) for pattern in names.files)


def _has_a_list(path: Path) -> bool:
    """Whether a file that pytest would not collect has tests of torchtitan's own runner."""
    try:
        return b" OverrideDefinitions(" in path.read_bytes()
    except OSError:
        return False


def _relative(root: Path, path: Path) -> str:
    return str(PurePosixPath(os.path.relpath(path, root)))
