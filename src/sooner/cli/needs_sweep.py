"""The sweeps of `sooner needs --dry` and `--real`."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from sooner.cli.needs_project import Project
from sooner.model.errors import UsageError
from sooner.model.text import terminal_text
from sooner.plan.needs import SIZES, TestNeeds
from sooner.plan.needs.merge import Sweep, merged
from sooner.report.wording import counted
from sooner.run.sweep.dry import Swept, sweep

if TYPE_CHECKING:
    from sooner.model.devices import Device
    from sooner.run.sweep.touched import Usage

_SHOWN: Final = 5
"""Files whose errors are named."""


def swept(project: Project, static: Sequence[TestNeeds], *, real: bool, python: str, devices: str) -> list[TestNeeds]:
    """Static needs, corrected by what the tests do when they are asked.

    Raises:
        SweepError: The project's interpreter cannot be asked.
        UsageError: A real sweep without devices.
    """
    asked = [path for path in project.tests if path not in project.lists]
    if not asked:
        return list(static)
    present = _present(devices) if real else ()
    sizes = tuple(size for size in SIZES if size <= len(present)) if real else SIZES
    mode = "real" if real else "dry"
    click.echo(f"{mode} sweep of {counted(len(asked), 'file')} with {', '.join(map(str, sizes))} devices", err=True)
    timeout_s = 3600.0 if real else 600.0
    with _usage(present) as usage:
        seen = sweep(project.root, asked, sizes, mode=mode, python=python, timeout_s=timeout_s, usage=usage)
    _tell_errors(seen, real=real)
    kept = [each for each in static if each.path in project.lists]
    others = [each for each in static if each.path not in project.lists]
    return [*merged(others, {each.size: _sweep(each, real=real) for each in seen}), *kept]


def _tell_errors(seen: Sequence[Swept], *, real: bool) -> None:
    """Name files that could be imported with no number of devices: a package is missing, or they are broken."""
    broken = [path for path in seen[0].errors if all(path in each.errors for each in seen)]
    if not broken:
        return
    shown = "; ".join(f"{path} ({seen[0].errors[path]})" for path in broken[:_SHOWN])
    more = f"; and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else ""
    stands = "" if real else ": of their tests the source alone is asked; --python names the project's interpreter"
    text = f"{counted(len(broken), 'file')} could not be imported{stands}: {shown}{more}"
    click.echo(f"sooner: {terminal_text(text, colour=False)}", err=True)


def _present(devices: str) -> "tuple[Device, ...]":
    from sooner.devices.find import find_devices

    found = find_devices(devices, os.environ).devices
    if not found:
        raise UsageError("--real runs the tests on devices, and there is none: --dry needs none")
    return found


@contextlib.contextmanager
def _usage(devices: "Sequence[Device]") -> "Iterator[Usage | None]":
    """Who computes on which device, as drivers say; None where no driver says anything (virtual devices)."""
    from sooner.devices.proof import Monitor

    with Monitor(devices) as monitor:

        def pids() -> list[frozenset[int]]:
            seen = map(monitor.usage, devices)
            return [one.pids if one is not None else frozenset() for one in seen]

        yield pids if any(monitor.usage(device) is not None for device in devices) else None


def _sweep(seen: Swept, *, real: bool) -> Sweep:
    return Sweep(
        tests={nodeid: (each.outcome, each.reason) for nodeid, each in seen.tests.items()},
        files=seen.files,
        workers={nodeid: each.workers for nodeid, each in seen.tests.items()},
        devices={nodeid: each.devices for nodeid, each in seen.tests.items() if each.devices},
        complete=real,
    )
