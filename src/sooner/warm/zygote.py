"""A fork server: one quiet process that has imported what ranks need, and gives birth to them in milliseconds.

It knows nothing of ranks: a child is a function, named "module:function", that gets descriptors and bytes. Children die
with the server, the server with its owner.
"""

import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn

from sooner.warm.forking import (
    ForkRefused,
    anonymous_file,
    collapse_memory,
    die_with_parent,
    forget_warning_filters,
    fork,
    fork_refusal,
    leave_parent,
    quiet_threads,
    tail_of,
    take_streams,
)

__all__ = ["ForkRefused", "Zygote", "ZygoteLost", "fork_refusal", "quiet_threads"]

_LARGEST_MESSAGE: Final = 1 << 17
_MOST_DESCRIPTORS: Final = 16
_MANY_BIRTHS: Final = 12
"""From so many on it pays to make births cheaper."""
_START: Final = (
    "import sys, pickle; fd, parent, sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[1])); "
    "from sooner.warm.zygote import main; main(fd, parent)"
)


class ZygoteLost(RuntimeError):  # noqa: N818 - what happened, as in sooner.model.errors
    """The fork server ended, or could not be started; says what it last wrote."""


class Zygote:
    """The owner's side of a fork server."""

    def __init__(self, pid: int, channel: socket.socket, errors: int) -> None:
        self.pid = pid
        self._channel = channel
        self._errors = errors
        self._owner = os.getpid()
        self.environment = dict(os.environb)
        """The variables that it, and so whoever it gives birth to, started with."""

    @classmethod
    def start(cls, preload: Iterable[str] = (), *, environment: Mapping[str, str] | None = None) -> "Zygote":
        """Execute a new interpreter and import modules there: clean of whatever this process did, and slow.

        Args:
            preload: Names of modules; one that cannot be imported is left out.
            environment: Its environment variables; by default this process's.

        Raises:
            ZygoteLost: It did not come up.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = anonymous_file()
        with theirs:
            facts = pickle.dumps((theirs.fileno(), os.getpid(), sys.path)).hex()
            child = subprocess.Popen(
                [sys.executable, "-c", _START, facts],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=environment,
            )
        child.returncode = 0  # `close` waits for it: Popen is not to warn that nobody did
        zygote = cls(child.pid, ours, errors)
        zygote.preload(["sooner.warm.rank", *preload])
        return zygote

    @classmethod
    def fork(cls) -> "Zygote":
        """Fork this process, with everything that it has imported: fast, and as clean as this process is now.

        Raises:
            ForkRefused: This process must not fork.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        errors = anonymous_file()
        parent = os.getpid()
        try:
            pid = fork()
        except ForkRefused:
            ours.close()
            os.close(errors)
            raise
        else:
            if pid == 0:
                _be_forked(theirs.fileno(), errors, parent)
        finally:
            theirs.close()
        return cls(pid, ours, errors)

    def spawn(self, target: str, descriptors: Sequence[int], argument: bytes) -> int:
        """Give birth to a process that calls `target` ("module:function") with descriptors and bytes.

        The first descriptor becomes its standard output and error.

        Returns:
            Its process id.

        Raises:
            ForkRefused: What was imported started threads, or a device driver.
            ZygoteLost: The fork server is gone.
        """
        kind, value = self._ask(("spawn", target, argument), descriptors)
        if kind == "refused":
            raise ForkRefused(f"the fork server must not fork: {value}")
        return int(value)

    def status(self, pid: int) -> int:
        """The wait status of a process that it gave birth to; waits until that has ended. To be asked once."""
        return int(self._ask(("status", pid))[1])

    def preload(self, modules: Iterable[str]) -> dict[str, str]:
        """Import modules for all that are born from now on; returns those that cannot be imported, with the error.

        Raises:
            ForkRefused: One of them started a thread, or a device driver: nobody can be born here any more.
            ZygoteLost: The fork server is gone.
        """
        failed: dict[str, str]
        failed, refusal = self._ask(("preload", list(modules), list(sys.path)))[1]
        if refusal:
            raise ForkRefused(f"the fork server must not fork: {refusal}")
        return failed

    def call(self, target: str) -> None:
        """Have a function called in the server itself, for all that are born from now on.

        Raises:
            ZygoteLost: It raised, or the fork server is gone.
        """
        self._ask(("call", target))

    def is_alive(self) -> bool:
        """Whether it is there: it says nothing unasked, so anything to read is its end."""
        if self._channel.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(self._channel, select.POLLIN)
        return not poll.poll(0)

    def _ask(self, request: tuple[Any, ...], descriptors: Sequence[int] = ()) -> tuple[str, Any]:
        try:
            socket.send_fds(self._channel, [pickle.dumps(request)], list(descriptors))
            data = self._channel.recv(_LARGEST_MESSAGE)
        except ConnectionError:
            data = b""
        if not data:
            raise ZygoteLost(f"the fork server ended: {tail_of(self._errors, most=4000) or 'it wrote nothing'}")
        answer: tuple[str, Any] = pickle.loads(data)  # noqa: S301 - our own child's
        return answer

    @property
    def descriptors(self) -> frozenset[int]:
        """What it holds open in this process; empty once it is closed."""
        return frozenset({self._channel.fileno(), self._errors}) if self._channel.fileno() >= 0 else frozenset()

    def close(self) -> None:
        """End it and all that it gave birth to; in a forked child of the owner only let go of it."""
        if self._channel.fileno() < 0:
            return
        self._channel.close()
        os.close(self._errors)
        if os.getpid() == self._owner:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


