"""What `copy.copy` and `copy.deepcopy` make: containers are copied, and objects of the tree's own classes."""

from collections.abc import Callable
from typing import Any, Protocol

from sooner.plan.needs.evaluator.enumerations import is_enumeration
from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Args, Bound, Ext, Func, Inst, Kwargs
from sooner.plan.needs.python.containers import Environment

_ITEMS = "__items__"
"""What an instance goes over, among its attributes."""


class Copying(Protocol):
    """Who knows the environment, and which lists may be longer than they look."""

    environment: dict[str, Any]
    of_any_length: dict[int, Any]

    def call(self, func: Any, args: Args, kwargs: Kwargs) -> Any:
        """What a call gives."""


def shallow(machine: Copying, args: Args, _kwargs: Kwargs) -> Any:
    """`copy.copy(value)`."""
    value = args[0] if args else UNKNOWN
    if isinstance(value, Ext) and value.path == "os.environ":
        return Environment(machine.environment)
    if isinstance(value, Inst) and _is_copied(value):
        own = _by_itself(machine, value, "__copy__", [])
        return _object(value, {}, lambda each: each) if own is MISSING else own
    if isinstance(value, list):
        return _as_long(machine, value, list(value))
    return dict(value) if isinstance(value, dict) else value


def deep(machine: Copying, args: Args, kwargs: Kwargs) -> Any:
    """`copy.deepcopy(value)`; a container or an object that is in two places, or in itself, is copied once."""
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
        if isinstance(value, Inst) and _is_copied(value):
            own = _by_itself(machine, value, "__deepcopy__", [{}])
            return _object(value, made, of) if own is MISSING else own
        return tuple(map(of, value)) if type(value) is tuple else value

    whole = args[0] if args else UNKNOWN
    return of(whole) if type(whole) in (list, dict, tuple, Inst) else shallow(machine, args, kwargs)


def _is_copied(value: Inst) -> bool:
    """Whether a copy is another object: a member of an enumeration, and what the rules stand in for, is the same."""
    return not (value.cls.module.is_model or is_enumeration(value.cls))


def _by_itself(machine: Copying, value: Inst, name: str, args: Args) -> Any:
    """What a class's own method makes, of the tests; the same object of the library's; MISSING if it has none."""
    method = value.cls.find(name)
    if not isinstance(method, Func):
        return MISSING
    return machine.call(Bound(method, value), args, {}) if method.module.is_test_code else value


def _object(value: Inst, made: dict[int, Any], of: Callable[[Any], Any]) -> Inst:
    made[id(value)] = copied = Inst(value.cls, value.given)
    copied.is_made = value.is_made
    copied.attrs |= {name: of(each) for name, each in value.attrs.items()}
    if isinstance(items := copied.attrs.get(_ITEMS), list):
        copied.attrs[_ITEMS] = list(items)
    return copied


def _as_long(machine: Copying, value: list[Any], copied: list[Any]) -> list[Any]:
    """A copy is of no surer length than what it is a copy of."""
    if id(value) in machine.of_any_length:
        machine.of_any_length[id(copied)] = copied
    return copied
