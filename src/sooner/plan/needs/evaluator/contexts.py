"""What a `with` gives, and what ends it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.raising import class_raised
from sooner.plan.needs.evaluator.suspending import Manager, Stop, resumed
from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Cls,
    Ext,
    Func,
    Function,
    Inst,
    Kwargs,
    Mod,
    Native,
    Raised,
    Unknown,
    name_of,
)
from sooner.plan.needs.testing.replacing import all_kept, is_patch, patch_now
from sooner.plan.needs.testing.testing_names import SWALLOWING, Awaiting, Part, is_awaited, is_expected

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_ENTERED: Final = "__entered__"


class Suppressing(Native):
    """`contextlib.suppress(kinds...)`: what `except kinds` catches ends its body, and no more."""

    __slots__ = ("kinds",)

    def __init__(self, kinds: Args) -> None:
        super().__init__("suppress", lambda args, _kwargs: args[0] if args else UNKNOWN)
        self.kinds = tuple(kinds)

    def swallows(self, machine: "Machine", raised: Raised) -> bool:
        """Whether what was raised goes no further."""
        return is_expected(raised, self.kinds) if raised.skips else machine.catches(self.kinds, raised)


def context_of(machine: "Machine", value: Any, path: str, line: int) -> tuple[Any, Callable[[Raised | None], bool]]:
    """What a `with` gives, and what ends it."""
    if is_patch(value):
        undo = patch_now(machine, value)
        return value.args[-1] if value.name == "__patch__" else UNKNOWN, lambda _raised: bool(undo())
    if isinstance(value, Inst) and _ENTERED in value.attrs:
        return value, lambda raised: _left(value, raised)
    if isinstance(value, Inst):
        return _entered_instance(machine, value)
    if isinstance(value, Manager):
        return _managed(value)
    if isinstance(value, Part):
        return UNKNOWN, lambda raised: value.left(machine, raised)
    if isinstance(value, Suppressing):
        return None, lambda raised: raised is not None and value.swallows(machine, raised)
    if isinstance(value, Native) and value.name in SWALLOWING:
        return UNKNOWN, _awaiting(machine, value)
    last = name_of(value).removesuffix("()") if isinstance(value, Unknown) else ""
    if last == "context" and "monkeypatch" in value.path.lower():
        undo = all_kept(machine)
        return Unknown("monkeypatch"), lambda _raised: bool(undo())
    del path, line
    given = value if isinstance(value, Unknown | Ext) else UNKNOWN
    return given, lambda raised: last in SWALLOWING and not (raised is not None and raised.skips)


def _awaiting(machine: "Machine", value: Native) -> Callable[[Raised | None], bool]:
    kinds, before = value.call([], {}), machine.awaited
    if isinstance(value, Awaiting):
        machine.awaited = (*before, value)

    def leave(raised: Raised | None) -> bool:
        may_be = raised is None or is_awaited(machine, raised, kinds)
        machine.awaited = before
        return may_be or (isinstance(value, Awaiting) and raised is not None and value.is_said(machine, raised))

    return leave


def _managed(manager: Manager) -> tuple[Any, Callable[[Raised | None], bool]]:
    given, rest = manager.enter()

    def leave(raised: Raised | None) -> bool:
        left = resumed(rest, raised)
        if left is not None and left is not raised:
            raise left
        return left is not raised

    return given, leave


def _null_context(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`contextlib.nullcontext(value)`: gives the value, and does nothing."""
    value = args[0] if args else kwargs.get("enter_result")
    return Manager(lambda: (value, []))


def _closing(machine: "Machine", args: Args, _kwargs: Kwargs) -> Any:
    """`contextlib.closing(thing)`: gives the thing, and closes it."""
    thing = args[0] if args else UNKNOWN

    def close(stop: Stop) -> None:
        machine.call(machine.attribute(thing, "close"), [], {})
        if stop is not None:
            raise stop

    return Manager(lambda: (thing, [close]))


def entered_already(leave: Callable[[Raised | None], bool]) -> Inst:
    """A context that is entered when it is made, and left once."""
    made = Inst(Cls("Entered", [Ext("contextlib.ExitStack")], Mod("contextlib", "")))
    made.attrs[_ENTERED] = [leave]
    return made


def _exit_stack(machine: "Machine", _args: Args, _kwargs: Kwargs) -> Any:
    """`contextlib.ExitStack()`: what is entered through it, or put on it, is left with it, the last first."""
    return _stack_of(machine, [])


def _stack_of(machine: "Machine", leaves: list[Callable[[Raised | None], bool]]) -> Inst:
    stack = Inst(Cls("ExitStack", [Ext("contextlib.ExitStack")], Mod("contextlib", "")))

    def enter(args: Args, _kwargs: Kwargs) -> Any:
        given, leave = machine.enter(args[0]) if args else (UNKNOWN, lambda _raised: False)
        leaves.append(leave)
        return given

    def callback(args: Args, kwargs: Kwargs) -> Any:
        leaves.append(lambda _raised: machine.call(args[0], args[1:], kwargs) is MISSING)
        return args[0] if args else UNKNOWN

    def push(args: Args, _kwargs: Kwargs) -> Any:
        leave = args[0].cls.find("__exit__") if args and isinstance(args[0], Inst) else MISSING
        if isinstance(leave, Func):
            leaves.append(_leaving(machine, args[0], leave))
        elif args:
            leaves.append(lambda raised: machine.truth(machine.call(args[0], _told(raised), {})) is True)
        return args[0] if args else UNKNOWN

    def pop_all(_args: Args, _kwargs: Kwargs) -> Any:
        taken = [*leaves]
        leaves.clear()
        return _stack_of(machine, taken)

    stack.attrs |= {
        _ENTERED: leaves,
        "enter_context": Native("enter_context", enter),
        "enter_async_context": Native("enter_async_context", enter),
        "callback": Native("callback", callback),
        "push": Native("push", push),
        "pop_all": Native("pop_all", pop_all),
        "close": Native("close", lambda _args, _kwargs: _left(stack, None)),
    }
    return stack


def _left(stack: Inst, raised: Raised | None) -> bool:
    """Leave all that a stack has entered; whether one of them swallows what was raised."""
    swallowed = False
    while stack.attrs[_ENTERED]:
        swallowed |= stack.attrs[_ENTERED].pop()(None if swallowed else raised)
    return swallowed


def _entered_instance(machine: "Machine", value: Inst) -> tuple[Any, Callable[[Raised | None], bool]]:
    enter, leave = (
        next((found for each in names if isinstance(found := value.cls.find(each), Func)), MISSING)
        for names in (("__enter__", "__aenter__"), ("__exit__", "__aexit__"))
    )
    given = machine.call(enter, [value], {}) if isinstance(enter, Func) else value
    return given, _leaving(machine, value, leave) if isinstance(leave, Func) else lambda _raised: False


def _leaving(machine: "Machine", value: Inst, leave: Func) -> Callable[[Raised | None], bool]:
    """Calls `__exit__`; gives whether that swallows what was raised."""
    return lambda raised: machine.truth(machine.call(leave, [value, *_told(raised)], {})) is True


def _told(raised: Raised | None) -> list[Any]:
    """What `__exit__` is told."""
    return [None] * 3 if raised is None else [class_raised(raised), raised.value, UNKNOWN]


CONTEXTS: Final[dict[str, Function]] = {
    "contextlib.nullcontext": _null_context,
    "contextlib.closing": _closing,
    "contextlib.suppress": lambda _machine, args, _kwargs: Suppressing(args),
    "contextlib.ExitStack": _exit_stack,
    "contextlib.AsyncExitStack": _exit_stack,
}
