"""What an instance of the library under test was made of: it is not made, but keeps what it was given."""

import ast
from typing import TYPE_CHECKING, Any

from sooner.plan.needs.evaluator.values import UNKNOWN, Cls, Env, Func, Inst, Unknown, hard
from sooner.plan.needs.frameworks.unseen import is_told_of_devices
from sooner.plan.needs.python.signatures import parameters_of
from sooner.plan.needs.syntax import kept

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


def told(machine: "Machine", value: Any, name: str) -> Any:
    """What the tests have told an instance by some name, or have set on it; else the default of its `__init__`.

    What the library makes by itself, of what it has read, is not known.
    """
    made = hard(value)
    if not isinstance(made, Inst) or made.given is None:
        return UNKNOWN
    if name in made.attrs:
        return hard(made.attrs[name])
    args, kwargs = made.given
    maker = made.cls.find("__init__")
    if not isinstance(maker, Func):
        return hard(kwargs.get(name, UNKNOWN))
    given = Env(maker.module, None)
    machine.bind_arguments(maker, [made, *args], kwargs, given)
    more = hard(given.names.get(maker.node.args.kwarg.arg)) if maker.node.args.kwarg is not None else None
    return hard(given.names.get(name, more.get(name, UNKNOWN) if isinstance(more, dict) else UNKNOWN))


def takes_devices(machine: "Machine", cls: Cls, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """Whether a class of the library takes the devices that there are, unless it is told others (`accelerator="auto"`).

    Where the library says so in the list of what its `__init__` may be given.
    """
    return is_told_to_take(machine, cls.find("__init__"), [Inst(cls), *args], kwargs)


def is_told_to_take(machine: "Machine", maker: Any, args: list[Any], kwargs: dict[str, Any]) -> bool:
    """The same of an `__init__`, which is given the instance too."""
    while isinstance(maker, Func) and isinstance(maker.attrs.get("__wrapped__"), Func):
        maker = maker.attrs["__wrapped__"]
    names = parameters_of(maker)
    if not isinstance(maker, Func) or not isinstance(names, dict) or "accelerator" not in names:
        return False
    given = Env(maker.module, None)
    machine.bind_arguments(maker, args, kwargs, given)
    said = {name: hard(given.names.get(name)) for name in ("accelerator", "devices")}
    return said["accelerator"] == "auto" and is_told_of_devices(said)


def finish_record(machine: "Machine", after: Func, made: Inst, given: dict[str, Any]) -> None:
    """Call a record's `__post_init__`; the library's is not followed: of a default that it changes nothing is known.

    Args:
        machine: Evaluates.
        after: Its `__post_init__`.
        made: The record, which has its fields.
        given: What it was told.
    """
    if not (machine.quiet or after.module.is_test_code or after.module.is_model):
        finishing = [each.attrs.get("__post_init__") for each in made.cls.mro if isinstance(each, Cls)]
        names = [_set_on_self(each.node) for each in finishing if isinstance(each, Func)]
        for name in frozenset().union(*names) - given.keys():
            made.attrs[name] = Unknown(f"{made.cls.name}().{name}")
    told = [made.attrs.get(name, UNKNOWN) for name in after.positional[1:]]  # `InitVar`
    machine.call(after, [made, *told], {})


@kept
def _set_on_self(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    """Attributes that a method sets on its object."""
    owner = next((each.arg for each in node.args.args), None)
    stores = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store))
    return frozenset(each.attr for each in stores if isinstance(each.value, ast.Name) and each.value.id == owner)
