"""Work whose parts do not hang together, on all CPUs."""

import os
import signal
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sooner.model.errors import SoonerError
from sooner.model.outcomes import ExitCode
from sooner.run.supervision import kernel

T = TypeVar("T")
_work: list[Callable[[Any], Any]] = []
"""What forked processes are to do: it need not be a function that can be pickled."""


class ProcessLost(SoonerError):  # noqa: N818 - what happened
    """A process that did a part of the work was ended by somebody else."""

    exit_code = ExitCode.INFRASTRUCTURE


def in_processes(
    work: Callable[[Any], T],
    arguments: Sequence[Any],
    *,
    most: int = 0,
    begin: Callable[[], object] | None = None,
    done: Callable[[int, T], object] = lambda _number, _result: None,
) -> list[T]:
    """Results of some work for each argument, in their order, by forks of this process; one CPU does it itself.

    Whatever ends it before (Ctrl-C, an error of one part) ends the processes at once.

    Args:
        work: Called with each argument, in one of the processes; they are dealt out one by one.
        arguments: The largest first, if the work is uneven.
        most: Processes; 0 for one a CPU.
        begin: Called first in each of the processes.
        done: Called here with the place of an argument and its result, as soon as there is one.

    Raises:
        ProcessLost: One of the processes was killed.
    """
    count = min(most or len(os.sched_getaffinity(0)), len(arguments))
    if count <= 1:
        results = []
        for number, argument in enumerate(arguments):
            results.append(work(argument))
            done(number, results[-1])
        return results
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    others = set(multiprocessing.active_children())
    _work.append(work)
    try:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(count, context, initializer=_begin, initargs=(os.getpid(), begin)) as pool:
            try:
                places = {pool.submit(_of_one, argument): number for number, argument in enumerate(arguments)}
                for each in as_completed(places):
                    done(places[each], each.result())
                return [each.result() for each in places]
            except BaseException:
                processes = set(multiprocessing.active_children()) - others
                for process in processes:
                    process.kill()
                for process in processes:
                    process.join()
                raise
    except BrokenProcessPool:
        raise ProcessLost(
            "a process that did a part of the work was killed, perhaps for lack of memory: "
            "make room, or let fewer do it (--jobs 1, or taskset)"
        ) from None
    finally:
        _work.pop()


def _begin(parent: int, begin: Callable[[], object] | None) -> None:
    kernel.die_with_parent(signal.SIGKILL, parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all: the parent ends this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # what the parent does at its end is not for this one to do
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if begin is not None:
        begin()


def _of_one(argument: Any) -> Any:
    return _work[-1](argument)
