"""Which pretended devices a process sees, which one is its current one, and a record of those that were used."""

import functools
import json
import os
import threading
from pathlib import Path
from typing import Any, Final

_chosen: Final = threading.local()
_written: Final[set[tuple[int, str, int]]] = set()


@functools.cache
def _visible(_process: int) -> tuple[int, ...]:
    total = int(os.environ["PRETENDED_DEVICES"])
    mask = os.environ.get("CUDA_VISIBLE_DEVICES")
    if mask is None:
        return tuple(range(total))
    seen: list[int] = []
    for word in mask.split(","):  # as CUDA reads it: up to the first that is none
        if not word.strip().isdecimal() or int(word) >= total:
            break
        seen.append(int(word))
    return tuple(seen)


def count() -> int:
    """How many devices the process sees."""
    return len(_visible(os.getpid()))


def current() -> int:
    """The index of the thread's device."""
    return getattr(_chosen, "index", 0)


def choose(index: int) -> int:
    """Make a device the thread's; the one before. A negative index changes nothing."""
    before = current()
    if index >= 0:
        _chosen.index = index
    return before


def use(index: int) -> None:
    """Write down that the test that runs uses a device.

    Raises:
        RuntimeError: There is none of this index.
    """
    seen = _visible(os.getpid())
    if not 0 <= index < len(seen):
        raise RuntimeError("CUDA error: invalid device ordinal")
    _write(seen[index])


def ask_for_host() -> None:
    """Write down, as device -1, that the test that runs asks for the host where that cannot be told from a device."""
    _write(-1)


def wake() -> None:
    """Write down, as device -2, that a library looks at its devices: the first one is woken, if no other is used."""
    _write(-2)


def _write(device: int) -> None:
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    fact = (os.getpid(), test, device)
    if fact not in _written:
        _written.add(fact)
        with Path(os.environ["PRETENDED_USES"]).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps([test, device]) + "\n")


def is_pretended(device: Any) -> bool:
    """Whether a device is spelled as one of CUDA's; a bare number is."""
    if isinstance(device, bool):
        return False
    if isinstance(device, int):
        return count() > 0
    if isinstance(device, str):
        return device.partition(":")[0] == "cuda"
    return getattr(device, "type", None) == "cuda"


def index_of(device: Any) -> int:
    """The index of a device; the current one where it says none."""
    if isinstance(device, str):
        number = device.partition(":")[2]
        return int(number) if number else current()
    index = device if isinstance(device, int) else getattr(device, "index", None)
    return current() if index is None or index < 0 else index
