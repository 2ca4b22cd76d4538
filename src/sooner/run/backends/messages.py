"""What the runner and an agent say to each other: MessagePack, each message behind four bytes with its length.

The runner calls, the agent answers in the order of the calls. Between answers it says what wardens report and sends
what units wrote. Each of its messages tells its clock, because clocks of machines differ.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from sooner.run.supervision.client import Report

_LENGTH: Final = struct.Struct("!I")
PIECE: Final = 1 << 20
"""Bytes of a file that are sent at once."""


class Call(Struct, tag=True, frozen=True):
    """The runner wants something done; answered unless `number` is 0."""

    number: int
    name: str
    arguments: str = "[]"
    """A JSON list: its escapes carry bytes of commands and paths that are not UTF-8, MessagePack's text does not."""


class Answer(Struct, tag=True, frozen=True):
    """What came of the oldest call that is not answered; `error` says why nothing did."""

    number: int
    now: float
    value: Any = None
    error: str = ""


class Said(Struct, tag=True, frozen=True):
    """What a warden reported."""

    report: Report
    now: float


class Piece(Struct, tag=True, frozen=True):
    """A part of a unit's log, or of its JUnit file, to be put behind what is there already, or `anew`."""

    unit: str
    data: bytes
    now: float
    of_junit: bool = False
    anew: bool = False


class Alive(Struct, tag=True, frozen=True):
    """Nothing new, from an agent that is there."""

    now: float


ToAgent = Call
FromAgent = Answer | Said | Piece | Alive

_encoder = msgspec.msgpack.Encoder()


def encode(message: ToAgent | FromAgent) -> bytes:
    """A message as it travels."""
    data = _encoder.encode(message)
    return _LENGTH.pack(len(data)) + data


class Unpacked:
    """Bytes as they come, cut into messages again."""

    def __init__(self, kind: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._rest = bytearray()

    def take(self, data: bytes) -> Iterator[Any]:
        """The messages that are whole now.

        Raises:
            msgspec.MsgspecError: Somebody says what is no message.
        """
        self._rest += data
        while len(self._rest) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._rest)[0]
            if len(self._rest) < end:
                return
            message = self._decoder.decode(memoryview(self._rest)[_LENGTH.size : end].tobytes())
            del self._rest[:end]
            yield message
