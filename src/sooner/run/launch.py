"""What a unit's process is started with: its arguments, environment, log and ports."""

import os
from collections.abc import Mapping, Sequence
from typing import Final

from sooner.devices.masks import visible_env
from sooner.model.devices import Device
from sooner.model.placeholders import fill
from sooner.model.text import file_name, printable
from sooner.model.units import Unit
from sooner.run.folder import RunFolder, free_bytes
from sooner.run.records import own_junit_path
from sooner.run.supervision.client import Spawn

RUN_MARKER: Final = "SOONER_RUN_ID"
"""Every process of a run carries it, so that the last sweep finds what escaped everything else."""
_LOW_DISK_BYTES: Final = 1024 * 1024
_LONGEST_NAME: Final = 4096


def spawn_of(
    unit: Unit,
    *,
    spawn_id: str,
    attempt: int,
    devices: Sequence[Device],
    ports: Sequence[int],
    folder: RunFolder,
    log: str,
    run_id: str,
    timeout_s: float,
    grace_s: float,
    leases: Sequence[int],
) -> Spawn:
    """Everything a warden needs to start this attempt of a unit.

    On a file system that is full the output goes nowhere instead of making the unit fail.
    """
    junit = own_junit_path(unit, folder)
    visible = visible_env(devices)
    values = {
        "junit": str(junit.absolute()) if junit else "",
        "log_dir": str(folder.logs),
        "devices": visible["CUDA_VISIBLE_DEVICES"],
        "port": str(ports[0]) if ports else "",
    }
    return Spawn(
        id=spawn_id,
        argv=unit.command if unit.literal else [fill(text, values) for text in unit.command],
        env=_environment(unit, visible, values, attempt=attempt, ports=ports, run_id=run_id, folder=folder),
        unset=unit.unset,
        cwd=unit.cwd,
        log=_log_path(folder, log),
        timeout_s=timeout_s,
        grace_s=grace_s,
        leases=leases,
        junit=values["junit"],
    )


def _log_path(folder: RunFolder, log: str) -> str:
    """Where the output goes: its log, or nowhere if the disk is full or the folder is gone."""
    try:
        if not os.path.isdir(folder.logs):  # noqa: PTH112 - a device waits, and pathlib takes ten times as long
            folder.logs.mkdir(parents=True, exist_ok=True)
        return os.path.join(folder.path, log) if free_bytes(folder.path) > _LOW_DISK_BYTES else ""  # noqa: PTH118
    except OSError:
        return ""


def _shown(text: str) -> str:
    """A name as a variable's value: the kernel takes no NUL, and no entry over 128 KiB."""
    clean = printable(text).replace("\0", "")
    return clean if len(clean) <= _LONGEST_NAME else clean[:_LONGEST_NAME] + "..."


def _environment(
    unit: Unit,
    visible: Mapping[str, str],
    values: Mapping[str, str],
    *,
    attempt: int,
    ports: Sequence[int],
    run_id: str,
    folder: RunFolder,
) -> dict[str, str]:
    """What is added to the runner's environment; what the unit declares wins over defaults, never over devices."""
    defaults = {
        "PYTHONUNBUFFERED": "1",  # output reaches the log before a crash does
        "PYTHONFAULTHANDLER": "1",  # stacks at a crash, and before the kill of a hung unit
    }
    environment = {name: value for name, value in defaults.items() if name not in os.environ}
    if ports:
        # Where torchrun and init_process_group look: two units on the default 29500 would meet there.
        environment |= {"MASTER_PORT": values["port"], "PET_MASTER_PORT": values["port"]}
    environment |= {name: value if unit.literal else fill(value, values) for name, value in unit.env.items()}
    return environment | {
        **visible,
        "SOONER_UNIT": _shown(unit.name),
        "SOONER_VARIANT": _shown(unit.variant),
        "SOONER_ATTEMPT": str(attempt),
        "SOONER_PORT": values["port"],
        "SOONER_PORTS": ",".join(map(str, ports)),
        RUN_MARKER: run_id,
        # A `sooner run` inside a unit shares out what the unit holds: its leases are a matter of its own.
        "SOONER_LEASE_DIR": str(folder.path / "inner" / file_name(f"{unit.key}.{attempt}")),
    }
