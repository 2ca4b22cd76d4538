"""Work that does not hang together, on all CPUs."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_work: list[Callable[[Any], Any]] = []
"""What forked processes are to do: it need not be a function that can be pickled."""


def in_processes(work: Callable[[Any], T], arguments: Sequence[Any]) -> list[T]:
    """Results of some work for each argument, in their order, by forks of this process; one CPU does it itself."""
    count = min(len(os.sched_getaffinity(0)), len(arguments))
    if count <= 1:
        return [work(argument) for argument in arguments]
    _work.append(work)
    try:
        with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("fork")) as pool:
            return list(pool.map(_of_one, arguments))
    finally:
        _work.pop()


def _of_one(argument: Any) -> Any:
    return _work[-1](argument)
