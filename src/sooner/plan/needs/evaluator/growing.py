"""What one of several ways makes longer: what it adds may not be there."""

from collections.abc import Sequence
from typing import Any, TypeVar

from sooner.plan.needs.evaluator.values import Env, hard

T = TypeVar("T", bound=list[Any])
Container = list[Any] | set[Any] | dict[Any, Any]


class Added:
    """Items of lists that may not be there, and of sets and mappings that were empty without them."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[Any, set[int]]] = {}
        self._keys: dict[int, tuple[Any, set[Any]]] = {}
        self._filled: set[int] = set()

    def before(self, env: Env) -> dict[int, tuple[Container, int]]:
        """How long the lists are that names of a scope and of the functions around it mean, and what else is empty."""
        found: dict[int, tuple[Container, int]] = {}
        scope: Env | None = env
        while scope is not None and (scope is env or scope.parent is not None):
            several = [each for each in dict.values(scope.names) if self._can_be_noted(each)]
            several += [scope.frame.yielded] if scope.frame is not None else []
            found |= {id(each): (each, len(each)) for each in several}
            scope = scope.parent
        return found

    def _can_be_noted(self, value: Any) -> bool:
        return type(value) is list or (type(value) in (set, dict) and (not value or self.may_be_empty(value)))

    def note(self, before: dict[int, tuple[Container, int]]) -> set[int]:
        """A way has been gone, before which containers were so long (`before`): those that are longer now."""
        longer = {key: (value, length) for key, (value, length) in before.items() if len(value) > length}
        for key, (value, length) in longer.items():
            if isinstance(value, list):
                self._places.setdefault(key, (value, set()))[1].update(range(length, len(value)))
            else:
                self._keys.setdefault(key, (value, set()))[1].update(value)
        return set(longer)

    def conclude(self, longer: Sequence[set[int]]) -> None:
        """What all of the ways have made longer is not empty."""
        if longer:
            self._filled |= set.intersection(*longer)

    def mark(self, value: Any, places: set[int]) -> None:
        """Note where in a list such items stand."""
        if places:
            self._places.setdefault(id(value), (value, set()))[1].update(places)

    def places(self, several: Any) -> set[int]:
        """Where in a list such items stand."""
        return self._places.get(id(hard(several)), (None, set[int]()))[1]

    def may_be_empty(self, value: Any) -> bool:
        """Whether a container may have none of its items."""
        key = id(value)
        if key in self._filled or not value:
            return False
        if key in self._places:
            return self._places[key][1].issuperset(range(len(value)))
        return key in self._keys and self._keys[key][1].issuperset(value)

    def as_in(self, value: list[Any], copied: T) -> T:
        """A copy of a list; the same items may not be there."""
        if id(value) in self._places:
            self._places[id(copied)] = (copied, self._places[id(value)][1])
        return copied
