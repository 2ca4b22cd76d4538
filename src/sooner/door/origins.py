"""Where workers come from: a fork of the controlling pytest that is forked again, or one that collects anew.

Skip conditions are evaluated when a module is imported, so a test that needs four devices must be collected while four
are visible: for each width beyond the first a *remote*, a process that runs the same pytest on the same arguments,
collects, and is forked from then on. Where forking is not safe, a remote is not forked but becomes the worker itself.
"""

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

import pytest

from sooner.door import coverage_data
from sooner.door.channel import Position, send
from sooner.door.serving import Server
from sooner.run.supervision import kernel
from sooner.warm.forking import quiet_threads
from sooner.warm.guards import GuardSet

_SOURCE_ROOT: Final = str(Path(__file__).resolve().parents[2])
_PROGRAM: Final = "import sys; sys.path.append(sys.argv[1]); from sooner.door.remote import main; main()"
_TAIL: Final = 2000


class Process:
    """A worker's process, as the controlling pytest holds it.

    Args:
        channel: To the worker.
        position: What it runs.
        wait: Returns its wait status once it has ended; None where that is unknown.
        signal: Sends it a signal.
        ended: Becomes readable when it has ended, where nobody hangs up its channel then (`serving.Server` does).
    """

    def __init__(
        self,
        channel: socket.socket,
        position: Position,
        *,
        wait: Callable[[], int | None],
        signal: Callable[[int], None],
        ended: int | None = None,
    ) -> None:
        self.channel = channel
        self.position = position
        self.ended = ended
        self._wait = wait
        self.signal = signal

    def hang_up(self) -> None:
        """It has ended: what it said is still read, what a test of it left running has no say."""
        with contextlib.suppress(OSError):
            self.channel.shutdown(socket.SHUT_RD)

    def kill(self) -> None:
        """End it at once."""
        self.signal(signal.SIGKILL)

    def end(self) -> int | None:
        """Close what is shared and return the wait status; the worker must be at its end."""
        self.channel.close()
        if self.ended is not None:
            os.close(self.ended)
        status = self._wait()
        self.position.close()
        return status


class Origin(ABC):
    """Makes workers."""

    @abstractmethod
    def start(self, environment: Mapping[str, str], *, guarded: bool) -> Process:
        """Start a worker that sees the devices in `environment`; `guarded` if it is to run several tests."""

    def make_ready(self) -> None:  # noqa: B027 - there may be nothing to do
        """Use the time while a worker runs its test to prepare the next one."""

    def close(self) -> None:  # noqa: B027 - there may be nothing to close
        """End what the origin itself keeps running."""


class Served(Origin):
    """Asks a process that forks on request (`serving.Server`).

    Args:
        channel: To that process.
    """

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._ended: dict[int, int] = {}
        self._serial = 0
        self._gone = 0
        """Workers up to this serial ended with a server that was killed: nobody knows how."""
        self._spare: Process | None = None

    def start(self, environment: Mapping[str, str], *, guarded: bool) -> Process:
        """Let the spare begin, or ask for a worker."""
        self._mend()
        process, self._spare = self._spare or self._ask("fork"), None
        with contextlib.suppress(OSError):  # a spare that was killed is noticed when its channel is read
            send(process.channel, ("begin", (dict(environment), guarded)))
        return process

    def make_ready(self) -> None:
        """Ask for a spare."""
        if self._spare is None:
            self._spare = self._ask("fork")

    def close(self) -> None:
        """End the spare."""
        if self._spare is not None:
            self._spare.kill()
            self._spare.end()
            self._spare = None

    def _ask(self, kind: str) -> Process:
        ours, theirs = socket.socketpair()
        position = Position()
        serial = self._serial = self._serial + 1
        with theirs:
            self._request(pickle.dumps((kind, serial, 0)), [theirs.fileno(), position.fd])
        return Process(
            ours,
            position,
            wait=lambda: self._status(serial),
            signal=lambda signum: self._ask_to_signal(serial, signum),
            ended=self._ended_fd(),
        )

    def _ended_fd(self) -> int | None:
        """What `Process` has as `ended`."""
        return None

    def _mend(self) -> None:
        """Replace a server that somebody killed, where that is possible."""

    def _request(self, request: bytes, fds: Sequence[int]) -> None:
        with contextlib.suppress(OSError):  # a server that is gone is noticed when the worker's channel is read
            socket.send_fds(self._channel, [request], list(fds))

    def _status(self, serial: int) -> int | None:
        """The wait status of a worker that has ended; None where the server ended with it."""
        while serial not in self._ended and serial > self._gone:
            try:
                data = self._channel.recv(4096)
            except OSError:
                data = b""
            if not data:
                return None
            number, status = pickle.loads(data)  # noqa: S301 - our own program's
            self._ended[number] = status
        return self._ended.pop(serial, None)

    def _ask_to_signal(self, serial: int, signum: int) -> None:
        self._request(pickle.dumps(("signal", serial, signum)), [])


