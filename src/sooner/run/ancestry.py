"""Processes above a process, as /proc tells them: who started whom, and which script speaks.

A process is identified by its id and its start time, because ids are used again.
"""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

_PROC: Final = Path("/proc")
_SHELLS: Final = frozenset({"ash", "bash", "busybox", "dash", "ksh", "mksh", "rbash", "sh", "zsh"})
# fmt: off
_WRAPPERS: Final = frozenset(
    {
        "env", "gmake", "ionice", "make", "nice", "ninja", "nohup", "numactl", "parallel", "setsid",
        "stdbuf", "sudo", "taskset", "time", "timeout", "uv", "xargs",
    }
)
# fmt: on
"""Programs that run a command as a part of the script that called them."""
_STARTED_FIELD: Final = 19
"""Of /proc/PID/stat, counted from behind the name: starttime (proc(5), field 22)."""


class Process(Struct, frozen=True, order=True, array_like=True):
    """One process, for as long as the machine runs."""

    pid: int
    started: int
    """Clock ticks after boot."""


class Ancestor(Struct, frozen=True, kw_only=True):
    """A process above another one."""

    process: Process
    command: tuple[str, ...]

    @property
    def is_shell(self) -> bool:
        """Whether it is a shell, with or without a script."""
        return self._program in _SHELLS

    @property
    def is_part_of_script(self) -> bool:
        """Whether it only passes a script's command on."""
        return self.is_shell or self._program in _WRAPPERS

    @property
    def runs_script(self) -> bool:
        """Whether it is a shell that was given a script or a line, not one that somebody types into."""
        return self.is_shell and any(not word.startswith("-") for word in self.command[1:])

    @property
    def _program(self) -> str:
        return PurePosixPath(self.command[0].removeprefix("-")).name if self.command else ""


def ancestors(pid: int) -> list[Ancestor]:
    """The parent of a process, its parent, and so on up to the first process that can be seen."""
    chain = []
    parent = _parent(pid)
    while parent > 0 and (process := process_at(parent)) is not None:
        chain.append(Ancestor(process=process, command=_command(parent)))
        parent = _parent(parent)
    return chain


def process_at(pid: int) -> Process | None:
    """The process that has this id now; None where there is none, or only its corpse."""
    fields = _stat(pid)
    return Process(pid, int(fields[_STARTED_FIELD])) if fields and fields[0] not in "ZX" else None


def is_alive(process: Process) -> bool:
    """Whether it still runs."""
    return process_at(process.pid) == process


def script_part(chain: Sequence[Ancestor]) -> list[Ancestor]:
    """The lowest ancestors, as far as they belong to scripts: shells, and what only passes commands on.

    Empty where a process that is neither is the parent.
    """
    part = []
    for ancestor in chain:
        if not ancestor.is_part_of_script:
            break
        part.append(ancestor)
    return part


def owners(chain: Sequence[Ancestor]) -> tuple[Process, ...]:
    """The scripts that a command was started from, innermost first.

    A subshell is a copy of its script and no script of its own. A shell that somebody types into owns what no
    script does.
    """
    part = script_part(chain)
    shells = [ancestor for ancestor in part if ancestor.is_shell]
    scripts = [
        shell.process
        for shell, above in zip(shells, [*shells[1:], None], strict=False)
        if shell.runs_script and (above is None or above.command != shell.command)
    ]
    fallback = shells[:1] or list(chain[:1])
    return tuple(scripts) or tuple(ancestor.process for ancestor in fallback)


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; the name before them may hold anything."""
    try:
        content = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return []
    return content[content.rindex(b")") + 2 :].decode("ascii").split()


def _command(pid: int) -> tuple[str, ...]:
    try:
        content = (_PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(word) for word in content.split(b"\0")[:-1])
