"""The journal of reverts: every action before it is done and its answer after, on the disk before anything goes on.

One process holds it at a time. A last line that a crash has cut is taken away: what it told of had not begun, or is
found on the remote.
"""

import contextlib
import fcntl
import os
import time
from pathlib import Path
from typing import Self

import msgspec

from sooner.analysis.trunk.reverting import Action, Line, State
from sooner.model.errors import SoonerError, UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.text import printable_or_replaced


class JournalBusyError(SoonerError):
    """Another process reverts with the same journal."""

    exit_code = ExitCode.INFRASTRUCTURE


class JournalError(SoonerError):
    """The journal cannot be written now: nothing must be done that it does not tell of."""

    exit_code = ExitCode.INFRASTRUCTURE


class Journal:
    """Lines of the file, and the right to add some.

    Args:
        path: The file; it is made with its folder.

    Raises:
        JournalBusyError: Another process holds it.
        UsageError: It cannot be written, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            what = f"the journal {path} cannot be written: {error.strerror}"
            raise UsageError(f"{what}: name another with --journal") from None
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise JournalBusyError(f"another process reverts with the journal {path}: wait for it") from None
        self.lines = self._read()
        if not self.lines:
            self._keep_name()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def _keep_name(self) -> None:
        """A new file is found after a loss of power only if its folder is on the disk, too."""
        with contextlib.suppress(OSError):  # folders that may not be read, file systems that know no such thing
            folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _read(self) -> list[Line]:
        data = self._path.read_bytes()
        whole = _whole(data)
        if whole < len(data):
            os.ftruncate(self._fd, whole)
        elif data[-1:] not in (b"", b"\n"):
            os.write(self._fd, b"\n")
        return parsed(data[:whole], str(self._path))

    def add(
        self,
        culprit: str,
        action: Action,
        state: State,
        *,
        target: str,
        commit: str = "",
        url: str = "",
        detail: str = "",
    ) -> Line:
        """Add a line; it is on the disk when this returns.

        Raises:
            JournalError: The disk is full, or gone.
        """
        line = Line(
            at=time.time(),
            culprit=culprit,
            action=action,
            state=state,
            target=target,
            commit=commit,
            url=url,
            detail=printable_or_replaced(detail),
        )
        data = msgspec.json.encode({"v": line.v} | msgspec.to_builtins(line)) + b"\n"
        end = os.fstat(self._fd).st_size
        try:
            while data:
                data = data[os.write(self._fd, data) :]
            os.fsync(self._fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, end)  # else the next line would be written behind half of this one
            raise JournalError(f"the journal {self._path} cannot be written: {error.strerror}") from None
        self.lines.append(line)
        return line


def read_journal(path: Path) -> list[Line]:
    """The whole lines of a journal, without holding it; none where there is no file.

    Raises:
        UsageError: It cannot be read, or is damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"the journal {path} cannot be read: {error.strerror}") from None
    return parsed(data[: _whole(data)], str(path))


def _whole(data: bytes) -> int:
    """Length without a last line that a crash has cut; one that only lacks its end is whole (editors leave it away)."""
    end = data.rfind(b"\n") + 1
    try:
        msgspec.json.decode(data[end:], type=Line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return end
    return len(data)


def parsed(data: bytes, source: str) -> list[Line]:
    """Lines of a journal: one that cannot be read may be a revert, so nothing goes on.

    Raises:
        UsageError: A line is damaged.
    """
    lines = []
    for number, text in enumerate(data.splitlines(), 1):
        try:
            lines.append(msgspec.json.decode(text, type=Line))
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{source}:{number} is damaged ({error}): mend the line or name another --journal"
            ) from None
    return lines
