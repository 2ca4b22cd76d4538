"""What a base class of a test from outside the tree may call of it: hooks of which nobody else says when they run."""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sooner.plan.needs.evaluator.values import Cls, Ext, Func, Unknown, Wrapped
from sooner.plan.needs.frameworks.library_objects import NAMING_DEVICES
from sooner.plan.needs.frameworks.own_choice import puts_somewhere
from sooner.plan.needs.frameworks.unseen import is_unseen

if TYPE_CHECKING:
    from sooner.plan.needs.sources import Sources

_CALLED_BY_OTHERS: Final = ("__", "test", "setUp", "tearDown", "setup_", "teardown_", "asyncSetUp", "asyncTearDown")
"""Beginnings of names of methods that Python, pytest and unittest call."""


def may_call_hooks(sources: "Sources", cls: Cls) -> bool:
    """Whether a test's class has a base that nobody knows, and a method for it that works on devices.

    What the tests call themselves by that name is theirs to call.
    """
    outside = (each for each in cls.mro if isinstance(each, Ext | Unknown))
    if not any(is_unseen(each.path.removesuffix("()")) for each in outside):
        return False
    classes = [each for each in cls.mro if isinstance(each, Cls) and each.module.is_test_code]
    hooks = [method for each in classes for method in _hooks(each) if _works_on_devices(method)]
    called = {name for each in classes if hooks for name in _called(sources, each.module.path)}
    return any(each.name not in called for each in hooks)


def _hooks(cls: Cls) -> Iterator[Func]:
    """The methods of a class that are neither tests nor what is known to be called around these."""
    for value in cls.attrs.values():
        method = value.func if isinstance(value, Wrapped) else value
        if isinstance(method, Func) and "__fixture__" not in method.attrs:
            yield from () if method.name.startswith(_CALLED_BY_OTHERS) else (method,)


def _works_on_devices(method: Func) -> bool:
    """Whether the text of a method does; kept with the node, which all sizes share."""
    known: bool | None = getattr(method.node, "sooner_works_on_devices", None)
    if known is None:
        known = puts_somewhere(method.node) or NAMING_DEVICES.search(ast.unparse(method.node)) is not None
        method.node.sooner_works_on_devices = known  # type: ignore[union-attr]
    return known


def _called(sources: "Sources", path: str) -> set[str]:
    """The attributes that a file asks for, by their names; kept with its tree."""
    tree = sources.tree(path)
    known: set[str] | None = getattr(tree, "sooner_attributes", None)
    if known is None:
        nodes = ast.walk(tree) if tree is not None else ()
        known = {each.attr for each in nodes if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load)}
        if tree is not None:
            tree.sooner_attributes = known  # type: ignore[attr-defined]
    return known
