"""What ways that exclude each other write: attributes, items of tables, and names of the scopes around them."""

from collections import OrderedDict
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from sooner.plan.needs.evaluator.values import MISSING


class End(Enum):
    """How a way ends."""

    FALLS = auto()
    """What stands behind the branches follows."""
    LEAVES = auto()
    """It leaves the function or the loop."""
    STOPS = auto()
    """It skips or fails."""


class Slots:
    """What is written on several ways; each of them finds it as it was before all."""

    def __init__(self) -> None:
        self._before: dict[tuple[int, Any], tuple[dict[Any, Any], Any, Any, bool]] = {}
        self._ends: list[tuple[End, dict[tuple[int, Any], Any]]] = []

    def note(self, names: dict[Any, Any], name: Any, *, is_name: bool = False) -> None:
        """Something is written next: an attribute, an item, or a name of a scope around."""
        if (id(names), name) not in self._before:
            self._before[id(names), name] = (names, name, dict.get(names, name, MISSING), is_name)

    def end(self, how: End) -> None:
        """A way has been gone."""
        self._ends.append(
            (how, {key: dict.get(names, name, MISSING) for key, (names, name, *_) in self._before.items()})
        )
        for names, name, value, _ in self._before.values():
            put_back(names, name, value)

    def conclude(self, merged: Callable[[list[Any], bool], Any], around: "Slots | None") -> None:
        """Write what is so after all of them: after those that go on, else after those that leave.

        Args:
            merged: What is known of different values, of an attribute or item or (True) of a name.
            around: What is written on a way of which these ways are a part.
        """
        ends = [found for how, found in self._ends if how is End.FALLS]
        ends = ends or [found for how, found in self._ends if how is End.LEAVES]
        for key, (names, name, before, is_name) in self._before.items():
            values = [found.get(key, before) for found in ends]
            written = [each for each in values if each is not before] or [before]
            if around is not None:
                around.note(names, name, is_name=is_name)
            put_back(names, name, written[0] if len(values) == 1 else merged([*values, written[-1]], is_name))


def put_back(names: dict[Any, Any], name: Any, value: Any) -> None:
    """Bind a name or an item as it was; names that are made on demand are asked for none."""
    kind = OrderedDict if isinstance(names, OrderedDict) else dict  # what keeps the order itself must hear of it
    if value is MISSING:
        kind.pop(names, name, None)
    else:
        kind.__setitem__(names, name, value)
