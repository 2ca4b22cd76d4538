"""Continues an interrupted run in its own folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sooner.cli.run import read_text
from sooner.cli.wiring import execute
from sooner.model.errors import RunFolderError, UsageError
from sooner.model.outcomes import ExitCode
from sooner.plan.toml_plan import read_plan
from sooner.run.folder import RunFolder
from sooner.run.records import read_events, verdicts_in


def resume_run(path: Path, plan_file: str | None, cli: Mapping[str, Any]) -> ExitCode:
    """Run what has no verdict yet; what has one is not repeated.

    Raises:
        RunFolderError: The folder holds no run, or a live one.
        UsageError: The plan that was given is not the one that was interrupted.
    """
    folder = RunFolder(path)
    plan = folder.read_plan()
    if plan_file:
        given = read_plan(read_text(Path(plan_file)), source=plan_file)
        if {unit.key for unit in given.units} != {unit.key for unit in plan.units}:
            raise UsageError(
                f"{plan_file} has other units than the run in {path}: resume without a plan, or run it anew"
            )
    if cli.get("shard"):
        raise UsageError("--resume continues the shard that was interrupted: leave --shard out")
    folder.lock()
    try:
        return execute(
            plan, {**_settings_of(folder), **_given(cli)}, folder=folder, verdicts=verdicts_in(read_events(folder))
        )
    finally:
        folder.unlock()


def _settings_of(folder: RunFolder) -> dict[str, Any]:
    """The settings that the interrupted run had, unless the command line says otherwise."""
    settings = folder.read_description().get("settings", {})
    if not isinstance(settings, dict):
        raise RunFolderError(f"{folder.run_json} cannot be read: its settings are no table")
    return {key: value for key, value in settings.items() if key != "sources"}


def _given(cli: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in cli.items() if value is not None}
