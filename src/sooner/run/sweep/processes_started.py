"""Counts the processes that this one starts, each once, or refuses them. Standard library only.

Audit events alone do not do: `multiprocessing` raises none when it spawns or asks its fork server, and `subprocess`
raises two where it uses posix_spawn (from Python 3.13 on by itself). So these two are counted where they start, and
what is raised meanwhile is not.
"""

import functools
import multiprocessing.process
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any, Final

_EVENTS: Final = ("os.fork", "os.forkpty", "os.posix_spawn", "os.system")


class Started:
    """A count of processes, from when it is made; there is no way to take it off again."""

    def __init__(self) -> None:
        self.count = 0
        self._inside = threading.local()
        for cls, name in ((subprocess.Popen, "__init__"), (multiprocessing.process.BaseProcess, "start")):
            setattr(cls, name, self._counted(getattr(cls, name)))
        sys.addaudithook(self._audit)

    def _audit(self, event: str, _args: tuple[Any, ...]) -> None:
        if event in _EVENTS and not getattr(self._inside, "yes", False):
            self.count += 1

    def _counted(self, start: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(start)
        def counted(*args: Any, **kwargs: Any) -> None:
            outer, self._inside.yes = getattr(self._inside, "yes", False), True
            try:
                start(*args, **kwargs)
            finally:
                self._inside.yes = outer
            if not outer:
                self.count += 1

        return counted


class Refused(BaseException):
    """A test, or a hook for it, wanted a process of its own; no project catches this one."""


def refuse_processes() -> None:
    """From now on nothing is started by `multiprocessing`, nor by what stands on it."""

    def start(process: multiprocessing.process.BaseProcess) -> None:
        raise Refused(f"{process.name} is not started")

    multiprocessing.process.BaseProcess.start = start  # type: ignore[method-assign, assignment]
