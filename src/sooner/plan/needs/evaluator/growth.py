"""Results of Python's operators that could fill the memory: tests are any program at all."""

import ast
import re
from typing import Any, Final

LARGEST: Final = 100_000
_MOST_BITS: Final = 4096


def would_explode(kind: type, left: Any, right: Any) -> bool:
    """Whether the result could fill the memory."""
    if isinstance(left, int) and isinstance(right, int):
        return _is_long_number(kind, left, right)
    sizes = [len(each) for each in (left, right) if isinstance(each, str | bytes | list | tuple)]
    if kind is ast.Mult:
        counts = [each for each in (left, right) if isinstance(each, int)]
        return bool(sizes) and bool(counts) and max(counts) * max(sizes) > LARGEST
    if kind is ast.Mod and isinstance(left, str | bytes):
        return has_wide_field(left)
    if kind is ast.Pow:
        return not all(isinstance(each, int | float) for each in (left, right))
    return sum(sizes) > LARGEST


def power(base: Any, exponent: Any) -> Any:
    """`pow(base, exponent)`.

    Raises:
        MemoryError: The result could fill the memory.
    """
    if would_explode(ast.Pow, base, exponent):
        raise MemoryError
    return base**exponent


def _is_long_number(kind: type, left: int, right: int) -> bool:
    if kind is ast.Pow:
        return left.bit_length() * abs(right) > _MOST_BITS
    if kind is ast.LShift:
        return left.bit_length() + right > _MOST_BITS
    return kind is ast.Mult and left.bit_length() + right.bit_length() > _MOST_BITS


def has_wide_field(text: str | bytes) -> bool:
    """Whether a format asks for a field that could fill the memory."""
    return re.search(r"\d{5,}", text if isinstance(text, str) else text.decode("latin-1")) is not None
