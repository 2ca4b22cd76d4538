"""Collects a test file the way pytest does, without importing it: classes, inherited tests, parameters, ids."""

import ast
import math
import re
from collections.abc import Iterator
from itertools import product
from typing import Any, Final

from msgspec import Struct, structs

from sooner.plan.needs.evaluator.machine import Machine
from sooner.plan.needs.evaluator.state import TEST_FUEL
from sooner.plan.needs.evaluator.values import (
    Bound,
    Cls,
    Ext,
    Func,
    Inst,
    Mark,
    Mod,
    Native,
    Unknown,
    Wrapped,
    copy_of,
    hard,
    name_of,
)
from sooner.plan.needs.settings import PytestSettings
from sooner.plan.needs.testing.axes import Axis, axis_of, fixture_axis, quietly
from sooner.plan.needs.testing.fixtures import OUTER, Fixtures
from sooner.plan.needs.testing.generated_cases import generated
from sooner.plan.needs.testing.plugins import turns_of

_MOST_CASES: Final = 20_000
"""Cases of one function (0.4 ms and 10 KB each); beyond that it gets one entry without brackets, for some of them."""
_MOST_LIKE_ONE: Final = 16
"""Of cases that have one entry together, because their ids are not known, so many are evaluated."""
_TEST_BASES: Final = ("TestCase", "TestBase", "TestsBase")


class Item(Struct, frozen=True, kw_only=True):
    """One test, as pytest would list it."""

    nodeid: str
    name: str
    base: str
    """Its name without parameters."""
    func: Any
    cls: Cls | None
    params: dict[str, Any]
    indirect: frozenset[str]
    marks: list[Any]
    is_unittest: bool
    fixtures: list[str]
    has_cases: bool = False
    class_picks: tuple[int, ...] = ()
    """Which case of those that its class was made of (`family`)."""
    asked: int = 0
    """What the hooks that its cases are from asked about visible devices (`Trace.asked`)."""
    family: str = ""
    """The test that a class of cases was made of; empty where its class was written."""
    also: "tuple[Item, ...]" = ()
    """Further cases that this entry stands for, where some parameter's values are not known and so no case's id is."""


def collect(machine: Machine, path: str) -> list[Item]:
    """All tests of a file. A module that cannot be executed to its end gives those that it defined until then."""
    module = machine.load(path)
    fixtures = Fixtures(machine, path)
    module_marks = _marks_of(module.env.names.get("pytestmark"), machine)
    hooks = (each.env.names.get("pytest_make_parametrize_id") for each in reversed(fixtures.modules[:-1]))
    machine.id_hooks = tuple(each for each in hooks if isinstance(each, Func))
    items: list[Item] = []
    for name, value in _named(module.env.names):
        if isinstance(value, Cls) and _is_test_class(name, value, machine.settings):
            items.extend(_of_class(machine, path, name, value, module_marks=module_marks, fixtures=fixtures))
        elif _matches(name, machine.settings.functions) and isinstance(value, Func | Native | Bound):
            if isinstance(value, Func) and (
                value.attrs.get("__fixture__") is not None or value.attrs.get("__test__") is False
            ):
                continue
            if isinstance(value, Native):
                continue
            items.extend(
                _cases(machine, f"{path}::{name}", name, value, cls=None, marks=module_marks, fixtures=fixtures)
            )
    return items


def _named(names: dict[Any, Any]) -> list[tuple[str, Any]]:
    """The names of a module; `globals()[...]` may have put in something under a name that is not known."""
    return [(name, value) for name, value in names.items() if isinstance(name, str)]


def taint(item: Item, modules: list[Mod]) -> int:
    """What a test's own definition, and what goes before it, ask about visible devices (`Trace.asked`).

    Args:
        item: The test.
        modules: The conftests and plugins that it has, and its file as the last one.
    """
    names = modules[-1].tainted
    classes = [each for cls in _classes_around(item.cls) for each in cls.mro if isinstance(each, Cls)]
    return max(
        item.asked,
        *(each.asked for each in modules),
        names.get("pytestmark", 0),
        names.get(item.base, 0),
        int(_attrs(item.func).get("__asked__", 0)),
        *(each.module.tainted.get(each.name, 0) for each in classes),
        *(int(each.attrs.get("__asked__", 0)) for each in classes),
    )


def _classes_around(cls: Cls | None) -> Iterator[Cls]:
    """A class, the one that it was defined in, and so on."""
    while isinstance(cls, Cls):
        yield cls
        cls = cls.attrs.get(OUTER)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    for pattern in patterns:
        if name.startswith(pattern):
            return True
        if any(sign in pattern for sign in "*?["):
            shape = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
            if re.fullmatch(shape, name):
                return True
    return False


def is_unittest(cls: Cls) -> bool:
    """Whether a class is a `unittest.TestCase`, as far as its bases tell."""
    for base in cls.mro:
        if isinstance(base, Ext | Unknown):
            last = name_of(base).removesuffix("()")
            if last.endswith(_TEST_BASES) or (last.endswith("Test") and last != "DistributedTest"):
                return True
        elif base.attrs.get("__unittest__") is True:
            return True
    return False


