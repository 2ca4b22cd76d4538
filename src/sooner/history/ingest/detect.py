"""Finds out what a source is by what it holds, never by its name alone."""

import codecs
import json
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from sooner.history.errors import IngestError
from sooner.history.ingest import buildkite, git, ossci, sccache, test_times
from sooner.history.ingest.github_jobs import is_github
from sooner.history.ingest.json_items import Item, items
from sooner.history.ingest.opening import PARQUET, head
from sooner.history.record import is_run_folder

FORMATS: Final = (
    "junit", "csv", "jsonl", "json", "parquet", "github", "github-api", "buildkite", "ossci", "test-times", "sccache",
    "git", "run",
)  # fmt: skip
FOLDERS: Final = frozenset({"ossci", "git", "run"})
"""Formats that are a whole folder."""
LIVE: Final = "github:"
"""`github:owner/name` is no path but a repository to ask GitHub about."""
_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_PACKED: Final = {
    "a ZIP archive": (0, b"PK\x03\x04"), "a tar archive": (257, b"ustar"), "packed by bzip2": (0, b"BZh"),
    "packed by xz": (0, b"\xfd7zXZ\0"), "a 7z archive": (0, b"7z\xbc\xaf\x27\x1c"),
}  # fmt: skip
"""Where in a file which mark stands."""
_SKIPPED: Final = frozenset({".git", "node_modules", "__pycache__"})


def format_of(path: Path) -> str:
    """The format of a file or folder; empty for a folder of files.

    Raises:
        IngestError: Nobody can tell.
    """
    if path.is_dir():
        return _format_of_folder(path)
    begin = head(path)
    text = begin.removeprefix(b"\xef\xbb\xbf").lstrip()
    if begin.startswith(PARQUET):
        return "parquet"
    if not text:
        raise IngestError(str(path), "it is empty")
    if begin[:2] in _UTF_16 and not begin[:64].decode("utf-16", "ignore").lstrip().startswith("<"):
        raise IngestError(str(path), "it is UTF-16, which only XML may be: save it as UTF-8")
    if text.startswith(b"<") or begin[:2] in _UTF_16:
        return "junit"
    if text[:1] in b"{[":
        return _format_of_json(path, text)
    _refuse_binary(path, begin)
    return "csv"


def _refuse_binary(path: Path, begin: bytes) -> None:
    packed = next((name for name, (at, mark) in _PACKED.items() if begin[at:].startswith(mark)), "")
    if packed:
        raise IngestError(str(path), f"it is {packed}: unpack it first (gzip and Zstandard are read as they are)")
    if b"\0" in begin.partition(b"\n")[0]:
        raise IngestError(str(path), f"it is binary, and none of {', '.join(FORMATS)}")


def _format_of_folder(path: Path) -> str:
    if is_run_folder(path):
        return "run"
    if git.is_repository(path):
        return "git"
    return "ossci" if ossci.is_ossci(path) else ""


def _format_of_json(path: Path, text: bytes) -> str:
    if test_times.SHAPE.match(text):
        return "test-times"
    first = next(items(BytesIO(text)), None)
    if not isinstance(first, Item):
        first = next(items(BytesIO(_whole(path))), None)
    if first is None:  # a list or a page with nothing on it: nobody can tell whose, and there is nothing to take in
        return "github"
    value: Any = first.value if isinstance(first, Item) else None
    if is_github(value):
        return "github"
    if buildkite.is_buildkite(value):
        return "buildkite"
    if sccache.is_sccache(value):
        return "sccache"
    if not isinstance(value, dict):
        raise IngestError(str(path), "it is JSON, but no list, page or line of objects: say what it is with --format")
    return "jsonl" if _is_line(text) else "json"


def _whole(path: Path) -> bytes:
    """More of a file whose first item is larger than what was looked at."""
    from sooner.history.ingest.opening import opened

    with opened(path) as stream:
        return stream.read(1 << 26)


def _is_line(text: bytes) -> bool:
    """Whether the first line is an object of its own."""
    try:
        return isinstance(json.loads(text.partition(b"\n")[0]), dict)
    except ValueError:
        return False


def files_in(folder: Path) -> Iterator[Path]:
    """Files below a folder that may be sources, in a fixed order; a folder that is a source itself comes as one."""
    yield from _files_in(folder, (folder.resolve(),))


def _files_in(folder: Path, above: tuple[Path, ...]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in _SKIPPED:
            continue
        if path.is_dir():
            if (place := path.resolve()) in above:
                continue  # a link that leads back up
            if _format_of_folder(path):
                yield path
            else:
                yield from _files_in(path, (*above, place))
        elif path.is_file():
            yield path
