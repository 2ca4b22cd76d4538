"""Types of numbers of NumPy's, and of libraries that name them alike: what they are called, and how large they are.

Names of cases say it (`[bool]`, `test_sum_float32`), and so do the tables from which suites make their cases.
"""

import re
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import MISSING, UNKNOWN, Args, Ext, Function, Kwargs, Native, hard, name_of

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_SCALARS: Final = re.compile(r"(b?float|u?int|complex|bool)\w*")
_PACKAGES: Final = ("numpy", "cupy", "jax.numpy")
_OTHER_NAMES: Final = {
    "bool_": "bool", "half": "float16", "single": "float32", "double": "float64", "int_": "int64", "uint": "uint64",
    "intc": "int32", "uintc": "uint32", "intp": "int64", "uintp": "uint64", "csingle": "complex64",
    "cdouble": "complex128", "float_": "float64", "complex_": "complex128",
}  # fmt: skip
"""What NumPy 2 calls types that have a second name, on 64-bit Linux."""
LONG_NAMES: Final = {
    "float": "float32", "double": "float64", "half": "float16", "long": "int64", "int": "int32", "short": "int16",
    "cfloat": "complex64", "cdouble": "complex128", "chalf": "complex32",
}  # fmt: skip
"""What PyTorch calls types that have a second name."""
_ONLY_OTHER: Final = frozenset(f"{package}.{name}" for package in _PACKAGES for name in _OTHER_NAMES)
_LETTERS: Final = {
    "?": "bool", "b": "int8", "h": "int16", "i": "int32", "l": "int64", "B": "uint8", "H": "uint16", "I": "uint32",
    "L": "uint64", "e": "float16", "f": "float32", "d": "float64", "F": "complex64", "D": "complex128",
}  # fmt: skip
_OF_LETTERS: Final = {name: letter for letter, name in _LETTERS.items()}
_OF_PYTHON: Final = {"bool": "bool", "int": "int64", "float": "float64", "complex": "complex128"}
_KINDS: Final = {"bool": "b", "int": "i", "uint": "u", "float": "f", "complex": "c"}
_SHORT: Final = re.compile(r"[<>=|]?(?:(b)(1)|([iu])([1248])|(f)([248])|(c)(8|16))")
_LONG: Final = re.compile(r"(u?int|float|complex)(8|16|32|64|128)|(bool)()")
_DTYPE, _LIMITS = ".dtype", ".iinfo"
"""Ends of the names of what is said of a type: `numpy.int8.dtype`."""


def is_scalar_type(value: Any) -> bool:
    """Whether something outside is a type of numbers (`jax.numpy.float32`, `torch.int64`)."""
    if not isinstance(value, Ext) or "." not in value.path:
        return False
    return value.path in _ONLY_OTHER or bool(_SCALARS.fullmatch(name_of(value)))


def scalar_name(value: Ext) -> str:
    """What a type of numbers calls itself (`__name__`)."""
    name = name_of(value)
    return name if value.path.startswith("torch.") else _OTHER_NAMES.get(name, name)


def scalar_of_dtype(value: Any) -> Ext | None:
    """The type of numbers of a `dtype`, or None where it is something else."""
    return _behind(value, _DTYPE)


def of_number_type(value: Any, name: str) -> Any:
    """An attribute of a type of numbers, of its `dtype` or of its limits, or MISSING."""
    integer = _behind(value, _LIMITS)
    if integer is not None:
        return _limit(integer, name)
    dtype = scalar_of_dtype(value)
    scalar = dtype or value
    if name in ("name", "__name__") and is_scalar_type(scalar):
        return scalar_name(scalar)
    found = _LONG.fullmatch(scalar_name(dtype)) if dtype is not None else None
    if dtype is None or found is None:
        return MISSING
    said = {
        "type": dtype,
        "itemsize": int(found[2] or 8) // 8,
        "kind": _KINDS[found[1] or found[3]],
        "char": _OF_LETTERS.get(found[0], MISSING),
    }
    return said.get(name, MISSING)


def _behind(value: Any, end: str) -> Ext | None:
    scalar = Ext(value.path.removesuffix(end)) if isinstance(value, Ext) and value.path.endswith(end) else None
    return scalar if is_scalar_type(scalar) else None


def _limit(scalar: Ext, name: str) -> Any:
    """What `iinfo` says of a type of whole numbers."""
    found = _LONG.fullmatch(scalar_name(scalar))
    if found is None or found[1] not in ("int", "uint"):
        return MISSING
    bits, is_signed = int(found[2]), found[1] == "int"
    most = 2 ** (bits - is_signed) - 1
    return {"bits": bits, "max": most, "min": -most - 1 if is_signed else 0}.get(name, MISSING)


def _dtype(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`numpy.dtype(...)` of a type of numbers, of its name, or of one of Python's types."""
    scalar = _scalar(args[0] if args else kwargs.get("dtype"))
    return UNKNOWN if scalar is None else Ext(f"{scalar.path}{_DTYPE}")


def _integers(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
    """`numpy.iinfo(...)`, `torch.iinfo(...)`: the least and the greatest number of a type."""
    scalar = _scalar(args[0] if args else kwargs.get("int_type", kwargs.get("type")))
    return UNKNOWN if scalar is None else Ext(f"{scalar.path}{_LIMITS}")


def _scalar(given: Any) -> Ext | None:
    """The type of numbers that is meant: by itself, by its name, as a `dtype` or as one of Python's types."""
    given = hard(given)
    if is_scalar_type(given):
        return Ext(given.path)
    name = None
    if isinstance(given, Native):
        name = _OF_PYTHON.get(given.name)
    elif isinstance(given, str):
        name = _named(given)
    return scalar_of_dtype(given) if name is None else Ext(f"numpy.{name}")


def _named(text: str) -> str | None:
    """The type of numbers that a text names: `float32`, `f4`, `d`."""
    if _LONG.fullmatch(text):
        return text
    short = _SHORT.fullmatch(text)
    if short is None:
        return _LETTERS.get(text)
    kind, size = (each for each in short.groups() if each is not None)
    whole = next(name for name, letter in _KINDS.items() if letter == kind)
    return whole if whole == "bool" else f"{whole}{8 * int(size)}"


NUMBER_TYPES: Final[dict[str, Function]] = {
    **{f"{package}.dtype": _dtype for package in _PACKAGES},
    **{f"{package}.iinfo": _integers for package in (*_PACKAGES, "torch")},
}
"""Functions by their names."""
