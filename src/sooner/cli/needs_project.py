"""The files of a project for `sooner needs`: where its root is, which files are tests, what it says of itself."""

import configparser
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any, Final

from msgspec import Struct

from sooner.cli.needs_ignored import Ignored, words_of
from sooner.cli.settings import project_table
from sooner.door.needs_tree import python_files
from sooner.model.errors import SettingsError, UsageError
from sooner.plan.needs import PytestSettings

_OWN_FILES: Final = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini")
"""Pytest's own: they count even if they are empty."""
_INI_FILES: Final = (*_OWN_FILES, "pyproject.toml", "tox.ini", "setup.cfg")


class Project(Struct, frozen=True, kw_only=True):
    """A project as pytest would see it."""

    root: Path
    """pytest's rootdir: node ids are relative to it."""
    settings: PytestSettings
    tests: tuple[str, ...]
    """The test files that were asked for, relative to the root."""
    rules: tuple[Path, ...]
    """The project's own rule tables (`needs-rules`)."""
    lists: frozenset[str] = frozenset()
    """Of the files, those whose tests are entries of a list: pytest cannot be asked about them."""
    left_out: tuple[str, ...] = ()
    """Files that are named like tests, and that pytest would not collect in the folders that were asked for."""
    some: Mapping[str, Sequence[str]] = {}
    """Of files of which only some tests were asked for: their names, as they stand in node ids behind the file."""


def find_project(paths: Sequence[str]) -> Project:
    """The project that some paths belong to.

    Raises:
        UsageError: A path that is not there.
    """
    given = [_without_test(path) for path in paths or _test_paths()]
    for path, _ in given:
        if not path.exists():
            raise UsageError(f"there is no {path}: name test files or folders of the project")
    places = [path.resolve() for path, _ in given]
    root, options = _root(places)
    settings, ignored = _settings(options), Ignored(root, options)
    found: dict[str, bool] = {}
    some: dict[str, list[str]] = {}
    whole: set[str] = set()
    for place, (_, test) in zip(places, given, strict=True):
        for path in _tests(root, place, settings):
            relative = _relative(root, path)
            found[relative] = place.is_dir() and ignored.leaves_out(path, place) and found.get(relative, True)
            if test:
                some.setdefault(relative, []).append(test)
            else:
                whole.add(relative)
    tests = tuple(path for path, is_left_out in found.items() if not is_left_out)
    return Project(
        root=root,
        settings=settings,
        tests=tests,
        rules=_own_rules(root),
        lists=frozenset(each for each in tests if not _is_usual(each, settings) and _has_a_list(root / each)),
        left_out=tuple(path for path, is_left_out in found.items() if is_left_out),
        some={path: tests for path, tests in some.items() if path not in whole},
    )


def _without_test(path: str) -> tuple[Path, str]:
    """The file or folder that is named, and the test of it; empty where all are meant."""
    file, _, test = path.partition("::")
    is_test = test and not Path(path).exists() and not Path(file).is_dir()
    return (Path(file), test) if is_test else (Path(path), "")


def _test_paths() -> list[str]:
    """Where pytest looks if nothing is named: its `testpaths`, else the current folder."""
    root, options = _root([Path.cwd()])
    if root != Path.cwd():
        return ["."]
    patterns = words_of(options.get("testpaths"))
    return [path for each in patterns for path in sorted(glob(each))] or ["."]  # noqa: PTH207 - it may be absolute


def _root(places: Sequence[Path]) -> tuple[Path, dict[str, Any]]:
    """By pytest's rule: the nearest ancestor with its settings, else with a pyproject.toml, a setup.py, else ours.

    That a pyproject.toml without settings of pytest's counts is so since pytest 8.1.
    """
    common = Path(os.path.commonpath(places))
    start = common if common.is_dir() else common.parent
    for folder in (start, *start.parents):
        for name in _INI_FILES:
            options = _ini_options(folder / name)
            if options is not None:
                return folder, options
    for name in ("pyproject.toml", "setup.py", ".git"):
        for folder in (start, *start.parents):
            if (folder / name).exists():
                return folder, {}
    shared = Path(os.path.commonpath([Path.cwd(), start]))
    return (start if shared == Path(shared.root) else shared), {}


def _ini_options(path: Path) -> dict[str, Any] | None:
    """The options of pytest's in a file; None where it has none."""
    if not path.is_file():
        return None
    found = _of_toml(path) if path.suffix == ".toml" else _of_ini(path)
    return {} if found is None and path.name in _OWN_FILES else found


def _of_toml(path: Path) -> dict[str, Any] | None:
    """`[pytest]` of pytest.toml; else `[tool.pytest]`, where pytest 9 looks, or `[tool.pytest.ini_options]`."""
    document = _toml(path)
    if path.name in _OWN_FILES:
        options = document.get("pytest")
        return options if isinstance(options, dict) else None
    tool = document.get("tool")
    options = tool.get("pytest") if isinstance(tool, dict) else None
    if not isinstance(options, dict):
        return None
    old = options.get("ini_options")
    return old if isinstance(old, dict) else options or None


def _of_ini(path: Path) -> dict[str, Any] | None:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (configparser.Error, UnicodeDecodeError):
        return None
    section = "tool:pytest" if path.name == "setup.cfg" else "pytest"
    return dict(parser.items(section)) if parser.has_section(section) else None


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _settings(options: dict[str, Any]) -> PytestSettings:
    usual = PytestSettings()

    def listed(key: str, default: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(words_of(options.get(key))) or default

    return PytestSettings(
        files=listed("python_files", usual.files),
        classes=listed("python_classes", usual.classes),
        functions=listed("python_functions", usual.functions),
        options=tuple(words_of(options.get("addopts"))),
        fixtures=tuple(words_of(options.get("usefixtures"))),
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


def _tests(root: Path, place: Path, settings: PytestSettings) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for path in python_files(place):
        relative = _relative(root, path)
        if _is_usual(relative, settings) or ("test" in relative and _has_a_list(path)):
            yield path


def _is_usual(relative: str, settings: PytestSettings) -> bool:
    """Whether pytest would collect a file."""
    name = relative.rpartition("/")[2]
    return any(fnmatch(name, pattern) or fnmatch(relative, pattern) for pattern in settings.files)


def _has_a_list(path: Path) -> bool:
    """Whether a file that pytest would not collect has tests of torchtitan's own runner."""
    try:
        return b" OverrideDefinitions(" in path.read_bytes()
    except OSError:
        return False


def _relative(root: Path, path: Path) -> str:
    return str(PurePosixPath(os.path.relpath(path, root)))
