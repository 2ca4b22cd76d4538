"""The static layer over the files that were asked for; what was found is kept for the next question."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sooner.cli.needs_project import Project
from sooner.cli.progress import progress
from sooner.cli.remembering import STATE
from sooner.door.needs_asking import evaluated
from sooner.door.needs_kept import Answer, Kept
from sooner.plan.needs import TestNeeds
from sooner.run.folder import keep_out_of_version_control

_PLACE: Final = STATE / "needs.msgpack"


class _Found(Struct, frozen=True, array_like=True):
    """The needs of a file's tests; most cases of a test differ in nothing but their names."""

    kinds: list[TestNeeds]
    """Each without a node id."""
    tests: list[tuple[str, int]]
    """A node id, and which of the kinds it has."""


def static_needs(project: Project, rules: Sequence[Path], jobs: int = 0, *, is_kept: bool = True) -> list[TestNeeds]:
    """The needs of all tests of a project, in the order of its files.

    A file's answer is kept below the project's root, and holds until something that it follows from changes; where
    that cannot be written, nothing is kept.

    Args:
        project: What was asked for.
        rules: Rule tables, the first looked at first, before the shipped one.
        jobs: Processes; 0 for one a CPU.
        is_kept: Use what is kept, and keep what is found.

    Raises:
        SettingsError: A rule table that cannot be read or is not understood.
    """
    place = project.root / _PLACE if is_kept else None
    kept = Kept[_Found](project.root, place, _Found, key=repr(project.names), rules=rules)
    found = {path: kept.rows(path) for path in project.tests}
    lost = [path for path, rows in found.items() if rows is None]
    new: dict[str, Answer[_Found]] = {}
    try:
        with progress() as tell:

            def take(path: str, answer: Answer[_Found]) -> None:
                new[path] = answer
                tell("test files", len(new), len(lost))

            if lost or not found:  # without a file the rules are checked all the same
                evaluated(project.root, lost, _found, names=project.names, rules=rules, jobs=jobs, done=take)
    finally:  # what was found until somebody had enough need not be found again
        if place is not None and new:
            with suppress(OSError):
                keep_out_of_version_control(place.parent)
            kept.add(new)
            kept.save()
    found |= {path: each.rows for path, each in new.items()}
    return [each for rows in found.values() if rows is not None for each in _needs(rows)]


def _found(needs: Iterable[TestNeeds]) -> _Found:
    kinds: dict[bytes, int] = {}
    made = _Found(kinds=[], tests=[])
    for each in needs:
        kind = replace(each, nodeid="")
        number = kinds.setdefault(msgspec.msgpack.encode(kind), len(kinds))
        if number == len(made.kinds):
            made.kinds.append(kind)
        made.tests.append((each.nodeid, number))
    return made


def _needs(found: _Found) -> Iterable[TestNeeds]:
    return (replace(found.kinds[number], nodeid=nodeid) for nodeid, number in found.tests)
