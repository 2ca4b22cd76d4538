"""How the library under test refuses for lack of a device: `assert torch.cuda.is_available()`, `if not ...: raise`.

What it raises is its own business, and often our ignorance of it. Where the condition has asked for devices, and
nothing was doubtful on the way, whoever calls it fails for lack of one.
"""

import ast
from typing import TYPE_CHECKING

from sooner.plan.needs.values import Raised, Skip

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine


def as_refusal(machine: "Machine", stop: Raised | Skip, node: ast.stmt) -> None:
    """Note that what a branch or an assertion raises is for lack of a device: who calls the library hears it."""
    if machine.quiet and not machine.is_doubtful() and _is_within(stop, node):
        stop.is_heard = True
        if isinstance(stop, Raised):
            stop.device = True


def _is_within(stop: Raised | Skip, node: ast.stmt) -> bool:
    return node.lineno <= stop.line <= (node.end_lineno or node.lineno)
