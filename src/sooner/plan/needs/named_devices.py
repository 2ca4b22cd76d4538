"""Which device something names: a text, an index, a device itself."""

import ast
import re
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.enumerations import plain_of
from sooner.plan.needs.values import UNKNOWN, Dev, OneOf, Text, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_NAMED: Final = re.compile(r"(?:/.*)?/(?:device:|physical_device:)?(GPU|CPU|gpu|cpu):(\d+)")
"""A device as TensorFlow names it: `/device:GPU:1`, `/gpu:0`."""
_KINDS: Final = {"GPU": "cuda", "CPU": "cpu"}
_UNNUMBERED: Final = ("cuda:", "cpu:")


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
        return Dev("cuda" if kind.startswith("torch.cuda.") else kind, int(index) if index.isdigit() else None)
    return _one_of_several(machine, value)


def _one_of_several(machine: "Machine", value: Any) -> Any:
    device: Any = UNKNOWN
    if isinstance(value, OneOf):
        device = Dev("cuda", value.most)
    elif isinstance(value, Text) and value.pieces[0] in _UNNUMBERED:
        device = Dev(str(value.pieces[0])[:-1])
    machine.guesses += isinstance(device, Dev)
    return device


def is_by_name(node: ast.AST | None, args: list[Any], kwargs: dict[str, Any]) -> str:
    """The kind of device that a function outside gives, which is called by its name alone (`cuda()`, no `x.cuda()`)."""
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name if name in ("cuda", "cpu") and not args and not kwargs else ""