def _is_test_class(name: str, cls: Cls, settings: PytestSettings) -> bool:
    if cls.attrs.get("__test__") is False or cls.find("__test__") is False:
        return False
    if is_unittest(cls):
        return True
    return _matches(name, settings.classes) and not isinstance(cls.find("__init__"), Func)


def _of_class(
    machine: Machine,
    path: str,
    name: str,
    cls: Cls,
    *,
    module_marks: list[Any],
    fixtures: Fixtures,
) -> Iterator[Item]:
    marks = [*class_marks(cls, machine), *module_marks]
    own = fixtures.of_class(cls)
    prefix = f"{path}::{name}"
    unittest = is_unittest(cls)
    for method, value in _methods(cls, ("test",) if unittest else machine.settings.functions):
        yield from _cases(
            machine,
            f"{prefix}::{method}",
            method,
            value,
            cls=cls,
            marks=marks,
            fixtures=own,
            is_unittest_class=unittest,
        )
    for inner, value in cls.attrs.items():
        if isinstance(value, Cls) and _is_test_class(inner, value, machine.settings) and not is_unittest(value):
            value.attrs[OUTER] = cls
            yield from _of_class(machine, prefix, inner, value, module_marks=marks, fixtures=fixtures)


def _methods(cls: Cls, prefixes: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for owner in cls.mro:
        if not isinstance(owner, Cls):
            continue
        for name, value in owner.attrs.items():
            if name in seen or not isinstance(name, str):
                continue
            seen.add(name)
            inner = value.func if isinstance(value, Wrapped) and value.kind != "property" else value
            if _matches(name, prefixes) and isinstance(inner, Func | Bound) and not _is_fixture(inner):
                yield name, inner


def _is_fixture(value: Any) -> bool:
    return isinstance(value, Func) and value.attrs.get("__fixture__") is not None


def class_marks(cls: Cls, machine: Machine) -> list[Any]:
    """The marks of a class and of those that it inherits from."""
    marks: list[Any] = []
    is_plain = not is_unittest(cls) and all(isinstance(each, Cls) or name_of(each) == "object" for each in cls.mro)
    for owner in cls.mro:
        if isinstance(owner, Cls):
            own = _marks_of(owner.attrs.get("pytestmark"), machine)
            # What unittest's decorators leave at a class only unittest looks at.
            marks.extend(each for each in own if not (is_plain and isinstance(each, Mark) and each.wraps))
            marks.extend(_skip_as_attribute(owner.attrs) if is_unittest(cls) else ())
    return marks


def _skip_as_attribute(attrs: dict[Any, Any]) -> list[Mark]:
    """What unittest's own decorators set, and others do by themselves (`func.__unittest_skip__ = True`)."""
    if "__unittest_skip__" not in attrs:
        return []
    why = attrs.get("__unittest_skip_why__", "")
    return [Mark("skipif", (attrs["__unittest_skip__"],), {"reason": why})]


def _marks_of(value: Any, machine: Machine) -> list[Any]:
    value = hard(value)
    if isinstance(value, Mark | Ext):
        return [value]
    return [each for each in machine.items_of(value) or [] if isinstance(each, Mark)] if value is not None else []


def _cases(
    machine: Machine,
    nodeid: str,
    base: str,
    func: Any,
    *,
    cls: Cls | None,
    marks: list[Any],
    fixtures: Fixtures,
    is_unittest_class: bool = False,
) -> list[Item]:
    """The items of one function; one that stands for all where the values of a parameter are not known."""
    generic, picked = cls.attrs.get("__case__", ("", ())) if cls is not None else ("", ())
    own = _marks_of(_attrs(func).get("pytestmark"), machine)
    own += _skip_as_attribute(_attrs(func)) if is_unittest_class else []
    every = [*own, *marks]
    wanted = fixtures.closure(func, every)
    before, machine.trace.asked = machine.trace.asked, 0
    axes = _axes(machine, func, cls, every, fixtures=fixtures, wanted=wanted, is_unittest_class=is_unittest_class)
    asked = machine.trace.asked
    machine.trace.ask(before)
    known = [axis for axis in axes if axis is not None]
    is_cut = len(known) < len(axes) or any(axis.unsure for axis in known)
    several, unsure = _looked_at([len(axis.cases) for axis in known], unsure=is_cut)
    items: list[Item] = []
    for picks in several:
        combination = [axis.cases[pick] for axis, pick in zip(known, picks, strict=True)]
        params = {key: value for _, values, _ in combination for key, value in values.items()}
        # Names that are part of a method's are put together from the outermost decorator inwards.
        named = [*zip(combination, known, strict=True)]
        suffix = "".join(name for (name, _, _), axis in reversed(named) if axis.suffix and not axis.last)
        suffix += "".join(name for (name, _, _), axis in named if axis.last)
        suffix += "".join(mark.args[0](params) for mark in own if isinstance(mark, Mark) and mark.name == "__tail__")
        brackets = "-".join(name for (name, _, _), axis in zip(combination, known, strict=True) if not axis.suffix)
        of_case = [mark for _, _, more in combination for mark in more]
        decorated, told = _decorated(machine, func, [*of_case, *every], params)
        bracket = f"[{brackets}]" if any(not axis.suffix for axis in known) and not unsure else ""
        item = Item(
            nodeid=f"{nodeid}{suffix}{bracket}",
            name=f"{base}{suffix}{bracket}",
            base=base,
            func=decorated,
            cls=cls,
            params=params,
            indirect=frozenset().union(*(axis.indirect for axis in known)),
            marks=[*told, *of_case, *every],
            is_unittest=is_unittest_class,
            fixtures=wanted,
            has_cases=bool(picked or picks),
            class_picks=picked,
            asked=asked,
            family=f"{generic}::{base}" if generic else "",
        )
        items.append(item)
    return _one_for_all(items) if unsure else items


def _looked_at(counts: list[int], *, unsure: bool) -> tuple[list[tuple[int, ...]], bool]:
    """Which cases of so many values of each parameter are evaluated, and whether they are some that have one entry."""
    if math.prod(counts) > _MOST_CASES:
        # Each with the next value of every parameter: of those with few values all are there.
        return [tuple(place % count for count in counts) for place in range(_MOST_LIKE_ONE)], True
    several = list(product(*map(range, counts)))
    step = -(-len(several) // _MOST_LIKE_ONE) if unsure else 1
    # One of so many each, another one each time: what takes turns among them is all looked at.
    places = range(0, len(several), max(step, 1))
    return [several[min(place + turn % step, len(several) - 1)] for turn, place in enumerate(places)], unsure


def _one_for_all(items: list[Item]) -> list[Item]:
    """The first one of each name, which stands for the others."""
    by_name: dict[str, list[Item]] = {}
    for item in items:
        by_name.setdefault(item.nodeid, []).append(item)
    return [structs.replace(first, also=tuple(more)) for first, *more in by_name.values()]


def _axes(
    machine: Machine,
    func: Any,
    cls: Cls | None,
    marks: list[Any],
    *,
    fixtures: Fixtures,
    wanted: list[str],
    is_unittest_class: bool,
) -> list[Axis | None]:
    """The parametrisations of one function, in the order in which pytest joins them; None where one is not known."""
    axes: list[Axis | None] = []
    machine.fuel = TEST_FUEL
    if not is_unittest_class:
        first, later = generated(fixtures, func, cls, wanted, marks)
        given = _given_by_marks(machine, [*first, *later, *marks])
        axes += [axis_of(machine, mark, func) for mark in first]
        own_params = [name for name in wanted if fixtures.has_params(name) and name not in given]
        axes += [fixture_axis(machine, name, fixtures) for name in own_params]
        axes += [axis_of(machine, mark, func) for mark in later]
    by_values = any(isinstance(each, Mark) and each.kwargs.get("last", False) is True for each in marks)
    for mark in marks:
        if isinstance(mark, Mark) and mark.name in ("parametrize", "__expand__", "__absl__", "__suffix__"):
            axes.append(axis_of(machine, mark, func, by_values=by_values))
    repeated = next((each for each in marks if isinstance(each, Mark) and turns_of(each) > 1), None)
    if repeated is not None and not is_unittest_class:
        axes.append(axis_of(machine, repeated, func))
    return axes


def _decorated(machine: Machine, func: Any, marks: list[Any], params: dict[str, Any]) -> tuple[Any, list[Any]]:
    """A test as decorators leave it that are for some of its cases only, and the marks that they give it."""
    told: list[Any] = []
    for mark in marks:
        decorator, predicate = mark.args if isinstance(mark, Mark) and mark.name == "__if__" else (mark, None)
        is_decorator = predicate is not None or isinstance(decorator, Func | Bound | Inst)
        if not is_decorator or not isinstance(func, Func):
            continue
        if predicate is not None and machine.truth(quietly(machine, predicate, [params])) is not True:
            continue
        copy = copy_of(func, func.owner)
        copy.attrs = {**func.attrs, "pytestmark": []}
        made = quietly(machine, decorator, [copy])
        func = made if isinstance(made, Func) else func
        told += [*_marks_of(func.attrs.get("pytestmark"), machine), *_skip_as_attribute(func.attrs)]
    return func, told


def _given_by_marks(machine: Machine, marks: list[Any]) -> set[str]:
    """Names that `parametrize` gives values to, directly or through a fixture: its own parameters are not used."""
    found: set[str] = set()
    for mark in marks:
        if isinstance(mark, Mark) and mark.name == "parametrize":
            names = hard(mark.args[0] if mark.args else mark.kwargs.get("argnames"))
            fields = names.replace(" ", "").split(",") if isinstance(names, str) else machine.items_of(names) or []
            found |= {each for each in fields if isinstance(each, str)}
    return found


def _attrs(func: Any) -> dict[str, Any]:
    while isinstance(func, Bound):
        func = func.func
    return func.attrs if isinstance(func, Func) else {}


def expression_of(text: str) -> ast.expr | None:
    """The expression in a text condition (`skipif("sys.platform == 'win32'")`)."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
