"""Which device something names: a text, an index, a device itself."""

import ast
import re
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.enumerations import plain_of
from sooner.plan.needs.evaluator.values import (
    UNKNOWN,
    AnyOf,
    Bound,
    Dev,
    Ext,
    Func,
    OneOf,
    Text,
    Unknown,
    at_most,
    hard,
    one_of,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_NAMED: Final = re.compile(r"(?:/.*)?/(?:device:|physical_device:)?(GPU|CPU|gpu|cpu):(\d+)")
"""A device as TensorFlow names it: `/device:GPU:1`, `/gpu:0`."""
_KINDS: Final = {"GPU": "cuda", "CPU": "cpu"}
_UNNUMBERED: Final = ("cuda:", "cpu:")
_HOST: Final = -1
_MOST_FUNCTIONS: Final = 4


def device_named(machine: "Machine", value: Any) -> Any:
    """A device from what names one (`"cuda:1"`, an index, a `torch.device`); UNKNOWN where none is named.

    Of a device whose number is not known (`f"cuda:{rank()}"`) it is known that it is one, and the answer is less sure.

    Args:
        machine: Evaluates.
        value: The name.
    """
    value = plain_of(hard(value))
    if isinstance(value, Dev):
        return value
    if isinstance(value, bool) or value is None:
        return UNKNOWN
    if isinstance(value, int):
        return Dev("cuda", value)
    if isinstance(value, str):
        named = _NAMED.fullmatch(value)
        if named is not None:
            return Dev(_KINDS[named[1].upper()], int(named[2]))
        kind, _, index = value.partition(":")
        if kind == "cuda" and index and not index.isdigit():
            return UNKNOWN  # a mistake: PyTorch refuses it
        return Dev("cuda" if kind.startswith("torch.cuda.") else kind, int(index) if index.isdigit() else None)
    return _not_quite_known(machine, value)


def _not_quite_known(machine: "Machine", value: Any) -> Any:
    device: Any = UNKNOWN
    if isinstance(value, OneOf):
        device = device_named(machine, value.most)
    elif isinstance(value, Text) and value.pieces[0] in _UNNUMBERED:
        device = Dev(str(value.pieces[0])[:-1])
    machine.guesses += isinstance(device, Dev)
    return device


def one_of_several(machine: "Machine", values: Sequence[Any]) -> Any:
    """One of several values, it is not known which: of devices and of numbers the most is known, and functions are.

    Between a device and the host, the host is chosen where no device is visible.
    """
    numbers = [_number(at_most(hard(each))) for each in values]
    if None in numbers:
        return _one_of_functions(values) or one_of(values)
    by_number = sorted(zip(numbers, values, strict=True), key=itemgetter(0))
    is_of_host = by_number[0][0] == _HOST and not machine.visible()
    return OneOf(at_most(hard(by_number[0 if is_of_host else -1][1])))


def _one_of_functions(values: Sequence[Any]) -> AnyOf | None:
    flat = [one for each in map(hard, values) for one in (each.functions if isinstance(each, AnyOf) else [each])]
    are_functions = all(isinstance(each, Func | Bound | Ext | Unknown) for each in flat)
    is_known = any(isinstance(each, Func | Bound) for each in flat)
    return AnyOf(flat) if are_functions and is_known and len(flat) <= _MOST_FUNCTIONS else None


def _number(value: Any) -> int | None:
    """The number of a device that a text or a device names, and that of the host; None where none is named."""
    if isinstance(value, str):
        kind, _, index = value.partition(":")
        value = Dev(kind, int(index) if index.isdigit() else None)
    if not isinstance(value, Dev) or value.kind not in ("cuda", "cpu") or not isinstance(value.index, int | None):
        return None
    return _HOST if value.kind == "cpu" else value.index or 0


def is_by_name(node: ast.AST | None, args: list[Any], kwargs: dict[str, Any]) -> str:
    """The kind of device that a function outside gives, which is called by its name alone (`cuda()`, no `x.cuda()`)."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name if name in ("cuda", "cpu") and not args and not kwargs else ""
