"""Whether any of some values is true, or all are."""

from typing import TYPE_CHECKING, Any

from sooner.plan.needs.evaluator.lazy_values import Generator
from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Args, Function, Soft, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


def quantified(*, deciding: bool) -> Function:
    """`any`, which a true value decides, or `all`, which a false one does."""
    return lambda machine, args, _kwargs: _quantified(machine, args, deciding=deciding)


def _quantified(machine: "Machine", args: Args, *, deciding: bool) -> Any:
    source = hard(args[0]) if args else UNKNOWN
    if isinstance(source, Generator):
        return _decided_by(machine, source, deciding=deciding)
    values = machine.items_of(source)
    if values is None:
        return UNKNOWN
    truths = [machine.truth(each) for each in values]
    soft = any(isinstance(each, Soft) and truth is deciding for each, truth in zip(values, truths, strict=True))
    hard_decision = any(not isinstance(v, Soft) and t is deciding for v, t in zip(values, truths, strict=True))
    if hard_decision:
        return deciding
    if soft:
        return Soft(deciding)
    return UNKNOWN if None in truths else not deciding


def _decided_by(machine: "Machine", source: Generator, *, deciding: bool) -> Any:
    """Whether any, or all, of what is asked one after the other is true: what decides is the last that is asked for."""
    found: Any = not deciding
    for each in source.values(machine):
        truth = machine.truth(each)
        if truth is deciding and not isinstance(each, Soft):
            return deciding
        found = Soft(deciding) if truth is deciding else UNKNOWN if truth is None and found is (not deciding) else found
    return found if source.unknown is MISSING else UNKNOWN
