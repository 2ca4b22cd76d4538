"""Programs that a test runs: its own file, where that starts ranks, files of the tree, and texts (`python -c`)."""

import ast
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.state import DEEPEST
from sooner.plan.needs.evaluator.values import (
    MISSING,
    Cls,
    Env,
    Inst,
    Loop,
    Mod,
    Native,
    OutOfFuel,
    Raised,
    Return,
    Skip,
    hard,
)
from sooner.plan.needs.frameworks.unseen import OF_PYTHON
from sooner.plan.needs.python.arguments import ARGV
from sooner.plan.needs.sources import parsed

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine
    from sooner.plan.needs.sources import Sources

ON_DEVICES: Final = re.compile(
    r"\b(cuda(?!\.(?:is_available|device_count)\()|nccl|get_accelerator|hip|set_device|megatron\.training)\b"
    r"|\bAccelerator\(|\.cuda\("
)
"""What a program works on devices by; that it asks for them (`torch.cuda.device_count()`) says nothing."""
_DEPTH_OF_PROGRAM: Final = 6
"""How much deeper a program counts than what starts it: one may start itself."""
_FUEL_OF_PROGRAM: Final = 10_000
_HOPS: Final = 3
"""Packages that pass a name on, one after the other."""


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


def run_again(machine: "Machine", count: int) -> bool:
    """Run the test at hand as the ranks of a launcher that runs pytest on it; False if it is run so already.

    Args:
        machine: Evaluates.
        count: Ranks.

    Raises:
        Raised, Skip: As the test does, as a rank; each rank that uses a device has its own.
    """
    again, environment, rank = machine.again, machine.environment, machine.rank
    if again is None or rank is not None:
        return False
    under_way, machine.under_way = machine.under_way, {}  # another process: it has called nothing yet
    machine.again, machine.environment = None, {**environment, "TORCHELASTIC_RUN_ID": "1"}
    work = Native("rank", lambda _args, _kwargs: again())
    try:
        machine.natives.words["in_own_ranks"].call([count, work], {})
    finally:
        machine.again, machine.environment, machine.rank = again, environment, rank
        machine.under_way = under_way
    return True


def run_text(machine: "Machine", text: str, *, is_checked: bool) -> bool:
    """Run a program that a test has as a text; what it uses, the test uses.

    Args:
        machine: Evaluates.
        text: The program.
        is_checked: Whether the test fails when the program does.

    Returns:
        Whether it fails for lack of a device, or says by its exit code that it fails.

    Raises:
        Raised: It fails so, and is checked.
    """
    tree = parsed(textwrap.dedent(text))
    if tree is None:
        return False
    module = Mod("__main__", "")  # without a path: what it does is done where it is started
    return _run(machine, tree, module, is_checked=is_checked)


def run_file(machine: "Machine", path: str, arguments: list[Any], *, is_checked: bool) -> bool:
    """Run a program of the tree (`python script.py`), as `run_text` does it; its options are not followed.

    Args:
        machine: Evaluates.
        path: The program.
        arguments: What it is given.
        is_checked: Whether the test fails when the program does.

    Raises:
        Raised: It fails, and is checked.
    """
    tree = machine.sources.tree(path)
    if tree is None or machine.depth + _DEPTH_OF_PROGRAM >= DEEPEST:
        machine.guesses += 1
        return False
    machine.guesses += bool(arguments)
    before = dict(machine.overrides)
    fuel, machine.fuel = machine.fuel, min(machine.fuel, _FUEL_OF_PROGRAM)
    granted = machine.fuel
    machine.depth += _DEPTH_OF_PROGRAM
    machine.overrides[ARGV] = [path, *arguments]
    try:
        return _run(machine, tree, Mod("__main__", path), is_checked=is_checked)
    except OutOfFuel:
        machine.guesses += 1
        return False
    finally:
        machine.depth -= _DEPTH_OF_PROGRAM
        machine.overrides = before
        machine.fuel = fuel - (granted - max(machine.fuel, 0))


def _run(machine: "Machine", tree: ast.Module, module: Mod, *, is_checked: bool) -> bool:
    module.env.names |= {"__name__": "__main__", "__file__": f"/{module.path}" if module.path else "", "__doc__": ""}
    environment, device, place = machine.environment, machine.current_device, machine.current
    machine.environment = dict(environment)
    try:
        machine.run(tree.body, module.env)
    except Raised as raised:
        is_exit = raised.kind == "SystemExit"
        fails = raised.device or not is_exit or (isinstance(raised.value, int) and raised.value != 0)
        if fails and is_checked:
            raise Raised("CalledProcessError", raised.reason, *place, device=raised.device) from None
        machine.guesses += fails and not is_exit  # whether anybody looks at what it came to is not known
        return fails
    except (Skip, Return, Loop):
        pass
    finally:
        machine.environment, machine.current_device, machine.current = environment, device, place
    return False


def imports_nccl(sources: "Sources", path: str) -> bool:
    """Whether a program takes something from a module of the tree that speaks of NCCL: `from lib import Trainer`."""
    return any(
        '"nccl"' in (sources.read(each) or "").replace("'", '"') for each in _imported(sources, path, None, _HOPS)
    )


def is_of_torch_alone(text: str) -> bool:
    """Whether a program imports nothing but PyTorch and the standard library, so that all that it does is seen."""
    named = _modules_named(text)
    return named is not None and not any(map(_is_strange, named))


def imports_strangers(sources: "Sources", path: str) -> bool:
    """Whether a program imports what is neither in the tree, nor PyTorch's or Python's: who knows what that does?"""
    strange = filter(_is_strange, _modules_named(sources.read(path) or "") or ())
    return any(name != "." and sources.module(name, path) is None for name in strange)


def _is_strange(name: str) -> bool:
    return name.partition(".")[0] not in {"torch"} | OF_PYTHON


def _modules_named(text: str) -> list[str] | None:
    """The names of modules that a program imports, "." for what is beside it; None where it cannot be read."""
    try:
        tree = ast.parse(textwrap.dedent(text))
    except SyntaxError:
        return None
    nodes = list(ast.walk(tree))
    named = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    return [*named, *(node.module or "." for node in nodes if isinstance(node, ast.ImportFrom))]


def _imported(sources: "Sources", path: str, names: set[str] | None, hops: int) -> Iterator[str]:
    """Files that the names come from which a file imports, or some of them."""
    tree = sources.tree(path)
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.ImportFrom):
            continue
        wanted = {each.name for each in node.names if names is None or (each.asname or each.name) in names}
        name = node.module or ""
        found = sources.relative(path, node.level, name) if node.level else sources.module(name, path)
        if wanted and found and found.endswith("__init__.py") and hops:
            yield from _imported(sources, found, wanted, hops - 1)
        if wanted and found:
            yield found
