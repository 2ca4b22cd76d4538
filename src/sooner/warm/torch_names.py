"""Names in the modules of torch, and its registries, that a test replaced."""

import ctypes
import gc
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from sooner.warm.torch_loaded import home_of, imported_since, is_of, loaded_torch

_SAMPLE: Final = (
    *("torch", "torch.autograd", "torch.cuda", "torch.distributed", "torch.linalg", "torch.nn", "torch.nn.functional"),
    *("torch.nn.init", "torch.utils.data", "torch:Tensor", "torch.nn:Module", "torch.optim:Optimizer"),
    *("torch.autograd:Function", "torch.distributions:Distribution"),
)
"""Modules, and classes as `module:class`, in which tests replace things: the whole of torch would take 6 ms."""
_VERSION_OFFSET: Final = 3 * ctypes.sizeof(ctypes.c_void_p)


class Registries:
    """Hooks on all modules and optimizers, and what files may hold: registered once, they apply to everything."""

    name = "torch registries"

    def __init__(self) -> None:
        self._places: list[tuple[dict[str, Any], str]] = []

    def capture(self) -> tuple[int, list[dict[Any, Any] | None]] | None:
        """The number of imported modules, and a copy of each registry that is not empty; None without torch."""
        if (torch := loaded_torch()) is None:
            return None
        self._places = self._places or list(_registries(torch))
        return len(sys.modules), [_entries(names[name]) if names[name] else None for names, name in self._places]

    def restore(self, state: tuple[int, list[dict[Any, Any] | None]] | None) -> bool:
        """Remove what is new, unless the import of its module registered it, and bring back what is missing."""
        if state is None:
            return False
        count, copies = state
        changed = False
        for (names, name), before in zip(self._places, copies, strict=True):
            if names[name] or before:
                changed |= _bring_back(names[name], before or {}, count)
        return changed


def _bring_back(registry: Any, before: Mapping[Any, Any], count: int) -> bool:
    now = _entries(registry)
    if now == before:
        return False
    new = imported_since(count)
    wanted = {**before, **{key: value for key, value in now.items() if _came_with(value, new)}}
    if wanted == now:
        return False
    registry.clear()
    registry.update(wanted)
    return True


def _registries(torch: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The namespaces and names of all registries."""
    safe = getattr(sys.modules.get("torch._weights_only_unpickler"), "__dict__", {})
    if "_marked_safe_globals_set" in safe:
        yield safe, "_marked_safe_globals_set"
    for module in (torch.nn.modules.module, sys.modules.get("torch.optim.optimizer", torch)):
        names = vars(module)
        yield from ((names, name) for name in names if name.startswith("_global_") and isinstance(names[name], dict))


def _entries(registry: Any) -> dict[Any, Any]:
    return dict(registry) if isinstance(registry, dict) else {one: one for one in registry}


def _came_with(value: Any, new: set[str]) -> bool:
    """Whether something came with the import of the new modules; what is torch's own then came with its lazy parts."""
    return bool(new) and is_of(home_of(value[0] if isinstance(value, tuple) else value), new)


class Names:
    """Functions and classes that a test replaced in a sample of torch's modules, or put there."""

    name = "names in torch"

    def __init__(self) -> None:
        self._modules = 0
        self._owners: list[tuple[Any, Callable[[], object]]] = []
        self._versions: list[object] = []
        self._copies: list[dict[str, Any]] = []

    def capture(self) -> tuple[Any, ...] | None:
        """The number of imported modules, the sample, its versions and copies; None while torch is not imported.

        Copies are kept until a version changes; they would take 50 us a test.
        """
        if loaded_torch() is None:
            return None
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            self._owners = [(owner, _versions(owner)) for owner in map(_of_sample, _SAMPLE) if owner is not None]
            self._versions = []
        versions = [version() for _, version in self._owners]
        if versions != self._versions:
            self._versions, self._copies = versions, [dict(vars(owner)) for owner, _ in self._owners]
        return self._modules, self._owners, self._versions, self._copies

    def restore(self, state: tuple[Any, ...] | None) -> bool:
        """Put back what was rebound or deleted, remove what a test added.

        What a module that the test imported did stays: it does so once in a process, and counts on it.
        """
        if state is None:
            return False
        count, owners, versions, copies = state
        if [version() for _, version in owners] == versions:
            return False
        new, changed = imported_since(count), False
        for (owner, _), before in zip(owners, copies, strict=True):
            changed |= _put_back(owner, before, dict(vars(owner)), new)
        return changed


def _of_sample(place: str) -> Any:
    module, _, name = place.partition(":")
    found = sys.modules.get(module)
    return getattr(found, name, None) if name else found


def _versions(owner: Any) -> Callable[[], object]:
    """A function whose value changes whenever a name of a module or class is set or deleted.

    CPython 3.11 and 3.12 count all changes of dictionaries, in the fourth word of each (PEP 509, withdrawn by PEP 699).
    Elsewhere every call gives another value.
    """
    if not _HAS_VERSIONS:
        return object
    names = vars(owner)
    if isinstance(names, types.MappingProxyType):
        (names,) = gc.get_referents(names)
    word = ctypes.c_uint64.from_address(id(names) + _VERSION_OFFSET)
    return lambda: word.value


def _has_versions() -> bool:
    """Whether this interpreter counts as expected."""
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 13):
        return False
    names: dict[str, int] = {}
    word = ctypes.c_uint64.from_address(id(names) + _VERSION_OFFSET)
    seen = set()
    for value in range(2):
        names["name"] = value
        seen |= {word.value, word.value}
    return len(seen) == len(range(2))


_HAS_VERSIONS: Final = _has_versions()


def _put_back(owner: Any, before: Mapping[str, Any], now: Mapping[str, Any], new: set[str]) -> bool:
    changed = False
    for name, value in before.items():
        if now.get(name) is not value and _is_definition(value) and not _came_with(now.get(name), new):
            setattr(owner, name, value)
            changed = True
    for name in now.keys() - before.keys():
        value = now[name]
        if _is_definition(value) and not isinstance(value, types.ModuleType) and not is_of(home_of(value), new):
            delattr(owner, name)
            changed = True
    return changed


def _is_definition(value: Any) -> bool:
    """What a test replaces and torch does not: torch keeps numbers, flags and caches in its modules too."""
    return callable(value) or isinstance(value, types.ModuleType | property | classmethod | staticmethod)
