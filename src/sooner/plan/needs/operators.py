"""Python's operators, by the nodes of its grammar: what plain values make of them."""

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

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
