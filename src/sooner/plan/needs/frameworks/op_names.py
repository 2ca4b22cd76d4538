"""Names of PyTorch's operators as its tests have them (`@ops(op_db)`): read from the source, which is never executed.

The lists are tens of thousands of lines of calls (`OpInfo("add", ..., variant_test_name="x")`); of each entry only the
name and the variant are looked at, as `torch/testing/_internal/opinfo/core.py`, `OpInfo.formatted_name`, does.
"""

import re
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import UNKNOWN, Ext, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MODULES: Final = (
    "torch.testing._internal.common_methods_invocations",
    *(
        f"torch.testing._internal.opinfo.definitions.{name}"
        for name in ("_masked", "fft", "linalg", "signal", "special")
    ),
)
_LIST: Final = re.compile(r"^op_db: (?:List|list)\[OpInfo\] = \[\n(.*?)^\]", re.MULTILINE | re.DOTALL)
_ENTRY: Final = re.compile(r"^    (?=\w+\()", re.MULTILINE)
_NAME: Final = re.compile(r"\w+\(\s*(?:#[^\n]*\n\s*)*(?:name\s*=\s*)?r?['\"]([\w.]+)['\"]")
_VARIANT: Final = re.compile(r"variant_test_name\s*=\s*r?['\"]([\w.\-]+)['\"]")


def names(machine: "Machine", args: list[Any]) -> Any:
    """The names of a list of operators; UNKNOWN where it is not PyTorch's whole list, or that is not in the tree."""
    given = hard(args[0]) if args else None
    if not isinstance(given, Ext) or given.path != "op_db":
        return UNKNOWN
    found: list[str] = []
    for module in _MODULES:
        path = machine.sources.module(module, machine.current[0])
        text = machine.sources.read(path) if path else None
        if text is not None:
            found += [each for each in _of(text) if each not in found]
    return found or UNKNOWN


def _of(text: str) -> list[str]:
    listed = _LIST.search(text)
    if listed is None:
        return []
    result: list[str] = []
    for entry in _ENTRY.split(listed[1])[1:]:
        name, variant = _NAME.match(entry), _VARIANT.search(entry)
        if name is not None:
            whole = name[1] if variant is None else f"{name[1]}.{variant[1]}"
            result.append(whole.replace(".", "_"))
    return result
