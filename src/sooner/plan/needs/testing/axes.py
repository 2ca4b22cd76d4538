"""One parametrisation of a test: the id, the values and the marks of each of its cases, as pytest makes them."""

import re
from collections import Counter
from collections.abc import Collection
from itertools import product
from typing import Any, Final

from msgspec import Struct

from sooner.plan.needs.evaluator.enumerations import is_mixed_member
from sooner.plan.needs.evaluator.lazy_values import Turn
from sooner.plan.needs.evaluator.machine import Machine
from sooner.plan.needs.evaluator.suspending import Manager
from sooner.plan.needs.evaluator.values import (
    UNKNOWN,
    Bound,
    Cls,
    Ext,
    Func,
    Inst,
    Mark,
    Mod,
    Native,
    OutOfFuel,
    Param,
    Partial,
    Raised,
    Skip,
    Unknown,
    hard,
    is_plain,
)
from sooner.plan.needs.frameworks.number_types import is_scalar_type, scalar_name, scalar_of_dtype
from sooner.plan.needs.frameworks.outside_kinds import member_text
from sooner.plan.needs.testing.fixtures import Fixtures, argument_names, underlying
from sooner.plan.needs.testing.parameterized_classes import arguments_of, case_of
from sooner.plan.needs.testing.plugins import Lazy, turns_of
from sooner.plan.needs.testing.testing_names import SWALLOWING

_LONGEST_ID: Final = 100
"""Characters of a text that pytest (from 9.2 on, unless it is told otherwise) writes into an id."""
BY_POSITION: Final = "*"
"""Among a case's parameters: what a test is given by position."""
NO_CASES: Final = "NOTSET"
"""What pytest calls the one case of an empty list; it is skipped."""
DOUBTED: Final = Mark("__doubted__", (), {})
"""A mark of a case that only one of several ways has."""
_DTYPES: Final = re.compile(r"torch\.(b?float\d*|double|half|u?int\d+|long|short|bool|bfloat16|complex\d+|float8_\w+)")
_SCALARS_WITH_NAMES: Final = ("jax.", "ml_dtypes.", "numpy.")
"""Whose types of numbers are classes, or say their name as classes do."""


Row = tuple[str, dict[str, Any], list[Any]]
"""Id, values and marks of one case."""


class Axis(Struct, frozen=True):
    """One parametrisation: for each case its id, values, marks."""

    cases: list[Row]
    indirect: frozenset[str] = frozenset()
    suffix: bool = False
    """Whether its id is a part of the name instead of standing in brackets."""
    last: bool = False
    """Whether that part comes after those of all others."""
    unsure: bool = False
    """Whether nobody knows how many cases there are: these stand for all."""


def fixture_axis(machine: Machine, name: str, fixtures: Fixtures) -> Axis | None:
    """The parameters of a fixture; None where they are not known."""
    values, ids = fixtures.params(name)
    cases = machine.items_of(values)
    if cases is None:
        return None
    rows = _rows(machine, [name], cases, ids)
    return None if rows is None else Axis(_doubted(rows, machine.added.places(values)), frozenset((name,)))


def axis_of(machine: Machine, mark: Mark, func: Any, *, by_values: bool = False) -> Axis | None:
    """What a mark says (`parametrize`, or a package's decorator for the like); None where it is not known.

    `by_values`: absl's cases without a name are called by their values instead of by their numbers, as chex does.
    """
    if mark.name == "__suffix__":
        cases = hard(mark.args[0])
        known = isinstance(cases, list) and cases and all(isinstance(hard(name), str) for name, _, _ in cases)
        named = [(hard(name), values, more) for name, values, more in cases] if known else []
        return Axis(named, suffix=True, last=mark.kwargs.get("last", False)) if known else None
    if mark.name == "__expand__":
        return _expanded(machine, mark, func)
    if mark.name == "repeat":
        turns = turns_of(mark)
        return Axis([(f"{turn}-{turns}", {}, []) for turn in range(1, turns + 1)])
    if mark.name == "__absl__":
        return _absl(machine, mark, func, by_values=by_values)
    args = [*mark.args, None, None]
    names = hard(args[0] if mark.args else mark.kwargs.get("argnames"))
    values = hard(args[1] if len(mark.args) > 1 else mark.kwargs.get("argvalues"))
    fields = [each.strip() for each in names.split(",") if each.strip()] if isinstance(names, str) else names
    cases = values.rows if isinstance(values, Turn) else machine.items_of(values)
    if cases is None or not isinstance(fields, list | tuple):
        return None
    indirect = mark.kwargs.get("indirect", False)
    through = frozenset(fields) if indirect is True else frozenset(machine.items_of(indirect) or ())
    rows = _rows(machine, list(fields), cases, mark.kwargs.get("ids"), listed=not isinstance(names, str))
    if rows is None:
        return None
    perhaps = range(len(rows)) if DOUBTED.name in mark.kwargs else machine.added.places(values)
    return Axis(_doubted(rows, perhaps), through, unsure=isinstance(values, Turn))


