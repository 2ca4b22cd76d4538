"""What the owner of a world and its ranks say to each other: plain facts, and what travels inside them as bytes.

A function travels by reference, never by value: the rank imports its module as the owner did.
"""

import importlib
import importlib.util
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from types import ModuleType
from typing import Any, Final, Literal, NamedTuple

from sooner.warm.groups import GroupConfig

Function = Callable[..., Any]
Call = tuple[Function, tuple[Any, ...], dict[str, Any]]
inherited: Final[dict[int, Call]] = {}
"""Calls that cannot be told by reference: a rank that is forked from the owner finds them here."""


class Reference(NamedTuple):
    """Where a function is found."""

    module: str
    qualname: str
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a rank is told at birth."""

    rank: int
    size: int
    host: str
    port: int
    threads: int
    """Of OpenMP: ranks share the cores."""
    is_kept: bool
    """Whether it may run more than one task, and so must put itself back after each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One call on every rank, and what the process of the caller is like."""

    number: int
    reference: Reference | None
    """None for an inherited call, whose key is `number`."""
    arguments: bytes
    test_id: str
    paths: tuple[str, ...]
    directory: str
    environment: Mapping[bytes, bytes | None]
    """Variables that differ from those that the rank was born with; None for those that are gone."""
    group: GroupConfig | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Tidy:
    """Close the process groups that the last task left: between tests, so that no test pays for another."""

    abort: bool
    """After a failure, when an orderly end may hang."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a rank says of a task."""

    outcome: Literal["returned", "skipped", "raised", "broken"]
    """`broken`: the world failed, not the function."""
    value: bytes = b""
    """The result or the exception, pickled; empty where that is impossible."""
    text: str = ""
    """Why it did not return, for people."""

    @property
    def has_failed(self) -> bool:
        """Whether the other ranks may wait for this one in vain."""
        return self.outcome in ("raised", "broken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """What a rank says once it has put itself back: after its report, while the owner goes on."""

    discard: str = ""
    """Why the rank must not run anything else; empty where it may."""
    group_changed: bool = False
    """The default group, or the number of groups, is not what it was."""
    restored: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    """Modules that the task brought in: a world that replaces this one had better be born with them."""


def reference_to(function: Function) -> Reference | None:
    """How a rank finds a function; None for what only this process can find (a closure, a lambda, a local function)."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    qualname = getattr(function, "__qualname__", "")
    if module is None or not qualname or "<" in qualname:
        return None
    try:
        found: Any = member_of(module, qualname)
    except AttributeError:
        return None
    if found != function:  # equal is enough: a class method is made anew each time
        return None
    return Reference(module.__name__, qualname, getattr(module, "__file__", None) or "")


def pack_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Arguments as bytes.

    Raises:
        TypeError: They cannot be pickled.
    """
    try:
        return pickle.dumps((args, kwargs), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(f"arguments for ranks must be picklable: {error}") from error


def call_of(task: Task) -> Call:
    """The call of a task; imports what it needs, and raises whatever importing raises."""
    if task.reference is None:
        return inherited[task.number]
    function = member_of(module_of(task.reference), task.reference.qualname)
    args, kwargs = pickle.loads(task.arguments)  # noqa: S301 - the owner's own
    return function, args, kwargs


def member_of(module: Any, qualname: str) -> Any:
    """What a module holds under a dotted name; raises AttributeError."""
    return reduce(getattr, qualname.split("."), module)


def module_of(reference: Reference) -> Any:
    """The module of a reference: of the same file, whatever else has its name here."""
    module = sys.modules.get(reference.module)
    if module is None and reference.module != "__main__":
        try:
            module = importlib.import_module(reference.module)
        except ModuleNotFoundError as error:
            if error.name is None or not reference.module.startswith(error.name) or not reference.file:
                raise
    return module if module is not None and _is_of(module, reference.file) else _load(reference)


def _is_of(module: ModuleType, file: str) -> bool:
    return not file or getattr(module, "__file__", None) == file


def _load(reference: Reference) -> ModuleType:
    """Load a file that no import finds: a script, or a test module that pytest imported by its path."""
    name = "__mp_main__" if reference.module == "__main__" else reference.module
    loaded = sys.modules.get(name)
    if loaded is not None and _is_of(loaded, reference.file):
        return loaded
    spec = importlib.util.spec_from_file_location(name, reference.file)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{reference.module} cannot be imported from {reference.file!r}", name=name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
