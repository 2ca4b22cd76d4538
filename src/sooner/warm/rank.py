"""A rank: a process that runs the tasks of its world one after the other, and puts itself back after each.

It decides nothing: it says what came of a task and whether it may run another; its owner goes on with it or kills it.
"""

import contextlib
import faulthandler
import os
import pickle
import random
import signal
import sys
import time
import traceback
import unittest
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from sooner.warm.baseline import Baseline, compile_in_process, share_cores
from sooner.warm.channel import Channel
from sooner.warm.groups import GroupConfig, Registry, abort_group, close_group, connect_store, open_group, registry
from sooner.warm.guards import Cleaned, seed_from
from sooner.warm.slices import ask_for_short_slices
from sooner.warm.task import Facts, Report, Task, Tidy, Vote, call_of
from sooner.warm.torch_loaded import loaded_torch

STACK_SIGNAL: Final = signal.SIGRTMAX - 7 if hasattr(signal, "SIGRTMAX") else signal.SIGUSR2
"""Has a rank write the stacks of all its threads: a real-time signal, which tests are not likely to use."""
_STORE_TIMEOUT_S: Final = 300.0
_COMPILED: Final = "torch.compile"
"""Name of the guard over the compiler."""
_own_facts: list[Facts] = []
"""What this process is told if it is a rank."""


def main(descriptors: Sequence[int], argument: bytes) -> None:
    """Be a rank until the owner lets go of the channel; the target of a fork server.

    Args:
        descriptors: Of the output, the channel, the stacks, and for rank 0 of the socket on which its store listens.
        argument: The pickled `Facts`.
    """
    _, channel, stacks, *listener = descriptors
    faulthandler.enable(stacks)
    faulthandler.register(STACK_SIGNAL, stacks)
    facts: Facts = pickle.loads(argument)  # noqa: S301 - the owner's own
    if facts.size > len(os.sched_getaffinity(0)):
        ask_for_short_slices()
    _own_facts[:] = [facts]
    Rank(facts, Channel.of(channel), listener[0] if listener else None).serve()


def current() -> Facts | None:
    """What this process is told about itself if it is a rank: its number and how many there are."""
    return _own_facts[0] if _own_facts else None


class Rank:
    """One of `facts.size` processes that do the same thing at the same time."""

    def __init__(self, facts: Facts, channel: Channel, listener: int | None) -> None:
        self._facts = facts
        self._channel = channel
        self._listener = listener
        self._store: Any = None
        self._group: tuple[GroupConfig, int] | None = None
        """Configuration and epoch of the default group that was opened here and is still open."""
        self._before: Baseline | None = None
        """None while it must be captured anew."""
        self._modules = len(sys.modules)
        """How many modules were imported when somebody last looked."""

    def serve(self) -> None:
        """Run tasks until there are no more."""
        while (task := self._channel.wait()) is not None:
            if isinstance(task, Tidy):
                self._channel.send(self._tidy(task))
            else:
                report, vote = self._run(task)
                self._channel.send(report)
                self._channel.send(vote())

    def _run(self, task: Task) -> tuple[Report, Callable[[], Vote]]:
        """What came of a task, and what puts this process back and votes: the owner need not wait for that."""
        try:
            self._prepare_group(task)
            registered = self._prepare_state()
            _become_caller(task)
            _seed(task.test_id)
        except BaseException as error:  # noqa: BLE001 - the owner hears of whatever it is
            told = _told(error)
            return Report(outcome="broken", text=told), lambda: Vote(discard="could not begin a task")
        return _call(task), lambda: self._put_back(registered)

    def _prepare_state(self) -> Registry:
        """Know the state to which this process is put back: captured once, and anew after imports."""
        if self._before is None:
            compile_in_process()
            share_cores(self._facts.threads)
            self._before = Baseline.now() if self._facts.is_kept else Baseline(())
        return registry()

    def _put_back(self, registered: Registry) -> Vote:
        after = registry()
        changed = (after.default, after.groups) != (registered.default, registered.groups)
        cleaned = self._before.clean() if self._before else Cleaned()
        imported = self._imported()
        if not changed and (imported or _COMPILED in cleaned.restored):
            self._before = None  # new modules have state too; and a compiler that was reset is not what it was
        return Vote(
            # Groups that are left hold files and threads: whether anything else does is seen once they are closed.
            discard=_left_works(registered, after) or ("" if changed else cleaned.discard),
            group_changed=changed,
            restored=cleaned.restored,
            imported=imported,
        )

    def _tidy(self, task: Tidy) -> Vote:
        """Close whatever groups the last task left."""
        before, self._group, self._before = self._before, None, None
        try:
            abort_group() if task.abort else close_group()
        except BaseException as error:  # noqa: BLE001 - as above
            return Vote(discard=f"could not close its process groups: {error!r}")
        return Vote(discard=before.clean().discard if before else "")

    def _prepare_group(self, task: Task) -> None:
        """Have exactly the default process group that the task asks for: the open one, a new one, or none."""
        wanted = (task.group, task.epoch) if task.group is not None else None
        if wanted == self._group:
            return
        self._group = self._before = None
        close_group()
        if task.group is not None:
            self._open(task.group, task.epoch)
        self._group = wanted

    def _open(self, config: GroupConfig, epoch: int) -> None:
        facts = self._facts
        if self._store is None:
            timeout_s = config.timeout_s or _STORE_TIMEOUT_S
            self._store = connect_store(facts.host, facts.port, listener=self._listener, timeout_s=timeout_s)
        open_group(config, rank=facts.rank, store=self._store, epoch=epoch)

    def _imported(self) -> tuple[str, ...]:
        """Modules that were imported since this was last asked; the dictionary of modules keeps their order."""
        count, self._modules = len(sys.modules) - self._modules, len(sys.modules)
        return tuple(islice(reversed(sys.modules), max(0, count)))


