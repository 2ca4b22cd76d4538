"""Which tests of PyTorch's multi-process classes may run on kept ranks, and which need processes of their own.

A test that ends, forks or signals processes, or whose class starts them in its own way, is about the life cycle itself.
That is decided from the source (the names that the compiled functions use) and from what a class overrides; a decorator
or a mark `isolation` overrules it.
"""

import types
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, TypeVar

Level = Literal["warm", "fork", "spawn"]
"""On kept ranks; on ranks forked for this test; as PyTorch does it."""

_ATTRIBUTE: Final = "__sooner_level__"
_SENSITIVE: Final = frozenset(
    {
        *("_exit", "abort", "kill", "killpg", "raise_signal", "alarm", "setitimer", "fork", "forkpty"),
        *(
            "spawn",
            "start_processes",
            "get_context",
            "set_start_method",
            "multiprocessing",
            "mp",
            "ProcessPoolExecutor",
        ),
        *("processes", "pid_to_pipe", "special_return_code_checks", "skip_return_code_checks"),
        *("_abort_process_group", "_shutdown_backend", "shutdown", "set_num_interop_threads"),
    }
)
"""Names whose use says that a test is about processes, or about what a process can do only once."""
_OWN_WAYS: Final = ("_start_processes", "run_test", "_join_processes", "_check_return_codes")
"""Methods that a class overrides if its processes live in a way of their own."""
_LEVELS: Final[dict[str, Level]] = {"fresh": "spawn", "fork": "fork", "warm": "warm", "world": "warm"}
"""What the mark `isolation` means here."""

Marked = TypeVar("Marked", bound=Callable[..., Any] | type)


def keep_warm(marked: Marked) -> Marked:
    """Decorate a test or a class: it runs on kept ranks, whatever its source looks like."""
    setattr(marked, _ATTRIBUTE, "warm")
    return marked


def keep_fresh(marked: Marked) -> Marked:
    """Decorate a test or a class: it runs as PyTorch runs it, in processes that are started for it."""
    setattr(marked, _ATTRIBUTE, "spawn")
    return marked


def level_of(test: Any, base: type) -> tuple[Level, str]:
    """How a test case runs, and why if not on kept ranks.

    Args:
        test: An instance of a subclass of `base`, set up for one test method.
        base: MultiProcessTestCase.
    """
    kind = type(test)
    method = getattr(kind, test._testMethodName, None)  # noqa: SLF001 - unittest has no public name for it
    if said := _said(method) or _said(kind):
        return said, "it was said so"
    for name in _OWN_WAYS:
        if getattr(kind, name, None) is not getattr(base, name, None):
            return "spawn", f"{kind.__name__} overrides {name}"
    if checked := _checked_codes(test):
        return "fork", checked
    if names := _SENSITIVE & _names_used(method, kind):
        return "fork", f"it uses {', '.join(sorted(names))}"
    return "warm", ""


def _said(marked: Any) -> Level | None:
    level: Level | None = getattr(marked, _ATTRIBUTE, None)
    if level is not None:
        return level
    for mark in reversed(getattr(marked, "pytestmark", [])):
        if getattr(mark, "name", "") == "isolation" and mark.args:
            return _LEVELS.get(mark.args[0])
    return None


def _checked_codes(test: Any) -> str:
    """Whether the test is expected to end its processes."""
    functions = [*getattr(test, "special_return_code_checks", ()), *getattr(test, "skip_return_code_checks", ())]
    own = getattr(test, test._testMethodName, None)  # noqa: SLF001 - as above
    names = {getattr(function, "__name__", "") for function in functions}
    return "its exit code is checked" if own is not None and test._testMethodName in names else ""  # noqa: SLF001


def _names_used(method: Any, kind: type) -> frozenset[str]:
    """Names that a method uses: in its own code, in what it wraps, and in methods of its class that it calls."""
    found: set[str] = set()
    seen: set[types.CodeType] = set()
    front = list(_codes(method))
    while front:
        code = front.pop()
        if code in seen:
            continue
        seen.add(code)
        found.update(code.co_names)
        front += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        for name in code.co_names:
            if name in vars(kind):  # a helper of the class itself; what it inherits is the harness
                front += _codes(vars(kind)[name])
    return frozenset(found)


def _codes(function: Any) -> Iterator[types.CodeType]:
    """The code of a function and of all that it wraps."""
    while function is not None:
        function = getattr(function, "__func__", function)
        if isinstance(getattr(function, "__code__", None), types.CodeType):
            yield function.__code__
        function = getattr(function, "__wrapped__", None)
