"""Modules of the library under test that take a device while they are imported, as far as their text says so.

Names of the library are made when they are asked for; what its modules do besides is not followed.
"""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sooner.plan.needs.evaluator.values import Mod
from sooner.plan.needs.sources import module_name, parsed

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_DEEPEST: Final = 3
_MOST: Final = 40
"""Modules that are looked at for one that is imported."""
_IMPORT: Final = re.compile(
    r"^(?:import[ \t]+(?P<plain>[^\n#]+)|from[ \t]+(?P<dots>\.*)(?P<module>[\w.]*)[ \t]+import[ \t]*"
    r"(?P<names>\([^)]*\)|[^\n#]+))",
    re.MULTILINE,
)
"""An import that nothing stands around."""
_ON_A_DEVICE: Final = re.compile(r"^[\w.]+(?:[ \t]*[:=(]).*?(?:\.cuda\(|[\"']cuda\b|torch\.cuda\.\w+\()", re.MULTILINE)
"""The beginning of a statement that may put something on a device."""
_CONTEXTS: Final = (
    *("current_device", "current_stream", "default_stream", "get_device_capability", "get_device_name"),
    *("get_device_properties", "init", "set_device", "synchronize", "Stream"),
)
"""Of `torch.cuda`: what fails without a device."""


def need_for_its_import(machine: "Machine", module: Mod) -> None:
    """A module of the library takes a device while it is imported, and so do those that it imports: less sure.

    Raises:
        Raised: There is none.
    """
    is_outside = module.is_test_code or module.is_model or machine.quiet
    if is_outside or not takes_a_device(machine, module.path):
        return
    machine.guesses += 1
    machine.trace.doubted |= machine.loading
    machine.need(1, "an import of the library takes a device")


def takes_a_device(machine: "Machine", path: str) -> bool:
    """Whether an import of a file takes a device, surely as far as its text goes; the same for all numbers of them."""
    kept = machine.sources.choices
    key = ("taken on import", path)
    if key not in kept:
        waiting, seen = [(path, 0)], {path}
        kept[key] = False
        while waiting and not kept[key]:
            each, depth = waiting.pop(0)
            names = list(_imported(machine, each))
            kept[key] = any(map(machine.rules.takes_a_device, names)) or _takes_itself(machine, each)
            found = (machine.sources.module(name, each) for name in names) if depth < _DEEPEST else ()
            new = {inner for inner in found if inner and not machine.sources.is_test_code(inner)} - seen
            for inner in sorted(new)[: _MOST - len(seen)]:
                seen.add(inner)
                waiting.append((inner, depth + 1))
    return kept[key]


def _imported(machine: "Machine", path: str) -> Iterator[str]:
    """The names of all modules, and of what may be modules, that a file imports wherever it is imported itself.

    A module's packages are imported before it.
    """
    parts = module_name(path).split(".")
    is_package = path.endswith("__init__.py")
    yield from (".".join(parts[:count]) for count in range(1, len(parts)))
    for found in _IMPORT.finditer(machine.sources.read(path) or ""):
        if found["plain"]:
            named = (each.split()[0] for each in found["plain"].split(",") if each.strip())
            yield from (".".join(each.split(".")[:count]) for each in named for count in range(1, each.count(".") + 2))
            continue
        folder = parts[: len(parts) - len(found["dots"]) + is_package] if found["dots"] else []
        whole = ".".join([*folder, *filter(None, [found["module"]])])
        yield whole
        names = (each.split() for each in found["names"].strip("()").split(","))
        yield from (f"{whole}.{each[0]}" for each in names if each and each[0].isidentifier())


def _takes_itself(machine: "Machine", path: str) -> bool:
    """Whether a statement of a file that is executed in any case puts something on a device of CUDA's."""
    text = machine.sources.read(path) or ""
    tree = parsed(text) if _ON_A_DEVICE.search(text) else None
    plain = (each for each in tree.body if isinstance(each, ast.Assign | ast.AnnAssign | ast.Expr)) if tree else ()
    return any(_puts(node) for each in plain for node in _executed(each))


def _executed(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls of a statement that are made in any case."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, ast.Lambda | ast.IfExp | ast.BoolOp | ast.GeneratorExp):
            waiting += ast.iter_child_nodes(node)


def _puts(call: ast.Call) -> bool:
    """Whether a call needs a device: `x.cuda()`, `torch.ones(2, device="cuda")`, `torch.cuda.current_stream()`."""
    name = getattr(call.func, "attr", "")
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if owner == "torch.cuda":
        return name in _CONTEXTS
    given = [each.value for each in call.keywords if each.arg == "device" and owner == "torch"]
    given += call.args[:1] if name == "to" else []
    is_put = any(isinstance(each, ast.Constant) and str(each.value).startswith("cuda") for each in given)
    return is_put or (name == "cuda" and not owner.startswith(("torch.backends", "torch.version")))
