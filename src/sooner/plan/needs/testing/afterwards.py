"""What is done after a test: by fixtures, `tearDown`, cleanups and finalizers."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.suspending import Rest, Stop, resumed
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.values import Args, Func, Kwargs, Native, OutOfFuel, Raised, Skip, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_FUEL: Final = 6_000


def finish(machine: "Machine") -> Raised | None:
    """Do what is still to be done; all that the test has changed is as before then.

    What it uses is not the test's use; what it lacks fails the test.

    Args:
        machine: Has run the test.

    Returns:
        What lacks a device, of what pytest and unittest do after each single test.
    """
    unfinished, machine.unfinished = machine.unfinished, ()
    trace, guesses, fuel = machine.trace, machine.guesses, machine.fuel
    failed: Raised | None = None
    machine.trace, machine.fuel, machine.quiet = Trace(), _FUEL, 0
    for rest, is_of_test in reversed(unfinished):
        left = _done(rest)
        if is_of_test and left is not None and left.device:
            failed = failed or left
    trace.ask(max(machine.trace.asked, machine.trace.reach))
    machine.trace, machine.guesses, machine.fuel = trace, guesses, fuel
    machine.changed.undo()
    return failed


def _done(rest: list[Rest]) -> Raised | None:
    try:
        return resumed(rest, None)
    except Raised as raised:
        return raised
    except (Skip, OutOfFuel, *HOST_ERRORS):
        return None


def do_later(machine: "Machine", func: Any, args: Args, kwargs: Kwargs, *, is_of_test: bool = True) -> None:
    """Call something after the test; of what is not surely to be called nothing is believed."""

    def call(_stop: Stop) -> None:
        machine.call(func, args, kwargs)

    machine.unfinished += (([call], is_of_test and not machine.forks),)


def calling_later(machine: "Machine", name: str, *, is_of_test: bool = True) -> Native:
    """`addCleanup(func, ...)` and its like."""

    def called(args: Args, kwargs: Kwargs) -> None:
        if args:
            do_later(machine, args[0], args[1:], kwargs, is_of_test=is_of_test)

    return Native(name, called)


def scope_of(fixture: Any) -> str:
    """How long a fixture is kept: `function` for each single test."""
    scope = hard(fixture.attrs.get("__fixture__", {}).get("scope")) if isinstance(fixture, Func) else None
    return scope if isinstance(scope, str) else "function"
