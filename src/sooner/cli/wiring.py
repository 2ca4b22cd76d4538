"""Runs what was prepared: folder, engine, records, reports. Every verb that runs units ends up here."""

import asyncio
import contextlib
import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from sooner import __version__
from sooner.cli.preparing import Attempts, Prepared, host_slots, prepare, scheduler_of
from sooner.cli.quarantining import keep_quarantine, quarantine_notes
from sooner.cli.remembering import STATE, history_root, remember
from sooner.cli.showing import Ending, figures_of, progress, show
from sooner.devices.leases import LeaseBook, lease_root
from sooner.devices.proof import Monitor
from sooner.model.devices import Device
from sooner.model.errors import RunFolderError, SoonerError
from sooner.model.events import Event, Verdict, exit_code_of
from sooner.model.outcomes import ExitCode
from sooner.model.text import printable
from sooner.model.units import Plan, UnitKey
from sooner.run.engine import Engine, RunOptions
from sooner.run.finish import complete
from sooner.run.folder import RunFolder, new_run_path, prepare_state_folder, register_run
from sooner.run.launch import RUN_MARKER
from sooner.run.machine import Machine
from sooner.run.ports import Ports
from sooner.run.records import JUnitFile, write_records
from sooner.run.stopping import StopSignals, take_interrupts
from sooner.run.supervision.client import Report, Supervisor
from sooner.schedule.work import Policy

_SWITCH_S: Final = 0.0005
"""How soon the event loop, for which devices wait, gets its turn while a thread searches for a better order."""


def execute(
    plan: Plan,
    cli: Mapping[str, Any],
    *,
    text: str = "",
    folder: RunFolder | None = None,
    verdicts: Mapping[UnitKey, Verdict] | None = None,
    attempts: Attempts | None = None,
    begin: Callable[[], None] = lambda: None,
) -> ExitCode:
    """Run a plan from its preparation to its reports; returns the exit code.

    Args:
        plan: What to run.
        cli: What the command line gave.
        text: The plan's source, to name lines in errors.
        folder: The folder of the run that is resumed, held; None for a new run.
        verdicts: What the resumed run had already said.
        attempts: Attempts of the resumed run that had no verdict yet.
        begin: Called when nothing is left to refuse, before anything starts.
    """
    take_interrupts()
    target = folder or (RunFolder(Path(cli["out"])) if cli.get("out") else None)
    with contextlib.ExitStack() as elsewhere:
        prepared = prepare(
            plan, cli, text=text, settled=verdicts, attempts=attempts, folder=target, elsewhere=elsewhere
        )
        if not prepared.plan.units:
            sys.stderr.write(f"sooner: {plan.source}: nothing to run\n")
            return ExitCode.NOTHING_TO_RUN
        made = folder or _made(target)
        keep_quarantine(made, prepared.quarantine)
        _describe(made, prepared)
        for node in prepared.nodes:
            node.prepare(_run_id(made), made.path)
        begin()
        try:
            return _run(prepared, made, dict(verdicts or {}), attempts or {}, as_json=bool(cli.get("as_json")))
        finally:
            remember(made.path, history_root(prepared.settings.history))


def _made(target: RunFolder | None) -> RunFolder:
    """The folder of a new run, made: the one that was asked for, or a new one below the state folder."""
    with contextlib.suppress(RunFolderError) if target else contextlib.nullcontext():
        prepare_state_folder(STATE)
    folder = target or RunFolder(new_run_path(STATE / "runs", time.time()))
    folder.create()
    register_run(STATE, folder.path)
    return folder


def _run_id(folder: RunFolder) -> str:
    """What every process of the run carries in its environment."""
    return printable(f"{folder.path.name}-{os.getpid()}")


def _describe(folder: RunFolder, prepared: Prepared) -> None:
    facts = {
        "sooner": __version__,
        "python": sys.version.split()[0],
        "command_line": [text.encode("utf-8", "backslashreplace").decode() for text in sys.argv],
        "cwd": str(Path.cwd()),
        "began_at": time.time(),
        "settings": prepared.settings,
    }
    folder.write_description(prepared.plan, prepared.devices, facts)