def _be_forked(descriptor: int, errors: int, parent: int) -> NoReturn:
    try:
        leave_parent({descriptor, errors})
        forget_warning_filters()
        take_streams(errors)
        main(descriptor, parent)
    finally:
        os._exit(1)


def main(descriptor: int, parent: int) -> NoReturn:
    """Be a fork server until the owner lets go of the channel."""
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from the keyboard: the owner decides
    try:
        with socket.socket(fileno=descriptor) as channel:
            _freeze()
            _serve(channel)
    except ConnectionError:
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the owner shows it
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def _serve(channel: socket.socket) -> None:
    births = 0
    tidying: Iterator[None] = iter(())
    while True:
        _use_idle_time(channel, tidying)
        request = _next_request(channel)
        if request is None:
            return
        channel.send(pickle.dumps(_answer(channel, *request)))
        births += request[0][0] == "spawn"
        if births == _MANY_BIRTHS or (births > _MANY_BIRTHS and request[0][0] == "preload"):
            tidying = collapse_memory()


def _use_idle_time(channel: socket.socket, work: Iterator[None]) -> None:
    """Do work while nobody asks for anything."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    while not poll.poll(0):
        try:
            next(work)
        except StopIteration:
            return


def _freeze() -> None:
    """Keep the collector off what children share: touching every object copies every page (41-92 MiB a child)."""
    gc.collect()
    gc.freeze()


def _next_request(channel: socket.socket) -> tuple[tuple[Any, ...], list[int]] | None:
    data, descriptors, _, _ = socket.recv_fds(channel, _LARGEST_MESSAGE, _MOST_DESCRIPTORS)
    return (pickle.loads(data), descriptors) if data else None  # noqa: S301 - our own owner's


def _answer(channel: socket.socket, request: tuple[Any, ...], descriptors: list[int]) -> tuple[str, Any]:
    match request:
        case ("preload", names, paths):
            return "preloaded", (_import_all(names, paths), fork_refusal())
        case ("call", target):
            _function(target)()
            return "called", None
        case ("status", pid):
            return "status", _status(pid)
        case ("spawn", target, argument):
            return _spawn(channel, target, descriptors, argument)
        case _:
            raise ValueError(f"not a request: {request!r}")


def _import_all(names: Sequence[str], paths: list[str]) -> dict[str, str]:
    failed = {}
    sys.path[:] = paths
    importlib.invalidate_caches()
    for name in names:
        try:
            importlib.import_module(name)
        except Exception as error:  # noqa: BLE001 - a module may raise anything; children can do without it
            failed[name] = repr(error)[:200]
    _freeze()
    return failed


def _status(pid: int) -> int:
    try:
        return os.waitpid(pid, 0)[1]
    except ChildProcessError:
        return 0


def _spawn(channel: socket.socket, target: str, descriptors: list[int], argument: bytes) -> tuple[str, Any]:
    server = os.getpid()
    try:
        pid = fork()
    except ForkRefused as refusal:
        return "refused", str(refusal)
    else:
        if pid == 0:
            channel.close()
            be_born(target, descriptors, argument, server)
        return "pid", pid
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _function(target: str) -> Callable[..., Any]:
    module, _, name = target.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    return function


def be_born(target: str, descriptors: Sequence[int], argument: bytes, parent: int) -> NoReturn:
    """In a process that was forked a moment ago: call its function, and end with it."""
    code = 1
    try:
        die_with_parent(parent)
        take_streams(descriptors[0])
        leave_parent(descriptors)
        forget_warning_filters()
        _function(target)(descriptors, argument)
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, it is for the log of this process
        traceback.print_exc()
    finally:
        os._exit(code)
