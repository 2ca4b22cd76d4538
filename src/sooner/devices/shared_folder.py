"""A directory that all users of a machine share safely, and small records in its files.

Knows nothing of devices: `leases` says what the files mean.
"""

import errno
import json
import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from sooner.model.errors import DevicesError

_LONGEST: Final = 4096
"""Bytes of a record that are read: everybody can write these files."""
_FLAGS: Final = os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
"""Another user may have put a link or a pipe there: follow none, and wait for none."""


class SharedFolder:
    """A directory in which every user may open and write every file, but remove only their own."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open_to_read(self, name: str) -> int | None:
        """Open a file; None where it is not there.

        Raises:
            DevicesError: It cannot be opened.
        """
        try:
            return os.open(self.root / name, os.O_RDONLY | _FLAGS)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._unusable(error) from error

    def open_to_write(self, name: str) -> int:
        """Open a file, made first where it is missing, with its directory.

        Raises:
            DevicesError: It cannot be opened or made.
        """
        try:
            self.make()
            # Without O_CREAT: fs.protected_regular refuses it on other users' files in a sticky directory.
            with suppress(FileNotFoundError):
                return os.open(self.root / name, os.O_RDWR | _FLAGS)
            self._create(name)
            return os.open(self.root / name, os.O_RDWR | _FLAGS)
        except OSError as error:
            raise self._unusable(error) from error

    def is_current(self, fd: int, name: str) -> bool:
        """Whether an open file still has that name: a sweep of /tmp may have removed it meanwhile."""
        try:
            return os.path.samestat(os.fstat(fd), (self.root / name).lstat())
        except FileNotFoundError:
            return False

    def make(self) -> None:
        """Make the directory where it is missing.

        Raises:
            OSError: It cannot be made, or something else has its name.
        """
        with suppress(FileExistsError):
            self.root.mkdir(parents=True)
            self.root.chmod(0o1777)  # mkdir's own mode is cut by the umask
        if not stat.S_ISDIR(self.root.lstat().st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is no directory; a link to one does not do")

    def _create(self, name: str) -> None:
        """Make a file appear with its final mode: another user may open it in the same instant."""
        fd, draft = tempfile.mkstemp(dir=self.root, prefix=".")
        try:
            os.fchmod(fd, 0o666)
            with suppress(FileExistsError):
                os.link(draft, self.root / name)
        finally:
            os.close(fd)
            os.unlink(draft)  # noqa: PTH108 - mkstemp names it as text

    def _unusable(self, error: OSError) -> DevicesError:
        return DevicesError(
            f"the directory of device leases {self.root} cannot be used ({error.strerror}): "
            "set SOONER_LEASE_DIR to a directory that every user of this machine can write"
        )


def write_record(fd: int, record: Mapping[str, object]) -> None:
    """Replace a file's content; readers stop at the line's end, so they see the old line or the new one."""
    line = json.dumps(record).encode() + b"\n"
    os.pwrite(fd, line, 0)
    os.ftruncate(fd, len(line))


def read_record(fd: int) -> dict[str, object]:
    """Read what `write_record` wrote; empty for anything else."""
    try:
        record = json.loads(os.pread(fd, _LONGEST, 0).partition(b"\n")[0])
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
