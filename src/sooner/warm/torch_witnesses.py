"""What cannot be put back in torch: process groups, works, registrations, a sick device."""
# ruff: noqa: SLF001 - most of this state has no public getter, and some public setters change more than they are given

import gc
import itertools
import re
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sooner.warm.guards import Witness
from sooner.warm.torch_loaded import imported_since, initialised_cuda, is_of, loaded_torch


@dataclass(frozen=True, slots=True)
class Watch:
    """A witness that compares what it reads before and after a test."""

    name: str
    read: Callable[[], Any]
    judge: Callable[[Any, Any], str]
    """Gets both, says why the process must not run another test."""

    def capture(self) -> Any:
        """What is read now."""
        return self.read()

    def doubt(self, state: Any) -> str:
        """What the judge says."""
        return self.judge(state, self.read())


def _cuda_error() -> str:
    """What waiting for the device raises. Devices without a context are not touched: that would make one."""
    if (cuda := initialised_cuda()) is None:
        return ""
    has_context = getattr(sys.modules.get("torch._C"), "_cuda_hasPrimaryContext", lambda _device: True)
    try:
        for device in filter(has_context, range(cuda.device_count())):
            cuda.synchronize(device)
    except Exception as error:  # noqa: BLE001 - whatever a driver raises
        return f"a CUDA device is in error: {str(error).partition(chr(10))[0]}"
    return ""


def _process_groups() -> frozenset[int]:
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    return frozenset(map(id, world.pg_map)) if world is not None else frozenset()


def _works_left() -> int:
    size = getattr(sys.modules.get("torch._C._distributed_c10d"), "_get_work_registry_size", None)
    return int(size()) if size else 0


def _set_once() -> tuple[int, str] | None:
    """Threads between operations, and the name of the private backend."""
    torch = loaded_torch()
    return None if torch is None else (torch.get_num_interop_threads(), torch._C._get_privateuse1_backend_name())


def _judge_set_once(before: tuple[int, str] | None, now: tuple[int, str] | None) -> str:
    if before in (None, now) or now is None:
        return ""
    return f"inter-op threads and private backend are {now}, were {before}"


def _tree_nodes() -> tuple[int, frozenset[type]]:
    """The number of imported modules, and the classes registered as nodes of pytrees."""
    return len(sys.modules), frozenset(getattr(sys.modules.get("torch.utils._pytree"), "SUPPORTED_NODES", ()))


def _judge_tree_nodes(before: tuple[int, frozenset[type]], now: tuple[int, frozenset[type]]) -> str:
    if before[1] >= now[1]:
        return ""
    imported = imported_since(before[0])
    if not before[1]:
        imported |= sys.stdlib_module_names  # importing torch registers its own, and the containers of the library
    left = sorted(cls.__name__ for cls in now[1] - before[1] if not is_of(cls.__module__, imported))
    return f"registered {len(left)} pytree nodes: {', '.join(left[:3])}" if left else ""


class Operators:
    """Operators, and implementations of operators, that a test registered: all belong to some torch.library.Library.

    Each library has a finaliser. Finalisers are numbered, so those of a test are the ones with a higher number.
    """

    name = "torch operators"

    def capture(self) -> tuple[int, int]:
        """The number of imported modules, and the number of the last finaliser."""
        return len(sys.modules), next((info.index for info in _finalisers()), -1)

    def doubt(self, state: tuple[int, int]) -> str:
        """Libraries that are new, are not garbage, and were not made by the import of a module."""
        if not self._left(state):
            return ""
        gc.collect()
        left = self._left(state)
        return f"left {len(left)} torch libraries: {', '.join(sorted(left)[:3])}" if left else ""

    @staticmethod
    def _left(state: tuple[int, int]) -> list[str]:
        count, last = state
        delete = getattr(sys.modules.get("torch.library"), "_del_library", None)
        infos = itertools.takewhile(lambda info: info.index > last, _finalisers())
        if not (new := [info.args for info in infos if info.func is delete]):
            return []
        imported = imported_since(count)
        files = {getattr(sys.modules.get(name), "__file__", None) for name in imported}
        libraries = [[*sorted(definitions), *sorted(rest)] for _, rest, _, definitions, *_ in new]
        left = [names[0] for names in libraries if names and not _came(names[0], imported, files)]
        if not imported:  # where a library without operators was made is written nowhere
            left += ["one without operators" for names in libraries if not names]
        return left


def _finalisers() -> Iterator[Any]:
    """All finalisers that are alive, the last made first; there is no other list of them."""
    return reversed(weakref.finalize._registry.values())  # type: ignore[attr-defined]


def _came(operator: str, imported: set[str], files: set[str | None]) -> bool:
    """Whether an operator (`space::name`, or `space/name/key` for an implementation) came with an import."""
    torch = loaded_torch()
    # A schema may hold line breaks.
    space, name, key = (*"".join(operator.split()).replace("::", "/", 1).split("/", 2), "debug")[:3]
    made = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", {}).get(f"{space}::{name}")
    if made is not None:
        return is_of(str(made._init_fn.__module__), imported)
    try:
        dump: str = torch._C._dispatch_dump(f"{space}::{name}")  # says in which file what was registered
    except RuntimeError:
        return False
    places = re.findall(rf"^{re.escape(key)}\b.*?: registered at (.*):\d+", dump, re.MULTILINE)
    return bool(places) and (
        places[0] in files or places[0].startswith(str(torch.__file__).removesuffix("__init__.py"))
    )


def _count(new: frozenset[int] | range, what: str) -> str:
    return f"left {len(new)} {what}" if new else ""


def torch_witnesses() -> list[Witness]:
    """Witnesses of what cannot be put back in torch."""
    return [
        Watch("CUDA errors", lambda: None, lambda _before, _now: _cuda_error()),
        Watch("process groups", _process_groups, lambda before, now: _count(now - before, "process groups")),
        Watch("collective works", _works_left, lambda before, now: _count(range(before, now), "collective works")),
        Watch("torch settings made once", _set_once, _judge_set_once),
        Watch("pytree nodes", _tree_nodes, _judge_tree_nodes),
        Operators(),
    ]
