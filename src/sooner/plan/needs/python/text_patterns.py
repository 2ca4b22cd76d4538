"""What Python's `re` makes of texts that are known, and finds in them: names of cases, sources of the tree.

A project's pattern is applied only where that is surely quick: it repeats little, and nothing within a repetition.
"""

import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Cls, Ext, Inst, Mod, Native, Soft, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_LONGEST_TEXT: Final = 256
_MOST_REPETITIONS: Final = 3
"""A text of n characters may be gone through in n to this power ways."""
_LONGEST_SOURCE: Final = 300_000
_SHORTEST_START: Final = 4
"""Letters that a pattern for long texts begins with, if it repeats anything without an end."""
_MOST_TIMES: Final = 64
_METHODS: Final = ("sub", "split", "findall")
_FINDING: Final = ("search", "match", "fullmatch")
_OF_A_MATCH: Final = ("group", "groups", "groupdict", "start", "end", "span")
_REPEATING: Final = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)


def is_quick(pattern: str) -> bool:
    """Whether a pattern goes through short texts in no time: no repetition in a repetition, and few in all."""
    try:
        found = _repetitions(parser.parse(pattern), inside=False)
    except (re.error, RecursionError, OverflowError):
        return False
    return found is not None and found <= _MOST_REPETITIONS


def is_quick_in_sources(pattern: str) -> bool:
    """Whether a pattern goes through long texts in no time: what it repeats has an end, or comes after a word."""
    if not is_quick(pattern):
        return False
    parsed = parser.parse(pattern)
    start = [code for code, _ in parsed if code is not codes.AT][:_SHORTEST_START]
    return _endless(parsed) <= (start == [codes.LITERAL] * _SHORTEST_START)


def _endless(parsed: Any) -> int:
    return sum(
        (code in _REPEATING and given[1] > _MOST_TIMES) + sum(_endless(each) for each in _parts(given))
        for code, given in parsed
    )


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


def _found(method: str, pattern: Any, args: list[Any], flags: Any = 0) -> Any:
    """What a pattern finds in a text: a match, None, or something unknown."""
    text = args[0] if len(args) == 1 else None
    if not (isinstance(pattern, str) and isinstance(text, str) and type(flags) is int):
        return UNKNOWN
    quick = is_quick(pattern) if len(text) <= _LONGEST_TEXT else is_quick_in_sources(pattern)
    if not quick or len(text) > _LONGEST_SOURCE:
        return UNKNOWN
    try:
        found = getattr(re.compile(pattern, flags), method)(text)
    except (re.error, ValueError):
        return UNKNOWN
    return None if found is None else _match(found)


def _match(found: re.Match[str]) -> Inst:
    """What `re` gives: it is true, and has groups."""
    made = Inst(Cls("Match", [], Mod("re", "", is_model=True)))

    def asked(method: str, args: list[Any]) -> Any:
        try:
            return getattr(found, method)(*args)
        except (IndexError, TypeError):
            return UNKNOWN

    for method in _OF_A_MATCH:
        made.attrs[method] = Native(method, lambda args, _kwargs, method=method: asked(method, [*map(hard, args)]))
    made.cls.attrs["__getitem__"] = Native("__getitem__", lambda args, _kwargs: asked("group", [hard(args[-1])]))
    return made


def _finding(method: str) -> Any:
    def called(_machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> Any:
        if any(isinstance(each, Soft) for each in (*args, *kwargs.values())) or len(args) > 3:  # noqa: PLR2004
            return UNKNOWN
        given = dict(zip(("pattern", "string", "flags"), args, strict=False)) | kwargs
        return _found(method, hard(given.get("pattern")), [hard(given.get("string"))], hard(given.get("flags", 0)))

    return called


def _compiled(_machine: "Machine", args: list[Any], kwargs: dict[str, Any]) -> Any:
    pattern = hard(args[0]) if args else None
    if len(args) != 1 or kwargs or not isinstance(pattern, str):
        return Unknown("re.compile()")
    made = Ext("re.compile()")
    made.attrs["pattern"] = pattern
    for method in _METHODS:
        made.attrs[method] = Native(method, lambda a, k, method=method: _applied(method, pattern, a, k))
    for method in _FINDING:
        made.attrs[method] = Native(
            method, lambda a, k, method=method: UNKNOWN if k else _found(method, pattern, [*map(hard, a)])
        )
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
    **{f"re.{method}": _finding(method) for method in _FINDING},
}
