"""The static layer over many files: in several processes, and whole without them."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Final

from sooner.cli.needs_project import Project, sources_of
from sooner.model.errors import SettingsError
from sooner.plan.needs import Inference, Rules, TestNeeds, load_rules

_FEW_FILES: Final = 4


def shipped_rules() -> str:
    """The text of the rule table that comes with sooner."""
    return (resources.files("sooner.plan.needs") / "rules.toml").read_text(encoding="utf-8")


def rule_tables(paths: Sequence[Path]) -> list[tuple[str, str]]:
    """The users' tables, then the shipped one.

    Raises:
        SettingsError: A file that cannot be read.
    """
    tables: list[tuple[str, str]] = []
    for path in paths:
        try:
            tables.append((str(path), path.read_text(encoding="utf-8")))
        except OSError as error:
            raise SettingsError(f"the rules {path} cannot be read: {error.strerror}") from None
    return [*tables, ("rules.toml", shipped_rules())]


def static_needs(project: Project, tables: Sequence[tuple[str, str]], jobs: int = 0) -> list[TestNeeds]:
    """The needs of all tests of a project, in the order of its files.

    Args:
        project: What was asked for.
        tables: Rules, the first looked at first.
        jobs: Processes; 0 for one a CPU.

    Raises:
        SettingsError: A rule that is not understood.
    """
    rules = load_rules(tables)
    count = min(jobs or len(os.sched_getaffinity(0)), len(project.tests))
    if count < 2 or len(project.tests) < _FEW_FILES:  # noqa: PLR2004 - one process needs no others
        return list(Inference(sources_of(project.root), rules, project.names).of_files(project.tests))
    return _in_processes(project, rules, count)


_shared: dict[str, Inference] = {}


def _in_processes(project: Project, rules: Rules, count: int) -> list[TestNeeds]:
    """Files are dealt out one by one, the largest first; every process keeps the modules that it evaluated."""
    import multiprocessing

    _shared["now"] = Inference(sources_of(project.root), rules, project.names)
    order = sorted(range(len(project.tests)), key=lambda i: -_size(project.root / project.tests[i]))
    try:
        with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork")) as pool:
            found = dict(zip(order, pool.map(_of_file, [project.tests[i] for i in order]), strict=True))
    finally:
        _shared.clear()
    return [each for i in range(len(project.tests)) for each in found[i]]


def _of_file(path: str) -> list[TestNeeds]:
    return _shared["now"].of_file(path)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
