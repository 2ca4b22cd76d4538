"""What sets of things that are no plain values have in common: classes, functions, names of another module."""

import ast
from collections.abc import Callable
from typing import Any, Final, Protocol

from sooner.plan.needs.evaluator.values import UNKNOWN, Inst, hard, is_plain


class Comparing(Protocol):
    """Who knows what a container holds."""

    def contains(self, container: Any, item: Any) -> bool | None:
        """Whether a container holds an item; None where that is not known."""

    def equal(self, left: Any, right: Any) -> bool | None:
        """Whether two values are equal; None where that is not known."""

    def items_of(self, value: Any) -> list[Any] | None:
        """What there is to go through; None where that is not known."""


OPERATIONS: Final[dict[type, str]] = {ast.BitAnd: "intersection", ast.Sub: "difference", ast.BitOr: "union"}
"""Operators of sets, by the names of the methods that do the same."""
METHODS: Final = frozenset(OPERATIONS.values())


def are_of_things(left: Any, right: Any) -> bool:
    """Whether two containers are sets (a display of things is kept as a list) and hold something that is not plain."""
    is_set, other = isinstance(left, set | frozenset), isinstance(right, set | frozenset | list | tuple)
    return is_set and other and not (is_plain(left) and is_plain(right))


def combined(machine: Comparing, method: str, left: Any, right: Any) -> Any:
    """What two sets make together; unknown where it is not known of each element whether the other has it, too."""
    first, second = _known(machine, left), _known(machine, right)
    if first is None or second is None:
        return UNKNOWN
    chosen: dict[str, Callable[[], list[Any]]] = {
        "intersection": lambda: [each for each in first if machine.contains(second, each)],
        "difference": lambda: [each for each in first if not machine.contains(second, each)],
        "union": lambda: [*first, *(each for each in second if not machine.contains(first, each))],
    }
    if any(machine.contains(second, each) is None for each in first):
        return UNKNOWN
    try:
        return set(chosen[method]())
    except TypeError:  # something that no set can hold
        return UNKNOWN


def distinct(machine: Comparing, values: list[Any]) -> list[Any]:
    """Each of some values once, where objects are known to be equal."""
    found: list[Any] = []
    for each in values:
        if not (isinstance(each, Inst) and any(other is each or machine.equal(other, each) for other in found)):
            found.append(each)
    return found


def equal_key(machine: Comparing, values: dict[Any, Any], key: Inst) -> Any:
    """The key of an entry that equals an object; None where there is none."""
    return next((each for each in values if isinstance(each, Inst) and machine.equal(each, key)), None)


def _known(machine: Comparing, container: Any) -> list[Any] | None:
    items = machine.items_of(container)
    return None if items is None else [hard(each) for each in items]
