"""The spool behind `sooner submit` and `sooner wait`: one file a submission, for its user alone.

`submit` stores a command with everything it needs and with the processes it was started from. `take` gives
a waiting process what its own script submitted, and nothing else: it looks for its parent among those
processes, then, where nothing was submitted from there, for the ancestors above it, as far as they belong
to scripts. A live script's submissions are never taken by another one; a dead script's are dropped, and
said to be. A queue with a name is shared by whoever names it.
"""

import json
import math
import os
import socket
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from sooner.model.errors import UsageError
from sooner.run.ancestry import Process, ancestors, is_alive, owners, script_part

_VERSION: Final = 1
_SUFFIX: Final = ".json"


class Submission(Struct, frozen=True, kw_only=True):
    """One submitted command."""

    version: int = _VERSION
    command: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    """The full environment at the submission."""
    name: str = ""
    devices: int | None = None
    """How many devices it asked for; None where it did not say."""
    timeout_s: float = 0.0
    queue: str = ""
    order: tuple[int, int]
    """Nanoseconds of the clock, then the id of the submitting process."""
    machine: str
    """Where process ids mean what they say: host, boot and namespace of ids."""
    ancestors: tuple[Process, ...]
    """Processes above the submitting one, its parent first."""
    owners: tuple[Process, ...]
    """The scripts among them, innermost first."""


class Taken(Struct, frozen=True, kw_only=True):
    """What was found in the spool, and removed from it."""

    submissions: tuple[Submission, ...]
    """The caller's, in the order in which they were submitted."""
    dropped: tuple[Submission, ...]
    """Those of scripts that died before they waited."""


def spool_folder(env: Mapping[str, str]) -> Path:
    """Where the spool is: `$XDG_STATE_HOME/sooner/queue`, or the same below ~/.local/state."""
    state = env.get("XDG_STATE_HOME", "")
    home = Path(state) if state.startswith("/") else Path(env.get("HOME") or Path.home()) / ".local" / "state"
    return home / "sooner" / "queue"


def submit(
    command: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    name: str = "",
    devices: int | None = None,
    timeout_s: float = 0.0,
    queue: str = "",
    pid: int | None = None,
) -> tuple[Submission, ...]:
    """Store a command for the `sooner wait` of the same script.

    Args:
        command: The command and its arguments.
        cwd: Directory to run in.
        env: Full environment to run with.
        name: Its name; empty derives one.
        devices: How many devices it needs; None derives it.
        timeout_s: Limit from its start; 0 is none.
        queue: Name of a queue to share; empty is the script's own.
        pid: The submitting process; this one where not given.

    Returns:
        Submissions of dead scripts that were dropped on the way.

    Raises:
        UsageError: The command is empty, its limit is no time, or the spool cannot be used.
    """
    if not command:
        raise UsageError("nothing to submit: write `sooner submit -- COMMAND...`")
    if not 0 <= timeout_s < math.inf:
        raise UsageError(f"--timeout must not be negative or endless, not {timeout_s}: seconds, 0 for no limit")
    own = os.getpid() if pid is None else pid
    chain = ancestors(own)
    submission = Submission(
        command=tuple(command),
        cwd=cwd,
        env=dict(env),
        name=name,
        devices=devices,
        timeout_s=timeout_s,
        queue=queue,
        order=(time.time_ns(), own),
        machine=_machine(),
        ancestors=tuple(ancestor.process for ancestor in chain),
        owners=owners(chain),
    )
    folder = _opened(spool_folder(env))
    _store(folder, submission)
    return _drop(folder, kept={entry.order for entry in _reachable(_entries(folder).values(), own)})


def take(*, env: Mapping[str, str], queue: str = "", pid: int | None = None) -> Taken:
    """Remove and return what the script of this process submitted, in the order of submission.

    Args:
        env: Where the spool is (`spool_folder`).
        queue: Name of a shared queue; empty is the script's own.
        pid: The waiting process; this one where not given.

    Raises:
        UsageError: The spool cannot be used.
    """
    folder = _opened(spool_folder(env))
    own = os.getpid() if pid is None else pid
    entries = _entries(folder)
    wanted = _named(entries.values(), queue) if queue else _of_script(entries.values(), own)
    chosen = {entry.order for entry in wanted}
    taken = [entry for path, entry in entries.items() if entry.order in chosen and _claim(path)]
    kept = {entry.order for entry in _reachable(entries.values(), own)}
    return Taken(submissions=tuple(taken), dropped=_drop(folder, kept=kept))


