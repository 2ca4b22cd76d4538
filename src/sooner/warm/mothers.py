"""Who gives birth to ranks: a fork server, or this process itself."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from sooner.warm.fork_server import be_born
from sooner.warm.forking import fork


class Mother(Protocol):
    """Who gives birth to ranks: a fork server, or this process itself."""

    @property
    def environment(self) -> Mapping[bytes, bytes]:
        """The variables that a new process finds."""

    def spawn(self, target: str, descriptors: Sequence[int], argument: bytes) -> int:
        """A new process; returns its id. Raises `ForkRefused`."""

    def status(self, pid: int) -> int:
        """The wait status of one that has ended or was killed; waits for its end."""

    def forget(self, pids: Iterable[int]) -> None:
        """Say that nobody will ask how these end; they were killed."""


class OwnFork:
    """Forks this process itself: a child finds everything that is here, closures included."""

    @property
    def environment(self) -> Mapping[bytes, bytes]:
        """This process's."""
        return dict(os.environb)

    def spawn(self, target: str, descriptors: Sequence[int], argument: bytes) -> int:
        """A fork of this process.

        Raises:
            ForkRefused: This process must not fork.
        """
        parent = os.getpid()
        pid = fork()
        if pid == 0:
            be_born(target, descriptors, argument, parent)
        return pid

    def status(self, pid: int) -> int:
        """As waitpid(2)."""
        return os.waitpid(pid, 0)[1]

    def forget(self, pids: Iterable[int]) -> None:
        """Wait for them: this process must not be left with children."""
        for pid in pids:
            os.waitpid(pid, 0)
