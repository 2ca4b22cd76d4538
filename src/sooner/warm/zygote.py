"""A fork server: one quiet process that has imported what ranks need, and gives birth to them in milliseconds.

It knows nothing of ranks: a child is a function, named "module:function", that gets descriptors and bytes. Children die
with the server, the server with its owner.
"""

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sooner.warm.fork_server import LARGEST_MESSAGE, be_forked
from sooner.warm.forking import ForkRefused, anonymous_file, fork, fork_refusal, quiet_threads, tail_of

__all__ = ["ForkRefused", "Zygote", "ZygoteLost", "fork_refusal", "quiet_threads"]

_START: Final = (
    "import sys, pickle; fd, parent, sys.path[:] = pickle.loads(bytes.fromhex(sys.argv[1])); "
    "from sooner.warm.fork_server import main; main(fd, parent)"
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
                be_forked(theirs.fileno(), errors, parent)
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

    def forget(self, pids: Iterable[int]) -> None:
        """Say that nobody will ask how these end: they are reaped when they have."""
        self._ask(("forget", list(pids)))

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
            data = self._channel.recv(LARGEST_MESSAGE)
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
