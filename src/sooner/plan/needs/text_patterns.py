"""What Python's `re` makes of texts that are known: names of cases, above all. Whether a text fits is not asked here.

A project's pattern is applied only where that is surely quick: it repeats little, and nothing within a repetition.
"""

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.values import UNKNOWN, Ext, Native, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_LONGEST_TEXT: Final = 256
_MOST_REPETITIONS: Final = 3
"""A text of n characters may be gone through in n to this power ways."""
_METHODS: Final = ("sub", "split", "findall")
_REPEATING: Final = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def is_quick(pattern: str) -> bool:
    """Whether a pattern goes through short texts in no time: no repetition in a repetition, and few in all."""
    try:
        found = _repetitions(parser.parse(pattern), inside=False)
    except (re.error, RecursionError, OverflowError):
        return False
    return found is not None and found <= _MOST_REPETITIONS


def _repetitions(parsed: Any, *, inside: bool) -> int | None:
    """How many repetitions a pattern has; None where one is within another."""
    total = 0
    for code, given in parsed:
        repeats = code in _REPEATING
        if repeats and inside:
            return None
        for each in _parts(given):
            inner = _repetitions(each, inside=inside or repeats)
            if inner is None:
                return None
            total += inner
        total += repeats
    return total


def _parts(given: Any) -> list[Any]:
    if isinstance(given, parser.SubPattern):
        return [given]
    return [part for each in given for part in _parts(each)] if isinstance(given, list | tuple) else []


def _applied(method: str, pattern: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What a pattern makes of a text; unknown where not all of it is known."""
    given = [hard(each) for each in args]
    texts = [each for each in given if isinstance(each, str)]
    known = isinstance(pattern, str) and bool(texts) and len(texts) == len(given) and not kwargs
    if not known or max(map(len, texts)) > _LONGEST_TEXT or not is_quick(pattern):
        return UNKNOWN
    try:
        return getattr(re.compile(pattern), method)(*texts)
    except (re.error, TypeError, IndexError):
        return UNKNOWN


def _compiled(_machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> Any:
    pattern = hard(args[0]) if args else None
    if len(args) != 1 or kwargs or not isinstance(pattern, str):
        return Unknown("re.compile()")
    made = Ext("re.compile()")
    made.attrs["pattern"] = pattern
    for method in _METHODS:
        made.attrs[method] = Native(method, lambda a, k, method=method: _applied(method, pattern, a, k))
    return made


def _of_module(method: str) -> Any:
    def called(_machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> Any:
        return _applied(method, hard(args[0]) if args else None, args[1:], kwargs)

    return called


def _escaped(_machine: "Machine", args: list[Any], _kwargs: dict[str, Any]) -> Any:
    text = hard(args[0]) if args else None
    return re.escape(text) if isinstance(text, str) else UNKNOWN


FUNCTIONS: Final[dict[str, Any]] = {
    "re.compile": _compiled,
    "re.escape": _escaped,
    **{f"re.{method}": _of_module(method) for method in _METHODS},
}
