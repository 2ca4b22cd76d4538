"""Lists that one of several ways makes longer: what it adds may not be in them."""

from typing import Any, TypeVar

from sooner.plan.needs.evaluator.values import Env, hard

T = TypeVar("T", bound=list[Any])


class Added:
    """Items of lists that may not be there."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[Any, set[int]]] = {}

    def note(self, before: dict[int, tuple[list[Any], int]]) -> None:
        """A way has been gone, before which lists were so long (`lists_of`)."""
        for key, (value, length) in before.items():
            if len(value) > length:
                self._places.setdefault(key, (value, set()))[1].update(range(length, len(value)))

    def mark(self, value: Any, places: set[int]) -> None:
        """Note where in a list such items stand."""
        if places:
            self._places.setdefault(id(value), (value, set()))[1].update(places)

    def places(self, several: Any) -> set[int]:
        """Where in a list such items stand."""
        return self._places.get(id(hard(several)), (None, set[int]()))[1]

    def as_in(self, value: list[Any], copied: T) -> T:
        """A copy of a list; the same items may not be there."""
        if id(value) in self._places:
            self._places[id(copied)] = (copied, self._places[id(value)][1])
        return copied


def lists_of(env: Env) -> dict[int, tuple[list[Any], int]]:
    """How long the lists are that names of a scope and of the functions around it mean."""
    found: dict[int, tuple[list[Any], int]] = {}
    scope: Env | None = env
    while scope is not None and (scope is env or scope.parent is not None):
        lists = [each for each in dict.values(scope.names) if type(each) is list]
        lists += [scope.frame.yielded] if scope.frame is not None else []
        found |= {id(each): (each, len(each)) for each in lists}
        scope = scope.parent
    return found
