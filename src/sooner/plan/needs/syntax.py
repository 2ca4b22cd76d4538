"""What is asked of a piece of a program's text alone: it is found once, and kept with the piece."""

import ast
import functools
from collections.abc import Callable, Iterator
from typing import TypeVar

Node = TypeVar("Node", bound=ast.AST)
Found = TypeVar("Found")


def kept(find: Callable[[Node], Found]) -> Callable[[Node], Found]:
    """A function of a node whose answer is kept with the node, which all sizes share."""
    name = f"sooner {find.__module__}.{find.__qualname__}"

    @functools.wraps(find)
    def known(node: Node) -> Found:
        about = node.__dict__
        if name not in about:
            about[name] = find(node)
        found: Found = about[name]
        return found

    return known


def calls_in(node: ast.AST) -> Iterator[ast.Call]:
    """All calls that are written in a piece, however deep."""
    return (each for each in ast.walk(node) if isinstance(each, ast.Call))


def last_name(node: ast.AST | None) -> str:
    """The last part of a name (`rank`, `self.rank`); empty for what is none."""
    return str(getattr(node, "attr", getattr(node, "id", "")))
