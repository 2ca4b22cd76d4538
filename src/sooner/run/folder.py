"""A run's folder: where everything about one run lies, and the only place that knows its file names."""

import contextlib
import errno
import fcntl
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from sooner.model.devices import Device
from sooner.model.errors import RunFolderError
from sooner.model.text import file_name
from sooner.model.units import Plan, Unit, UnitKey

FORMAT: Final = 1
"""Version of run.json, events.jsonl and results.jsonl."""


class RunFolder:
    """One run's folder.

    Layout: `run.json`, `events.jsonl`, `results.jsonl`, `junit.xml`, `trace.json`, `logs/`, and in `junit/` copies of
    the JUnit files that units wrote; `quarantine.toml`, where there is one; `run.lock` is held while a run writes here.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.run_json = self.path / "run.json"
        self.events = self.path / "events.jsonl"
        self.results = self.path / "results.jsonl"
        self.junit = self.path / "junit.xml"
        self.trace = self.path / "trace.json"
        self.cases = self.path / "junit"
        self.logs = self.path / "logs"
        self.quarantine = self.path / "quarantine.toml"
        self.reserve = self.path / ".reserve"
        self._lock_fd = -1

    @property
    def holds_run(self) -> bool:
        """Whether a run was ever begun here."""
        return self.run_json.exists()

    def lock(self) -> None:
        """Hold the folder until this process ends or `unlock`.

        Raises:
            RunFolderError: A live run holds it.
        """
        fd = os.open(self.path / "run.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise RunFolderError(f"{self.path} is in use by a live run: wait for it or pass another --out") from None
        self._lock_fd = fd

    @property
    def is_live(self) -> bool:
        """Whether a run writes here now."""
        try:
            fd = os.open(self.path / "run.lock", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(fd)
        return False

    def unlock(self) -> None:
        """Let others use the folder."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1

    def create(self) -> None:
        """Make the folder and hold it; an earlier run in it is moved to `earlier-N/`, nothing of it is lost.

        Raises:
            RunFolderError: It cannot be written, or a live run holds it.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.lock()
            if self.holds_run:
                self._move_earlier_run()
            self.logs.mkdir(exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"cannot write the run folder {self.path}: {error.strerror}") from error

    def _move_earlier_run(self) -> None:
        number = 1
        while (earlier := self.path / f"earlier-{number}").exists():
            number += 1
        earlier.mkdir()
        files = (self.run_json, self.events, self.results, self.junit, self.trace, self.logs, self.cases)
        for file in (*files, self.quarantine):
            if file.exists():
                file.rename(earlier / file.name)

    def write_description(self, plan: Plan, devices: tuple[Device, ...], facts: Mapping[str, Any]) -> None:
        """Write run.json: everything that is needed to understand, replay or resume the run.

        Raises:
            RunFolderError: There is no room, or it may not be written.
        """
        description = {"format": FORMAT, **facts, "devices": devices, "plan": plan}
        # The standard library's JSON keeps bytes of commands that are not UTF-8 (as lone surrogates); msgspec refuses.
        text = json.dumps(msgspec.to_builtins(description), indent=1)
        try:
            write_atomically(self.run_json, text.encode())
        except OSError as error:
            raise RunFolderError(f"cannot write the run folder {self.path}: {error.strerror}") from error

    def read_description(self) -> dict[str, Any]:
        """Read run.json.

        Raises:
            RunFolderError: There is none, or it is not one of ours.
        """
        try:
            description = json.loads(self.run_json.read_bytes())
            known = description["format"] <= FORMAT
        except FileNotFoundError:
            raise no_run_in(self.path) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunFolderError(f"{self.run_json} cannot be read: {error}") from error
        if not known:
            raise RunFolderError(f"{self.run_json} was written by a newer sooner: update this one")
        return dict(description)

    def read_plan(self) -> Plan:
        """The plan that was run here.

        Raises:
            RunFolderError: run.json is missing or not one of ours.
        """
        try:
            return msgspec.convert(self.read_description()["plan"], Plan)
        except (KeyError, msgspec.ValidationError) as error:
            raise RunFolderError(f"{self.run_json} cannot be read: {error}") from error


def log_names(plan: Plan) -> dict[UnitKey, str]:
    """The log of each unit, relative to the run folder: `logs/NAME.log`, with the variant where a name stands twice."""
    counts: dict[str, int] = {}
    for unit in plan.units:
        counts[unit.name] = counts.get(unit.name, 0) + 1
    names: dict[UnitKey, str] = {}
    taken: set[str] = set()
    for unit in plan.units:
        stem = _stem(unit, alone=counts[unit.name] == 1)
        while stem.lower() in taken:  # some file systems fold case
            stem += "~"
        taken.add(stem.lower())
        names[unit.key] = f"logs/{stem}.log"
    return names


def _stem(unit: Unit, *, alone: bool) -> str:
    return file_name(unit.name if alone else f"{unit.name}.{unit.variant or 'plain'}")


def open_regular(path: Path) -> BinaryIO:
    """Open a file that a unit may have replaced: a FIFO, a device or a link in its place is refused, not waited for.

    Raises:
        OSError: There is no such file, or it is not a regular one.
    """
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(fd, "rb")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that readers see the old or the new one, never half of it; on the disk when this returns.

    Raises:
        OSError: The disk is full or the folder is gone; the old file is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def new_run_path(runs: Path, now: float) -> Path:
    """A fresh folder name below `runs`, sortable by time."""
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return runs / f"{stamp}-{secrets.token_hex(2)}"


def prepare_state_folder(state: Path) -> None:
    """Make `.sooner/`, which version control ignores by itself.

    Raises:
        RunFolderError: It cannot be written.
    """
    try:
        keep_out_of_version_control(state)
        (state / "runs").mkdir(exist_ok=True)
    except OSError as error:
        raise RunFolderError(f"cannot write {state}: {error.strerror}; pass --out DIR") from error


def keep_out_of_version_control(state: Path) -> None:
    """Make a folder with a `.gitignore` that covers all of it.

    Raises:
        OSError: It cannot be written.
    """
    state.mkdir(parents=True, exist_ok=True)
    ignore = state / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n", encoding="utf-8")


def no_run_in(path: Path) -> RunFolderError:
    """What to say of a folder that is no run: where the last run is, or what makes one."""
    latest = Path(".sooner/runs/latest")
    if not latest.is_dir():
        advice = "nothing ran from here yet, `sooner run PLAN.toml` does"
    elif latest.resolve() == path.resolve():
        advice = "pass the folder of a run"
    else:
        advice = f"the last one from here is {latest}"
    return RunFolderError(f"{path} holds no run (no run.json): {advice}")


def register_run(state: Path, folder: Path) -> None:
    """Let `latest` name this run, and link one that lies elsewhere among the others; best effort."""
    runs = state / "runs"
    with contextlib.suppress(OSError):
        if folder.parent != runs.absolute():
            link = runs / new_run_path(runs, time.time()).name
            link.symlink_to(folder)
        latest = runs / ".latest.tmp"
        latest.unlink(missing_ok=True)
        latest.symlink_to(folder)
        latest.replace(runs / "latest")


def past_runs(state: Path, *, most: int) -> list[RunFolder]:
    """The newest run folders, newest first, for durations and failures."""
    runs = state / "runs"
    if not runs.is_dir():
        return []
    names = sorted((entry.name for entry in runs.iterdir() if entry.name[:1].isdigit()), reverse=True)
    found: list[RunFolder] = []
    seen: set[Path] = set()
    for name in names[: 4 * most]:
        real = (runs / name).resolve()
        if real not in seen and (real / "results.jsonl").exists():
            seen.add(real)
            found.append(RunFolder(real))
    return found[:most]


def free_bytes(path: Path) -> int:
    """Bytes that are left for us on the file system of `path`."""
    return shutil.disk_usage(path).free