def _run(
    prepared: Prepared, folder: RunFolder, verdicts: dict[UnitKey, Verdict], attempts: Attempts, *, as_json: bool
) -> ExitCode:
    junit = JUnitFile(folder, prepared.plan, verdicts)
    junit.write()
    _raise_file_limit()
    sys.setswitchinterval(_SWITCH_S)
    with asyncio.Runner() as runner, StopSignals(runner.get_loop()) as stops:
        with progress(prepared.devices) as listener, contextlib.closing(Monitor(_here(prepared))) as monitor:
            engine = _engine(prepared, folder, verdicts, attempts, monitor=monitor, listeners=[junit, listener])
            stops.react = engine.interrupt
            try:
                final = runner.run(engine.run())
            except BaseException:
                with contextlib.suppress(SoonerError, OSError):  # what went wrong first is what must be told
                    complete(folder, now=time.time())
                raise
        lost, notes = _finish(folder, prepared, final, engine, junit)
    folder.unlock()
    ordered = [final[unit.key] for unit in prepared.plan.units]
    ran_now = [
        msgspec.structs.replace(verdict, attempts=verdict.attempts[len(attempts.get(unit.key, ())) :])
        for unit, verdict in zip(prepared.plan.units, ordered, strict=True)
        if verdict is not verdicts.get(unit.key)
    ]
    code = exit_code_of(ordered, interrupted=engine.interrupted)
    if lost:
        sys.stderr.write(f"sooner: {lost}\n")
        code = ExitCode.INFRASTRUCTURE if code in (ExitCode.ALL_PASSED, ExitCode.COVERAGE_HOLE) else code
    show(
        Ending(
            verdicts=ordered,
            figures=figures_of(prepared, ran_now),
            folder=folder,
            devices=prepared.devices,
            replay=prepared.settings.replay,
            code=code,
            notes=notes,
            as_json=as_json,
        )
    )
    return code


def _engine(
    prepared: Prepared,
    folder: RunFolder,
    verdicts: Mapping[UnitKey, Verdict],
    attempts: Attempts,
    *,
    monitor: Monitor,
    listeners: Sequence[Callable[[Event], None]],
) -> Engine:
    run_id = _run_id(folder)
    # -P: the finisher must not import from the current folder.
    finisher = [sys.executable, "-P", "-m", "sooner.run.finish", str(folder.path)]

    def machines(on_report: Callable[[Report], None]) -> dict[str, Machine]:
        supervisor = Supervisor(marker=f"{RUN_MARKER}={run_id}", finisher=finisher, on_report=on_report)
        supervisor.start()
        root = lease_root(os.environ)
        here = Machine(LeaseBook(root), monitor, Ports(root), supervisor)
        for node in prepared.nodes:
            node.report_to(on_report)
        return {"": here, **{node.name: node.machine for node in prepared.nodes}}

    settings = prepared.settings
    return Engine(
        plan=prepared.plan,
        devices=prepared.devices,
        scheduler=scheduler_of(prepared),
        works={work.key: work for work in prepared.works},
        folder=folder,
        machines=machines,
        options=RunOptions(
            run_id=run_id,
            host_slots=host_slots(),
            search=settings.policy is Policy.PACKED and len(prepared.devices) > 1,
            timeout_s=settings.timeout_s,
            grace_s=settings.grace_s,
            settle_s=settings.settle_s,
        ),
        listeners=listeners,
        verdicts=verdicts,
        attempts=attempts,
    )


def _here(prepared: Prepared) -> list[Device]:
    """The devices of this machine."""
    return [device for device in prepared.devices if not device.node]


def _raise_file_limit() -> None:
    """Leases and ports are open files: take what the system allows. Units keep the limit that their guardian has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _finish(
    folder: RunFolder, prepared: Prepared, final: Mapping[UnitKey, Verdict], engine: Engine, junit: JUnitFile
) -> tuple[str, tuple[str, ...]]:
    """Write the reports; returns why they are not there (empty where they are), and the notes of the summary."""
    problem = ""
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.reserve.unlink(missing_ok=True)
        if not folder.holds_run:  # a unit removed it
            _describe(folder, prepared)
        write_records(folder, prepared.plan, final, prepared.devices, junit)
    except (OSError, RunFolderError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        problem = (
            f"the reports in {folder.path} could not be written ({why}): make room, then `sooner replay` completes"
            " them from events.jsonl"
        )
    notes = (*prepared.notes, *quarantine_notes(folder, prepared.plan, final, prepared.settings.quarantine))
    lost = f"{engine.lost_events} events did not get into events.jsonl: there was no room (disk, quota or ulimit -f)"
    return problem, (*notes, lost) if engine.lost_events else notes