def put_back(submissions: Iterable[Submission], *, env: Mapping[str, str]) -> None:
    """Store again what was taken and could not be run.

    Raises:
        UsageError: The spool cannot be used.
    """
    folder = _opened(spool_folder(env))
    for submission in submissions:
        _store(folder, submission)


def _named(entries: Iterable[Submission], queue: str) -> list[Submission]:
    return [entry for entry in entries if entry.queue == queue]


def _of_script(entries: Iterable[Submission], pid: int) -> list[Submission]:
    """What was submitted from the nearest process above `pid` from which anything was."""
    here = _machine()
    local = [entry for entry in entries if not entry.queue and entry.machine == here]
    return next((found for place in _places(pid) if (found := _below(local, place))), [])


def _reachable(entries: Iterable[Submission], pid: int) -> list[Submission]:
    """What this process's scripts may still wait for, though the part that submitted it has ended."""
    part = [ancestor for ancestor in script_part(ancestors(pid)) if ancestor.runs_script]
    scripts = {ancestor.process for ancestor in part}
    return [entry for entry in entries if scripts & set(entry.ancestors)]


def _places(pid: int) -> list[Process]:
    """Where the submissions for `pid` may have come from: its parent, then its scripts, nearest first."""
    chain = ancestors(pid)
    return [ancestor.process for ancestor in script_part(chain) or chain[:1]]


def _below(entries: Iterable[Submission], place: Process) -> list[Submission]:
    """Submissions from below a process, without those that belong to another live script below it."""
    return [entry for entry in entries if place in entry.ancestors and not _has_nearer_owner(entry, place)]


def _has_nearer_owner(entry: Submission, place: Process) -> bool:
    nearer = entry.ancestors[: entry.ancestors.index(place)]
    return any(owner in nearer and is_alive(owner) for owner in entry.owners)


def _drop(folder: Path, *, kept: set[tuple[int, int]]) -> tuple[Submission, ...]:
    """Remove the submissions whose scripts have all ended, but for those to keep."""
    return tuple(
        entry
        for path, entry in _entries(folder).items()
        if entry.order not in kept and not entry.queue and _is_abandoned(entry) and _claim(path)
    )


def _is_abandoned(entry: Submission) -> bool:
    """Whether nobody is left to wait for it; of another machine that shares the folder, nobody can say."""
    here = _machine()
    if entry.machine != here:
        return entry.machine.partition(" ")[0] == here.partition(" ")[0] and _boot(entry.machine) != _boot(here)
    return not any(is_alive(owner) for owner in entry.owners)


def _claim(path: Path) -> bool:
    """Remove an entry; of several that try, one succeeds."""
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _opened(folder: Path) -> Path:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise UsageError(f"{folder} belongs to somebody else: set XDG_STATE_HOME to a folder of your own")
        folder.chmod(0o700)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}: set XDG_STATE_HOME to a folder that can be written") from None
    return folder


def _store(folder: Path, submission: Submission) -> None:
    """Write one entry: complete under its name, or not there at all.

    The standard library writes it: it alone keeps bytes that are not UTF-8 (surrogates).
    """
    at, pid = submission.order
    content = json.dumps(msgspec.to_builtins(submission)).encode("ascii")
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=folder)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(temporary).rename(folder / f"{at:020d}-{pid}{_SUFFIX}")
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}: the command was not submitted") from None


def _entries(folder: Path) -> dict[Path, Submission]:
    """All entries in order, without those of another version and those that are taken meanwhile."""
    entries = {}
    for path in folder.glob(f"*{_SUFFIX}"):
        with suppress(OSError, ValueError):
            entry = msgspec.convert(json.loads(path.read_bytes()), Submission)
            if entry.version == _VERSION:
                entries[path] = entry
    return dict(sorted(entries.items(), key=lambda item: item[1].order))


def _machine() -> str:
    """Host, boot and namespace of process ids, which containers that share a home do not share."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return f"{socket.gethostname()} {boot} {Path('/proc/self/ns/pid').readlink()}"


def _boot(machine: str) -> str:
    return machine.split(" ")[1]
