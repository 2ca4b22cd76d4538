"""Messages between the controlling pytest and its workers: pickles with a length in front, over a socket.

What one side pickles the other can read: both are forks of one process, or run the same pytest on the same project, and
nobody else has the socket.
"""

import contextlib
import faulthandler
import mmap
import os
import pickle
import signal
import socket
import struct
import tempfile
from typing import Any, Final

_HEAD: Final = struct.Struct("!I")
_POSITION: Final = struct.Struct("qd")
_STOP_AT: Final = 64
_STACKS_AT: Final = 4096
_LONGEST_STACKS: Final = 64 * 1024
_AS_IT_IS: Final = (str, int, float, bool, bytes, type(None))


def send(channel: socket.socket, message: Any) -> None:
    """Send one message.

    Raises:
        OSError: The other side is gone.
    """
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    channel.sendall(_HEAD.pack(len(data)) + data)


def hang_up(channel: socket.socket) -> None:
    """End a channel for the other side, whoever else still holds this one."""
    with contextlib.suppress(OSError):
        channel.shutdown(socket.SHUT_RDWR)
    channel.close()


def portable(value: Any) -> Any:
    """The value, with text in the place of whatever in it cannot be pickled here and read there.

    Tests and plugins put any object into a report (`record_property`); who shows reports makes text of it as well.
    """
    if type(value) in _AS_IT_IS:
        return value
    if type(value) in (list, tuple):
        return type(value)(map(portable, value))
    if type(value) is dict:
        return {portable(key): portable(each) for key, each in value.items()}
    try:
        pickle.loads(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))  # noqa: S301 - it was made just now
    except Exception:  # noqa: BLE001 - it runs code of the object
        return _text_of(value)
    return value


def _text_of(value: Any) -> str:
    try:
        return str(value)
    except Exception as error:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}: {type(error).__name__} when it was shown>"


class Receiver:
    """Cuts what arrives into messages."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._buffer = bytearray()
        self._ready: list[Any] = []

    def receive(self) -> list[Any] | None:
        """Read what is there and return the complete messages; None when the other side is gone."""
        try:
            data = self._channel.recv(1 << 18)
        except ConnectionError:
            data = b""
        if not data:
            return None
        self._buffer += data
        messages = []
        start = 0
        while len(self._buffer) - start >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer, start)
            end = start + _HEAD.size + size
            if len(self._buffer) < end:
                break
            messages.append(pickle.loads(memoryview(self._buffer)[start + _HEAD.size : end]))  # noqa: S301 - see above
            start = end
        del self._buffer[:start]
        return messages

    def wait(self) -> Any:
        """The next message; None when the other side is gone."""
        while not self._ready:
            messages = self.receive()
            if messages is None:
                return None
            self._ready = messages
        return self._ready.pop(0)


class Position:
    """Which item a worker runs, since when, and its stacks if it crashed: readable after the worker's death.

    Args:
        fd: Descriptor of the memory; a new one where none is given.
    """

    def __init__(self, fd: int | None = None) -> None:
        self.fd = _memory() if fd is None else fd
        self._map = mmap.mmap(self.fd, _STOP_AT + 1)

    def set(self, item: int, at: float) -> None:
        """Note that an item begins; -1 between items."""
        _POSITION.pack_into(self._map, 0, item, at)

    def ask_to_stop(self) -> None:
        """Have the worker run no further item of its unit."""
        self._map[_STOP_AT] = 1

    @property
    def must_stop(self) -> bool:
        """Whether the worker was asked to stop."""
        return self._map[_STOP_AT] == 1

    def catch_stacks(self) -> None:
        """Have the stacks of all threads written here at a crash, and at SIGUSR2."""
        os.lseek(self.fd, _STACKS_AT, os.SEEK_SET)
        faulthandler.enable(file=self.fd)
        faulthandler.register(signal.SIGUSR2, file=self.fd)

    @property
    def stacks(self) -> str:
        """What `catch_stacks` caught."""
        return os.pread(self.fd, _LONGEST_STACKS, _STACKS_AT).decode("utf-8", "replace").strip()

    def get(self) -> tuple[int, float]:
        """The item, and when it began on the monotonic clock."""
        item, at = _POSITION.unpack_from(self._map, 0)
        return item, at

    def close(self) -> None:
        """Let go of the memory."""
        self._map.close()
        os.close(self.fd)


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("sooner-position")
    else:
        with tempfile.TemporaryFile() as file:
            fd = os.dup(file.fileno())
    os.ftruncate(fd, _STOP_AT + 1)
    os.pwrite(fd, _POSITION.pack(-1, 0.0), 0)
    return fd
