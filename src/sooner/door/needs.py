"""The device needs of collected tests, for pytest's door: asked of `sooner.plan.needs` once, then kept on disk.

    answers = of_tests(rootdir, ["tests/test_model.py"], cache=folder / "needs.msgpack")
    answers.of(item.nodeid)  # Need(min=2, gpu_min=2, ...) or None

A kept answer holds as long as the content of every file that it follows from is the same, no file has appeared or gone
whose name was looked for, and the evaluator and its rules are the same. Where all answers are kept, nothing of
`sooner.plan` is imported.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from sooner.door.needs_kept import Answer, Kept
from sooner.model.text import test_of

if TYPE_CHECKING:
    from sooner.plan.needs import TestNeeds

Row = tuple[str, int | str | None, int | str | None, int | str | None, int | str | None, bool, str, str]
"""A node id and the fields of `Need`: what is kept of a test."""
Count = int | str | None
"""A number, None, or `unknown`."""
_SIZES: Final = (0, 1, 2, 3, 4, 8)


class Need(Struct, frozen=True, array_like=True):
    """What is said of a test: numbers of visible devices; the meaning of each stands in docs/reference/needs.md."""

    min: Count
    """Fewest at which it runs; 0 for a test of the host; None if never."""
    gpu_min: Count
    """Fewest at which it runs on devices; None if it never does."""
    full: Count
    """Fewest at which no coverage is lost."""
    max: Count
    """Most at which it runs; None if there is no limit."""
    adaptive: bool
    """Whether ranks or devices follow the number of visible devices."""
    confidence: str
    """`high`, `medium`, `low`."""
    profile: str
    """A letter for 0, 1, 2, 3, 4, 8 devices: `r`un, `s`kip, `f`ail, `a`bsent, `u`nknown."""

    def at(self, devices: int) -> str:
        """The letter at a number of devices; between the sizes of the profile the next smaller one counts."""
        return self.profile[max(i for i, size in enumerate(_SIZES) if size <= max(0, devices))]


class Needs:
    """Needs by node id.

    Args:
        by_nodeid: Of every test that the source shows.
        missing: Files for which there was no time; the next call goes on with them.
        evaluated: Files that were evaluated now, and not taken from the cache.
    """

    def __init__(self, by_nodeid: Mapping[str, Need], *, missing: Sequence[str] = (), evaluated: int = 0) -> None:
        self.by_nodeid = by_nodeid
        self.missing = tuple(missing)
        self.evaluated = evaluated
        self._functions: dict[str, Need | None] | None = None

    def of(self, nodeid: str) -> Need | None:
        """The need of a test. A case that is not known by its id has that of its function, if all its cases agree."""
        found = self.by_nodeid.get(nodeid)
        if found is not None or "[" not in nodeid:
            return found
        if self._functions is None:
            self._functions = self._agreed()
        return self._functions.get(test_of(nodeid))

    def _agreed(self) -> dict[str, Need | None]:
        made: dict[str, Need | None] = {}
        for nodeid, need in self.by_nodeid.items():
            name = test_of(nodeid)
            made[name] = need if made.get(name, need) == need else None
        return made


def of_tests(
    root: Path,
    paths: Iterable[str],
    *,
    cache: Path | None = None,
    classes: Sequence[str] = ("Test",),
    functions: Sequence[str] = ("test",),
    options: Sequence[str] = (),
    fixtures: Sequence[str] = (),
    rules: Sequence[Path] = (),
    seconds: float = 60.0,
) -> Needs:
    """The needs of all tests of some files; a file that cannot be read or is not Python has none.

    Args:
        root: pytest's rootdir: node ids are relative to it.
        paths: Test files, relative to the root, with `/`.
        cache: The file that answers are kept in; it is replaced by rename, and one that is damaged counts as empty.
        classes: pytest's `python_classes`.
        functions: pytest's `python_functions`.
        options: pytest's `addopts`.
        fixtures: pytest's `usefixtures`.
        rules: Users' rule tables (`needs-rules`), looked at first.
        seconds: Files that are not evaluated after so many seconds are left out (`Needs.missing`).

    Raises:
        SettingsError: A rule table that is not understood.
    """
    asked = list(dict.fromkeys(paths))
    settings = {"classes": classes, "functions": functions, "options": options, "fixtures": fixtures}
    key = repr({name: list(each) for name, each in settings.items()})
    kept = Kept[list[Row]](root, cache, list[Row], key=key, rules=rules)
    found = {path: kept.rows(path) for path in asked}
    lost = [path for path, rows in found.items() if rows is None]
    missing: list[str] = []
    count = 0
    if lost:
        new, count = _asked(root, lost, settings=settings, rules=rules, seconds=seconds)
        missing = [path for path in lost if path not in new]
        kept.add(new)
        kept.save()
        found |= {path: each.rows for path, each in new.items()}
    by_nodeid = {row[0]: Need(*row[1:]) for rows in found.values() if rows is not None for row in rows}
    return Needs(by_nodeid, missing=missing, evaluated=count)


def _asked(
    root: Path,
    paths: Sequence[str],
    *,
    settings: Mapping[str, Sequence[str]],
    rules: Sequence[Path],
    seconds: float,
) -> tuple[dict[str, Answer[list[Row]]], int]:
    """Answers for files of which none is kept here, and how many were evaluated for them.

    What `sooner needs` has found counts; of the others as many are evaluated as there is time for.
    """
    from sooner.door.needs_asking import evaluated
    from sooner.door.needs_shared import kept_answers
    from sooner.plan.needs import PytestSettings
    from sooner.warm.forking import fork_refusal

    told = PytestSettings(**{name: tuple(each) for name, each in settings.items()})
    shared = kept_answers(root, told, rules)
    known = {path: answer for path in paths if (answer := shared.answer(path)) is not None}
    found = {path: Answer(_rows(each.rows), each.files, each.names, each.sums) for path, each in known.items()}
    lost = [path for path in paths if path not in found]
    jobs = 1 if fork_refusal() else 0
    new = evaluated(root, lost, _rows, settings=told, rules=rules, seconds=seconds, jobs=jobs)
    return found | new, len(new)


def _rows(found: "Iterable[TestNeeds]") -> list[Row]:
    return [_row(each) for each in found]


def _row(needs: "TestNeeds") -> Row:
    letters = "".join(each.value[0] for each in needs.profile.values())
    numbers = (needs.min, needs.gpu_min, needs.full, needs.max)
    return (needs.nodeid, *numbers, needs.adaptive, needs.confidence.value, letters)
