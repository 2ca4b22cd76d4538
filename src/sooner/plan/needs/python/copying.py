"""What `copy.copy` and `copy.deepcopy` make: containers are copied, the objects in them stay what they are."""

from typing import Any, Protocol

from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Ext, Kwargs
from sooner.plan.needs.python.containers import Environment


class Copying(Protocol):
    """Who knows the environment, and which lists may be longer than they look."""

    environment: dict[str, Any]
    of_any_length: dict[int, Any]


def shallow(machine: Copying, args: Args, _kwargs: Kwargs) -> Any:
    """`copy.copy(value)`."""
    value = args[0] if args else UNKNOWN
    if isinstance(value, Ext) and value.path == "os.environ":
        return Environment(machine.environment)
    if isinstance(value, list):
        return _as_long(machine, value, list(value))
    return dict(value) if isinstance(value, dict) else value


def deep(machine: Copying, args: Args, kwargs: Kwargs) -> Any:
    """`copy.deepcopy(value)`; a container that is in two places, or in itself, is copied once."""
    made: dict[int, Any] = {}

    def of(value: Any) -> Any:
        if id(value) in made:
            return made[id(value)]
        if type(value) is list:
            made[id(value)] = items = _as_long(machine, value, [])
            items.extend(map(of, value))
            return items
        if type(value) is dict:
            named: dict[Any, Any] = {}
            made[id(value)] = named
            named.update((key, of(each)) for key, each in value.items())
            return named
        return tuple(map(of, value)) if type(value) is tuple else value

    whole = args[0] if args else UNKNOWN
    return of(whole) if type(whole) in (list, dict, tuple) else shallow(machine, args, kwargs)


def _as_long(machine: Copying, value: list[Any], copied: list[Any]) -> list[Any]:
    """A copy is of no surer length than what it is a copy of."""
    if id(value) in machine.of_any_length:
        machine.of_any_length[id(copied)] = copied
    return copied
