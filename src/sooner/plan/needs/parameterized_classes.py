"""Classes of tests that are multiplied by cases, each a set of attributes: CuPy's and Chainer's `testing.parameterize`.

The source of the names is `cupy/testing/_parameterized.py`, `_make_class_name`.
"""

import re
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.cases import parts
from sooner.plan.needs.testing_names import apply_mark
from sooner.plan.needs.values import Cls, Ext, Func, Mark, Native, Param, Unknown, hard, is_plain, name_of

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_NUMBERS: Final = re.compile(r"numpy\.(bool_|u?int\d+|float\d+|complex\d+)")
_LONGEST_VALUE: Final = 100
_LONGEST_NAME: Final = 5_000


def class_of_cases(machine: "Machine", args: list[Any]) -> Any:
    """A class of tests with the attributes of several cases.

    unittest's is replaced by a class for each case (`TestIt_param_0_{n=1}`), any other gets a parameter. Where a name
    follows from something unknown, the class stays alone, with the attributes of the first case.

    Args:
        machine: Evaluates.
        args: The class; a class with a fixture that sets the attributes of the parameter; the cases.
    """
    target, mixin = hard(args[0]), hard(args[1])
    cases = [hard(each) for each in machine.items_of(args[2]) or []]
    if not isinstance(target, Cls) or not isinstance(mixin, Cls) or not all(isinstance(each, dict) for each in cases):
        return args[0]
    names = [_name(index, case) for index, case in enumerate(cases)]
    if not cases or None in names:
        target.attrs |= cases[0] if cases else {}
        return target
    if not target.is_a("TestCase"):
        made = Cls(target.name, [mixin, target], target.module, target.node)
        rows = [Param((case,), [], name) for name, case in zip(names, cases, strict=True)]
        apply_mark(made, Mark("parametrize", ("_cupy_testing_param", rows), {}))
        return made
    keys = sorted({key for case in cases for key in case})
    picks = parts([[text_of(case[key]) or "" if key in case else "" for key in keys] for case in cases])
    target.attrs["__test__"] = False
    for index, case in enumerate(cases):
        made = Cls(f"{target.name}{names[index]}", [target], target.module, target.node)
        made.attrs |= {**case, "__test__": True}
        made.attrs["__case__"] = (target.name, picks[index])
        target.module.env.names[made.name] = made
    return None


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
    if isinstance(value, Func | Cls | Native) or (isinstance(value, Ext) and "()" not in value.path):
        return name_of(value)
    return _written(value)


def _written(value: Any) -> str | None:
    """What `repr` gives; the types of numbers in a tuple or list have theirs, None where anything is not known."""
    value = hard(value)
    if is_plain(value) or (isinstance(value, slice) and is_plain([value.start, value.stop, value.step])):
        return repr(value)
    if isinstance(value, Ext) and _NUMBERS.fullmatch(value.path):
        return f"<class '{value.path}'>"
    if value is Ellipsis or (isinstance(value, Unknown) and value.path == "Ellipsis"):
        return "Ellipsis"
    if not isinstance(value, tuple | list) or not value:
        return None
    texts = [_written(each) for each in value]
    if None in texts:
        return None
    inner = ", ".join(text or "" for text in texts)
    if isinstance(value, list):
        return f"[{inner}]"
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def _shortened(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    first = (longest - 3) // 2
    return f"{text[:first]}...{text[len(text) - (longest - 3 - first) :]}"
