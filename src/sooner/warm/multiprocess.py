"""Runs unmodified MultiProcessTestCase and DTensorTestBase classes of PyTorch on a warm world.

PyTorch starts `world_size` interpreters for each test (7 s with four ranks), has each run the test method, and judges
their exit codes. Here only the starting is replaced: what looks like processes to PyTorch's code are ranks that run the
same `_run` of the same class and tell the exit code that a process would have had. Joining, timeouts, skips by exit
code, expected codes and errors from ranks are PyTorch's own code, as it is.

`lifecycle` says which tests keep processes of their own.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final

from sooner.warm.forking import ForkRefused
from sooner.warm.lifecycle import keep_fresh, keep_warm, level_of
from sooner.warm.multiprocess_run import HARNESS, Pipe, TestRun
from sooner.warm.task import reference_to
from sooner.warm.worlds import Worlds

__all__ = ["install", "keep_fresh", "keep_warm", "uninstall"]

_METHOD: Final = "_spawn_processes"
_installed: list["Adapter"] = []


def install(worlds: Worlds | None = None) -> None:
    """Have the classes run on warm worlds, now or when their module is imported; again it does nothing.

    Args:
        worlds: Where ranks come from; by default worlds of the adapter's own.
    """
    if _installed:
        return
    adapter = Adapter(worlds)
    _installed.append(adapter)
    if HARNESS in sys.modules:
        adapter.patch(sys.modules[HARNESS])
    else:
        sys.meta_path.insert(0, _Finder(adapter))


def uninstall() -> None:
    """Have the classes start processes again, and end the adapter's own worlds."""
    for adapter in _installed:
        adapter.restore()
    _installed.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]


class Adapter:
    """Replaces `MultiProcessTestCase._spawn_processes`.

    Args:
        worlds: Where ranks come from; None is worlds of its own.
    """

    def __init__(self, worlds: Worlds | None) -> None:
        self._shared = worlds
        self._own: Worlds | None = None
        self._base: Any = None
        self._original: Any = None

    def patch(self, module: ModuleType) -> None:
        """Replace the method, once."""
        if self._base is None:
            self._base = module.MultiProcessTestCase
            self._original = getattr(self._base, _METHOD)
            adapter = self

            def _spawn_processes(self: Any) -> None:
                adapter.spawn(self)

            setattr(self._base, _METHOD, _spawn_processes)

    def restore(self) -> None:
        """Put the method back."""
        if self._base is not None:
            setattr(self._base, _METHOD, self._original)
            self._base = None
        if self._own is not None:
            self._own.close()
            self._own = None

    @property
    def worlds(self) -> Worlds:
        """Where ranks come from."""
        if self._shared is not None:
            return self._shared
        self._own = self._own or Worlds()
        return self._own

    def spawn(self, test: Any) -> None:
        """Start the processes of a test case, or what looks like them."""
        level, _ = level_of(test, self._base)
        reference = reference_to(type(test))
        if level == "spawn" or reference is None:
            self._original(test)
            return
        try:
            run = TestRun(self.worlds, test, reference, is_kept=level == "warm")
        except ForkRefused:
            self._original(test)
            return
        test.addCleanup(run.end)
        test.processes = run.processes
        test.pid_to_pipe = {process.pid: Pipe(process) for process in run.processes}


class _Finder(importlib.abc.MetaPathFinder):
    """Patches the module once it is imported."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find the module as others do, and step aside."""
        del path, target
        if fullname != HARNESS or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self._adapter)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, then patches it."""

    def __init__(self, loader: Any, adapter: Adapter) -> None:
        self._loader = loader
        self._adapter = adapter

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """As its own loader."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """As its own loader; then the class is patched."""
        self._loader.exec_module(module)
        self._adapter.patch(module)
