"""Machine-wide leases and quarantine marks: files in a directory that all users of the machine share.

A lease is a `flock`, so the kernel frees it when the last process that has it open is gone, however that
dies; lock files that stay behind mean nothing. A quarantine mark must outlive the run that made it, so it is
a file's content.
"""

import fcntl
import os
import pwd
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from sooner.devices.shared_folder import SharedFolder, read_record, write_record
from sooner.model.devices import Device, DeviceKind
from sooner.model.text import file_name, one_line

DEFAULT_ROOT: Final = Path("/tmp/sooner-leases")  # noqa: S108 - the one place that all users of a machine share
QUARANTINE_S: Final = 24 * 3600
"""A day: somebody has looked by then, and if not, the next fault marks the device again."""

_TURNSTILE: Final = "gang.lock"
_TRIES: Final = 4
_PAUSE_S: Final = 0.0003
"""Somebody who asks whose a device is (`holder_of`) locks it for some microseconds: that is no lease."""


def lease_root(env: Mapping[str, str]) -> Path:
    """Where leases are kept: SOONER_LEASE_DIR, or one directory for the machine."""
    return Path(env.get("SOONER_LEASE_DIR") or DEFAULT_ROOT)


class Lease:
    """The right to hold one device, until it is released or the last process that has it open ends.

    A child that inherits `fd` (`pass_fds`) holds the lease too: so a device stays ours while something that
    we started may still run on it, even if we die.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @property
    def fd(self) -> int:
        """The open lock file, not inheritable by itself; -1 once released."""
        return self._fd

    def release(self) -> None:
        """Give up our part; those who inherited it keep theirs."""
        # Closed and never unlocked: LOCK_UN on one duplicate unlocks them all.
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class LeaseBook:
    """All leases and marks of a machine; nothing is created before the first one.

    Every method raises DevicesError where the directory cannot be used.
    """

    def __init__(self, root: Path = DEFAULT_ROOT) -> None:
        self._folder = SharedFolder(root)

    def try_lease(self, device: Device, *, holder: str) -> Lease | None:
        """Lease a device now, or get None; `holder` is the run's name, as others shall read it."""
        return self._lock(_lock_name(device), holder)

    def turnstile(self, *, holder: str = "") -> Lease | None:
        """Get the right to hold devices while waiting for more, or None while another run has it.

        Without it two runs that want all devices could each hold half of them for ever.
        """
        return self._lock(_TURNSTILE, holder)

    def holder_of(self, device: Device) -> str | None:
        """Who leases a device now, for people: `nightly (pid 7, ada)`; None where nobody does."""
        fd = self._folder.open_to_read(_lock_name(device))
        if fd is None:
            return None
        try:
            return None if _locked(fd, fcntl.LOCK_SH) else _holder(read_record(fd))
        finally:
            os.close(fd)

    def put_aside(self, device: Device, reason: str, at: float) -> None:
        """Mark a device as not to be used for a day from `at` (epoch seconds), and say why."""
        fd = self._folder.open_to_write(_mark_name(device))
        try:
            write_record(fd, {"device": device.id, "reason": reason, "at": at})
        finally:
            os.close(fd)

    def put_aside_reason(self, device: Device, *, now: float) -> str | None:
        """Why a device is put aside at `now` (epoch seconds); None where it is not, or no longer."""
        mark = self._mark(device)
        at = mark.get("at")
        lasts = isinstance(at, int | float) and now - at < QUARANTINE_S
        return one_line(str(mark.get("reason", ""))) if lasts else None

    def clear(self, device: Device) -> bool:
        """Take a device's mark away; whether there was one.

        The file stays, empty: in a sticky directory it may be another user's to remove.
        """
        if not self._mark(device):
            return False
        fd = self._folder.open_to_write(_mark_name(device))
        try:
            os.ftruncate(fd, 0)
        finally:
            os.close(fd)
        return True

    def _mark(self, device: Device) -> dict[str, object]:
        fd = self._folder.open_to_read(_mark_name(device))
        if fd is None:
            return {}
        try:
            return read_record(fd)
        finally:
            os.close(fd)

    def _lock(self, name: str, holder: str) -> Lease | None:
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_PAUSE_S)
            fd = self._folder.open_to_write(name)
            if _locked(fd, fcntl.LOCK_EX) and self._folder.is_current(fd, name):
                write_record(fd, {"pid": os.getpid(), "run": holder, "user": _user(), "since": time.time()})
                return Lease(fd)
            os.close(fd)
        return None


def _lock_name(device: Device) -> str:
    return f"{_key(device)}.lock"


def _mark_name(device: Device) -> str:
    return f"{_key(device)}.aside"


def _key(device: Device) -> str:
    """By UUID where there is one, so that a renumbered GPU keeps its lease and its mark."""
    real = device.kind not in {DeviceKind.CPU, DeviceKind.VIRTUAL}
    return file_name(device.uuid if real and device.uuid else device.id)


def _locked(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(record: Mapping[str, object]) -> str:
    # Written by anybody and shown on terminals: `one_line` takes escape sequences out.
    run, pid, user = (record.get(name) or "?" for name in ("run", "pid", "user"))
    return one_line(f"{run} (pid {pid}, {user})")


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # the user of a container often has no name
        return str(os.getuid())
