"""Messages between the owner of a world and its ranks: pickles with a length in front, over a socket pair.

Only processes of one family hold the two ends, so what arrives is trusted.
"""

import pickle
import socket
import struct
from typing import Any, Final

_HEAD: Final = struct.Struct("!Q")
_CHUNK: Final = 1 << 18


def encode(message: Any) -> bytes:
    """A message as it travels."""
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEAD.pack(len(data)) + data


class Channel:
    """One end. `receive` takes what is there; `wait` waits for a whole message."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = bytearray()

    @classmethod
    def of(cls, descriptor: int) -> "Channel":
        """The end that a descriptor is."""
        return cls(socket.socket(fileno=descriptor))

    @property
    def descriptor(self) -> int:
        """Its file descriptor, -1 once it is closed."""
        return self._socket.fileno()

    def send(self, message: Any) -> None:
        """Send one message.

        Raises:
            OSError: The other side is gone.
        """
        self.send_encoded(encode(message))

    def send_encoded(self, data: bytes) -> None:
        """Send what `encode` made: once for many channels."""
        self._socket.sendall(data)

    def receive(self) -> tuple[list[Any], bool]:
        """All messages that are complete now, without waiting, and whether the other side is still there."""
        while True:
            try:
                data = self._socket.recv(_CHUNK, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return self._complete(), True
            except ConnectionError:
                data = b""
            if not data:
                return self._complete(), False
            self._buffer += data

    def _complete(self) -> list[Any]:
        found = []
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            end = _HEAD.size + size
            if len(self._buffer) < end:
                break
            found.append(pickle.loads(bytes(self._buffer[_HEAD.size : end])))  # noqa: S301 - the family's own
            del self._buffer[:end]
        return found

    def wait(self) -> Any:
        """The next message; None when the other side is gone. For an end that gets one message at a time."""
        while not (messages := self._complete()):
            data = self._socket.recv(_CHUNK)
            if not data:
                return None
            self._buffer += data
        return messages[0]

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def pair() -> tuple[Channel, int]:
    """A new channel: this side's end, and the descriptor of the other side's, which the caller closes."""
    ours, theirs = socket.socketpair()
    return Channel(ours), theirs.detach()
