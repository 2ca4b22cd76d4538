"""Looks for torch where the suite has imported it: nothing here imports it."""

import itertools
import sys
from typing import Any


def loaded_torch() -> Any:
    """The real torch if the suite imported it; None where it did not, or where a stand-in has its place."""
    core, torch = sys.modules.get("torch._C"), sys.modules.get("torch")
    return torch if core is not None and getattr(torch, "_C", None) is core else None


def initialised_cuda() -> Any:
    """torch.cuda, where the device was initialised."""
    cuda = sys.modules.get("torch.cuda") if loaded_torch() is not None else None
    return cuda if cuda is not None and cuda.is_initialized() else None


def home_of(value: Any) -> str:
    """The module whose code defined a value: `__module__` of a wrapped function is that of its original."""
    place = getattr(getattr(value, "__func__", value), "__globals__", None)
    return str(place.get("__name__", "") if place else getattr(value, "__module__", ""))


def is_of(module: str, imported: set[str]) -> bool:
    """Whether a module is torch's own or among those that a test imported."""
    return module in imported or module.partition(".")[0] == "torch"


def imported_since(count: int) -> set[str]:
    """Modules imported since there were `count`: the dictionary of modules keeps their order."""
    return set(itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - count)))
