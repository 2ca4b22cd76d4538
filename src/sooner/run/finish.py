"""Completes the folder of a run whose runner died: `python -m sooner.run.finish DIR`, called by the guardian.

Every planned unit has its verdict afterwards: what was running is lost, what had not started is not run. Resuming the
run repeats both.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sooner.model.devices import Device
from sooner.model.errors import SoonerError
from sooner.model.events import Verdict
from sooner.model.units import Plan, UnitKey, unit_key
from sooner.run.folder import RunFolder
from sooner.run.records import missing_verdicts, read_events, verdicts_in, write_records


def complete(folder: RunFolder, *, now: float) -> tuple[Plan, dict[UnitKey, Verdict]]:
    """Write the records of a run from its journal; returns its plan and all verdicts.

    Raises:
        RunFolderError: The folder holds no run.
        OSError: The disk is full.
    """
    plan, verdicts = judged(folder, now=now)
    devices = msgspec.convert(folder.read_description()["devices"], tuple[Device, ...])
    folder.reserve.unlink(missing_ok=True)
    write_records(folder, plan, verdicts, devices)
    return plan, verdicts


def judged(folder: RunFolder, *, now: float) -> tuple[Plan, dict[UnitKey, Verdict]]:
    """The plan of a run, and the verdict of every unit: those in the journal, and that the others were lost.

    Raises:
        RunFolderError: The folder holds no run.
    """
    plan = folder.read_plan()
    events = read_events(folder)
    verdicts = verdicts_in(events)
    for verdict in missing_verdicts(plan, events, now=now):
        verdicts[unit_key(verdict.unit, verdict.variant)] = verdict
    return plan, verdicts


def main(arguments: Sequence[str]) -> int:
    """Complete the folder named by the first argument."""
    try:
        complete(RunFolder(Path(arguments[0])), now=time.time())
    except (SoonerError, OSError) as error:
        sys.stderr.write(f"sooner: cannot complete {arguments[0]}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
