"""Processes that the library under test starts by itself: nobody has told it how many, or it was not seen."""

import ast
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.state import LIBRARY_FUEL
from sooner.plan.needs.trace import Trace
from sooner.plan.needs.unseen import methods_called
from sooner.plan.needs.values import Func

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_STARTING: Final = frozenset(("spawn", "start_processes"))
_STARTS_RANKS: Final = frozenset(("spawn", "start_processes", "init_process_group"))


def in_any_ranks(machine: "Machine", args: list[Any]) -> Any:
    """Call a function as a worker of many, of which nobody knows how many."""
    had, machine.trace.backends = machine.trace.backends, set()
    try:
        machine.call(args[0], [], {})
    finally:
        machine.trace.on_all |= bool(machine.quiet and "nccl" in machine.trace.backends and not machine.is_doubtful())
        machine.trace.backends |= had


def pass_on(machine: "Machine", inner: Trace, func: Func) -> None:
    """What a function of the library has started is there for whoever called it, and at last for the test."""
    if inner.on_all and not _starts_surely(func.node.body):
        inner.on_all = False
        machine.trace.may_be_made |= machine.size > 0
    machine.trace.on_all |= inner.on_all
    machine.trace.spread = max(machine.trace.spread, inner.spread)
    if machine.trace.spread and not machine.quiet:
        machine.need(machine.trace.spread, "a model that the library spreads")
    machine.trace.on_others |= inner.on_others
    machine.guesses += inner.on_others and not machine.quiet  # which, and how many, is not followed
    if machine.quiet:
        machine.trace.backends |= inner.backends
    elif inner.on_all:
        machine.guesses += 1
        machine.need(machine.visible(), "ranks that the library starts")


def _starts_surely(body: Any) -> bool:
    """Whether a function that starts processes does so on no way of several, nor after it may have returned."""
    for each in body if isinstance(body, list) else ():
        does_start = not _STARTING.isdisjoint(methods_called(each))
        if does_start and isinstance(each, ast.With | ast.Try):
            return _starts_surely(each.body)
        is_way = isinstance(each, ast.If | ast.For | ast.While)
        if does_start or (is_way and any(isinstance(inner, ast.Return) for inner in ast.walk(each))):
            return not is_way
    return True


def is_beyond(machine: "Machine", func: Func) -> bool:
    """Whether the steps for the library under test are used up: what it does with a device is not seen any more.

    A function whose own code starts ranks, or joins them, has some more.
    """
    if machine.library_fuel > 0:
        return False
    if not _STARTS_RANKS.isdisjoint(methods_called(func.node)):
        machine.library_fuel = LIBRARY_FUEL
        return False
    machine.trace.may_be_made |= machine.size > 0
    return True
