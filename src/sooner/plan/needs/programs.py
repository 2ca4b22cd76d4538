"""Test files that are run as programs: what stands under `if __name__ == "__main__"` starts the ranks of a test."""

import ast
from typing import TYPE_CHECKING, Any

from sooner.plan.needs.values import MISSING, Cls, Env, Inst, Raised, Skip, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine


def run_as_program(machine: "Machine", args: list[Any]) -> Any:
    """Run what a test's file does as a program, where that starts the ranks of the test's class by a method of it.

    Args:
        machine: Evaluates.
        args: The test's instance, and the name of the method that is one rank.

    Returns:
        Whether the file does.

    Raises:
        Skip: The program ends before it starts any.
    """
    instance, method = hard(args[0]), str(hard(args[1]))
    if not isinstance(instance, Inst):
        return False
    module = instance.cls.module
    tree = machine.sources.tree(module.path)
    names = {each.name for each in instance.cls.mro if isinstance(each, Cls)}
    block = next((node for node in tree.body if _starts(node, names, method)), None) if tree is not None else None
    if not isinstance(block, ast.If):
        return False
    machine.environment |= {"RANK": MISSING, "WORLD_SIZE": MISSING}  # it was started alone, by no launcher
    try:
        machine.run(block.body, Env(module, module.env))
    except Raised as raised:
        if raised.kind != "SystemExit":
            raise
        raise Skip("its file ends when it is run as a program", raised.path, raised.line) from None
    return True


def _starts(node: ast.stmt, classes: set[str], method: str) -> bool:
    """Whether a statement is the part of a file that is only run as a program, and starts ranks of a class."""
    if not isinstance(node, ast.If) or "__main__" not in ast.unparse(node.test):
        return False
    used = (each for each in ast.walk(node) if isinstance(each, ast.Attribute) and each.attr == method)
    return any(isinstance(each.value, ast.Name) and each.value.id in classes for each in used)
