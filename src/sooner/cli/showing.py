"""What people see of a run: progress while it goes on, then its logs in plan order and its summary."""

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import msgspec
from msgspec import Struct

from sooner.cli.preparing import Prepared
from sooner.model.devices import Device
from sooner.model.events import Event, Verdict
from sooner.model.outcomes import ExitCode, Outcome
from sooner.model.units import unit_key
from sooner.report.summary import Figures, summary_json, summary_text
from sooner.run.folder import RunFolder, open_regular
from sooner.schedule.bounds import lower_bound


def figures_of(prepared: Prepared, verdicts: Sequence[Verdict]) -> Figures:
    """How long what ran now took, and what bound its real durations set."""
    attempts = [attempt for verdict in verdicts for attempt in verdict.attempts]
    if not attempts:
        return Figures(makespan_s=0.0, bound_s=0.0, sequential_s=0.0)
    took = {
        unit_key(v.unit, v.variant): sum(a.ended_at - a.started_at for a in v.attempts) for v in verdicts if v.attempts
    }
    ran = [msgspec.structs.replace(work, after=()) for work in prepared.works if work.key in took]
    return Figures(
        makespan_s=max(a.ended_at for a in attempts) - min(a.started_at for a in attempts),
        bound_s=lower_bound(ran, took, prepared.devices),
        sequential_s=sum(took.values()),
    )


@contextlib.contextmanager
def progress(devices: Sequence[Device]) -> Iterator[Callable[[Event], None]]:
    """The live board on a terminal, plain lines elsewhere; always on stderr."""
    from sooner.report.progress import Progress

    if is_live(sys.stderr):
        from sooner.report.board import Board

        with Board(sys.stderr, devices) as board:
            yield board
    else:
        yield Progress(sys.stderr, devices, colour=wants_colour(sys.stderr))


class Ending(Struct, frozen=True, kw_only=True):
    """What there is to say of a run that has ended."""

    verdicts: Sequence[Verdict]
    """In plan order."""
    figures: Figures
    folder: RunFolder
    devices: Sequence[Device]
    replay: str
    """Which logs: `all`, `failed` or `none`."""
    code: ExitCode
    notes: Sequence[str]
    as_json: bool
    """Only JSON goes to stdout, the rest to stderr."""


def show(ending: Ending) -> None:
    """Replay the logs and print the summary; who has read enough (`| head`, Ctrl-C) changes no exit code."""
    try:
        with _signals_end_printing():
            _show(ending)
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _signals_end_printing() -> Iterator[None]:
    """The run has its exit code: a signal now only says that nobody needs the rest of the output."""

    def enough(*_: object) -> None:
        raise BrokenPipeError

    before = {signum: signal.signal(signum, enough) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _show(ending: Ending) -> None:
    github = os.environ.get("GITHUB_ACTIONS") == "true"
    stream: TextIO = sys.stderr if ending.as_json else sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    _replay(ending, stream, github=github)
    stream.write(_summary(ending, colour=wants_colour(stream), notes=ending.notes))
    if github:
        _tell_github(ending, stream)
    stream.flush()
    if ending.as_json:
        summary = summary_json(
            ending.verdicts, ending.figures, ending.folder.path, code=ending.code, notes=ending.notes
        )
        sys.stdout.write(msgspec.json.encode(summary).decode() + "\n")


def _summary(ending: Ending, *, colour: bool, notes: Sequence[str]) -> str:
    place = _shown(ending.folder.path)
    return summary_text(ending.verdicts, ending.figures, place, code=ending.code, colour=colour, notes=notes)


def _replay(ending: Ending, stream: TextIO, *, github: bool) -> None:
    from sooner.report.replay import replay

    chosen = [v for v in ending.verdicts if ending.replay == "all" or v.outcome is not Outcome.PASSED]
    if ending.replay != "none" and chosen:
        colour, folder = wants_colour(stream), ending.folder.path
        replay(stream, chosen, folder, ending.devices, colour=colour, open_log=open_regular, github=github)


def _tell_github(ending: Ending, stream: TextIO) -> None:
    """Annotations in the log, a table in the step's summary."""
    from sooner.report.github import annotations, step_summary

    stream.writelines(f"{line}\n" for line in annotations(ending.verdicts))
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        counts = _summary(ending, colour=False, notes=()).split("\n")[2]
        with contextlib.suppress(OSError), Path(path).open("a", encoding="utf-8") as file:
            file.write(step_summary(ending.verdicts, counts))


def _shown(path: Path) -> Path:
    """A path as people want to read it: relative where it lies below the current folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def wants_colour(stream: TextIO) -> bool:
    """NO_COLOR wins, then FORCE_COLOR and CLICOLOR_FORCE, then whether it is a terminal that knows colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def is_live(stream: TextIO) -> bool:
    """Whether a display that redraws itself makes sense: a real terminal, and no CI."""
    ci = os.environ.get("CI") or os.environ.get("GITHUB_ACTIONS")
    return stream.isatty() and not ci and os.environ.get("TERM") != "dumb"
