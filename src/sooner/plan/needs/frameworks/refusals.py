"""How the library under test refuses a number of devices: `assert torch.cuda.is_available()`, `if not ...: raise`.

What it raises is its own business, and often our ignorance of it. Where the same call ends well with another number of
devices, and nothing was doubtful on the way, whoever calls it hears it.
"""

import ast
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from sooner.plan.needs.evaluator.counted import Counted
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.undoing import Changed
from sooner.plan.needs.evaluator.values import UNKNOWN, Ext, Func, Raised, Skip, Unknown, hard
from sooner.plan.needs.facts import SIZES
from sooner.plan.needs.testing.testing_names import names_awaited

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_DIVISIONS: Final = (ast.Mod, ast.FloorDiv, ast.Div)


def note_end(machine: "Machine", stop: Raised | Skip | None = None) -> None:
    """Keep what the library raises: if it does not with another number of devices, it follows from that.

    Args:
        machine: What evaluates the library.
        stop: What came out of one of its functions, and is not believed as it is; None where it ended well.
    """
    place, ended = machine.called_from, machine.ended_while_loading if machine.loading else machine.ended
    if stop is None and machine.quiet == 1:
        ended.setdefault(place, None)
    elif stop is not None and not machine.is_doubtful():
        ended[place] = ended.get(place) or stop


def hear_refusal(machine: "Machine", trace: Trace, stop: Raised | Skip, func: Func) -> None:
    """What the library raises, known to follow from the number of devices since with another it does not, is believed.

    Args:
        machine: What evaluates the library.
        trace: Of who has called what raises.
        stop: What is raised.
        func: What raises it, or calls what does.
    """
    if (machine.called_from, (stop.path, stop.line)) in machine.refused or _is_for_fewer(machine):
        trace.note(*machine.called_from, "fails")
        stop.is_heard = True
        machine.guesses += func.name == "__getattr__" and machine.trace.questions == 0  # whether it is there is asked
        if isinstance(stop, Raised):
            stop.device = True


def _is_for_fewer(machine: "Machine") -> bool:
    """Whether what a module of the tests calls ends well with the most devices."""
    if not machine.loading or machine.size >= SIZES[-1] or machine.is_doubtful():
        return False
    most = machine.others(SIZES[-1])
    most.load(machine.called_from[0])
    return most.ended_while_loading.get(machine.called_from, UNKNOWN) is None


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
        Raised: What it, or what it calls of the library, raises by a `raise`, of a kind that is expected.
    """
    if not machine.awaited or machine.quiet or machine.loading or not _is_of_library(func):
        return
    stop = _raised_by(machine, func, args, kwargs)
    if stop is not None and not machine.is_ignored(*machine.current):
        raised = Raised(stop.kind, stop.reason, *machine.current)
        raised.value = stop.value
        raise raised


def _is_of_library(func: Any) -> TypeGuard[Func]:
    return isinstance(func, Func) and not (func.module.is_test_code or func.module.is_model)


def _raised_by(machine: "Machine", func: Func, args: list[Any], kwargs: dict[str, Any]) -> Raised | None:
    """What a call of the library raises by a `raise` of the library's, as is expected, before it uses a device.

    Where it raises nothing such, nothing was done: it is called again.
    """
    trace, machine.trace = machine.trace, Trace()
    before, machine.changed = machine.changed, Changed()
    kept = machine.guesses, machine.cut_short, machine.library_fuel, machine.fuel
    machine.refusing, stop = True, None
    try:
        machine._call_library(func, args, kwargs)  # noqa: SLF001 - a part of the machine
    except Raised as raised:
        is_of_kind = raised.value is not UNKNOWN and not raised.device and raised.kind in names_awaited(machine)
        is_own = is_of_kind and machine.awaited[-1].may_say(raised)
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
        machine.guesses += stop is not None and not stop.reason and machine.trace.questions > 0
        trace.ask(machine.trace.asked)
        machine.trace = trace
    return stop


def refuse_to_divide(machine: "Machine", kind: type, left: Any, right: Any) -> None:
    """A number that is not known, divided by the number of devices where there is none (`rank % device_count()`).

    Raises:
        Raised: It is no text that is filled in.
    """
    if kind in _DIVISIONS and isinstance(right, Counted) and right.real == 0 and type(hard(left)) in (Unknown, Ext):
        raised = Raised("ZeroDivisionError", "by the number of devices", *machine.current, device=True)
        raised.is_heard = machine.quiet > 0 and not machine.is_doubtful()
        raise raised
