"""How the library under test refuses for lack of a device: `assert torch.cuda.is_available()`, `if not ...: raise`.

What it raises is its own business, and often our ignorance of it. Where the condition has asked for devices, and
nothing was doubtful on the way, whoever calls it fails for lack of one.
"""

import ast
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.counted import Counted
from sooner.plan.needs.values import Env, Ext, Func, Raised, Skip, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_DIVISIONS: Final = (ast.Mod, ast.FloorDiv, ast.Div)


def as_refusal(machine: "Machine", stop: Raised | Skip, node: ast.stmt, *, by_call: bool = False) -> None:
    """Note that what a branch or an assertion raises is for lack of a device: who calls the library hears it.

    `by_call`: the branch does nothing but call what raises.
    """
    if machine.quiet and not machine.is_doubtful() and (by_call or _is_within(stop, node)):
        stop.is_heard = True
        if isinstance(stop, Raised):
            stop.device = True


def only_raises(machine: "Machine", branch: list[ast.stmt], env: Env) -> bool:
    """Whether a branch does nothing but call a function that always raises (`stop("no device")`)."""
    call = branch[0].value if len(branch) == 1 and isinstance(branch[0], ast.Expr) else None
    func = hard(machine.ev(call.func, env)) if isinstance(call, ast.Call) else None
    body = func.node.body if isinstance(func, Func) else None
    if not isinstance(body, list) or not isinstance(body[-1], ast.Raise):
        return False
    return not any(isinstance(each, ast.Return) for statement in body for each in ast.walk(statement))


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
