"""The methods of plain values: texts, numbers, lists, dicts and sets."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.enumerations import plain_of
from sooner.plan.needs.evaluator.growth import has_wide_field
from sooner.plan.needs.evaluator.values import (
    PLAIN,
    UNKNOWN,
    Args,
    Kwargs,
    Native,
    Raised,
    Unknown,
    hard,
    is_plain,
)
from sooner.plan.needs.python import sets
from sooner.plan.needs.python.containers import Environment
from sooner.plan.needs.python.ordering import in_order

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LONGEST: Final = 4096


def method_of(machine: "Machine", value: Any, name: str) -> Any:
    """A method of a plain value; calling it with unknown arguments gives an unknown."""
    value = uncounted(value)
    if not isinstance(value, PLAIN):
        return Unknown(name)
    if not hasattr(value, name):
        return Unknown(name)

    def called(args: Args, kwargs: Kwargs) -> Any:
        if machine.doubts and name in _REMOVING and isinstance(value, list | dict | set):
            machine.guesses += 1  # what may be taken away is still there
            return UNKNOWN
        return _call_method(machine, value, name, args, kwargs)

    return Native(name, called) if callable(getattr(value, name)) else getattr(value, name)


_KEEPING: Final = (
    "append", "remove", "appendleft", "popleft", "insert", "add", "setdefault", "get", "pop", "items", "keys", "values",
    "copy", "index",
)  # fmt: skip


_REMOVING: Final = ("remove", "discard", "clear", "pop", "popitem")


def _call_method(machine: "Machine", value: Any, name: str, args: Args, kwargs: Kwargs) -> Any:
    machine.about_to_change(value)
    if name in sets.METHODS and len(args) == 1 and sets.are_of_things(value, hard(args[0])):
        return sets.combined(machine, name, value, hard(args[0]))
    return _call_plain_method(machine, value, name, args, kwargs)


def _call_plain_method(machine: "Machine", value: Any, name: str, args: Args, kwargs: Kwargs) -> Any:
    if isinstance(value, dict) and name in ("get", "pop", "setdefault") and args:
        args = [_key_asked(machine, value, name, args[0]), *args[1:]]
        if isinstance(args[0], Unknown):
            return UNKNOWN
    elif name == "sort" or (name in ("extend", "update") and (args or kwargs)):
        return _extended(machine, value, name, args, kwargs)
    elif name == "join" and args:
        items = machine.items_of(args[0])
        args = [[plain_of(hard(each)) for each in items]] if items is not None else [UNKNOWN]
    if isinstance(value, str | bytes) and _is_too_long(value, name, args):
        return UNKNOWN
    args = [uncounted(each) for each in args]
    if name not in _KEEPING:
        args = [hard(each) for each in args]
        if not all(is_plain(each) for each in (*args, *kwargs.values())):
            return UNKNOWN
    result = _done_by(machine, getattr(value, name), args, kwargs)
    return list(result) if name in ("items", "keys", "values") and result is not UNKNOWN else result


def _done_by(machine: "Machine", method: Any, args: Args, kwargs: Kwargs) -> Any:
    """What Python's own method gives; what it refuses of things that are known it refuses in the test, too."""
    try:
        return method(*args, **kwargs)
    except (LookupError, ValueError) as error:
        if isinstance(error, ValueError) and not is_plain([method.__self__, *args]):
            return UNKNOWN
        raise Raised(type(error).__name__, str(error), *machine.current) from None
    except HOST_ERRORS:
        return UNKNOWN


def _key_asked(machine: "Machine", value: dict[Any, Any], name: str, given: Any) -> Any:
    if name != "setdefault":
        return machine.key_in(value, given)
    key = machine.key(given)
    if isinstance(key, Unknown) and not isinstance(value, Environment):
        value[UNKNOWN] = UNKNOWN
    return key


def _is_too_long(value: str | bytes, name: str, args: Args) -> bool:
    """Whether a text method could fill the memory: `"".ljust(10**12)`, `"{:99999999}".format(1)`."""
    wide = any(isinstance(each, int) and each > _LONGEST for each in args)
    return wide or (name in ("format", "format_map") and has_wide_field(value))


def _extended(machine: "Machine", value: Any, name: str, args: Args, kwargs: Kwargs) -> Any:
    if name == "sort":
        value[:] = in_order(machine, [value], kwargs)
        return None
    if isinstance(value, dict):
        other = hard(args[0]) if args else {}
        told = other if isinstance(other, dict) else pairs_of(machine, other)
        if isinstance(value, Environment):  # of variables that it was not told nothing is known anyway
            told = {key: each for key, each in told.items() if key is not UNKNOWN}
        value.update(told)
        value.update(kwargs)
        return None
    several = [machine.items_of(each) for each in args]
    if isinstance(value, list):
        value.extend(several[0] if several[0] is not None and len(value) <= _LONGEST else [UNKNOWN])
    elif isinstance(value, set):
        for more in several:
            if more is not None and is_plain(more):
                value.update(more)
            else:
                machine.of_any_length[id(value)] = value
    return None


def pairs_of(machine: "Machine", given: Any) -> dict[Any, Any]:
    """A dict of pairs; of what is not known it has one value under a key that is not known."""
    made: dict[Any, Any] = {}
    pairs = machine.items_of(given)
    for each in [UNKNOWN] if pairs is None else pairs:
        pair = machine.items_of(each)
        if pair is not None and len(pair) == 2:  # noqa: PLR2004 - a pair
            made[machine.key(pair[0])] = pair[1]
        else:
            made[UNKNOWN] = UNKNOWN
    return made
