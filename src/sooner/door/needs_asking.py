"""Evaluates the needs of test files on disk, in several processes where there are many files."""

import math
import re
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import Final, TypeVar

from sooner.door.needs_kept import Answer, Rows
from sooner.door.needs_tree import Contents, sources_of
from sooner.model.errors import SettingsError
from sooner.plan.needs import Inference, OutOfTime, PytestSettings, Rules, TestNeeds, load_rules
from sooner.plan.needs.rule_words import known_words
from sooner.run.in_processes import in_processes

T = TypeVar("T")
_FEW_BYTES: Final = 60_000
"""Below so many bytes of tests (about a second of work) one process is quicker than starting others."""
_FROM_TESTS: Final = re.compile(r"^from ([\w.]*?(?:\b|_)tests?(?:_\w*)?) import", re.MULTILINE)
"""Modules of tests by their names: a file that takes classes of tests from there is work as if it held them."""


def shipped_rules() -> str:
    """The text of the rule table that comes with sooner."""
    return (resources.files("sooner.plan.needs") / "rules.toml").read_text(encoding="utf-8")


def rules_with(paths: Sequence[Path]) -> Rules:
    """The users' rules, then the shipped ones.

    Raises:
        SettingsError: A file that cannot be read, or is not understood.
    """
    tables: list[tuple[str, str]] = []
    for path in paths:
        try:
            tables.append((str(path), path.read_text(encoding="utf-8-sig")))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SettingsError(f"the rules {path} cannot be read: {why}") from None
    load_rules(tables).check(known_words())
    return load_rules([*tables, ("rules.toml", shipped_rules())])


def evaluated(
    root: Path,
    paths: Sequence[str],
    rows: Callable[[Sequence[TestNeeds]], Rows],
    *,
    settings: PytestSettings,
    rules: Sequence[Path],
    seconds: float = math.inf,
    jobs: int = 0,
    done: Callable[[str, Answer[Rows]], object] = lambda _path, _answer: None,
) -> dict[str, Answer[Rows]]:
    """What is found for each file that there was time for.

    Args:
        root: The project.
        paths: Test files, relative to it.
        rows: From the needs of a file's tests to what is kept of them.
        settings: What pytest is configured to.
        rules: Users' rule tables, looked at first.
        seconds: What is not evaluated after so many is left out; with a limit the smallest files come first.
        jobs: Processes; 0 for one a CPU.
        done: Called with each file and its answer as soon as there is one.

    Raises:
        SettingsError: A rule table that is not understood.
    """
    end = time.monotonic() + seconds
    contents = Contents(root)
    sources, tables = sources_of(root, contents), rules_with(rules)
    inference = Inference(sources, tables, settings, is_over=lambda: time.monotonic() > end)

    def answer(path: str) -> Answer[Rows] | None:
        try:
            found = rows(inference.of_file(path))
        except OutOfTime:
            return None
        files, sought = sources.behind(path)
        return Answer(found, sorted(files), sorted(sought), contents.sum(files))

    found: dict[str, Answer[Rows]] = {}

    def take(number: int, each: Answer[Rows] | None) -> None:
        if each is not None:
            found[paths[number]] = each
            done(paths[number], each)

    of_each(answer, root, paths, jobs, take, smallest_first=seconds < math.inf)
    return found


def of_each(
    function: Callable[[str], T],
    root: Path,
    paths: Sequence[str],
    jobs: int,
    done: Callable[[int, T], object],
    *,
    smallest_first: bool,
) -> None:
    """A function of each test file, in processes where that is quicker.

    Files are dealt out one by one, the largest first if all are to be done, with the modules of tests that they take
    from; processes keep the modules that they evaluated.

    Args:
        function: Gets a path relative to the root.
        root: The project.
        paths: The files.
        jobs: Processes; 0 for one a CPU.
        done: Called with the place of a file and its result, in whatever order they come.
        smallest_first: Begin with what takes little, because there is no time for all.
    """
    sizes = [bytes_of_work(root, path) for path in paths]
    order = sorted(range(len(paths)), key=lambda i: sizes[i] if smallest_first else -sizes[i])
    if sum(sizes) < _FEW_BYTES and not jobs:
        jobs = 1
    ordered = [paths[i] for i in order]
    in_processes(function, ordered, most=jobs, begin=_collect_rarely, done=lambda number, one: done(order[number], one))


def _collect_rarely() -> None:
    """Syntax trees are millions of objects that live to the end: looking through them for garbage costs a tenth."""
    import gc

    gc.set_threshold(200_000, 20, 100)


def bytes_of_work(root: Path, path: str) -> int:
    """How much there is to evaluate in a test file: its size, with the modules of tests that it takes from (bytes)."""
    try:
        text = (root / path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    modules = [root / f"{name.replace('.', '/')}.py" for name in _FROM_TESTS.findall(text)]
    return len(text) + sum(each.stat().st_size for each in modules if each.is_file())