def _doubted(rows: list[Row], places: Collection[int]) -> list[Row]:
    """The same rows, those in some places with a mark of doubt."""
    if not places:
        return rows
    return [
        (name, values, [*marks, DOUBTED]) if place in places else (name, values, marks)
        for place, (name, values, marks) in enumerate(rows)
    ]


def _rows(machine: Machine, fields: list[str], cases: list[Any], ids: Any, *, listed: bool = False) -> list[Row] | None:
    """Name, values and marks of each case; `listed`: of a list of names, be it of one, a case is a row of values."""
    if not cases:
        return [(NO_CASES, dict.fromkeys(fields, UNKNOWN), [Mark("skip", ("got empty parameter set",), {})])]
    given = machine.items_of(ids) if not isinstance(ids, Func | Native | Bound) else None
    if isinstance(hard(ids), Unknown | Ext) and given is None:
        return None
    rows: list[Row] = []
    for index, case in enumerate(cases):
        marks: list[Any] = []
        explicit: Any = None
        values: Any
        if isinstance(case, Param):
            values, marks, explicit = case.values, case.marks, hard(case.id)
        else:
            values = machine.items_of(case) if listed or len(fields) > 1 else (case,)
        if values is None:
            values = [UNKNOWN] * len(fields)
        if explicit is None and given is not None and index < len(given):
            explicit = hard(given[index])
        by = ids if isinstance(ids, Func | Native | Bound) else None
        name = _case_id(machine, explicit, fields, list(values), index=index, by=by)
        if name is None:
            return None
        rows.append((name, dict(zip(fields, values, strict=False)), marks))
    return _distinct(rows)


def _distinct(rows: list[Row]) -> list[Row]:
    """Ids that occur more than once get a number, as pytest gives it."""
    names = [name for name, _, _ in rows]
    if len(set(names)) == len(names):
        return rows
    counters: dict[str, int] = {}
    taken, result = set(names), []
    for name, values, marks in rows:
        if names.count(name) > 1:
            separator = "_" if name and name[-1].isdigit() else ""
            number = counters.get(name, 0)
            while f"{name}{separator}{number}" in taken:
                number += 1
            counters[name] = number + 1
            result.append((f"{name}{separator}{number}", values, marks))
            taken.add(f"{name}{separator}{number}")
        else:
            result.append((name, values, marks))
    return result


def _case_id(
    machine: Machine, explicit: Any, fields: list[str], values: list[Any], *, index: int, by: Any
) -> str | None:
    if isinstance(explicit, str | int | float | bool):
        return str(explicit)
    parts: list[str] = []
    for name, value in zip(fields, values, strict=False):
        part = _value_id(machine, value, name, index, by)
        if part is None:
            return None
        parts.append(part)
    return "-".join(parts)


def _value_id(machine: Machine, value: Any, name: str, index: int, by: Any) -> str | None:
    if by is not None:
        try:
            made = hard(machine.call(by, [value], {}))
        except (Raised, Skip, OutOfFuel):
            return None
        if isinstance(made, str | int | float | bool):
            return str(made)
    for hook in machine.id_hooks:
        given = {"val": value, "argname": name}
        made = quietly(machine, hook, [given.get(each, UNKNOWN) for each in hook.positional])
        if isinstance(made, str):
            return made
    return plain_id(value, name, index)


def _text_id(value: str | bytes) -> str:
    text = value if isinstance(value, str) else value.decode("latin-1")
    return text.encode("unicode_escape").decode("ascii")


def plain_id(value: Any, name: str, index: int) -> str | None:
    """How pytest writes a parameter; None where that depends on something unknown."""
    value = hard(value)
    if isinstance(value, str | bytes):
        return _text_id(value) if len(value) <= _LONGEST_ID else f"{name}{index}"
    if value is None or isinstance(value, int | float | bool | complex):
        return str(value)
    if isinstance(value, Lazy):
        return value.name
    if isinstance(value, Inst):
        if is_mixed_member(value) and not value.cls.is_a("int", "float"):
            return plain_id(value.attrs["_value_"], name, index)  # pytest asks for text and for numbers first
        if "_name_" in value.attrs:
            return f"{value.cls.name}.{value.attrs['_name_']}"
        own = value.attrs.get("__name__")
        return own if isinstance(own, str) else f"{name}{index}"
    if isinstance(value, Native) and (isinstance(value, Partial | Manager) or value.name in SWALLOWING):
        return f"{name}{index}"  # what a call has made, which has no name
    if isinstance(value, Func | Cls | Native | Mod):
        return value.name
    said = _name_outside(value) if isinstance(value, Ext) else None
    return said or f"{name}{index}"  # an object, or what is not known: more likely an object than a word


def _name_outside(value: Ext) -> str | None:
    last = value.path.rpartition(".")[2]
    if is_scalar_type(value) and value.path.startswith(_SCALARS_WITH_NAMES):
        return scalar_name(value)
    if scalar_of_dtype(value) is not None or _DTYPES.fullmatch(value.path):
        return None
    if last.startswith("float8") or last == "bfloat16":
        return None
    return member_text(value) or (None if "()" in value.path else last)