def _become_caller(task: Task) -> None:
    """Look as the process of the caller looks: import path, current directory, environment."""
    if sys.path != list(task.paths):
        sys.path[:] = task.paths
    with contextlib.suppress(FileNotFoundError):
        if os.getcwd() != task.directory:  # noqa: PTH109 - as text
            os.chdir(task.directory)
    if task.environment:
        _change_environment(task.environment)


def _call(task: Task) -> Report:
    """Call the function of a task, and make a report of what came of it."""
    try:
        function, args, kwargs = call_of(task)
        result = function(*args, **kwargs)
        return Report(outcome="returned", value=pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL))
    except BaseException as error:  # noqa: BLE001 - a test may raise anything
        is_skip = isinstance(error, unittest.SkipTest) or type(error).__name__ == "Skipped"
        return Report(outcome="skipped" if is_skip else "raised", value=_portable(error), text=_told(error))
    finally:
        with contextlib.suppress(Exception):  # a test may have put anything there, and closed it
            sys.stdout.flush()
            sys.stderr.flush()


def _portable(error: BaseException) -> bytes:
    """An exception as bytes that the owner can read; empty where it cannot be made from its parts again."""
    try:
        data = pickle.dumps(error, protocol=pickle.HIGHEST_PROTOCOL)
        pickle.loads(data)  # noqa: S301 - made a line above
    except Exception:  # noqa: BLE001 - exceptions with constructors of their own raise whatever they like
        return b""
    return data


def _told(error: BaseException) -> str:
    """A traceback, from the function of the task on."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    return "".join(traceback.format_exception(type(error), error, frame or error.__traceback__))


def _left_works(before: Registry, after: Registry) -> str:
    left = after.works - before.works
    return f"left {left} collectives that nobody waited for" if left > 0 else ""


def _change_environment(changes: Mapping[bytes, bytes | None]) -> None:
    for name, value in changes.items():
        if value is None:
            os.environb.pop(name, None)
        else:
            os.environb[name] = value
    if b"TZ" in changes:
        time.tzset()


def _seed(test_id: str) -> None:
    """As `seed_from`, in a twentieth of the time where torch knows no devices: its manual_seed looks for each kind."""
    torch = loaded_torch()
    version = getattr(torch, "version", None)
    if torch is None or version is None or version.cuda or version.hip or getattr(version, "xpu", None):
        seed_from(test_id)
        return
    random.seed(test_id)
    number = random.getrandbits(32)
    torch.default_generator.manual_seed(number)
    if numpy := sys.modules.get("numpy.random"):
        numpy.seed(number)
