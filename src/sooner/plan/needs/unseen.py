"""What may use a device and is not seen to: compiled modules, modules named after devices, frameworks of arrays."""

import functools
import re
from typing import Final

_OF_DEVICES: Final = re.compile(r"(?!torch\.|tensorflow\.)(?:[\w.]+[._])?(?:cuda|gpu|nccl|rocm|hip)\d*[._]")
"""Names of modules that speak of devices; of PyTorch and TensorFlow rules say what uses one."""
_OF_ARRAYS: Final = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(jax|tensorflow|cupy|cudf|cuml|cugraph|pylibcugraph|pylibraft|cuvs|pylibcudf)\b",
    re.MULTILINE,
)
"""Imports of frameworks that put what is made on their first device, whoever makes it."""


def is_in(path: str, modules: set[str]) -> bool:
    """Whether a dotted name is one of the modules, or in one."""
    parts = path.split(".") if modules else []
    return any(".".join(parts[:count]) in modules for count in range(1, len(parts) + 1))


def speaks_of_devices(path: str) -> bool:
    """Whether a name stands in a module whose name does so."""
    return _OF_DEVICES.match(f"{path.rpartition('.')[0]}.") is not None


@functools.lru_cache(maxsize=256)
def imports_arrays(text: str | None) -> bool:
    """Whether a module's text imports such a framework."""
    return text is not None and _OF_ARRAYS.search(text) is not None
