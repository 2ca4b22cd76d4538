"""PyTorch's tests for several kinds of device: one class for each kind (`TestOpsCPU`, `TestOpsCUDA`), and their names.

The source of what happens here is `torch/testing/_internal/common_device_type.py`, `instantiate_device_type_tests`.
"""

from typing import TYPE_CHECKING, Any

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Cls,
    Ext,
    Func,
    Mark,
    Native,
    Unknown,
    Wrapped,
    copy_of,
    hard,
)
from sooner.plan.needs.frameworks.number_types import LONG_NAMES

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


def instantiate(machine: "Machine", args: list[Any]) -> Any:
    """A class of tests for one kind of device, put into a module in the place of a generic one.

    Args:
        machine: Evaluates.
        args: The generic class, the class of the rule table for the kind of device, the module's names.
    """
    generic, base, names = hard(args[0]), hard(args[1]), hard(args[2])
    if not (isinstance(generic, Cls) and isinstance(base, Cls) and isinstance(names, dict)):
        return UNKNOWN
    kind = str(hard(base.attrs.get("device_type", "cpu")))
    made = Cls(f"{generic.name}{kind.upper()}", [base, *generic.bases], generic.module, generic.node)
    for name, value in generic.attrs.items():
        made.attrs[name] = _for_kind(machine, value, made, kind) if _is_test(name, value) else _owned(value, made)
    _set_up_both(machine, made, base, generic)
    names[made.name] = made
    return made


def dtype_name(_machine: "Machine", args: list[Any]) -> Any:
    """How PyTorch writes a type of numbers in names of tests; UNKNOWN for anything else."""
    value = hard(args[0]) if args else UNKNOWN
    if not isinstance(value, Ext) or not value.path.startswith("torch.") or value.path.count(".") != 1:
        return UNKNOWN
    name = value.path.removeprefix("torch.")
    name = LONG_NAMES.get(name, name)
    return name if name.startswith(("float", "int", "uint", "complex", "bool", "bfloat")) else UNKNOWN


def _is_test(name: Any, value: Any) -> bool:
    return isinstance(name, str) and name.startswith("test") and isinstance(value, Func)


def _owned(value: Any, owner: Cls) -> Any:
    """A member of the generic class as one of the new class: `super()` in it starts there."""
    if isinstance(value, Wrapped):
        return Wrapped(value.kind, _owned(value.func, owner), setter=_owned(value.setter, owner))
    return copy_of(value, owner) if isinstance(value, Func) else value


def _for_kind(machine: "Machine", test: Func, owner: Cls, kind: str) -> Func:
    """A test for one kind of device: its name ends in the kind, then in the type of numbers."""
    made = copy_of(test, owner)
    first = "cuda:0" if kind == "cuda" else kind
    several = [f"cuda:{index}" for index in range(machine.visible())] if kind == "cuda" else [first]
    values = {"devices": several} if "num_required_devices" in test.attrs else {"device": first}
    # What is put together last comes first.
    marks = [_types(machine, test, kind), Mark("__suffix__", ([(f"_{kind}", values, [])],), {})]
    if marks[0] is None:
        marks[0] = Mark("__tail__", (lambda params: _given_type(machine, params),), {})
    made.attrs["pytestmark"] = [*(each for each in marks if each is not None), *test.attrs.get("pytestmark", ())]
    return made


def _types(machine: "Machine", test: Func, kind: str) -> Mark | None:
    """The axis of `@dtypes(...)`."""
    by_kind = hard(test.attrs.get("dtypes"))
    if not isinstance(by_kind, dict):
        return None
    cases = machine.items_of(by_kind.get(kind, by_kind.get("all")))
    rows = [] if cases is None else [_type_case(machine, case) for case in cases]
    return Mark("__suffix__", (rows if rows and None not in rows else None,), {})


def _type_case(machine: "Machine", case: Any) -> tuple[str, dict[str, Any], list[Any]] | None:
    several = machine.items_of(case)
    names = [dtype_name(machine, [each]) for each in ([case] if several is None else several)]
    if any(isinstance(each, Unknown) for each in names):
        return None
    return "_" + "_".join(names), {"dtype": case} if several is None else {"dtypes": case}, []


def _given_type(machine: "Machine", params: dict[str, Any]) -> str:
    """The end of the name of a case that somebody else than `@dtypes(...)` has given a type of numbers."""
    given = params.get("dtypes", params.get("dtype", MISSING))
    case = None if given is MISSING else _type_case(machine, given)
    return "" if case is None else case[0]


def _set_up_both(machine: "Machine", made: Cls, base: Cls, generic: Cls) -> None:
    """`setUpClass` is called of the kind of device, then of the generic class."""
    parts = [each for each in (base.find("setUpClass"), generic.find("setUpClass")) if isinstance(each, Wrapped)]

    def both(_args: list[Any], _kwargs: dict[str, Any]) -> None:
        for each in parts:
            machine.call(each.func, [made], {})

    if parts:
        made.attrs["setUpClass"] = Wrapped("classmethod", Native("setUpClass", both))
