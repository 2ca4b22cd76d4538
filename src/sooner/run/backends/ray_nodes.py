"""The machines of a Ray cluster, as the runner has them: Ray itself is talked to by a process of its own.

Ray places agents and carries bytes; which unit runs where stays the scheduler's. Ray's own scheduler starves wide tasks
behind narrow ones, and knows neither closeness nor leases.
"""

import contextlib
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sooner.model.errors import DevicesError, SoonerError, UsageError
from sooner.model.text import one_line
from sooner.run.backends.node import Node
from sooner.run.supervision.messages import receive_request

_SOURCE_ROOT: Final = str(Path(__file__).resolve().parents[3])
_PROGRAM: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); from sooner.run.backends.ray_driver import main; main()"
)
_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 240.0
"""Longer than the driver waits at once for GPUs that other jobs have."""
_END_S: Final = 15.0


class RayCluster:
    """The nodes of the cluster that `RAY_ADDRESS`, or this machine, is a part of."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.notes: list[str] = []
        self._driver: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `close`
        """What Ray prints: pages when a raylet dies, of which the run says what matters itself."""
        self._is_ready = False

    def gather(self, spec: str, cwd: Path, *, say: Callable[[str], object]) -> None:
        """Have an agent on every node that has such devices: `nodes`; what is left out is in `notes`.

        Args:
            spec: As of `--devices`, for each node.
            cwd: The folder of the run, which every node must have.
            say: Called with what is waited for and what is left out, for people.

        Raises:
            UsageError: Ray is not installed, or no cluster is there.
            DevicesError: No node has such devices.
        """
        _check_reachable(os.environ.get("RAY_ADDRESS", ""))
        channel = self._start(spec)
        channel.settimeout(_ANSWER_S)
        while not (said := self._heard(channel)).get("done"):
            if "node" in said:
                self._begin(Node(said["node"], said["channel"]), spec, cwd)
            elif "note" in said:
                self.notes.append(said["note"])
            elif "waiting" in said:
                say(said["waiting"])
            else:
                raise _error(said["kind"], said["error"])
        self._is_ready = True
        if not self.nodes:
            raise DevicesError(f"no node of the Ray cluster can be used: {'; '.join(self.notes)}")
        for note in self.notes:  # now, and not only in the summary: the run may take hours
            say(note)

    def _start(self, spec: str) -> socket.socket:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._driver = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, _SOURCE_ROOT, str(theirs.fileno()), spec],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
            )
        return self._channel

    def _heard(self, channel: socket.socket) -> dict[str, Any]:
        try:
            said, fds = receive_request(channel)
        except TimeoutError:
            raise _error("unreachable", f"no answer for {_ANSWER_S:g} s") from None
        if said is None:
            self._output.seek(0)
            lines = self._output.read().decode("utf-8", "replace").split("\n")
            last = next((line.strip() for line in reversed(lines) if line.strip()), "without a word")
            raise _error("unreachable", f"the process that talks to Ray has ended: {one_line(last)}")
        if fds:
            said["channel"] = socket.socket(fileno=fds[0])
        return said

    def _begin(self, node: Node, spec: str, cwd: Path) -> None:
        try:
            node.begin(spec, cwd)
        except SoonerError as error:
            self.notes.append(str(error))
            node.close()
        else:
            self.nodes.append(node)

    def close(self) -> None:
        """Let all nodes go, and leave the cluster."""
        for node in self.nodes:
            node.close()
        if self._channel is not None:
            self._channel.close()
        if self._driver is not None:
            if not self._is_ready:  # it may still wait for a cluster, for minutes
                self._driver.kill()
            try:
                self._driver.wait(_END_S)
            except subprocess.TimeoutExpired:
                self._driver.kill()
                self._driver.wait()
        self._output.close()


def _check_reachable(address: str) -> None:
    """Ray itself tries for many minutes before it says that nobody is there."""
    if address.startswith(("http://", "https://")):
        raise UsageError(f"RAY_ADDRESS={address} is the address of a dashboard: set that of the cluster, HOST:6379")
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():
        try:
            with contextlib.closing(socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S)):
                return
        except (OSError, OverflowError) as error:
            raise _error("unreachable", f"RAY_ADDRESS={address}: {error}") from None


def _error(kind: str, why: str) -> SoonerError:
    if kind == "devices":
        return DevicesError(why)
    if kind == "usage":
        return UsageError(why)
    return UsageError(
        f"no Ray cluster can be reached ({why}): start one with `ray start --head`, run this on one of its machines, or"
        " set RAY_ADDRESS"
    )
