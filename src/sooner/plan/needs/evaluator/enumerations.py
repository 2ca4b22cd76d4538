"""Enumerations of the tests: their members, and those that are numbers or text besides.

How members are made is said in the documentation of Python's `enum` (3.11 and later).
"""

from collections.abc import Callable
from typing import Any, Final

from sooner.plan.needs.evaluator.values import (
    UNKNOWN,
    Cls,
    Ext,
    Func,
    Inst,
    Native,
    Unknown,
    Wrapped,
    hard,
    is_plain,
    name_of,
)

_NAMES: Final = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag")
_MIXED: Final = ("str", "int", "float", "bytes")


def is_enumeration(cls: Any) -> bool:
    """Whether a class of the tree, or one outside, is an enumeration."""
    return cls.is_a(*_NAMES) if isinstance(cls, Cls) else name_of(cls) in _NAMES


def is_member(value: Any) -> bool:
    """Whether something is a member of an enumeration."""
    return isinstance(value, Inst) and "_value_" in value.attrs


def is_mixed_member(value: Any) -> bool:
    """Whether something is a member of an enumeration whose members are numbers or text too (`class A(str, Enum)`)."""
    return is_member(value) and value.cls.is_a("IntEnum", "IntFlag", "StrEnum", *_MIXED)


def plain_of(value: Any) -> Any:
    """The number or text that a member of an enumeration of such is; anything else as it is."""
    return hard(value.attrs["_value_"]) if is_mixed_member(value) else value


def same_key(values: dict[Any, Any], key: Any) -> Any:
    """The key of an entry that equals another one by what a member is besides; None where there is none."""
    if is_mixed_member(key):
        return plain_of(key) if plain_of(key) in values else None
    if not isinstance(key, str | int):
        return None
    return next((each for each in values if is_mixed_member(each) and plain_of(each) == key), None)


def members(cls: Cls) -> dict[str, Inst]:
    """By name, those with the value of another one too."""
    return {name: each for name, each in cls.attrs.items() if is_member(each)}


def inheritable(bases: list[Any]) -> list[Any]:
    """Bases as a class keeps them: of Python's types `type`, and those that members of an enumeration are besides."""
    if any(is_enumeration(each) for each in bases):
        own = [isinstance(each, Native) and each.name in _MIXED for each in bases]
        bases = [Ext(f"builtins.{each.name}") if is_own else each for each, is_own in zip(bases, own, strict=True)]
    bases = [Ext("builtins.type") if isinstance(each, Native) and each.name == "type" else each for each in bases]
    return [each for each in bases if isinstance(each, Cls | Ext | Unknown)]


def make_members(cls: Cls, fields: list[str], initialise: Callable[[Inst, list[Any]], None]) -> None:
    """Make members of what the body of an enumeration says: by the values, which come again in aliases.

    Args:
        cls: The enumeration; its attributes change.
        fields: Names that its body gives values to, in order.
        initialise: Calls the `__init__` that the enumeration has, with the value, or the items of it.
    """
    made: list[tuple[Any, Inst]] = []
    for name in fields:
        value = cls.attrs.get(name)
        if name.startswith("_") or isinstance(value, Func | Wrapped):
            continue
        if isinstance(value, Unknown) and value.path.endswith(("enum.auto()", "auto()")):
            value = _next_value(cls, name, [each for each, _ in made])
        first = next((member for known, member in made if is_plain(value) and _are_equal(known, value)), None)
        if first is None:
            first = Inst(cls)
            first.attrs |= {"_value_": value, "_name_": name}
            if isinstance(cls.find("__init__"), Func):
                initialise(first, list(value) if isinstance(value, tuple) else [value])
        made.append((value, first))
        cls.attrs[name] = first


def _are_equal(known: Any, value: Any) -> bool:
    return is_plain(known) and bool(hard(known) == hard(value))


def _next_value(cls: Cls, name: str, before: list[Any]) -> Any:
    """What `auto()` is."""
    if isinstance(cls.find("_generate_next_value_"), Func | Wrapped):
        return UNKNOWN
    if cls.is_a("StrEnum"):
        return name.lower()
    numbers = [each for each in map(hard, before) if isinstance(each, int)]
    if len(numbers) < len(before):
        return UNKNOWN
    highest = max(numbers, default=0)
    return 1 << highest.bit_length() if cls.is_a("Flag", "IntFlag") else highest + 1
