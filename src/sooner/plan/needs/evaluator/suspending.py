"""Generators that stop at their `yield`: those of tests, fixtures, and what `contextlib.contextmanager` makes.

A body that is evaluated cannot be left and entered again. It is left at the `yield` by an exception that takes along
what is still to be done, block by block, the innermost first.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Frame, Func, Loop, Native, Raised, Return

AROUND: Final = "__around__"
"""The contexts that a function is called in, the outermost first, among its attributes."""
Stop = Raised | Return | Loop | None
"""What ends a block: nothing, where it comes to its end."""
Rest = Callable[[Stop], None]
"""What a block does after the `yield`: it is given what ended the block inside of it, and raises what it ends with."""


class Suspended(Return):
    """A `yield` that the body stops at."""

    def __init__(self, rest: Sequence[Rest] = ()) -> None:
        super().__init__(None)
        self.rest = list(rest)


def go_on(rest: Sequence[Rest], stop: Stop) -> None:
    """Do the rest, up to the next `yield`.

    Args:
        rest: What the blocks do, the innermost first.
        stop: What is raised at the `yield`.

    Raises:
        Suspended: There is another `yield`; it has what is left then.
        Raised, Return, Loop: What the outermost block ends with.
    """
    for place, each in enumerate(rest):
        try:
            each(stop)
            stop = None
        except Suspended as again:
            again.rest.extend(rest[place + 1 :])
            raise
        except (Raised, Return, Loop) as own:
            stop = own
    if stop is not None:
        raise stop


def resumed(rest: Sequence[Rest], raised: Raised | None) -> Raised | None:
    """Do the rest, whatever it yields; what is raised in the end.

    Args:
        rest: What the blocks do, the innermost first.
        raised: What the body of the `with` has raised.
    """
    while True:
        try:
            go_on(rest, raised)
        except Suspended as again:
            rest, raised = again.rest, None
        except Raised as own:
            return own
        except (Return, Loop):
            return None
        else:
            return None


def pass_on(frame: Frame, values: Iterator[Any], inner: Frame | None = None, stop: Stop = None) -> None:
    """`yield from`: stop at each value; what the inner generator has returned is what it comes to.

    Raises:
        Suspended: There is one.
        Raised, Return, Loop: What has ended it.
    """
    if stop is not None:
        raise stop
    for value in values:
        frame.yielded.append(value)
        raise Suspended([partial(pass_on, frame, values, inner)])
    frame.sent = None if inner is None else inner.sent


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
