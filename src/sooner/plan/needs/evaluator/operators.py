"""Python's operators, by the nodes of its grammar: what plain values make of them, and what is known of others."""

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Cls, Enough, Native, OneOf, Text, Unknown, at_most
from sooner.plan.needs.python.file_paths import beside

BINARY: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_TYPES: Final = ("int", "str", "list", "tuple", "dict", "set", "float", "bool", "bytes", "frozenset", "complex")
UNARY: Final[dict[type, Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
CONVERSIONS: Final[dict[int, Callable[[Any], Any]]] = {
    -1: lambda value: value,
    ord("r"): repr,
    ord("s"): str,
    ord("a"): ascii,
}
"""`{value!r}` and its like, by the number that stands for them."""
_GROWING: Final = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
_GROWING_BY_BOTH: Final = (ast.Add, ast.Mult)


class Beginning(Unknown):
    """A tuple of which only the beginning is known (`(2, -1) + array.shape[1:]`)."""

    __slots__ = ("first",)

    def __init__(self, first: tuple[Any, ...]) -> None:
        super().__init__("tuple")
        self.first = first


def absorbed(kind: type, left: Any, right: Any) -> Any:
    """What is known of an operation with something unknown: `0 * x`."""
    if kind is ast.Mult and (left == 0 or right == 0) and (isinstance(left, int) or isinstance(right, int)):
        return 0
    if isinstance(left, Enough) or (isinstance(right, Enough) and kind in (ast.Add, ast.Mult)):
        return left if isinstance(left, Enough) else right
    if isinstance(left, OneOf) or isinstance(right, OneOf):
        return _of_most(kind, left, right)
    if kind is ast.Div and isinstance(left, Unknown) and isinstance(right, str):
        return beside(left, right)
    if kind is ast.Add and (isinstance(left, str) or isinstance(right, str)):
        return Text([*pieces_of(left), *pieces_of(right)])
    if kind is ast.Add and isinstance(left, tuple) and type(right) is Unknown:
        return Beginning(left)
    return UNKNOWN


def _of_most(kind: type, left: Any, right: Any) -> Any:
    """What an operation gives at most with one of several numbers, where it grows with that."""
    most = at_most(left), at_most(right)
    grows = kind in (_GROWING_BY_BOTH if isinstance(right, OneOf) else _GROWING)
    if not grows or any(type(each) is not int or each <= 0 for each in most):
        return UNKNOWN
    least = [each.least if isinstance(each, OneOf) else each for each in (left, right)]
    return OneOf(BINARY[kind](*most), None if None in least else BINARY[kind](*least))


def pieces_of(value: Any) -> list[str | None]:
    """What is known of a part of a text."""
    return value.pieces if isinstance(value, Text) else [value if isinstance(value, str) else None]


def types_of(value: Any) -> tuple[Any, ...]:
    """The types that are known of a type, or of one of several (`int | str`); none of anything else."""
    if isinstance(value, tuple):
        return value if all(types_of(each) for each in value) else ()
    is_type = isinstance(value, Cls) or (isinstance(value, Native) and value.name in _TYPES)
    return (value,) if is_type else ()


def is_shallow(value: Any) -> bool:
    """Whether Python's operators may be tried on a value."""
    return isinstance(value, int | float | complex | str | bytes | list | tuple | dict | set | frozenset | None)
