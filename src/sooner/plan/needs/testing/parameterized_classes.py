"""Classes of tests that are multiplied by cases, each a set of attributes.

These are CuPy's and Chainer's `testing.parameterize` (the source of the names is `cupy/testing/_parameterized.py`,
`_make_class_name`) and `parameterized_class` of the package parameterized (`default_class_name_func`).
"""

import re
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.cases import parts
from sooner.plan.needs.evaluator.values import (
    Cls,
    Ext,
    Func,
    Function,
    Inst,
    Mark,
    Mod,
    Native,
    Param,
    Unknown,
    hard,
    is_plain,
    name_of,
)
from sooner.plan.needs.frameworks.number_types import is_scalar_type, scalar_name
from sooner.plan.needs.testing.testing_names import apply_mark

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_NUMBERS: Final = re.compile(r"numpy\.(bool_|u?int\d+|float\d+|complex\d+)")
_CASE: Final = "param"
_LONGEST_VALUE: Final = 100
_LONGEST_NAME: Final = 5_000


def class_of_cases(machine: "Machine", args: list[Any]) -> Any:
    """A class of tests with the attributes of several cases.

    unittest's is replaced by a class for each case (`TestIt_param_0_{n=1}`), any other gets a parameter. Where a name
    follows from something unknown, the class stays alone, with the attributes of the first case.

    Args:
        machine: Evaluates.
        args: The class; a class with a fixture that sets the attributes of the parameter; the cases; whether they are
            named by their values, or by their numbers.
    """
    target, mixin = hard(args[0]), hard(args[1])
    cases = [hard(each) for each in machine.items_of(args[2]) or []]
    if not isinstance(target, Cls) or not isinstance(mixin, Cls) or not all(isinstance(each, dict) for each in cases):
        return args[0]
    by_values = hard(args[3]) is not False
    names = [_name(index, case) if by_values else str(index) for index, case in enumerate(cases)]
    if not cases or None in names:
        target.attrs |= cases[0] if cases else {}
        return target
    if not target.is_a("TestCase"):
        made = Cls(target.name, [mixin, target], target.module, target.node)
        rows = [Param((case,), [], name) for name, case in zip(names, cases, strict=True)]
        apply_mark(made, Mark("parametrize", ("_cupy_testing_param", rows), {}))
        return made
    _multiply(target, cases, [f"{target.name}{name}" for name in names])
    target.attrs["__test__"] = False  # nor are its bases' tests run with it
    return None


