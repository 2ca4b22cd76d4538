"""Opens sources: plain, gzip or Zstandard, told apart by their first bytes and never by their names."""

import contextlib
import gzip
import importlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from sooner.history.errors import IngestError

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
PARQUET: Final = b"PAR1"
_HEAD: Final = 1 << 16


def compression(path: Path) -> str:
    """`gzip`, `zstd` or `uncompressed`, as DuckDB calls them.

    Raises:
        IngestError: It cannot be read.
    """
    with _reading(path), path.open("rb") as file:
        begin = file.read(4)
    if begin.startswith(_GZIP):
        return "gzip"
    return "zstd" if begin == _ZSTD else "uncompressed"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The bytes of a source, decompressed as they are read.

    Raises:
        IngestError: It cannot be read.
    """
    match compression(path):
        case "gzip":
            with _reading(path), gzip.open(path, "rb") as file:
                yield cast("BinaryIO", file)
        case "zstd":
            with _reading(path), _zstd(path) as stream:
                yield stream
        case _:
            with _reading(path), path.open("rb") as plain:
                yield plain


def head(path: Path) -> bytes:
    """The first bytes, decompressed."""
    with opened(path) as stream:
        return stream.read(_HEAD)


@contextlib.contextmanager
def _zstd(path: Path) -> Iterator[BinaryIO]:
    """Python 3.14 knows Zstandard; before that a package, or the command, must help."""
    for module in ("compression.zstd", "backports.zstd", "zstandard"):
        with contextlib.suppress(ModuleNotFoundError):
            library: Any = importlib.import_module(module)
            with library.open(path, "rb") as stream:
                yield stream
            return
    if shutil.which("zstd") is None:
        raise IngestError(str(path), "Zstandard needs Python 3.14, `pip install zstandard` or the command zstd")
    with subprocess.Popen(["zstd", "-dcq", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - pipes were asked for
        yield cast("BinaryIO", process.stdout)
        is_at_end = not process.stdout.read(1)
        if is_at_end and process.wait():
            said = process.stderr.read().decode(errors="replace").strip()
            raise IngestError(str(path), f"cannot be read: {said.rpartition(' : ')[2] or 'it is broken'}")


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise IngestError(str(path), f"cannot be read: {reason}") from error
