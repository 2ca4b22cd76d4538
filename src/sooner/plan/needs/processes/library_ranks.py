"""Processes that the library under test starts by itself: nobody has told it how many, or it was not seen."""

import ast
import re
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.state import LIBRARY_FUEL
from sooner.plan.needs.evaluator.trace import Trace
from sooner.plan.needs.evaluator.values import Dev, Func, Inst, hard
from sooner.plan.needs.evaluator.wrapping import inside
from sooner.plan.needs.frameworks.unseen import methods_called
from sooner.plan.needs.syntax import kept

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LAUNCHERS: Final = re.compile(r"torchrun|torch\.distributed\.(?:run|launch)|deepspeed|mpirun|accelerate")
_TOLD: Final = re.compile(r"n_?procs?_per_node|num_processes|ntasks_per_node")
"""Names by which a record says how many processes are started on a node."""
_STARTING: Final = frozenset(("spawn", "start_processes"))
_STARTS_PROCESSES: Final = frozenset(("Process", *_STARTING))
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
        machine.need(machine.trace.spread, "devices that the library takes")
    machine.trace.is_told |= inner.is_told and machine.quiet > 0
    others = inner.others | inner.touched
    if machine.quiet:
        machine.trace.others |= others
        machine.trace.used = max(machine.trace.used, inner.used)
    else:
        for each in sorted(others):
            machine.touch(Dev("cuda", each), "the library uses a device")
        if inner.used:
            machine.need(inner.used, "ranks that the library starts")
    if machine.quiet:
        machine.trace.backends |= inner.backends
    elif inner.on_all:
        machine.guesses += 1
        machine.need(machine.visible(), "ranks that the library starts")


def runs_its_processes(func: Func, owner: Inst) -> bool:
    """Whether a class of the tests inherits a method of the library that starts processes, itself or by another one.

    Its world size, and what its ranks do, are the tests' own.
    """
    if not owner.cls.module.is_test_code or owner.cls.module.is_model:
        return False
    seen: set[str] = set()
    waiting = [func]
    while waiting:
        names = methods_called(waiting.pop().node)
        if not _STARTS_PROCESSES.isdisjoint(names):
            return True
        found = [owner.cls.find(each) for each in sorted(names - seen)]
        waiting += [each for each in found if isinstance(each, Func) and not each.module.is_model]
        seen |= names
    return False


def launch_as_told(machine: "Machine", func: Func, args: list[Any], kwargs: dict[str, Any]) -> None:
    """A function of the library that names a launcher starts the processes that it, or a record, is told for a node.

    `run(Args(nproc_per_node=4))`, and in `run` a command that begins with `torchrun`: many options lie between.

    Raises:
        Raised: There are fewer devices.
    """
    if machine.quiet or machine.trace.used or not _names_launcher(inside(func).node):
        return
    records = [each.attrs for each in map(hard, (*args, *kwargs.values())) if isinstance(each, Inst)]
    told = {name: hard(value) for each in (*records, kwargs) for name, value in each.items() if _TOLD.fullmatch(name)}
    counts = [each for each in told.values() if type(each) is int and each > 0]
    if counts:
        machine.guesses += 1
        machine.started(max(counts))
        machine.need(max(counts), "a launcher starts a process for each device")


@kept
def _names_launcher(node: ast.AST) -> bool:
    """Whether a function has the name of a launcher among its texts."""
    texts = (each.value for each in ast.walk(node) if isinstance(each, ast.Constant))
    return any(isinstance(each, str) and _LAUNCHERS.fullmatch(each) for each in texts)


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
    if not _STARTS_RANKS.isdisjoint(methods_called(inside(func).node)):
        machine.library_fuel = LIBRARY_FUEL
        return False
    machine.trace.may_be_made |= machine.size > 0
    return True
