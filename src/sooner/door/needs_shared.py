"""What `sooner needs` has found and keeps in `.sooner/needs.msgpack`, for itself and for `pytest --gpus`."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from sooner.door.needs_kept import Kept
from sooner.door.needs_tree import digest
from sooner.plan.needs import PytestSettings, TestNeeds

STATE: Final = ".sooner"
"""Below pytest's root directory."""


class Found(Struct, frozen=True, array_like=True):
    """The needs of a file's tests; most cases of a test differ in nothing but their names."""

    kinds: list[TestNeeds]
    """Each without a node id."""
    tests: list[tuple[str, int]]
    """A node id, and which of the kinds it has."""

    @classmethod
    def of(cls, needs: Iterable[TestNeeds]) -> "Found":
        """From the needs of each test."""
        kinds: dict[bytes, int] = {}
        made = cls(kinds=[], tests=[])
        for each in needs:
            kind = replace(each, nodeid="")
            number = kinds.setdefault(msgspec.msgpack.encode(kind), len(kinds))
            if number == len(made.kinds):
                made.kinds.append(kind)
            made.tests.append((each.nodeid, number))
        return made

    def __iter__(self) -> Iterator[TestNeeds]:
        return (replace(self.kinds[number], nodeid=nodeid) for nodeid, number in self.tests)


def kept_answers(root: Path, settings: PytestSettings, rules: Sequence[Path], *, is_kept: bool = True) -> Kept[Found]:
    """The answers that are kept for a project; those by other rule tables lie in files of their own.

    Args:
        root: pytest's root directory.
        settings: What pytest is configured to.
        rules: Users' rule tables, the first looked at first.
        is_kept: Without, there are none, and nothing is written.
    """
    tables = [os.path.relpath(each, root).encode() for each in rules]
    name = f"needs-{digest(*tables)[:8]}.msgpack" if tables else "needs.msgpack"
    place = root / STATE / name if is_kept else None
    key = repr(replace(settings, files=()))  # which files hold tests is no matter to what these need
    return Kept[Found](root, place, Found, key=key, rules=rules)
