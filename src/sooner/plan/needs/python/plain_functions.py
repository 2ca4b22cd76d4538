"""Functions of the standard library that make plain values of plain values: they are called as they are."""

import ast
import base64
import bisect
import heapq
import json
import math
import operator
import posixpath
import shlex
import statistics
import string
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.counted import uncounted
from sooner.plan.needs.evaluator.values import UNKNOWN, Args, Function, Kwargs, Soft, hard, is_plain

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LONGEST: Final = 10_000
"""Characters of a text, and values of a list, that are made."""
_LARGEST: Final = 1_000
"""Things that combinations are drawn from."""


def computed(function: Callable[..., Any], *, is_operator: bool = False) -> Function:
    """A function that is called where all that it is given is known; an operator notices what numbers it is asked."""

    def called(_machine: "Machine", args: Args, kwargs: Kwargs) -> Any:
        values = [hard(each) if is_operator else uncounted(hard(each)) for each in args]
        named = {name: uncounted(hard(each)) for name, each in kwargs.items()}
        if not is_plain(values) or not is_plain(named) or _could_fill_memory([*values, *named.values()]):
            return UNKNOWN
        try:
            result = function(*values, **named)
        except (*HOST_ERRORS, struct.error, SyntaxError):
            return UNKNOWN
        if not is_plain(result) or (isinstance(result, str | bytes | list) and len(result) > _LONGEST):
            return UNKNOWN
        return Soft(result) if any(isinstance(each, Soft) for each in args) else result

    return called


def _could_fill_memory(given: list[Any]) -> bool:
    """Whether something is given beside a large number, and could be repeated so often (`mul("a", 10**10)`).

    Large numbers alone are sizes of memories.
    """
    has_parts = any(isinstance(each, str | bytes | list | tuple | dict) for each in given)
    return has_parts and any(abs(each) > _LONGEST for each in given if isinstance(each, int))


def _packed(function: Callable[..., Any]) -> Callable[..., Any]:
    """One of `struct`, for formats that are short (`"9999999999s"` is not)."""

    def called(layout: str | bytes, *values: Any) -> Any:
        if struct.calcsize(layout) > _LONGEST:
            raise ValueError("too long")
        return function(layout, *values)

    return called


def _combinations(total: int, chosen: int) -> int:
    if total > _LARGEST:
        raise ValueError("too large")
    return math.comb(total, chosen)


_OF_NUMBERS: Final = (
    "ceil", "copysign", "dist", "exp", "fabs", "floor", "fmod", "fsum", "gcd", "hypot", "isclose", "isfinite",
    "isinf", "isnan", "isqrt", "lcm", "log", "log10", "log1p", "log2", "pow", "prod", "radians", "remainder", "sin",
    "cos", "tan", "sqrt", "trunc",
)  # fmt: skip
_OPERATORS: Final = (
    "lt", "le", "gt", "ge", "eq", "ne", "add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor", "not_", "neg",
    "truediv", "abs", "index", "contains", "countOf", "concat",
)  # fmt: skip
_OF_SAMPLES: Final = ("mean", "fmean", "median", "median_low", "median_high", "mode", "stdev", "pstdev", "variance")
_OF_HEAPS: Final = ("heapify", "heappop", "heappush", "heappushpop", "heapreplace", "nlargest", "nsmallest")
_BYTES: Final = ("b64encode", "b64decode", "urlsafe_b64encode", "urlsafe_b64decode", "b16encode", "b16decode")
PLAIN_FUNCTIONS: Final[dict[str, Function]] = {
    **{f"math.{name}": computed(getattr(math, name)) for name in _OF_NUMBERS},
    **{f"operator.{name}": computed(getattr(operator, name), is_operator=True) for name in _OPERATORS},
    **{f"statistics.{name}": computed(getattr(statistics, name)) for name in _OF_SAMPLES},
    **{f"heapq.{name}": computed(getattr(heapq, name)) for name in _OF_HEAPS},
    **{f"base64.{name}": computed(getattr(base64, name)) for name in _BYTES},
    **{f"struct.{name}": computed(_packed(getattr(struct, name))) for name in ("calcsize", "pack", "unpack")},
    "math.comb": computed(_combinations),
    **{f"bisect.{name}": computed(getattr(bisect, name)) for name in ("bisect", "bisect_left", "bisect_right")},
    **{f"os.path.{name}": computed(getattr(posixpath, name)) for name in ("basename", "dirname", "splitext")},
    "ast.literal_eval": computed(ast.literal_eval), "json.dumps": computed(json.dumps),
    "shlex.join": computed(shlex.join), "shlex.quote": computed(shlex.quote),
    "string.capwords": computed(string.capwords),
}  # fmt: skip
