"""What a base class of a test from outside the tree may call of it: hooks of which nobody else says when they run."""

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sooner.plan.needs.evaluator.values import Cls, Ext, Func, Unknown, Wrapped
from sooner.plan.needs.frameworks.library_objects import NAMING_DEVICES
from sooner.plan.needs.frameworks.own_choice import puts_somewhere
from sooner.plan.needs.frameworks.unseen import is_unseen
from sooner.plan.needs.syntax import kept

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
    hooks = [method for each in classes for method in _hooks(each) if _works_on_devices(method.node)]
    trees = [sources.tree(each.module.path) for each in classes] if hooks else []
    called = {name for tree in trees if tree is not None for name in _asked_for(tree)}
    return any(each.name not in called for each in hooks)


def _hooks(cls: Cls) -> Iterator[Func]:
    """The methods of a class that are neither tests nor what is known to be called around these."""
    for value in cls.attrs.values():
        method = value.func if isinstance(value, Wrapped) else value
        if isinstance(method, Func) and "__fixture__" not in method.attrs:
            yield from () if method.name.startswith(_CALLED_BY_OTHERS) else (method,)


@kept
def _works_on_devices(node: ast.AST) -> bool:
    """Whether the text of a method does."""
    return puts_somewhere(node) or NAMING_DEVICES.search(ast.unparse(node)) is not None


@kept
def _asked_for(tree: ast.Module) -> set[str]:
    """The attributes that a file asks for, by their names."""
    return {each.attr for each in ast.walk(tree) if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load)}
