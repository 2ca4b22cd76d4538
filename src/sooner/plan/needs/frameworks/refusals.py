"""How the library under test refuses for lack of a device: `assert torch.cuda.is_available()`, `if not ...: raise`.

What it raises is its own business, and often our ignorance of it. Where the condition has asked for devices, and
nothing was doubtful on the way, whoever calls it fails for lack of one.
"""

import ast
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from sooner.plan.needs.evaluator.counted import Counted
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.undoing import Changed
from sooner.plan.needs.evaluator.values import UNKNOWN, Env, Ext, Func, Raised, Skip, Unknown, hard
from sooner.plan.needs.testing.testing_names import names_awaited

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

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


def note_end(machine: "Machine", stop: Raised | Skip | None = None) -> None:
    """Keep what the library raises: if it does not with more devices, it is for lack of them.

    Args:
        machine: What evaluates the library.
        stop: What came out of one of its functions, and is not believed as it is; None where it ended well.
    """
    place = machine.called_from
    is_minded = machine.trying or machine.awaited or machine.loading
    if stop is None and machine.quiet == 1:
        machine.ended.setdefault(place, None)
    elif isinstance(stop, Raised) and not is_minded and not machine.is_doubtful():
        machine.ended[place] = machine.ended.get(place) or stop


def is_assertion(node: ast.If) -> bool:
    """Whether an `if` asserts: it raises an `AssertionError`, or fails the test, and does nothing else."""
    (first, *others) = node.body
    if others or node.orelse:
        return False
    raised = first.exc if isinstance(first, ast.Raise) else None
    called = raised.func if isinstance(raised, ast.Call) else raised
    if isinstance(called, ast.Name | ast.Attribute):
        return ast.unparse(called) in ("AssertionError", "self.failureException")
    failed = first.value if isinstance(first, ast.Expr) else None
    return isinstance(failed, ast.Call) and ast.unparse(failed.func) in ("pytest.fail", "self.fail")


def refuse_as_awaited(machine: "Machine", func: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Within what is expected to raise, a function of the library that does so before it uses a device ends it.

    Raises:
        Raised: What it raises by itself, of a kind that is expected.
    """
    if not machine.awaited or machine.quiet or machine.loading or not _raises(func):
        return
    stop = _raised_by(machine, func, args, kwargs)
    if stop is not None and not machine.is_ignored(*machine.current):
        raised = Raised(stop.kind, stop.reason, *machine.current)
        raised.value = stop.value
        raise raised


def _raises(func: Any) -> TypeGuard[Func]:
    """Whether a function is one of the library's that has a `raise` of its own."""
    if not isinstance(func, Func) or func.module.is_test_code or func.module.is_model:
        return False
    return any(isinstance(each, ast.Raise) for each in ast.walk(func.node))


def _raised_by(machine: "Machine", func: Func, args: list[Any], kwargs: dict[str, Any]) -> Raised | None:
    """What a call of the library raises by a `raise` of its own, as is expected, before it uses a device.

    Where it raises nothing such, nothing was done: it is called again.
    """
    trace, machine.trace = machine.trace, Trace()
    before, machine.changed = machine.changed, Changed()
    kept = machine.guesses, machine.cut_short, machine.library_fuel, machine.fuel
    machine.refusing, stop = True, None
    try:
        machine._call_library(func, args, kwargs)  # noqa: SLF001 - a part of the machine
    except Raised as raised:
        is_own = raised.value is not UNKNOWN and not raised.device and raised.kind in names_awaited(machine)
        stop = raised if is_own and not machine.trace.has_used else None
    except Skip:
        pass
    finally:
        machine.refusing = False
        if stop is None:
            machine.changed.undo()
        before.join(machine.changed)
        machine.changed = before
        machine.guesses, machine.cut_short, machine.library_fuel, machine.fuel = kept
        trace.ask(machine.trace.asked)
        machine.trace = trace
    return stop


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
