"""One test of a MultiProcessTestCase on ranks: what PyTorch takes for processes and pipes, and what ranks run."""

import contextlib
import multiprocessing
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import Any, Final, NamedTuple

from sooner.warm.member import Lost, Patience, Said
from sooner.warm.rank import current
from sooner.warm.task import Reference, Report, member_of, module_of, pack_arguments
from sooner.warm.world import Running, World
from sooner.warm.worlds import Worlds

HARNESS: Final = "torch.testing._internal.common_distributed"
_PATIENCE: Final = Patience(0.5, 0.0)
"""How long one look at exit codes waits for them: PyTorch looks ten times a second."""
_ERROR: Final = 10
"""TEST_ERROR_EXIT_CODE of MultiProcessTestCase."""
_RUN_ON_RANK: Final = Reference("sooner.warm.multiprocess_run", "run_on_rank", "")


class TestRun:
    """One test method that ranks are running."""

    def __init__(self, worlds: Worlds, test: Any, reference: Reference, *, is_kept: bool) -> None:
        self._leases = ExitStack()
        self.gave_up = False
        """Whether ranks were killed."""
        lease = worlds.lease(int(test.world_size), None, is_kept=is_kept, test_id=test.id())
        self._world: World = self._leases.enter_context(lease)
        name = test._current_test_name()  # noqa: SLF001 - as PyTorch's _start_processes does
        arguments = (reference, name, test.file_name, {"fake_pg": getattr(test, "fake_pg", False)})
        self._running: Running = self._world.begin(_RUN_ON_RANK, pack_arguments(arguments, {}))
        skips = sys.modules[HARNESS].TEST_SKIPS.values()
        self._well = {0, *(skip.exit_code for skip in skips)}
        """Exit codes of processes that need not be ended."""
        self.processes = [Process(self, rank, pid) for rank, pid in enumerate(self._world.pids)]

    def look(self, rank: int) -> "_End | None":
        """How a rank ended; None while it runs. Waits a moment for all of them."""
        if self._running.pending and not self.gave_up and not self._has_failed():
            self._running.wait(_PATIENCE)
        return self._end_of(rank)

    def _end_of(self, rank: int) -> "_End | None":
        answer = self._running.answers.get(rank)
        if self.gave_up and not isinstance(answer, Said):
            return None  # PyTorch looks right after it terminated a process, when that has not ended yet
        if isinstance(answer, Lost):
            return _End(self._running.crew.exit_code(rank), [])
        if not isinstance(answer, Said) or not isinstance(answer.what, Report):
            return None
        if answer.what.outcome != "returned":
            return _End(_ERROR, [answer.what.text])
        return _End(*pickle.loads(answer.what.value))  # noqa: S301 - our own ranks'

    def _has_failed(self) -> bool:
        ends = [self._end_of(rank) for rank in range(len(self.processes))]
        return any(end is not None and end.code == _ERROR for end in ends)

    def stacks(self, rank: int) -> str:
        """Where a rank is."""
        return self._running.crew.stacks([rank])[rank]

    def give_up(self) -> None:
        """Kill ranks that still run."""
        if self._running.pending:
            self.gave_up = True
            self._world.end(self._running, went_well=False)

    def end(self) -> None:
        """Give the ranks back; those of a test that did not end well are killed."""
        ends = [self._end_of(rank) for rank in range(len(self.processes))]
        well = all(end is not None and end.code in self._well for end in ends)
        self._world.end(self._running, went_well=well)
        self._leases.close()


class _End(NamedTuple):
    """How a rank ended."""

    code: int
    """The exit code of a process, or minus the signal that ended it."""
    messages: list[Any]
    """What it sent through its pipe."""


class Process:
    """What PyTorch's code takes for a process."""

    def __init__(self, run: TestRun, rank: int, pid: int) -> None:
        self._run = run
        self._rank = rank
        self.pid = pid
        self.name = f"process {rank}"

    @property
    def exitcode(self) -> int | None:
        """As of multiprocessing.Process."""
        end = self._run.look(self._rank)
        return None if end is None else end.code

    @property
    def messages(self) -> list[Any]:
        """What it sent to its parent: its error, or, while it runs, where it is."""
        end = self._run.look(self._rank)
        return [self._run.stacks(self._rank)] if end is None else end.messages

    def is_alive(self) -> bool:
        """As of multiprocessing.Process."""
        return self.exitcode is None and not self._run.gave_up

    def join(self, timeout: float | None = None) -> None:
        """As of multiprocessing.Process."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.is_alive() and (deadline is None or time.monotonic() < deadline):
            continue

    def terminate(self) -> None:
        """End it, and the other ranks with it: nobody would go on with them."""
        if self.is_alive():
            self._run.give_up()

    kill = terminate


class Pipe:
    """What PyTorch's code takes for the pipe of a process."""

    closed = False

    def __init__(self, process: Process) -> None:
        self._process = process

    def send(self, event: Any) -> None:
        """A request for stacks: they are written when they are read."""

    def poll(self, timeout: float = 0.0) -> bool:
        """There always is something to receive, see `recv`."""
        del self, timeout
        return True

    def recv(self) -> Any:
        """The error of a process that ended; where it is, of one that runs."""
        return next(iter(self._process.messages), "it ended without an error\n")

    def close(self) -> None:
        """Nothing is open."""


def run_on_rank(reference: Reference, test_name: str, file_name: str, more: dict[str, Any]) -> tuple[int, list[Any]]:
    """On a rank: what a process of its own would do, and how it would end.

    Returns:
        Its exit code, and what it sent to its parent.
    """
    kind = member_of(module_of(reference), reference.qualname)
    facts = current()
    ours, theirs = multiprocessing.Pipe()
    try:
        code = _exit_code(partial(kind._run, facts.rank if facts else 0, test_name, file_name, theirs, **more))  # noqa: SLF001 - as PyTorch's _start_processes does
        return code, list(_received(ours))
    finally:
        ours.close()
        theirs.close()


def _exit_code(main: Callable[[], object]) -> int:
    """As multiprocessing.Process ends."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)  # noqa: T201 - as Python does
        return 1
    except BaseException:  # noqa: BLE001 - as above
        traceback.print_exc()
        return 1
    return 0


def _received(pipe: Any) -> Iterator[Any]:
    with contextlib.suppress(EOFError, OSError):
        while pipe.poll():
            yield pipe.recv()
