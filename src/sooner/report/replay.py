"""Replays the logs of a run in plan order, as if the units had run one after the other."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final, TextIO

from sooner.model.devices import Device
from sooner.model.events import Verdict
from sooner.model.text import decoded, terminal_text
from sooner.report.wording import device_label, outcome_text, seconds, unit_label

_RULE_WIDTH: Final = 72
_RULE: Final = "─"
_CHUNK: Final = 1024 * 1024
MOST_BYTES: Final = 4 * 1024 * 1024
"""Of a longer log the beginning and the end are replayed: a CI system cuts its own log at about as much."""


def replay(
    stream: TextIO,
    verdicts: Iterable[Verdict],
    folder: Path,
    devices: Iterable[Device],
    *,
    colour: bool,
    open_log: Callable[[Path], BinaryIO],
    github: bool = False,
    most_bytes: int = MOST_BYTES,
) -> None:
    """Write every log, each under a header, in the order given.

    Logs are opened by `open_log`, because a unit may have put anything in the place of its own. They are data: escape
    sequences other than colours are left out, bytes that are not UTF-8 are spelled out, and on GitHub Actions workflow
    commands in them stay without effect.
    """
    known: dict[str, Device] = {device.id: device for device in devices}
    stream.write("\n=== Output of each unit, in plan order ===\n")
    width = min(_RULE_WIDTH, shutil.get_terminal_size().columns) if stream.isatty() else _RULE_WIDTH
    rule = width * (_RULE if _can_show(_RULE, stream) else "-")
    for verdict in verdicts:
        stream.write(f"\n{rule}\n>>> {_title(verdict, known, colour=colour)}\n{rule}\n")
        with _commands_stopped(stream, needed=github):
            if verdict.log:
                _write_log(stream, folder / verdict.log, open_log, colour=colour, most_bytes=most_bytes)
    stream.write("\n=== End of the output of each unit ===\n")
    stream.flush()


def _can_show(text: str, stream: TextIO) -> bool:
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _title(verdict: Verdict, devices: Mapping[str, Device], *, colour: bool) -> str:
    title = (
        f"{unit_label(verdict.unit, verdict.variant)}: {outcome_text(verdict.outcome, verdict.cause, colour=colour)}"
    )
    if not verdict.attempts:
        return title
    where = device_label(verdict.attempts[-1].devices, devices)
    return f"{title} in {seconds(verdict.duration_s)} on {where}"


@contextmanager
def _commands_stopped(stream: TextIO, *, needed: bool) -> Iterator[None]:
    """GitHub Actions interprets `::set-env ...` in any output until it is told to stop, with a token to resume."""
    if not needed:
        yield
        return
    token = secrets.token_hex(16)
    stream.write(f"::stop-commands::{token}\n")
    yield
    stream.write(f"::{token}::\n")


def _write_log(
    stream: TextIO, log: Path, open_log: Callable[[Path], BinaryIO], *, colour: bool, most_bytes: int
) -> None:
    try:
        with open_log(log) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(0)
            half = most_bytes // 2 if size > most_bytes else size
            last = _copy(file.read, stream, half, colour=colour)
            if size > most_bytes:
                left_out = size - 2 * half
                stream.write(f"\n... {left_out:,} bytes left out, the whole log is {log}\n")
                file.seek(size - half)
                last = _copy(file.read, stream, half, colour=colour)
            if last not in ("", "\n"):
                stream.write("\n")
    except OSError as error:
        stream.write(f"(no log: {error.strerror})\n")


def _copy(read: Callable[[int], bytes], stream: TextIO, size: int, *, colour: bool) -> str:
    """Copy `size` bytes as terminal text, a chunk of lines at a time; returns the last character."""
    rest, last = b"", ""
    while size > 0:
        data = read(min(_CHUNK, size))
        if not data:
            break
        size -= len(data)
        lines, newline, rest = (rest + data).rpartition(b"\n")
        last = _write(stream, lines + newline, colour=colour) or last
    return _write(stream, rest, colour=colour) or last


def _write(stream: TextIO, data: bytes, *, colour: bool) -> str:
    text = terminal_text(decoded(data), colour=colour)
    stream.write(text)
    return text[-1:]
