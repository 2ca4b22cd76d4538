"""What a method of the library that was not followed to its end may have written into its object is not known."""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Cls, Func, Inst, Unknown, hard
from sooner.plan.needs.evaluator.wrapping import place_of
from sooner.plan.needs.frameworks.own_choice import reached

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_FILLING: Final = (
    "append", "appendleft", "add", "clear", "discard", "extend", "insert", "pop", "popleft", "remove", "setdefault",
    "update",
)  # fmt: skip


def forget(machine: "Machine", method: Func, made: Inst) -> None:
    """An object of the library, after a method of which the end was not seen, keeps nothing that it writes.

    Args:
        machine: Evaluates.
        method: What was not followed to its end.
        made: The object.
    """
    waiting, seen = [(method, made)], set()
    while waiting:
        func, owner = waiting.pop()
        if (place_of(func), id(owner)) in seen:
            continue
        seen.add((place_of(func), id(owner)))
        names, calls = _written(machine, func, owner.cls)
        for name in names:
            if not isinstance(hard(owner.attrs.get(name, UNKNOWN)), Unknown):
                machine.set_attribute(owner, name, UNKNOWN)
        for name, called in calls:
            inner = hard(owner.attrs.get(name))
            found = inner.cls.find(called) if isinstance(inner, Inst) else None
            if isinstance(inner, Inst) and isinstance(found, Func) and not found.module.is_test_code:
                waiting.append((found, inner))


def _written(machine: "Machine", method: Func, cls: Cls) -> tuple[set[str], set[tuple[str, str]]]:
    """The attributes that a method may change, by its text, and the methods that it calls of what they keep."""
    kept = machine.sources.written
    key = (place_of(method), cls.module.path, cls.name)
    if key not in kept:
        names: set[str] = set()
        calls: set[tuple[str, str]] = set()
        for func in reached(machine, [method], cls):
            if func.owner is not None and func.owner in cls.mro and func.positional:
                for name, called in _changes(func.node, func.positional[0]):
                    names |= {name} if called in ("", *_FILLING) else set()
                    calls |= {(name, called)} if called else set()
        kept[key] = names, calls
    return kept[key]


def _changes(node: ast.AST, first: str) -> Iterator[tuple[str, str]]:
    """Attributes of an object that a function binds, with "", or calls a method of, with its name."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load):
            target: ast.expr | None = each
            called = ""
        elif isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load):
            target, called = each.value, ""
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute):
            target, called = each.func.value, each.func.attr
        else:
            continue
        if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == first:
            yield target.attr, called
