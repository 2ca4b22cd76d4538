"""Shows a run that has ended, the way a live one ends."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from sooner.cli.preparing import Prepared
from sooner.cli.settings import run_settings
from sooner.cli.showing import Ending, figures_of, show
from sooner.model.devices import Device
from sooner.model.errors import RunFolderError, UsageError
from sooner.model.events import Event, Interrupted, RunStarted, Verdict, exit_code_of
from sooner.model.outcomes import ExitCode
from sooner.model.units import Plan, UnitKey
from sooner.run.finish import complete, judged
from sooner.run.folder import RunFolder, no_run_in
from sooner.run.records import read_events, tail_of
from sooner.schedule.work import works_of

_TAIL_BYTES: Final = 32 * 1024
"""Of a log in the page: its end, where a failure is told; the whole is a link away."""


def replay_run(path: Path, *, which: str | None, as_json: bool, html: Path | None = None) -> ExitCode:
    """Print a run again, and write it as a page where one is asked for; returns the exit code that it had.

    Raises:
        RunFolderError: The folder holds no run, or a live one.
        UsageError: The page cannot be written.
    """
    folder = RunFolder(path.resolve())
    if not folder.holds_run:
        raise no_run_in(path)
    plan, verdicts = _completed(folder)
    devices = msgspec.convert(folder.read_description()["devices"], tuple[Device, ...])
    ordered = [verdicts[unit.key] for unit in plan.units]
    events = read_events(folder)
    interrupted = _was_interrupted(events)
    code = exit_code_of(ordered, interrupted=interrupted)
    prepared = Prepared(
        plan=plan,
        devices=devices,
        works=tuple(works_of(plan, seconds={})),
        notes=plan.notes,
        settings=run_settings({"replay": which}),
    )
    figures, pauses = figures_of(prepared, ordered), _pauses(events, ordered)
    ending = Ending(
        verdicts=ordered,
        figures=msgspec.structs.replace(
            figures, makespan_s=figures.makespan_s - sum(end - begin for begin, end in pauses)
        ),
        folder=folder,
        devices=devices,
        replay=prepared.settings.replay,
        code=code,
        notes=plan.notes,
        as_json=as_json,
    )
    if html is not None:
        _write_page(html, ending, pauses)
    show(ending)
    return code


def _completed(folder: RunFolder) -> tuple[Plan, dict[UnitKey, Verdict]]:
    """The run with all of its verdicts, which are written down first, but for a folder that may only be read."""
    if not os.access(folder.path, os.W_OK):
        if folder.is_live:
            raise RunFolderError(f"{folder.path} is in use by a live run: wait for it")
        return judged(folder, now=time.time())
    folder.lock()
    try:
        return complete(folder, now=time.time())
    finally:
        folder.unlock()


def _write_page(target: Path, ending: Ending, pauses: Sequence[tuple[float, float]]) -> None:
    from sooner.report.run_page import run_page

    def log_of(verdict: Verdict) -> str:
        return tail_of(ending.folder.path / verdict.log, _TAIL_BYTES)

    page = run_page(
        ending.verdicts,
        ending.figures,
        ending.devices,
        name=f"sooner: {ending.folder.path.name}",
        code=ending.code,
        notes=ending.notes,
        pauses=pauses,
        logs_at=os.path.relpath(ending.folder.path, target.absolute().parent),
        log_of=log_of,
    )
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--html {target} cannot be written: {error.strerror}") from None


def _pauses(events: Sequence[Event], verdicts: Sequence[Verdict]) -> list[tuple[float, float]]:
    """When nobody ran it, before it was resumed: from and until."""
    ran = [attempt.ended_at for verdict in verdicts for attempt in verdict.attempts]
    resumed = [(events[i - 1].at, event.at) for i, event in enumerate(events) if i and isinstance(event, RunStarted)]
    return [(max([left, *(end for end in ran if end <= begun)]), begun) for left, begun in resumed if left < begun]


def _was_interrupted(events: Sequence[Event]) -> bool:
    """Whether the run's last part, after any resume, was asked to stop."""
    last = [event for event in events if isinstance(event, RunStarted | Interrupted)]
    return bool(last) and isinstance(last[-1], Interrupted)
