"""An agent behind a pair of calls: whoever can call an object on another machine can reach the agent there.

Ray makes it an actor. It knows nothing of Ray, and imports nothing that costs time.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_SOURCE_ROOT: Final = str(Path(__file__).resolve().parents[3])
_PROGRAM: Final = "import sys; sys.path.append(sys.argv.pop(1)); from sooner.run.backends.agent import main; main()"
_MOST: Final = 1 << 20
_END_S: Final = 5.0
_OWN: Final = frozenset({
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK", "GPU_DEVICE_ORDINAL",
    "HOSTNAME", "HOST", "TMPDIR", "PWD", "OLDPWD", "XDG_RUNTIME_DIR", "SOONER_LEASE_DIR", "SOONER_KFD_ROOT",
})  # fmt: skip
_OWN_PREFIXES: Final = ("RAY_", "SLURM_", "NVIDIA_", "SSH_", "DBUS_", "KUBERNETES_")
"""Variables that tell of a machine and not of the work: each keeps its own."""


def environment_there(runners: Mapping[str, str], own: Mapping[str, str]) -> dict[str, str]:
    """What units on another machine inherit: what the runner has, but for what only that machine can tell."""
    kept = {name: value for name, value in own.items() if _is_of_a_machine(name)}
    return {name: value for name, value in runners.items() if not _is_of_a_machine(name)} | kept


def _is_of_a_machine(name: str) -> bool:
    return name in _OWN or name.startswith(_OWN_PREFIXES)


def start_agent(environment: Mapping[str, str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start an agent on this machine; its process, and the socket to it, without which it ends."""
    ours, theirs = socket.socketpair()
    with theirs:
        agent = subprocess.Popen(
            [sys.executable, "-P", "-c", _PROGRAM, _SOURCE_ROOT, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    return agent, ours


class Relay:
    """Starts an agent on the machine where this object is, and carries bytes to and from it.

    Args:
        environment: The runner's.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._agent, self._channel = start_agent(environment_there(environment, os.environ))

    def send(self, data: bytes) -> None:
        """Hand bytes to the agent."""
        self._channel.sendall(data)

    def receive(self) -> bytes:
        """Bytes that the agent sent, as soon as there are some; none when it has ended."""
        try:
            return self._channel.recv(_MOST)
        except OSError:
            return b""

    def end(self) -> None:
        """The runner is done: without its socket the agent ends, or is ended; its guardian ends what it started."""
        with contextlib.suppress(OSError):  # the agent has ended already
            self._channel.shutdown(socket.SHUT_RDWR)  # closed alone it stays open for who waits in `receive`
        self._channel.close()
        try:
            self._agent.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()
