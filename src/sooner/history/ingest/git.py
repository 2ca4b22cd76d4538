"""The history of a git repository: commits and the files that they change, by the `git` command (20,000 in 0.6 s)."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from sooner.history.errors import IngestError
from sooner.history.ingest.intake import Intake
from sooner.history.ingest.json_facts import as_count
from sooner.history.tables import CommitRow, Epoch

_CHUNK: Final = 1 << 18
_LONGEST_MESSAGE: Final = 16_384
_MARK: Final = b"\x01\x01\x01"
"""Nobody writes that into a message."""
_FORMAT: Final = "%x01%x01%x01%H%x02%P%x02%ct%x02%an%x02%B%x02"
_NO_HELPERS: Final = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
"""A repository's own settings start no programs while it is read."""
_FILES: Final = ("--name-only", "--no-renames", "-z", "--diff-merges=first-parent")
"""A file that is moved is gone from its old place as well: whatever stands there is changed."""
_SHALLOW: Final = (
    "the clone is shallow: where it is cut off neither files nor parents are known, and of what lies before nothing"
    " (`git fetch --unshallow`, or fetch-depth: 0 of actions/checkout, brings it)"
)
_REMOTE: Final = re.compile(r"[:/]([^/:]+/[^/:]+?)(?:\.git)?/?$")


def is_repository(path: Path) -> bool:
    """Whether a folder is a checkout or a bare repository."""
    return (path / ".git").exists() or ((path / "HEAD").is_file() and (path / "objects").is_dir())


def take_git(path: Path, intake: Intake) -> None:
    """Read all commits that HEAD reaches; a merge's files are those against its first parent.

    Raises:
        IngestError: git cannot read it.
    """
    repository = intake.options.constants.get("repository") or _repository(path)
    branch = _line(path, "rev-parse", "--abbrev-ref", "HEAD")
    log = ("log", f"--format={_FORMAT}", *_FILES, "HEAD", "--")
    command = _git(path, *log)
    cut_off = _cut_off(path)
    if cut_off:
        intake.report.note(f"{path.name}: {_SHALLOW}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None  # noqa: S101, PT018 - pipes were asked for
        for record in _records(process.stdout):
            row = _row(record, repository, "" if branch == "HEAD" else branch, cut_off)
            if row is None:
                start = record[:40].decode("utf-8", "replace")
                intake.report.reject(str(path), 0, f"git printed a commit that cannot be read: {start!r}")
            else:
                intake.add(row)
        problem = process.stderr.read().decode(errors="replace").strip()
    if process.returncode:
        raise IngestError(str(path), f"git cannot read it: {problem or f'exit code {process.returncode}'}")


def _git(path: Path, *arguments: str) -> list[str]:
    return ["git", "--no-optional-locks", "-C", str(path), *_NO_HELPERS, *arguments]


def _line(path: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(_git(path, *arguments), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise IngestError(str(path), "the command git is not there: install it") from None
    return done.stdout.strip()


def _repository(path: Path) -> str:
    found = _REMOTE.search(_line(path, "remote", "get-url", "origin"))
    return found[1] if found else ""


def _cut_off(path: Path) -> frozenset[str]:
    """Commits that a shallow clone has without their parents: git says of them that they made every file."""
    file = path / _line(path, "rev-parse", "--git-path", "shallow")
    return frozenset(file.read_text(encoding="ascii").split()) if file.is_file() else frozenset()


def _records(stream: IO[bytes]) -> Iterator[bytes]:
    """What lies between two marks, however git cuts its output."""
    rest = b""
    while chunk := stream.read(_CHUNK):
        *whole, rest = (rest + chunk).split(_MARK)
        yield from (record for record in whole if record)
    if rest:
        yield rest


def _row(record: bytes, repository: str, branch: str, cut_off: frozenset[str]) -> CommitRow | None:
    parts = record.decode("utf-8", "replace").split("\x02", maxsplit=4)
    if len(parts) < 5:  # noqa: PLR2004 - the fields of the format
        return None
    sha, parents, time, author, rest = parts
    message, _, files = rest.rpartition("\x02")
    seconds = as_count(time)
    return CommitRow(
        repository=repository,
        sha=sha,
        parents=tuple(parents.split()),
        time=Epoch(float(seconds)) if seconds is not None else None,
        author=author,
        message=message.strip()[:_LONGEST_MESSAGE],
        files=() if sha in cut_off else tuple(name for name in files.strip("\0\n").split("\0") if name),
        branch=branch,
        source="git",
    )
