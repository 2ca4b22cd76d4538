"""Generators that stop at their `yield`: fixtures, and what `contextlib.contextmanager` makes.

A body that is evaluated cannot be left and entered again. It is left at the `yield` by an exception that takes along
what is still to be done, block by block, the innermost first.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from sooner.plan.needs.values import UNKNOWN, Func, Native, Raised, Return

AROUND: Final = "__around__"
"""The contexts that a function is called in, the outermost first, among its attributes."""
Rest = Callable[[Raised | None], Raised | None]
"""What one block does after the `yield`: it is given what is raised there, and gives what is raised in the end."""


class Suspended(Return):
    """A `yield` that the body stops at."""

    def __init__(self, rest: Sequence[Rest] = ()) -> None:
        super().__init__(None)
        self.rest = list(rest)


def resumed(rest: Sequence[Rest], raised: Raised | None) -> Raised | None:
    """Do the rest; what is raised in the end.

    Args:
        rest: What the blocks do, the innermost first.
        raised: What the body of the `with` has raised.
    """
    for each in rest:
        raised = each(raised)
    return raised


class Manager(Native):
    """What a function that `contextlib.contextmanager` decorates gives: nothing of it is done before it is entered.

    Args:
        enter: Does what stands before the `yield`; gives what is yielded, and the rest.
    """

    __slots__ = ("enter",)

    def __init__(self, enter: Callable[[], tuple[Any, list[Rest]]]) -> None:
        super().__init__("__context__", lambda args, _kwargs: surrounded(args[0], self) if args else UNKNOWN)
        self.enter = enter


def surrounded(target: Any, context: Any) -> Any:
    """What a context manager makes of what it decorates: a function that is called inside of the context."""
    if isinstance(target, Func):
        target.attrs[AROUND] = [context, *target.attrs.get(AROUND, ())]
    return target
