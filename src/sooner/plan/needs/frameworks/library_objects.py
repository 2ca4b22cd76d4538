"""Objects of the library under test: they are made, and their methods followed, where their modules name devices."""

import re
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.trace import Seen
from sooner.plan.needs.evaluator.values import MISSING, Cls, Dev, Func, Inst, Unknown, Wrapped, hard
from sooner.plan.needs.evaluator.wrapping import call_of
from sooner.plan.needs.facts import SIZES
from sooner.plan.needs.frameworks.outside_kinds import LIST_MODEL
from sooner.plan.needs.frameworks.own_choice import doubt_others, may_put
from sooner.plan.needs.frameworks.unfollowed import forget

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_AT_ONCE: Final = 8
"""As how many functions without an answer a method counts that was not followed to its end."""
NAMING_DEVICES: Final = re.compile(r"cuda|nccl|torch\.accelerator|\bpmap\b|jax\.(?:local_)?device", re.IGNORECASE)


def made_new(machine: "Machine", cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> Inst:
    """An object of the library before its `__init__`: what its own `__new__` gives (one for all, what all share)."""
    maker = cls.find("__new__")
    maker = maker.func if isinstance(maker, Wrapped) else maker
    is_written = isinstance(maker, Func) and not (maker.module.is_model or maker.module.is_test_code)
    if is_written and _names_devices(machine, cls):
        guesses = machine.guesses
        made = hard(machine._call_library(maker, [cls, *args], kwargs))  # noqa: SLF001 - a part of the machine
        machine.guesses = guesses
        if isinstance(made, Inst) and made.cls is cls:
            made.given = (args, kwargs)
            return made
    return Inst(cls, (args, kwargs))


def keep_made(machine: "Machine", made: Inst, init: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """What an object of the library keeps of what it is given, and does with devices while it is made.

    Raises:
        Raised: As `follow` does.
    """
    made.is_made = init is MISSING or (isinstance(init, Func) and init.module.name == LIST_MODEL)
    is_written = isinstance(init, Func) and not init.module.is_model
    if is_written and is_followed(machine, init, made):
        follow(machine, init, [made, *args], kwargs)
    else:
        doubt_others(machine, init, made.cls)


def is_followed(machine: "Machine", method: Func, owner: Inst) -> bool:
    """Whether a method of the library is, of an object that was made."""
    is_making = method.name == "__init__"
    return (owner.is_made or is_making) and (_is_told_a_device(owner) or _names_devices(machine, owner.cls))


def _is_told_a_device(made: Inst) -> bool:
    """Whether an object was given one of CUDA's when it was made."""
    args, kwargs = made.given or ((), {})
    return any(map(_is_a_device, (*args, *kwargs.values())))


def _names_devices(machine: "Machine", cls: Cls) -> bool:
    """Whether a module of the library in which a class, or one that it inherits from, is written names devices."""
    kept = machine.sources.choices
    key = ("names devices", cls.module.path, cls.name)
    if key not in kept:
        modules = [each.module for each in cls.mro if isinstance(each, Cls)]
        texts = (machine.sources.read(each.path) or "" for each in modules if not (each.is_model or each.is_test_code))
        kept[key] = any(map(NAMING_DEVICES.search, texts))
    return kept[key]


def doubt_end(machine: "Machine", method: Func, args: list[Any], kwargs: dict[str, Any]) -> None:
    """What a method may do with devices that was not followed to its end: by its text, and by those that it is told."""
    doubt_others(machine, method, args[0].cls)
    values = (*args[0].attrs.values(), *args[1:], *kwargs.values())
    if machine.size and not machine.trace.has_used and any(map(_is_a_device, values)):
        machine.trace.may_be_made |= may_put(machine, method, args[0].cls)


def _is_a_device(value: Any) -> bool:
    value = hard(value)
    return value.kind == "cuda" if isinstance(value, Dev) else isinstance(value, str) and value.startswith("cuda")


def follow(machine: "Machine", method: Func, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A method of an object of the library: its answer, as far as it is known.

    Where it did nothing with devices it does not matter how sure that answer is. Where it was not followed to its end
    what it may do counts only as far as its text says so, and one that has given nothing is not followed again.

    Raises:
        Raised: It lacks a device, and nothing in the library catches that.
    """
    trace, key = machine.trace, -call_of(method, args[1:], kwargs)
    if key in machine.given_up or machine.object_fuel <= 0:
        doubt_end(machine, method, args, kwargs)
        forget(machine, method, args[0])
        trace.may_be_made |= key in machine.made_by_itself and machine.size > 0
        return Unknown(f"{method.module.name}.{method.name}()")
    guesses, cut_short = machine.guesses, machine.cut_short
    may_be_made, trace.may_be_made = trace.may_be_made, False
    functions, machine.library_fuel = machine.library_fuel, machine.object_fuel
    before, trace.seen = trace.seen, Seen(set(), set(), 0, None, 0, on_all=False)
    try:
        found = machine._call_library(method, args, kwargs)  # noqa: SLF001 - a part of the machine
    finally:
        machine.object_fuel, machine.library_fuel = machine.library_fuel, functions
        has_used, trace.seen = bool(trace.seen), before.beside(trace.seen)
    is_sure = (machine.guesses, machine.cut_short) == (guesses, cut_short)
    if machine.cut_short != cut_short:
        forget(machine, method, args[0])
    if not has_used:
        machine.guesses = guesses
    if method.name == "__init__":
        args[0].is_made = is_sure
    if trace.may_be_made and not is_sure and machine.size == SIZES[-1]:
        machine.made_by_itself[key] = ""  # it may have used a device
    trace.may_be_made |= may_be_made
    if not is_sure:
        doubt_end(machine, method, args, kwargs)
        if not has_used and machine.size == SIZES[-1]:
            machine.fruitless[key] = machine.fruitless.get(key, 0) + _AT_ONCE
    return found
