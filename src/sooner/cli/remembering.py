"""What runs leave in the history and take from it; without `sooner[history]` nothing, unless it was asked for."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

from sooner.model.errors import SoonerError, UsageError
from sooner.model.units import Plan, UnitKey, unit_key

STATE: Final = Path(".sooner")
"""Where runs and their history are kept if nobody says where."""


def history_root(setting: str) -> str:
    """Where the history is; empty where there is none.

    Raises:
        UsageError: It was asked for, and DuckDB is not installed.
    """
    is_possible = importlib.util.find_spec("duckdb") is not None
    if setting == "none" or (setting == "auto" and not is_possible):
        return ""
    if not is_possible:
        raise UsageError(f"a history at {setting} needs DuckDB: pip install 'sooner[history]'")
    return str(STATE / "history") if setting == "auto" else setting


def remembered(plan: Plan, root: str) -> dict[UnitKey, float]:
    """Expected durations from the history, where there is one: asked only by those who know no better.

    Opening DuckDB takes 0.2 s, so a plan whose units are all known from the last runs does not wait for it.
    """
    if not root or ("://" not in root and not Path(root).is_dir()):
        return {}
    from sooner.history import History

    try:
        with History(root) as history:
            known = history.durations()
    except SoonerError as error:
        sys.stderr.write(f"sooner: the history tells no durations: {error}\n")
        return {}
    wanted = {unit.key for unit in plan.units}
    named = ((unit_key(unit, variant), seconds) for (unit, variant), seconds in known.items())
    return {key: seconds for key, seconds in named if key in wanted}


def remember(folder: Path, root: str) -> None:
    """Write the run's record; a history that cannot be written costs the run nothing but a line."""
    if not root:
        return
    from sooner.history.record import record_run
    from sooner.history.surroundings import surroundings

    try:
        record_run(folder, root, about=surroundings(os.environ))
    except (SoonerError, OSError) as error:
        sys.stderr.write(f"sooner: the run is not in the history: {error}\n")
