"""Shows a run that has ended, the way a live one ends."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sooner.cli.preparing import Prepared
from sooner.cli.settings import run_settings
from sooner.cli.showing import Ending, figures_of, show
from sooner.model.devices import Device
from sooner.model.errors import RunFolderError
from sooner.model.events import Event, Interrupted, RunStarted, exit_code_of
from sooner.model.outcomes import ExitCode
from sooner.run.finish import complete
from sooner.run.folder import RunFolder
from sooner.run.records import read_events
from sooner.schedule.work import works_of


def replay_run(path: Path, *, which: str | None, as_json: bool) -> ExitCode:
    """Print a run again; returns the exit code that it had.

    Raises:
        RunFolderError: The folder holds no run, or a live one.
    """
    folder = RunFolder(path.resolve())
    if not folder.holds_run:
        raise RunFolderError(f"{path} holds no run (no run.json): pass the folder of a run")
    folder.lock()
    try:
        plan, verdicts = complete(folder, now=time.time())
    finally:
        folder.unlock()
    devices = msgspec.convert(folder.read_description()["devices"], tuple[Device, ...])
    ordered = [verdicts[unit.key] for unit in plan.units]
    interrupted = _was_interrupted(read_events(folder))
    code = exit_code_of(ordered, interrupted=interrupted)
    prepared = Prepared(
        plan=plan,
        devices=devices,
        works=tuple(works_of(plan, seconds={})),
        notes=plan.notes,
        settings=run_settings({"replay": which}),
    )
    show(
        Ending(
            verdicts=ordered,
            figures=figures_of(prepared, ordered),
            folder=folder,
            devices=devices,
            replay=prepared.settings.replay,
            code=code,
            notes=plan.notes,
            as_json=as_json,
        )
    )
    return code


def _was_interrupted(events: Sequence[Event]) -> bool:
    """Whether the run's last part, after any resume, was asked to stop."""
    last = [event for event in events if isinstance(event, RunStarted | Interrupted)]
    return bool(last) and isinstance(last[-1], Interrupted)
