"""How the library under test refuses for lack of a device: `assert torch.cuda.is_available()`, `if not ...: raise`.

What it raises is its own business, and often our ignorance of it. Where the condition has asked for devices, and
nothing was doubtful on the way, whoever calls it fails for lack of one.
"""

import ast
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.counted import Counted
from sooner.plan.needs.values import Ext, Raised, Skip, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_DIVISIONS: Final = (ast.Mod, ast.FloorDiv, ast.Div)


def as_refusal(machine: "Machine", stop: Raised | Skip, node: ast.stmt) -> None:
    """Note that what a branch or an assertion raises is for lack of a device: who calls the library hears it."""
    if machine.quiet and not machine.is_doubtful() and _is_within(stop, node):
        stop.is_heard = True
        if isinstance(stop, Raised):
            stop.device = True


def _is_within(stop: Raised | Skip, node: ast.stmt) -> bool:
    return node.lineno <= stop.line <= (node.end_lineno or node.lineno)


def refuse_to_divide(machine: "Machine", kind: type, left: Any, right: Any) -> None:
    """A number that is not known, divided by the number of devices where there is none (`rank % device_count()`).

    Raises:
        Raised: It is no text that is filled in.
    """
    if kind in _DIVISIONS and isinstance(right, Counted) and right.real == 0 and type(hard(left)) in (Unknown, Ext):
        raised = Raised("ZeroDivisionError", "by the number of devices", *machine.current, device=True)
        raised.is_heard = machine.quiet > 0 and not machine.is_doubtful()
        raise raised
