"""Prints and follows the log of one unit."""

import sys
import time
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO, Final

from sooner.model.errors import UsageError
from sooner.model.events import Verdict
from sooner.model.text import decoded, terminal_text
from sooner.model.units import UnitKey, unit_key
from sooner.run.folder import RunFolder, log_names, open_regular
from sooner.run.records import read_events

_POLL_S: Final = 0.2
_BYTES_PER_LINE: Final = 400


def tail_unit(path: Path, name: str, *, follow: bool, lines: int) -> int:
    """Write the last lines of a unit's log to stdout, and what comes after them where `follow` is true.

    Raises:
        UsageError: The run has no such unit, or several of that name.
        RunFolderError: The folder holds no run.
    """
    folder = RunFolder(path.resolve())
    key = _find(folder, name)
    log = folder.path / log_names(folder.read_plan())[key]
    while follow and not log.exists() and not _has_ended(folder, key):
        time.sleep(_POLL_S)
    if not log.exists():
        sys.stderr.write(f"sooner: {name} has not started yet; -f waits for it\n")
        return 0
    with open_regular(log) as file:
        _print_end(file, lines)
        while follow:
            ended = _has_ended(folder, key)
            _print(file.read())
            if ended:
                break
            time.sleep(_POLL_S)
    return 0


def _find(folder: RunFolder, name: str) -> UnitKey:
    units = folder.read_plan().units
    found = [unit.key for unit in units if name in (unit.key, unit.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{name!r} ran in several variants: pass one of {', '.join(map(repr, found))}")
    near = get_close_matches(name, [unit.key for unit in units], n=1)
    hint = f": did you mean {near[0]!r}?" if near else f": it has {len(units)} others, named in {folder.run_json}"
    raise UsageError(f"the run has no unit {name!r}{hint}")


def _has_ended(folder: RunFolder, key: UnitKey) -> bool:
    if not folder.is_live:
        return True
    verdicts = (event for event in read_events(folder) if isinstance(event, Verdict))
    return any(unit_key(verdict.unit, verdict.variant) == key for verdict in verdicts)


def _print_end(file: BinaryIO, lines: int) -> None:
    size = file.seek(0, 2)
    file.seek(max(0, size - lines * _BYTES_PER_LINE))
    _print(b"".join(file.read().splitlines(keepends=True)[-lines:]))


def _print(data: bytes) -> None:
    sys.stdout.write(terminal_text(decoded(data), colour=sys.stdout.isatty()))
    sys.stdout.flush()
