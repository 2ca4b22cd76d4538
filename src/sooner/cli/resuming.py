"""Continues an interrupted run in its own folder."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sooner.cli.run import read_text
from sooner.cli.wiring import execute
from sooner.model.errors import RunFolderError, UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.units import Plan
from sooner.plan.toml_plan import read_plan
from sooner.run.folder import RunFolder
from sooner.run.records import attempts_in, read_events, verdicts_in


def resume_run(path: Path, plan_file: str | None, cli: Mapping[str, Any]) -> ExitCode:
    """Run what has no verdict yet; what has one is not repeated.

    Raises:
        RunFolderError: The folder holds no run, or a live one.
        UsageError: The plan that was given is not the one that was interrupted.
    """
    folder = RunFolder(path)
    plan = placed_plan(folder)
    if plan_file:
        now = read_plan(read_text(Path(plan_file)), source=plan_file)
        if {unit.key for unit in now.units} != {unit.key for unit in plan.units}:
            raise UsageError(
                f"{plan_file} has other units than the run in {path}: resume without a plan, or run it anew"
            )
    if cli.get("shard"):
        raise UsageError("--resume continues the shard that was interrupted: leave --shard out")
    folder.lock()
    try:
        events = read_events(folder)
        attempts = attempts_in(plan, events, now=time.time())
        kept = {"quarantine": str(folder.quarantine) if folder.quarantine.is_file() else "none"}
        options = {**settings_of(folder), **kept, **given(cli)}
        return execute(plan, options, folder=folder, verdicts=verdicts_in(events), attempts=attempts)
    finally:
        folder.unlock()


def placed_plan(folder: RunFolder) -> Plan:
    """The plan of an earlier run, its units in the directories where they ran, wherever this process is."""
    plan = folder.read_plan()
    there = Path(str(folder.read_description().get("cwd") or Path.cwd()))
    units = tuple(msgspec.structs.replace(unit, cwd=str(there / unit.cwd)) for unit in plan.units)
    return msgspec.structs.replace(plan, units=units)


def settings_of(folder: RunFolder) -> dict[str, Any]:
    """The settings that the interrupted run had, unless the command line says otherwise."""
    settings = folder.read_description().get("settings", {})
    if not isinstance(settings, dict):
        raise RunFolderError(f"{folder.run_json} cannot be read: its settings are no table")
    return {key: value for key, value in settings.items() if key != "sources"}


def given(cli: Mapping[str, Any]) -> dict[str, Any]:
    """What the command line really said."""
    return {key: value for key, value in cli.items() if value is not None}
