"""Which file makes a name that a module takes from others by `from x import *`, read from their texts.

A package whose modules are many (`if TYPE_CHECKING: from .models import *`) is never executed for one of its names.
"""

import re
from typing import TYPE_CHECKING, Final

from sooner.plan.needs.evaluator.lazy_names import bound_names

if TYPE_CHECKING:
    from sooner.plan.needs.sources import Sources

_STAR: Final = re.compile(r"^[ \t]*from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+\*", re.MULTILINE)
_MADE: Final = re.compile(
    r"^(?:    )?(?:class|(?:async )?def)[ \t]+(\w+)|^(\w+)(?:[ \t]*:[^=\n]+)?[ \t]*=(?!=)", re.MULTILINE
)
"""What stands at the left, or in an `if` or `try` there: a method has such a name rarely, and a class comes first."""


class StarOrigins:
    """The names behind each module's stars; a module is read once."""

    def __init__(self, sources: "Sources") -> None:
        self._sources = sources
        self._known: dict[str, dict[str, str]] = {}

    def of(self, path: str, name: str) -> str | None:
        """The file that makes a name which a module takes by a star; None where no text has it."""
        if path not in self._known:
            self._known[path] = self._names(path)
        return self._known[path].get(name)

    def _names(self, start: str) -> dict[str, str]:
        made: dict[str, str] = {}
        seen, waiting = {start}, self._behind(start)[::-1]
        while waiting:
            path = waiting.pop()
            if path in seen:
                continue
            seen.add(path)
            for name in self._made(path):
                made.setdefault(name, path)
            waiting += self._behind(path)[::-1]
        return made

    def _behind(self, path: str) -> list[str]:
        """The files that a module's stars mean, in order."""
        found: list[str | None] = []
        for dots, name in _STAR.findall(self._sources.peek(path)):
            found.append(self._sources.relative(path, len(dots), name) if dots else self._sources.module(name, path))
        return [each for each in found if each is not None]

    def _made(self, path: str) -> list[str]:
        """Names that a file makes: of a package, what it imports by their names, too."""
        if path.endswith("__init__.py"):
            tree = self._sources.tree(path)
            names = [name for each in tree.body for name in bound_names(each)] if tree else []
        else:
            names = [first or second for first, second in _MADE.findall(self._sources.peek(path))]
        return [each for each in names if not each.startswith(("_", "*"))]