class Zygote(Served):
    """A fork of the controlling pytest.

    Args:
        session: The session that has collected.
        guards: Makes the guards of a worker.
    """

    def __init__(self, session: pytest.Session, guards: Callable[[], GuardSet]) -> None:
        self._session = session
        self._guards = guards
        self._pid = 0
        self.server: Server | None = None
        """In the child, where it is for the caller to run it."""
        super().__init__(self._fork())

    def _fork(self) -> socket.socket:
        """Fork; in the child, set `server`."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        if (terminal := self._session.config.pluginmanager.getplugin("terminalreporter")) is not None:
            terminal.flush()  # what it has not written yet would be the child's to write too
        quiet_threads()
        parent = os.getpid()
        self._pid = os.fork()
        if self._pid == 0:
            ours.close()
            kernel.die_with_parent(signal.SIGTERM, parent)
            self.server = Server(self._session, self._session.items, theirs, guards=self._guards)
            return theirs
        theirs.close()
        return ours

    def _mend(self) -> None:
        if os.waitpid(self._pid, os.WNOHANG)[0]:
            self._gone = self._serial
            if self._spare is not None:
                self._spare.end()
            self._channel.close()
            self._spare, self._channel = None, self._fork()
            if self.server is not None:
                self.server.run()

    def close(self) -> None:
        """End the spare and the server."""
        super().close()
        self._channel.close()
        kernel.send([self._pid], signal.SIGKILL)
        os.waitpid(self._pid, 0)


class Remote(Served):
    """A process that collects under a mask of its own, then is forked (or becomes a worker, once).

    Args:
        spec: What `remote.main` needs to know.
        environment: The mask to collect under.
        forks: Whether it is forked; otherwise its first worker is the process itself.
    """

    def __init__(self, spec: Mapping[str, Any], environment: Mapping[str, str], *, forks: bool) -> None:
        self._forks = forks
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        super().__init__(ours)
        with tempfile.TemporaryFile() as file:
            pickle.dump({**spec, "parent": os.getpid()}, file)
            file.seek(0)
            shown = os.dup(2)
            fds = (theirs.fileno(), file.fileno(), shown)
            self._process = subprocess.Popen(
                [sys.executable, *_interpreter_flags(), "-c", _PROGRAM, _SOURCE_ROOT, *map(str, fds)],
                pass_fds=fds,
                env={**os.environ, **environment},
                cwd=spec["dir"],
                stdin=subprocess.DEVNULL,
                stderr=self._output,
            )
            os.close(shown)
        theirs.close()

    def _ask(self, kind: str) -> Process:
        return super()._ask(kind if self._forks else "become")

    def _ended_fd(self) -> int | None:
        if self._forks or not hasattr(os, "pidfd_open"):
            return None
        with contextlib.suppress(OSError):  # a kernel without them
            return os.pidfd_open(self._process.pid)
        return None

    def _status(self, serial: int) -> int | None:
        if self._forks:
            return super()._status(serial)
        code = self._process.wait()
        return -code if code < 0 else code << 8

    def _ask_to_signal(self, serial: int, signum: int) -> None:
        if self._forks:
            super()._ask_to_signal(serial, signum)
        else:
            self._process.send_signal(signum)

    @property
    def last_words(self) -> str:
        """What it wrote to standard error: why it could not collect."""
        self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, self._output.tell() - _TAIL))
        return self._output.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the process."""
        super().close()
        self._channel.close()
        self._process.kill()
        self._process.wait()
        self._output.close()


def _interpreter_flags() -> list[str]:
    """The options that this Python was started with, as multiprocessing passes them on."""
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    return flags


def remote_spec(config: pytest.Config, nodeids: Sequence[str], *, files: Sequence[str] = ()) -> dict[str, Any]:
    """What a remote must know to collect what this pytest collected.

    Args:
        config: The configuration of the controlling pytest.
        nodeids: The ids of its items, in its order.
        files: Collect only these files instead of what the command line names.
    """
    parameters = config.invocation_params
    measured = coverage_data.settings()
    return {
        "args": [*map(str, parameters.args), *(["--no-cov"] if measured and hasattr(config.option, "no_cov") else [])],
        "coverage": measured,
        "dir": str(parameters.dir),
        "argv": list(sys.argv),
        "path": list(sys.path),
        "nodeids": list(nodeids),
        "files": list(files),
    }
