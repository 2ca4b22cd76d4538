"""Which function is meant: all that one decorator has wrapped have the text of its wrapper in common."""

from typing import Any, Final

from sooner.plan.needs.evaluator.values import Args, Func, Kwargs

_MOST: Final = 8
"""Decorators, one around the other."""


def place_of(func: Func) -> int:
    """What tells a function from others with any number of devices: its text, or that of what it wraps."""
    return id(inside(func).node)


def call_of(func: Func, args: Args, kwargs: Kwargs) -> int:
    """What tells a call of a function from others that may go another way: the flags that it is given, and devices."""
    told = [(name, value) for name, value in enumerate(args) if _tells(value)]
    named = [(name, value) for name, value in kwargs.items() if _tells(value)]
    return hash((place_of(func), *told, *named)) if told or named else place_of(func)


def _tells(value: Any) -> bool:
    kind = type(value)
    return kind is bool or (kind is str and value.startswith(("cuda", "cpu")))


def inside(func: Func) -> Func:
    """The function that decorators have wrapped, whose text and arguments say what is done; else itself."""
    if func.env.parent is None and "__wrapped__" not in func.attrs:  # most
        return func
    for _ in range(_MOST):
        inner = wrapped_by(func)
        if inner is None:
            break
        func = inner
    return func


def wrapped_by(func: Func) -> Func | None:
    """The function that another one is around: as `functools.wraps` says, or the one that its decorator was given."""
    wrapped = func.attrs.get("__wrapped__")
    if isinstance(wrapped, Func):
        return wrapped
    given = func.env.names.values() if func.env.parent is not None else ()
    several = [each for each in given if isinstance(each, Func) and each.env is not func.env]
    return several[0] if len(several) == 1 else None


def work_of(func: Func) -> tuple[int, int]:
    """What tells the work of a function from that of others, also of those that were defined at the same place."""
    return id(func.node), id(func.env)