def _expanded(machine: Machine, mark: Mark, func: Any) -> Axis | None:
    """`parameterized.expand`: `test_x_0_name`."""
    cases = mark.args[0]
    if cases is None:
        return None
    names = argument_names(func)
    by = mark.kwargs.get("name_func")
    rows: list[Row] = []
    digits = len(str(len(cases) - 1))
    for number, case in enumerate(cases):
        index = f"{number:0{digits}}"
        values, named = arguments_of(machine, case)
        first = hard(values[0]) if values else None
        suffix = f"_{index}" + (f"_{_safe(first)}" if isinstance(first, str) else "")
        if by is not None:
            made = quietly(machine, by, [func, index, case_of(values, named)])
            base = func.name if isinstance(func, Func) else ""
            if isinstance(made, str) and made.startswith(base):
                suffix = made[len(base) :]
        rows.append((suffix, _told(func, names, values) | named, []))
    return Axis(rows, suffix=True)


def _told(func: Any, names: list[str], values: list[Any]) -> dict[str, Any]:
    """What a case's values are to a test: its parameters, or what it takes by position (`def test_it(self, *args)`)."""
    inner = underlying(func)
    if isinstance(inner, Func) and inner.node.args.vararg is not None:
        return {BY_POSITION: values}
    return dict(zip(names, values, strict=False))


def quietly(machine: Machine, func: Any, args: list[Any]) -> Any:
    """What a function gives; one that stops gives nothing that is known."""
    try:
        return hard(machine.call(func, args, {}))
    except (Raised, Skip, OutOfFuel):
        return UNKNOWN


def _safe(text: str) -> str:
    return re.sub("[^a-zA-Z0-9_]+", "_", text)


def _absl(machine: Machine, mark: Mark, func: Any, *, by_values: bool) -> Axis | None:
    """What absl has: `parameters`, `named_parameters`, `product`."""
    kind, args = mark.args
    names = argument_names(func)
    if kind == "product":
        combinations = _combined(machine, args, mark.kwargs)
        if combinations is None:
            return None
        ids = _ids_by_values(machine, combinations) if by_values else [str(i) for i in range(len(combinations))]
        return Axis([(name, each, []) for name, each in zip(ids, combinations, strict=True)], suffix=True)
    cases = machine.items_of(args[0]) if len(args) == 1 and not isinstance(args[0], dict | tuple) else list(args)
    if not cases:  # absl refuses to have none: what there is, is not known
        return None
    ids = _ids_by_values(machine, cases) if by_values and kind != "named" else []
    rows: list[Row] = []
    for index, case in enumerate(cases):
        values = hard(case)
        if isinstance(values, dict):
            given = {key: value for key, value in values.items() if key != "testcase_name"}
            name = values.get("testcase_name", index)
        else:
            row = machine.items_of(values) if not isinstance(values, str) else None
            row = [values] if row is None else row
            name = row[0] if kind == "named" and row else index
            given = _told(func, names, row[1:] if kind == "named" else row)
        name = hard(name)
        if not isinstance(name, str):  # also where it is not known: an id is the same in each run
            name = plain_id(name, "name", index)
        is_joined = kind == "named" and func.name.startswith("test_") and name and not str(name).startswith("_")
        name = f"_{name}" if is_joined else str(name)
        rows.append((ids[index] if ids else name, given, []))
    return Axis(rows, suffix=True)


def _combined(machine: Machine, rows: list[Any], named: dict[str, Any]) -> list[dict[str, Any]] | None:
    """All combinations of what absl's `product` is given: lists of dicts, and a list for each of other parameters."""
    columns: list[list[dict[str, Any]]] = []
    for each in rows:
        column = [hard(row) for row in machine.items_of(each) or (UNKNOWN,)]
        if not all(isinstance(row, dict) for row in column):
            return None
        columns.append(column)
    for key, values in named.items():
        items = machine.items_of(values)
        if items is None:
            return None
        columns.append([{key: value} for value in items])
    return [{key: value for part in parts for key, value in part.items()} for parts in product(*columns)]


def _ids_by_values(machine: Machine, cases: list[Any]) -> list[str]:
    """The `__x_params_repr__` of absl's for each case, `_(1, n=2)`; its number where a value is not known."""
    found: list[str] = []
    times: Counter[str] = Counter()
    for index, case in enumerate(cases):
        values = hard(case)
        if isinstance(values, dict):
            texts = [f"{key}={value!r}" for key, value in values.items()]
        else:
            row = machine.items_of(values) if not isinstance(values, str) else None
            texts = [repr(each) for each in ([values] if row is None else row)]
        name = f"_({', '.join(texts)})" if is_plain(values) else str(index)
        found.append(f"_{times[name]}{name}" if times[name] else name)
        times[name] += 1
    return found
