"""The shell of a sweep: starts the project's interpreter, waits, reads what it found."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from sooner.model.errors import SoonerError
from sooner.run.sweep.touched import Touched, Usage

_HERE: Final = Path(__file__).resolve().parent
_LAST_LINES: Final = 8
_MOST_ENDS: Final = 8
"""So often a dry sweep begins again because a file ended its process."""


class SweepError(SoonerError):
    """The project's interpreter could not be asked."""


class Seen(Struct, frozen=True, kw_only=True):
    """What a sweep saw of one test at one size."""

    outcome: str
    """`run`, `skip`, `fail` or `absent`; `unknown` where a dry sweep could run no guard of it."""
    reason: str = ""
    workers: int = 0
    """Processes that the test started (real sweep only)."""
    devices: int = 0
    """Devices that it was seen to touch; 0 where nothing was seen (real sweep only)."""


class Swept(Struct, frozen=True, kw_only=True):
    """What a sweep saw at one size."""

    size: int
    tests: dict[str, Seen]
    files: dict[str, str]
    """Files that were not collected: `skip` or `fail`."""
    errors: dict[str, str] = {}
    """Why those that failed did."""


def sweep(
    root: Path,
    tests: Sequence[str],
    sizes: Sequence[int],
    *,
    mode: str = "dry",
    python: str = "",
    jobs: int = 0,
    options: Sequence[str] = (),
    timeout_s: float = 600.0,
    usage: Usage | None = None,
) -> list[Swept]:
    """Ask the project's tests what they do, in throw-away processes.

    Args:
        root: The project's root.
        tests: Test files, relative to it.
        sizes: Numbers of visible devices.
        mode: `dry`: bodies are cut down to their guards and devices are faked; `real`: everything is run.
        python: The project's interpreter; this one by default.
        jobs: Sizes at a time; 0 for one a CPU in a dry sweep, one in a real one.
        options: Further options of pytest's.
        timeout_s: For everything together.
        usage: Asks the driver who computes on which device; for a real sweep of one size at a time.

    Raises:
        SweepError: The interpreter is not there, has no pytest, or took too long.
    """
    with tempfile.TemporaryDirectory(prefix="sooner-sweep-") as folder:
        place = Path(folder)
        request = {
            "root": str(root),
            "tests": list(tests),
            "sizes": list(sizes),
            "mode": mode,
            "parent": os.getpid(),
            "jobs": jobs or (len(os.sched_getaffinity(0)) if mode == "dry" else 1),
            "options": list(options),
            "out": str(place / "seen"),
        }
        with contextlib.nullcontext() if usage is None else Touched(usage) as touched:
            ended = _until_all_answer(request, place, python or sys.executable, timeout_s)
        return [_read(place / f"seen.{size}", size, place, touched, ended) for size in sizes]


def _until_all_answer(request: dict[str, Any], place: Path, python: str, timeout_s: float) -> list[str]:
    """Ask; in a dry sweep again without a file that ended a process. Gives back these files."""
    ended: list[str] = []
    until = time.monotonic() + timeout_s
    for _ in range(_MOST_ENDS):
        (place / "request.json").write_text(json.dumps(request), encoding="utf-8")
        if not _run(python, place, Path(request["root"]), until):
            files = sorted({at for size in request["sizes"] if (at := _at(place, size))})
            where = f" and was at {', '.join(files)}" if files else ""
            raise SweepError(f"the sweep took more than {timeout_s:.0f} s{where}: name fewer files")
        lost = [size for size in request["sizes"] if not (place / f"seen.{size}").exists()]
        guilty = {_at(place, size) for size in lost} & set(request["tests"])
        if not guilty or request["mode"] != "dry":
            break
        ended += sorted(guilty)
        request["tests"] = [each for each in request["tests"] if each not in guilty]
        for old in place.glob("seen.*"):
            old.unlink()
    return ended


def _at(place: Path, size: int) -> str:
    """The file that the process of a size asked last; empty where it asked none."""
    try:
        return (place / f"seen.{size}.at").read_text(encoding="utf-8")
    except OSError:
        return ""


def _run(python: str, place: Path, root: Path, until: float) -> bool:
    """Run the inside in a session of its own; whatever it started ends with it. False if it took too long."""
    environment = {**os.environ, "SOONER_SWEEP_LOG": str(place / "log"), "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
    command = [python, str(_HERE / "inside.py"), str(place / "request.json")]
    try:
        with (place / "errors").open("wb") as errors:
            process = subprocess.Popen(
                command,
                cwd=root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
    except OSError as error:
        raise SweepError(
            f"{python} cannot be started: {error.strerror}: name the project's interpreter with --python"
        ) from None
    try:
        code = process.wait(max(0.0, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    finally:
        _end(process)
    if code != 0:
        what = _tail(place / "errors")
        raise SweepError(f"{python} failed: {what}: name the project's interpreter, which needs pytest, with --python")
    return True


def _end(process: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _read(path: Path, size: int, place: Path, touched: Touched | None, ended: Sequence[str]) -> Swept:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        at = f" while it asked {found_at}" if (found_at := _at(place, size)) else ""
        raise SweepError(f"the sweep with {size} devices ended without an answer{at}: {_tail(place / 'log')}") from None
    tests = {nodeid: _seen(each, touched) for nodeid, each in found["tests"].items()}
    return Swept(
        size=size,
        tests=tests,
        files=found["files"] | dict.fromkeys(ended, "fail"),
        errors=found["errors"] | dict.fromkeys(ended, "it ended the process that asked it"),
    )


def _seen(told: dict[str, Any], touched: Touched | None) -> Seen:
    span = (told.pop("began", None), told.pop("ended", None))
    devices = touched.between(*span) if touched is not None and None not in span else 0
    return Seen(**told, devices=devices)


def _tail(path: Path) -> str:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    return " / ".join(line.strip() for line in lines[-_LAST_LINES:])
