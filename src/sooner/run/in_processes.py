"""Work whose parts do not hang together, on all CPUs."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_work: list[Callable[[Any], Any]] = []
"""What forked processes are to do: it need not be a function that can be pickled."""


def in_processes(
    work: Callable[[Any], T],
    arguments: Sequence[Any],
    *,
    most: int = 0,
    begin: Callable[[], object] | None = None,
) -> list[T]:
    """Results of some work for each argument, in their order, by forks of this process; one CPU does it itself.

    Args:
        work: Called with each argument, in one of the processes; they are dealt out one by one.
        arguments: The largest first, if the work is uneven.
        most: Processes; 0 for one a CPU.
        begin: Called first in each of the processes.
    """
    count = min(most or len(os.sched_getaffinity(0)), len(arguments))
    if count <= 1:
        return [work(argument) for argument in arguments]
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    _work.append(work)
    try:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(count, mp_context=context, initializer=begin) as pool:
            return list(pool.map(_of_one, arguments))
    finally:
        _work.pop()


def _of_one(argument: Any) -> Any:
    return _work[-1](argument)
