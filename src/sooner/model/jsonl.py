"""Events and verdicts as JSON lines, and back.

Readers ignore fields that they do not know, so that an old reader survives a new writer; what is not a complete
line (a writer was killed in the middle of it) is left out by `split_lines`.
"""

from typing import Final

import msgspec

from sooner.model.events import Event, Verdict

_encoder: Final = msgspec.json.Encoder()
_events: Final = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """One line, newline included."""
    return _encoder.encode(event) + b"\n"


def decode_event(line: bytes) -> Event:
    """Read one line back.

    Raises:
        msgspec.DecodeError: It is not an event.
    """
    event: Event = _events.decode(line)
    return event


def encode_result(verdict: Verdict) -> bytes:
    """One line of results.jsonl: a verdict without its place in the stream, newline included.

    Whether it is in quarantine is only told where it is.
    """
    fields = msgspec.to_builtins(verdict)
    if not verdict.quarantined:
        del fields["quarantined"]
    for name in ("event", "at"):
        fields.pop(name, None)
    return _encoder.encode(fields) + b"\n"


def decode_result(line: bytes) -> Verdict:
    """Read one line of results.jsonl back; `at` is the end of its last attempt.

    Raises:
        msgspec.DecodeError: It is not a result.
    """
    fields = msgspec.json.decode(line)
    attempts = fields.get("attempts") or [{}]
    return msgspec.convert({"at": attempts[-1].get("ended_at", 0.0), "event": "verdict", **fields}, Verdict)


def split_lines(data: bytes) -> list[bytes]:
    """The complete, non-empty lines of a file that may end in the middle of one.

    NUL bytes are what a file system leaves where blocks were reserved and the machine died: they are no lines.
    """
    whole, _, _ = data.rpartition(b"\n")
    return [line for line in whole.replace(b"\0", b"").split(b"\n") if line.strip()]
