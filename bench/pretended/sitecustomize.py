"""On `PYTHONPATH`: what imports torch or jax here, and every process that it starts, finds PRETENDED_DEVICES GPUs."""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

_CHANGED: Final = {"torch": "pretended_cuda", "jax": "pretended_jax"}


class _AfterImport(importlib.abc.MetaPathFinder):
    """Finds libraries as ever, and changes them when they have been executed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path) if fullname in _CHANGED else None
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            importlib.import_module(_CHANGED[fullname]).install(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if "PRETENDED_DEVICES" in os.environ:
    sys.meta_path.insert(0, _AfterImport())
    importlib.import_module("pretended_jax").prepare()
