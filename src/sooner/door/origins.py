"""Where workers come from: forks of the controlling pytest, or of one that collects again under another mask.

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
from sooner.door.worker import Worker
from sooner.run.supervision import kernel
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
    """

    def __init__(
        self,
        channel: socket.socket,
        position: Position,
        *,
        wait: Callable[[], int | None],
        signal: Callable[[int], None],
    ) -> None:
        self.channel = channel
        self.position = position
        self._wait = wait
        self.signal = signal

    def kill(self) -> None:
        """End it at once."""
        self.signal(signal.SIGKILL)

    def end(self) -> int | None:
        """Close what is shared and return the wait status; the worker must be at its end."""
        self.channel.close()
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


class Here(Origin):
    """Forks the controlling pytest.

    Args:
        session: The session that has collected.
        guards: Makes the guards of a worker.
        quiet: Makes this process safe to fork.
    """

    def __init__(self, session: pytest.Session, guards: Callable[[], GuardSet], quiet: Callable[[], object]) -> None:
        self._session = session
        self._guards = guards
        self._quiet = quiet
        self._spare: Process | None = None

    def start(self, environment: Mapping[str, str], *, guarded: bool) -> Process:
        """Let the spare begin, or fork."""
        process, self._spare = self._spare or self._fork(), None
        with contextlib.suppress(OSError):  # a spare that was killed is noticed when its channel is read
            send(process.channel, ("begin", (dict(environment), guarded)))
        return process

    def make_ready(self) -> None:
        """Fork a spare."""
        if self._spare is None:
            self._spare = self._fork()

    def close(self) -> None:
        """End the spare."""
        if self._spare is not None:
            self._spare.kill()
            self._spare.end()
            self._spare = None

    def _fork(self) -> Process:
        """Fork; the child never returns from here."""
        ours, theirs = socket.socketpair()
        position = Position()
        self._session.config.get_terminal_writer().flush()
        self._quiet()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            ours.close()
            Worker(self._session, self._session.items, theirs, position, guards=self._guards).run(parent=parent)
        theirs.close()
        return Process(
            ours, position, wait=lambda: os.waitpid(pid, 0)[1], signal=lambda signum: kernel.send([pid], signum)
        )


class Remote(Origin):
    """A process that collects under a mask of its own, then is forked (or becomes a worker, once).

    Args:
        spec: What `remote.main` needs to know.
        environment: The mask to collect under.
        forks: Whether it is forked; otherwise its first worker is the process itself.
    """

    def __init__(self, spec: Mapping[str, Any], environment: Mapping[str, str], *, forks: bool) -> None:
        self._forks = forks
        self._output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ended: dict[int, int] = {}
        self._serial = 0
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

    def start(self, environment: Mapping[str, str], *, guarded: bool) -> Process:
        """Ask for a worker; it begins once everything is collected."""
        ours, theirs = socket.socketpair()
        position = Position()
        serial = self._serial = self._serial + 1
        request = pickle.dumps(("fork" if self._forks else "become", serial, 0))
        send(ours, ("begin", (dict(environment), guarded)))
        with contextlib.suppress(OSError), theirs:  # a remote that is gone is noticed when the worker's channel is read
            socket.send_fds(self._channel, [request], [theirs.fileno(), position.fd])
        return Process(
            ours,
            position,
            wait=lambda: self._status(serial),
            signal=lambda signum: self._ask_to_signal(serial, signum),
        )

    def _status(self, serial: int) -> int | None:
        """The wait status of a worker that has ended; None where the remote ended with it."""
        if not self._forks:
            return self._own_status()
        while serial not in self._ended:
            try:
                data = self._channel.recv(4096)
            except OSError:
                data = b""
            if not data:
                return None
            number, status = pickle.loads(data)  # noqa: S301 - our own program's
            self._ended[number] = status
        return self._ended.pop(serial)

    def _own_status(self) -> int:
        code = self._process.wait()
        return -code if code < 0 else code << 8

    def _ask_to_signal(self, serial: int, signum: int) -> None:
        if not self._forks:
            self._process.send_signal(signum)
            return
        with contextlib.suppress(OSError):
            self._channel.send(pickle.dumps(("signal", serial, signum)))

    @property
    def last_words(self) -> str:
        """What it wrote to standard error: why it could not collect."""
        self._output.seek(0, os.SEEK_END)
        self._output.seek(max(0, self._output.tell() - _TAIL))
        return self._output.read().decode("utf-8", "replace").strip()

    def close(self) -> None:
        """End the process."""
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
