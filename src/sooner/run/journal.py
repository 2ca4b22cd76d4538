"""The journal: every event is on the disk before anybody is told of it.

Events are appended to events.jsonl at once and synced in groups (group commit): while one fdatasync runs in a thread,
further events gather for the next. Listeners hear of an event only after its sync. Blocks for the journal are reserved
when the run begins, so that a unit that fills the disk cannot make the run forget its verdicts.
"""

import asyncio
import contextlib
import errno
import os
from collections.abc import Callable, Sequence
from typing import Final

from sooner.model.events import Event
from sooner.model.jsonl import encode_event
from sooner.run.folder import RunFolder, write_atomically
from sooner.run.supervision import kernel

_BYTES_PER_UNIT: Final = 2_048
"""Three lines of about 500 bytes for each unit, and some for retries."""
_RESERVE_BASE: Final = 256 * 1024
_RESERVE_MOST: Final = 256 * 1024 * 1024

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The disk or a quota is full, or the file has reached the limit of `ulimit -f`."""

_GATHER_S: Final = 0.003
"""Events that come this close together share a sync, and the next unit starts before it."""

Listener = Callable[[Event], None]


class Journal:
    """Appends events, syncs them in groups, then tells the listeners.

    Args:
        folder: The run's folder, held by this process.
        units: How many units are planned: decides how much of the disk is reserved.
        listeners: Called in order, in the event loop, with every event once it is on the disk.
    """

    def __init__(self, folder: RunFolder, *, units: int, listeners: Sequence[Listener]) -> None:
        self._folder = folder
        self._listeners = listeners
        self._unannounced: list[Event] = []
        self._task: asyncio.Task[None] | None = None
        self._fd = os.open(folder.events, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._cut_torn_line()
        self.lost_events = 0
        """Events that did not get to the disk because there was no room."""
        size = min(_RESERVE_BASE + units * _BYTES_PER_UNIT, _RESERVE_MOST)
        kernel.reserve(self._fd, os.fstat(self._fd).st_size + size)
        with contextlib.suppress(OSError):
            reserve = os.open(folder.reserve, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            kernel.reserve(reserve, size)
            os.close(reserve)

    def _cut_torn_line(self) -> None:
        """A runner that died in the middle of a line left a piece that would spoil the next one."""
        size = os.fstat(self._fd).st_size
        while size and os.pread(self._fd, 1, size - 1) != b"\n":
            size -= 1
        os.ftruncate(self._fd, size)

    def append(self, event: Event) -> None:
        """Write an event; listeners hear of it after the next sync."""
        self._write(encode_event(event))
        self._unannounced.append(event)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._commit())

    def _write(self, line: bytes) -> None:
        before = os.fstat(self._fd).st_size
        for _ in range(2):
            try:
                if os.write(self._fd, line) == len(line):
                    return
                os.ftruncate(self._fd, before)
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
            self.release_reserve()
        self.lost_events += 1

    def release_reserve(self) -> None:
        """Give the reserved blocks to whoever needs them now: the last files of the run."""
        with contextlib.suppress(OSError):
            self._folder.reserve.unlink()

    async def _commit(self) -> None:
        loop = asyncio.get_running_loop()
        while self._unannounced:
            await asyncio.sleep(_GATHER_S)
            batch, self._unannounced = self._unannounced, []
            with contextlib.suppress(OSError):
                await loop.run_in_executor(None, os.fdatasync, self._fd)
            for event in batch:
                for listener in self._listeners:
                    listener(event)

    async def drain(self) -> None:
        """Wait until everything that was appended is on the disk and announced."""
        while self._task is not None and not self._task.done():
            await self._task

    async def close(self) -> None:
        """Drain, give back the blocks that were not used, close the file; write it again if a unit removed it."""
        await self.drain()
        size = os.fstat(self._fd).st_size
        os.ftruncate(self._fd, size)
        if not self._folder.events.exists():
            with contextlib.suppress(OSError):
                self._folder.path.mkdir(parents=True, exist_ok=True)
                write_atomically(self._folder.events, os.pread(self._fd, size, 0))
        os.close(self._fd)
