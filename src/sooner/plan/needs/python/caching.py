"""What is done once and kept: `functools.cache`, `lru_cache`, `cached_property`."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Bound, Cls, Func, Inst, Kwargs, Native, Wrapped, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_CACHED: Final = "__cached__"
_KEYS: Final = (int, str, bool, float, type(None))


class KeptProperty(Wrapped):
    """A property that is evaluated once for each object."""

    __slots__ = ()


def cached_property(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`functools.cached_property(function)`."""
    return KeptProperty("property", args[0]) if args else UNKNOWN


def cache(_machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`lru_cache`, `cache`, with or without arguments."""

    def decorate(inner: Args, _names: Kwargs) -> Any:
        if inner and isinstance(inner[0], Func):
            inner[0].attrs[_CACHED] = True
        return inner[0] if inner else UNKNOWN

    if args and isinstance(args[0], Func | Cls | Bound | Wrapped):
        return decorate(args, {})
    return Native("cache", decorate)


def kept_of(machine: "Machine", value: Inst, name: str, prop: Wrapped) -> Any:
    """What a property gives."""
    if not isinstance(prop, KeptProperty):
        return machine.call(Bound(prop.func, value), [], {})
    if name not in value.attrs:
        found = machine.call(Bound(prop.func, value), [], {})
        if machine.quiet or machine.forks:
            return found
        machine.changed.keep_name(value.attrs, name)
        value.attrs[name] = found
    return value.attrs[name]


def once(machine: "Machine", func: Func, args: Args, kwargs: Kwargs, work: Callable[[], Any]) -> Any:
    """What a function gives; one of the tests that is cached is called once with the same arguments, in each test."""
    if _CACHED not in func.attrs or machine.loading or machine.quiet or machine.forks or not func.module.is_test_code:
        return work()
    given = [*map(hard, args), *(part for pair in sorted(kwargs.items()) for part in pair)]
    if not all(type(each) in _KEYS or isinstance(each, Inst | Cls) for each in given):
        return work()
    key = (id(func), *(each if type(each) in _KEYS else id(each) for each in given))
    if key not in machine.cached:
        machine.cached[key] = work(), func, given
    return machine.cached[key][0]
