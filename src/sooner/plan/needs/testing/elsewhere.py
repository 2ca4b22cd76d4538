"""Whether a file that shows no test may have some all the same: code that is not in the tree makes them."""

import ast
import re
from collections.abc import Iterator
from typing import Final

from sooner.plan.needs.sources import Sources

_TESTS: Final = re.compile(r"Test|Suite|Common", re.IGNORECASE)
_NO_TESTS: Final = re.compile(r"(?:Test(?:Case|Base)|TestCase\w*|Exception|Error)$")
"""Bases by whose names they bring no tests of their own."""


def takes_tests_from_outside(sources: Sources, path: str) -> bool:
    """Whether the text of a file says that something outside of the tree gives it tests.

    It does if a module's names are filled in (`globals().update(...)`), if it has unittest's `load_tests`, if it takes
    all names of a module that is not in the tree, or if a class of tests without any inherits from such a module.

    Args:
        sources: The project's files.
        path: A file in which no test was found.
    """
    tree = sources.tree(path)
    if tree is None:
        return False
    outside = set(_outside(sources, path, tree))
    return "*" in outside or any(_makes_tests(each, outside) for each in _at_top(tree))


def _at_top(tree: ast.AST) -> Iterator[ast.AST]:
    """All that is executed while a module is, and the heads of its functions and classes."""
    for each in ast.iter_child_nodes(tree):
        yield each
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield from _at_top(each)


def _makes_tests(node: ast.AST, outside: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="globals")) | ast.FunctionDef(name="load_tests"):
            return True
        case ast.ClassDef(name=name, bases=bases) if _TESTS.search(name):
            named = map(ast.unparse, bases)
            return any(each.partition(".")[0] in outside and not _NO_TESTS.search(each) for each in named)
    return False


def _outside(sources: Sources, path: str, tree: ast.Module) -> Iterator[str]:
    """The names that a module imports from what is not in the tree; `*` for all names of such a module."""
    for node in _at_top(tree):
        if isinstance(node, ast.ImportFrom):
            name = node.module or ""
            found = sources.relative(path, node.level, name) if node.level else sources.module(name, path)
            yield from (each.asname or each.name for each in node.names if not found)
        elif isinstance(node, ast.Import):
            for each in node.names:
                if not sources.module(each.name, path):
                    yield each.asname or each.name.partition(".")[0]
