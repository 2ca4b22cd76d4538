"""TCP ports for units, so that two torchruns at once never meet on 29500.

A port is leased machine-wide by a lock file, like a device, and proven unused by binding it. The range lies below the
kernel's ephemeral ports (32768 and up), from which it might be taken between the lease and the unit's own bind.
"""

import contextlib
import fcntl
import os
import socket
from pathlib import Path
from typing import Final, NamedTuple

from sooner.devices.shared_folder import SharedFolder
from sooner.model.errors import DevicesError

_FIRST: Final = 20_000
_LAST: Final = 29_000
_STRIDE: Final = 7
"""A step that has no common divisor with the range: neighbours in time are not neighbours in number."""


class Port(NamedTuple):
    """A leased port."""

    number: int
    fd: int
    """Of its lock."""

    def release(self) -> None:
        """Give it back."""
        os.close(self.fd)


class Ports:
    """Hands out ports.

    Args:
        root: The folder of lock files, shared by everybody on the machine.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._next = os.getpid() * 31 % (_LAST - _FIRST)
        self._ahead: list[Port] = []

    def lease(self, count: int) -> list[Port]:
        """Lease `count` ports.

        Raises:
            DevicesError: No port is free.
        """
        leased: list[Port] = []
        while self._ahead and len(leased) < count:
            port = self._ahead.pop()
            if _is_unused(port.number):
                leased.append(port)
            else:
                port.release()
        try:
            return self._lease(count, leased)
        except (OSError, DevicesError) as error:
            for port in leased:
                port.release()
            raise DevicesError(f"{count} TCP ports cannot be leased: {error}") from error

    def lease_ahead(self) -> None:
        """Lease one port while no device waits for it: the next unit then starts 0.2 ms sooner."""
        if not self._ahead:
            with contextlib.suppress(OSError, DevicesError):
                self._ahead = self._lease(1, [])

    def close(self) -> None:
        """Give back what was leased ahead."""
        for port in self._ahead:
            port.release()
        self._ahead.clear()

    def _lease(self, count: int, leased: list[Port]) -> list[Port]:
        if count and not os.path.isdir(self._root):  # noqa: PTH112 - a device waits, and pathlib takes ten times as long
            SharedFolder(self._root).make()
        for _ in range(_LAST - _FIRST):
            if len(leased) == count:
                return leased
            self._next = (self._next + _STRIDE) % (_LAST - _FIRST)
            port = _FIRST + self._next
            fd = self._lock(port)
            if fd is not None and _is_unused(port):
                leased.append(Port(port, fd))
            elif fd is not None:
                os.close(fd)
        raise DevicesError(f"no TCP port between {_FIRST} and {_LAST} is free")

    def _lock(self, port: int) -> int | None:
        path = self._root / f"port-{port}.lock"
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
            except OSError:
                return None
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return None
        return fd


def _is_unused(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
