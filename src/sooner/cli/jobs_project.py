"""`[tool.sooner.jobs]` of the nearest pyproject.toml."""

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from sooner.cli.jobs_options import history_door
from sooner.model.errors import SettingsError

if TYPE_CHECKING:
    from sooner.analysis.selection.settings import JobSettings


def project_settings(cwd: Path | None = None) -> "JobSettings":
    """The settings of the project around a folder; the defaults where it has none.

    Raises:
        SettingsError: The file cannot be read, or holds something unknown.
    """
    history_door()
    from sooner.analysis.selection.settings import job_settings

    folder = cwd or Path.cwd()
    path = next(
        (one / "pyproject.toml" for one in (folder, *folder.parents) if (one / "pyproject.toml").is_file()), None
    )
    if path is None:
        return job_settings({}, "")
    try:
        tool = tomllib.loads(path.read_text(encoding="utf-8-sig")).get("tool", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    table = tool.get("sooner", {}).get("jobs", {}) if isinstance(tool.get("sooner", {}), dict) else {}
    if not isinstance(table, dict):
        raise SettingsError(f"{path}: tool.sooner.jobs must be a table")
    return job_settings(table, str(path))
