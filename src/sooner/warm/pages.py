"""Huge pages for a process that is forked often: a fork copies a table of its pages, and 2 MiB pages need a small one.

Children that write still get copies of 4 KiB. Measured with torch imported (230 MiB): a fork that runs one operation
and ends takes 8 ms before and 3 ms after, the collapse itself 0.3 s once; with inductor and DTensor imported too: fork
8 and 2 ms, a child's end 10 and 4, 0.7 s once. So it pays from about a hundred forks on.
"""

import contextlib
import ctypes
import sys
from collections.abc import Iterator
from typing import Final

_COLLAPSE: Final = 25
"""MADV_COLLAPSE of madvise(2): Linux 6.1 and newer, also where transparent huge pages are only given when asked for."""
_HUGE: Final = 2 << 20


def collapse() -> int:
    """Put this process's private memory into huge pages; returns how many bytes were, 0 where the system cannot."""
    return sum(collapse_piecewise())


def collapse_piecewise() -> Iterator[int]:
    """The same a piece at each step (6 ms), for a process that has other things to do; yields the bytes of each."""
    if sys.platform != "linux":
        return
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for first, end in _private_memory():
        for start in range(-(-first // _HUGE) * _HUGE, end - _HUGE + 1, _HUGE):
            moved = madvise(start, _HUGE, _COLLAPSE) == 0  # a piece that cannot be moved stays as it is
            yield _HUGE if moved else 0


def _private_memory() -> list[tuple[int, int]]:
    """Mappings that are writable, private and of no file."""
    found = []
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        for line in file:
            span, mode, _, _, _, *name = line.split(maxsplit=5)
            if mode.startswith("rw-p") and (not name or name[0].startswith("[heap]")):
                first, _, end = span.partition("-")
                found.append((int(first, 16), int(end, 16)))
    return found
