"""What the runner asks of the guardian, and what wardens report; JSON, a message at a time.

Requests travel over a SOCK_SEQPACKET socket, together with the file descriptors of the leases that the unit holds; what
is too large for a packet travels in a file without a name. Reports come back as lines of under PIPE_BUF bytes through
one pipe that all wardens share, so that no two of them mix.
"""

import array
import contextlib
import json
import os
import socket
from collections.abc import Sequence
from typing import Any, Final

_PACKET: Final = 64 * 1024
"""Largest message sent as a packet; the kernel's default socket buffer holds 208 KiB."""
_MOST_FDS: Final = 250
"""The kernel passes at most 253 descriptors with a message (SCM_MAX_FD)."""
_REPORT: Final = 3500
"""Longest report: POSIX makes writes of up to PIPE_BUF (4,096 on Linux) atomic."""


def send_request(channel: socket.socket, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
    """Send one request and descriptors with it.

    Raises:
        OSError: The guardian is gone.
    """
    data = json.dumps(request).encode()
    spill = -1
    passed = list(fds[:_MOST_FDS])
    if len(data) > _PACKET:
        spill = os.memfd_create("sooner-request")
        with os.fdopen(os.dup(spill), "wb") as file:
            file.write(data)
        passed.insert(0, spill)
        data = b"@"
    try:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", passed))] if passed else []
        channel.sendmsg([data], rights)
    finally:
        if spill >= 0:
            os.close(spill)


def receive_request(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Receive one request and its descriptors; None when the other side is gone."""
    space = socket.CMSG_SPACE(_MOST_FDS * 4)
    try:
        data, ancillary, _, _ = channel.recvmsg(_PACKET, space, socket.MSG_CMSG_CLOEXEC)
    except ConnectionError:
        return None, []
    fds: list[int] = []
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers = array.array("i")
            numbers.frombytes(payload[: len(payload) - len(payload) % 4])
            fds.extend(numbers)
    if data == b"@":
        with os.fdopen(fds.pop(0), "rb") as file:
            file.seek(0)
            data = file.read()
    return (json.loads(data) if data else None), fds


def report(pipe: int, message: dict[str, Any]) -> None:
    """Report one thing to the runner; a runner that is gone is told nothing."""
    data = json.dumps(message).encode()
    if len(data) > _REPORT:
        data = json.dumps({**message, "leaked": [], "note": "report shortened"}).encode()
    with contextlib.suppress(BrokenPipeError):
        os.write(pipe, data + b"\n")
