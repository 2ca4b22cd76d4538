"""Python that a test has as text, and runs itself: `eval` and `exec`. Programs that it starts are in `programs.py`."""

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Env, Raised, hard
from sooner.plan.needs.sources import parsed_as

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

CODE_TEXTS: Final = ("eval", "exec")
_LONGEST: Final = 20_000
_DEEPEST: Final = 50
"""Longer texts, and deeper ones, are data that somebody generated."""


def run_code(machine: "Machine", kind: str, args: list[Any], env: Env) -> Any:
    """What `eval(text)` gives, or `exec(text)` does, in the namespaces that are given or in the caller's.

    Raises:
        Raised: The text is no Python, or raises.
    """
    text = hard(args[0]) if args else None
    if not isinstance(text, str) or len(text) > _LONGEST:
        return UNKNOWN if kind == "eval" else None
    tree = _parsed(text.strip(), kind, machine.current[1])
    if tree is None:
        raise Raised("SyntaxError", "a text that is no Python")
    if tree is UNKNOWN:
        return UNKNOWN
    inside = _scope(env, [hard(each) for each in args[1:3]])
    if isinstance(tree, ast.Expression):
        return machine.ev(tree.body, inside)
    machine.run(tree.body, inside)
    return None


@lru_cache(maxsize=256)
def _parsed(text: str, kind: str, line: int) -> Any:
    """Its tree, all of which stands where it is run; None of what is no Python, UNKNOWN of what is too deep."""
    tree = parsed_as(kind, text)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            node.lineno = line
    return UNKNOWN if _depth(tree) > _DEEPEST else tree


def _depth(tree: ast.AST) -> int:
    """How deep its parts stand in each other, up to one more than is followed."""
    depth, level = 0, [tree]
    while level and depth <= _DEEPEST:
        depth, level = depth + 1, [each for node in level for each in ast.iter_child_nodes(node)]
    return depth


def _scope(env: Env, namespaces: list[Any]) -> Env:
    """Names that a text sees: of a namespace that is not known, the caller's."""
    if not namespaces or not all(isinstance(each, dict) for each in namespaces):
        return env
    inside: Env | None = None
    for names in namespaces:
        inside = Env(env.module, inside, names)
    return inside or env
