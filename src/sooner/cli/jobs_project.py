"""`[tool.sooner.jobs]` of the nearest pyproject.toml."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sooner.cli.jobs_options import history_door
from sooner.cli.settings import project_table
from sooner.model.errors import SettingsError

if TYPE_CHECKING:
    from sooner.analysis.selection.facts import Record
    from sooner.analysis.selection.settings import JobSettings


def project_settings() -> "JobSettings":
    """The settings of the project around the current folder; the defaults where it has none.

    Raises:
        SettingsError: The file cannot be read, or holds something unknown.
    """
    history_door()
    from sooner.analysis.selection.settings import job_settings

    path, tool = project_table(Path.cwd())
    table = tool.get("jobs", {})
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: tool.sooner.jobs must be a table")
    return job_settings(table, str(path or ""))


def tell_of_idle(facts: "Record", settings: "JobSettings") -> None:
    """Warn of what the project lays down about jobs and runners that are not known (by that name)."""
    from sooner.analysis.selection.settings import idle

    for text in idle(facts.jobs, settings, facts.runner):
        click.echo(f"warning: tool.sooner.jobs.{text}", err=True)
