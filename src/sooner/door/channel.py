"""Messages between the controlling pytest and its workers: pickles with a length in front, over a socket.

Both ends are forks of one process: what one pickles the other can read, and nobody else has the socket.
"""

import pickle
import socket
import struct
from typing import Any, Final

_HEAD: Final = struct.Struct("!I")


def send(channel: socket.socket, message: Any) -> None:
    """Send one message.

    Raises:
        OSError: The other side is gone.
    """
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    channel.sendall(_HEAD.pack(len(data)) + data)


class Receiver:
    """Cuts what arrives into messages."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._buffer = bytearray()

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
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            if len(self._buffer) < _HEAD.size + size:
                break
            messages.append(pickle.loads(self._buffer[_HEAD.size : _HEAD.size + size]))  # noqa: S301 - our own fork's
            del self._buffer[: _HEAD.size + size]
        return messages

    def wait(self) -> Any:
        """The next message; None when the other side is gone."""
        while True:
            messages = self.receive()
            if messages is None or messages:
                return messages[0] if messages else None
