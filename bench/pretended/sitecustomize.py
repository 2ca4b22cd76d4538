"""On `PYTHONPATH`: what imports torch here, and every process that it starts, finds PRETENDED_DEVICES CUDA devices."""

import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Finds torch as ever, and changes it when it has been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path) if fullname == "torch" else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            from pretended_cuda import install

            install(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "PRETENDED_DEVICES" in os.environ:
    sys.meta_path.insert(0, _AfterTorch())
