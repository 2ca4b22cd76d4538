"""Values in order: `sorted`, `min` and `max`, of plain values, by a key, and of instances that know which is less."""

from collections.abc import Callable
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.values import (
    UNKNOWN,
    Args,
    Function,
    Inst,
    Kwargs,
    Native,
    Raised,
    Soft,
    hard,
    is_plain,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


def most(pick: Callable[[Any], Any], *, largest: bool) -> Function:
    """`min` or `max`: of a mixture of known and unknown there is no answer."""

    def called(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        values = machine.items_of(args[0]) if len(args) == 1 else args
        if values is None:
            return UNKNOWN
        if values and ("key" in kwargs or all(isinstance(hard(each), Inst) for each in values)):
            keys = keys_of(machine, kwargs.get("key"), values)
            return UNKNOWN if keys is None else values[keys.index(pick(keys))]
        if not values:
            if "default" in kwargs:
                return kwargs["default"]
            raise Raised("ValueError", "max() or min() of nothing")
        known = [hard(each) for each in values if is_plain(hard(each))]
        if len(known) < len(values):
            return 0 if not largest and 0 in known else UNKNOWN
        try:
            result = pick(known)
        except HOST_ERRORS:
            return UNKNOWN
        return Soft(result) if any(isinstance(each, Soft) and each.value == result for each in values) else result

    return called


class _Ordered:
    """An instance as what it is sorted by: by its class's `__lt__`, or the fields of `dataclass(order=True)`."""

    def __init__(self, machine: "Machine", value: Inst) -> None:
        self._machine = machine
        self.value = value

    def __lt__(self, other: "_Ordered") -> bool:
        method, names = self.value.cls.find("__lt__"), self.value.cls.find("__order__")
        if isinstance(names, list):
            return [self.value.attrs[name] for name in names] < [other.value.attrs[name] for name in names]
        truth = self._machine.truth(self._machine.call(method, [self.value, other.value], {}))
        if truth is None:
            raise TypeError("not known")  # as of what cannot be compared
        return truth

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ordered) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


class _ByComparing(Native):
    """What `functools.cmp_to_key` makes of a function that compares two values."""

    __slots__ = ("compare",)

    def __init__(self, compare: Any) -> None:
        super().__init__("cmp_to_key", lambda args, _kwargs: args[0] if args else UNKNOWN)
        self.compare = compare


def by_comparing(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`functools.cmp_to_key(function)`."""
    return _ByComparing(args[0]) if args else UNKNOWN


def _compared(machine: "Machine", compare: Any, values: list[Any]) -> list[Any]:
    def less(one: Any, other: Any) -> int:
        found = hard(machine.call(compare, [one, other], {}))
        if not isinstance(found, int):
            raise TypeError("not known")
        return found

    return [cmp_to_key(less)(each) for each in values]


def keys_of(machine: "Machine", key: Any, values: list[Any]) -> list[Any] | None:
    """What each value is compared by; None where that is not known, or they cannot be compared."""
    by = hard(key)
    keys = values if by is None or isinstance(by, _ByComparing) else [machine.call(by, [each], {}) for each in values]
    keys = [hard(each) for each in keys]
    if isinstance(by, _ByComparing):
        keys = _compared(machine, by.compare, keys)
    elif keys and all(isinstance(each, Inst) for each in keys):
        keys = [_Ordered(machine, each) for each in keys]
    elif not is_plain(keys):
        return None
    try:
        sorted(keys)
    except HOST_ERRORS:
        return None
    return keys


def in_order(machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`sorted`; values of which it is not known how they compare stay as they are."""
    values = machine.items_of(args[0]) if args else None
    keys = None if values is None else keys_of(machine, kwargs.get("key"), values)
    if values is None or keys is None:
        return UNKNOWN if values is None else values
    places = sorted(range(len(values)), key=keys.__getitem__, reverse=bool(hard(kwargs.get("reverse", False))))
    return [values[place] for place in places]
