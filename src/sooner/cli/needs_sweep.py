"""The sweeps of `sooner needs --dry` and `--real`."""

from collections.abc import Sequence

import click

from sooner.cli.needs_project import Project
from sooner.model.errors import UsageError
from sooner.plan.needs import SIZES, TestNeeds
from sooner.plan.needs.merge import Sweep, merged
from sooner.run.sweep.dry import Swept, sweep


def swept(project: Project, static: Sequence[TestNeeds], *, real: bool, python: str, devices: str) -> list[TestNeeds]:
    """Static needs, corrected by what the tests do when they are asked.

    Raises:
        SweepError: The project's interpreter cannot be asked.
        UsageError: A real sweep without devices.
    """
    sizes = _present(devices) if real else SIZES
    mode = "real" if real else "dry"
    click.echo(f"{mode} sweep of {len(project.tests)} files with {', '.join(map(str, sizes))} devices", err=True)
    seen = sweep(project.root, project.tests, sizes, mode=mode, python=python, timeout_s=3600.0 if real else 600.0)
    return merged(static, {each.size: _sweep(each, real=real) for each in seen})


def _present(devices: str) -> tuple[int, ...]:
    import os

    from sooner.devices.find import find_devices

    count = len(find_devices(devices, os.environ).devices)
    if count == 0:
        raise UsageError("--real runs the tests on devices, and there is none: --dry needs none")
    return tuple(size for size in SIZES if size <= count)


def _sweep(seen: Swept, *, real: bool) -> Sweep:
    return Sweep(
        tests={nodeid: (each.outcome, each.reason) for nodeid, each in seen.tests.items()},
        files=seen.files,
        workers={nodeid: each.workers for nodeid, each in seen.tests.items()},
        complete=real,
    )
