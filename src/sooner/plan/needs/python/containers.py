"""Containers of the standard library that are more than a list or a dict: the environment, `defaultdict`, `deque`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sooner.plan.needs.evaluator.values import MISSING, Inst, Soft, Unknown, hard
from sooner.plan.needs.frameworks.outside_kinds import is_container

_KEPT: Final = "_kept"
"""What the model of a mapping keeps its items in."""
_MOST: Final = 10_000
"""Elements that a counter gives."""


class Environment(dict[str, Any]):
    """A copy of the environment: what the test has set is known, anything else not."""

    def __init__(self, known: Mapping[str, Any]) -> None:
        super().__init__({name: each for name, each in known.items() if each is not MISSING})

    def __missing__(self, key: str) -> Any:
        """A variable that the test has not set."""
        return Unknown(f"os.environ[{key}]")

    def get(self, key: str, default: Any = None) -> Any:
        """As `os.environ.get`: the default holds as long as nobody sets the variable."""
        return self[key] if key in self else Soft(default)


class Defaulting(dict[Any, Any]):
    """A dict that makes what is not there: `defaultdict`, `Counter`."""

    def __init__(self, known: Mapping[Any, Any], make: Callable[[], Any]) -> None:
        super().__init__(known)
        self._make = make

    def __missing__(self, key: Any) -> Any:
        """The value of a key that nobody has set."""
        self[key] = self._make()
        return self[key]


class Counting(Defaulting):
    """`collections.Counter`."""

    def most_common(self, most: int | None = None) -> list[tuple[Any, int]]:
        """The keys with the largest numbers."""
        return sorted(self.items(), key=lambda each: each[1], reverse=True)[:most]

    def elements(self) -> list[Any]:
        """Each key, so often.

        Raises:
            ValueError: These are too many.
        """
        if self.total() > _MOST:
            raise ValueError("too many")
        return [key for key, number in self.items() for _ in range(number)]

    def total(self) -> int:
        """All numbers together."""
        return sum(self.values())


class Deque(list[Any]):
    """A list that is longer or shorter at its left end, too."""

    def appendleft(self, value: Any) -> None:
        """As `collections.deque` has it, as the others."""
        self.insert(0, value)

    def popleft(self) -> Any:
        """The first one, or IndexError."""
        return self.pop(0)

    def extendleft(self, values: Iterable[Any]) -> None:
        """The last of them becomes the first one."""
        self[:0] = list(values)[::-1]

    def rotate(self, steps: int = 1) -> None:
        """The last ones come to the front."""
        steps %= max(len(self), 1)
        self[:] = self[len(self) - steps :] + self[: len(self) - steps]


def table_of(made: Inst, name: str) -> dict[Any, Any]:
    """Where an object has an attribute: among its own, or in what it is a table of (`self.__dict__ = self`)."""
    is_its_own = made.attrs.get("__dict__") is made and name != _KEPT
    table = made.attrs.get(_KEPT) if is_its_own else None
    return table if isinstance(table, dict) else made.attrs


def plain_mapping(value: Any) -> Any:
    """What an object keeps whose class inherits from a mapping, as a dict; anything else as it is."""
    value = hard(value)
    kept = value.attrs.get(_KEPT) if isinstance(value, Inst) and is_container(value, "dict") else None
    return kept if isinstance(kept, dict) else value
