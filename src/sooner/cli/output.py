"""Standard output and error that cost a command nothing when they cannot be written.

A verdict does not depend on whether anybody reads it: a reader that has enough (`| head`), a disk that is full and a
pipe that is full for the moment must neither end a run nor turn its exit code into another one. Nor must a letter that
the encoding of a terminal lacks: it is written as an escape.
"""

import contextlib
import io
import os
import select
import sys
from typing import Any, Final, TextIO


class NobodyReadsError(Exception):
    """Whoever read standard output has enough. No `BrokenPipeError`, which click takes for a failure (exit code 1)."""


_lost: Final[list[str]] = []
"""Why something that was to be read from standard output is not there."""


class _Raw(io.FileIO):
    """A descriptor that takes everything; what cannot be written is dropped.

    Args:
        descriptor: Where to write.
        ends_unread: Let a reader that has enough end the command (`NobodyReadsError`): it would never end else.
        losses: Where to note why something was dropped, other than for a reader that has enough.
    """

    def __init__(self, descriptor: int, *, ends_unread: bool, losses: list[str]) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._ends_unread = ends_unread
        self._losses = losses

    def write(self, data: Any, /) -> int:
        """Write what can be written; says that it was all."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view):
                written = super().write(view[done:])
                if written is None:  # somebody made the pipe non-blocking, and it is full
                    select.select([], [self.fileno()], [])
                done += written or 0
        except BrokenPipeError as error:
            if self._ends_unread:
                raise NobodyReadsError from error
        except OSError as error:
            if not self._losses:
                self._losses.append(error.strerror or str(error))
        return len(view)


def mend(*, ends_unread: bool) -> None:
    """Put streams that never fail in the place of this process's own; closed ones (`>&-`) lead to nowhere.

    Args:
        ends_unread: Let a reader of standard output that has enough end the command.
    """
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: PTH123, SIM115 - for the whole process
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole process
        elif stream is getattr(sys, f"__{name}__"):  # not what a test or an embedding program has put there
            is_read = name == "stdout"
            setattr(sys, name, _mended(stream, ends_unread and is_read, _lost if is_read else []))


def _mended(stream: TextIO, ends_unread: bool, losses: list[str]) -> TextIO:  # noqa: FBT001 - of this module alone
    with contextlib.suppress(OSError, ValueError):
        raw = _Raw(stream.fileno(), ends_unread=ends_unread, losses=losses)
        return io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=stream.encoding,
            errors="backslashreplace" if stream.errors == "strict" else stream.errors,
            line_buffering=bool(stream.line_buffering),
        )
    return stream


def what_was_lost() -> str:
    """Flush; returns why something is missing from standard output, empty where nothing is."""
    sys.stdout.flush()
    return _lost[0] if _lost else ""