def of_parameterized(machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`@parameterized_class(names, values)` or `(cases)`: a class for each case (`TestIt_0_name`).

    The class itself stays with the tests that it inherits (`parameterized_class` takes away its own).

    Args:
        machine: Evaluates.
        args: The names of attributes and their values, or the cases.
        kwargs: `class_name_func` makes the names.
    """
    cases = _cases_of(machine, args, kwargs)
    by = kwargs.get("class_name_func")

    def decorate(inner: list[Any], _kwargs: dict[str, Any]) -> Any:
        target = hard(inner[0]) if inner else None
        if not isinstance(target, Cls) or not cases:
            return inner[0] if inner else None
        made = [machine.call(by, [target, index, case], {}) if by else None for index, case in enumerate(cases)]
        names = [hard(name) if by else _default_name(target, index, cases[index]) for index, name in enumerate(made)]
        if all(isinstance(name, str) for name in names):
            _multiply(target, cases, names)
        else:
            target.attrs |= cases[0]
        return target

    return Native("parameterized_class", decorate)


def _cases_of(machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> list[dict[str, Any]] | None:
    """The attributes of each case; None where they are not known."""
    given = hard(args[0] if args else kwargs.get("attrs"))
    values = args[1] if len(args) > 1 else kwargs.get("input_values")
    if values is None:
        cases = [hard(each) for each in machine.items_of(given) or []]
        if not cases or not all(isinstance(each, dict) for each in cases):
            return None
        return [{key: value for key, value in each.items() if isinstance(key, str)} for each in cases]
    names = [given] if isinstance(given, str) else [hard(each) for each in machine.items_of(given) or []]
    rows = [machine.items_of(row) for row in machine.items_of(values) or []]
    if not names or any(row is None or len(row) != len(names) for row in rows):
        return None
    return [dict(zip(names, row or [], strict=True)) for row in rows]


def _default_name(target: Cls, index: int, case: dict[str, Any]) -> str:
    """The class's name, the number of the case, and its name or its first text."""
    texts = [case["name"]] if "name" in case else [each for each in case.values() if isinstance(hard(each), str)]
    text = re.sub("[^a-zA-Z0-9_]+", "_", str(hard(texts[0]))) if texts else ""
    return f"{target.name}_{index}{text and f'_{text}'}"


def _multiply(target: Cls, cases: list[dict[str, Any]], names: list[str]) -> None:
    """A class for each case, in the module of the class that they are made of; they take over its own tests."""
    keys = sorted({key for case in cases for key in case})
    texts = [
        [(text_of(case[key]) or f"{index}?") if key in case else "" for key in keys] for index, case in enumerate(cases)
    ]
    picks = parts(texts)
    tests = {name: target.attrs.pop(name) for name in list(target.attrs) if name.startswith("test")}
    for case, name, pick in zip(cases, names, picks, strict=True):
        made = Cls(name, [target], target.module, target.node)
        made.attrs |= {"__test__": True, **tests, **case}
        made.attrs["__case__"] = (target.name, pick)
        target.module.env.names[made.name] = made


def _name(index: int, case: dict[str, Any]) -> str | None:
    """What is added to the class's name for a case; None where a value is not known."""
    values = [(key, text_of(value)) for key, value in sorted(case.items())]
    if any(text is None for _, text in values):
        return None
    text = ", ".join(f"{key}={_shortened(text or '', _LONGEST_VALUE)}" for key, text in values)
    return f"_param_{index}_{{{_shortened(text, _LONGEST_NAME)}}}"


def text_of(value: Any) -> str | None:
    """A value as CuPy writes it into a name; None where it is not known."""
    value = hard(value)
    if is_scalar_type(value):
        return scalar_name(value)
    if isinstance(value, Func | Cls | Native) or (isinstance(value, Ext) and "()" not in value.path):
        return name_of(value)
    return _written(value)


def _written(value: Any) -> str | None:
    """What `repr` gives; the types of numbers in a tuple or list have theirs, None where anything is not known."""
    value = hard(value)
    if is_plain(value) or (isinstance(value, slice) and is_plain([value.start, value.stop, value.step])):
        return repr(value)
    if isinstance(value, Ext) and _NUMBERS.fullmatch(value.path):
        return f"<class 'numpy.{scalar_name(value)}'>"
    if value is Ellipsis or (isinstance(value, Unknown) and value.path == "Ellipsis"):
        return "Ellipsis"
    if not isinstance(value, tuple | list | dict) or not value:
        return None
    texts = [_written(each) for each in (value.values() if isinstance(value, dict) else value)]
    if None in texts:
        return None
    if isinstance(value, dict):
        inner = ", ".join(f"{key!r}: {text}" for key, text in zip(value, texts, strict=True))
        return f"{{{inner}}}" if all(map(is_plain, value)) else None
    inner = ", ".join(text or "" for text in texts)
    if isinstance(value, list):
        return f"[{inner}]"
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    first = (longest - 3) // 2
    return f"{text[:first]}...{text[len(text) - (longest - 3 - first) :]}"


def case_of(values: list[Any], named: dict[str, Any]) -> Inst:
    """A case as parameterized hands it over: a pair of arguments, by position and by name."""
    cls = Cls(_CASE, [], Mod("parameterized", "", is_model=True))
    cls.attrs |= {"__record__": ["args", "kwargs"], "__tuple__": True}
    made = Inst(cls)
    made.attrs |= {"args": tuple(values), "kwargs": named, "__items__": [tuple(values), named]}
    return made


def arguments_of(machine: "Machine", case: Any) -> tuple[list[Any], dict[str, Any]]:
    """What a case of `parameterized.expand` gives a test: by position, and by name."""
    given = hard(case)
    if isinstance(given, Inst) and given.cls.name == _CASE:
        return list(given.attrs["args"]), dict(given.attrs["kwargs"])
    values = machine.items_of(case)
    return [case] if values is None or isinstance(given, str) else values, {}


def _param(_machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`param(1, n=2)`."""
    return case_of(args, kwargs)


def _explicit(machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> Any:
    """`param.explicit((1,), {"n": 2})`."""
    told = {**dict(zip(("args", "kwargs"), args, strict=False)), **kwargs}
    named = hard(told.get("kwargs"))
    return case_of(machine.items_of(told.get("args", ())) or [], dict(named) if isinstance(named, dict) else {})


PARAMETERIZED: Final[dict[str, Function]] = {
    "parameterized.parameterized_class": of_parameterized,
    "parameterized.param": _param, "parameterized.parameterized.param": _param,
    "parameterized.param.explicit": _explicit, "parameterized.parameterized.param.explicit": _explicit,
}  # fmt: skip
