"""`sooner needs --plan`: needs as a plan that `sooner run` takes."""

import json
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from sooner.cli.needs_project import Project
from sooner.model.placeholders import kept
from sooner.plan.needs import TestNeeds
from sooner.plan.needs.units import NeededUnit, units_of

_LONGEST: Final = 200_000
"""Bytes of node ids in one command: Linux takes 2 MB with the environment, where nobody has limited the stack."""


def plan_text(project: Project, found: Sequence[TestNeeds], most: int) -> str:
    """A plan in TOML: a unit of pytest for each file and number of devices.

    Args:
        project: Its root is the folder in which the units run. Tests that are entries of a list are no tests of
            pytest's, and left out.
        found: The needs.
        most: Devices that there are, 0 where that is not said: tests that adapt get so many at most.
    """
    units = units_of([each for each in found if each.path not in project.lists], most or None)
    several = {unit.path for unit in units if sum(other.path == unit.path for other in units) > 1}
    lines = [
        "# Written by `sooner needs --plan`: a unit for each file and number of devices that its tests need in full.",
        "[defaults]",
        f"cwd = {_text(str(project.root))}",
    ]
    for unit in units:
        stem = unit.path.removesuffix(".py").replace("|", "_")
        name = stem if unit.path not in several else f"{stem} on {unit.devices}"
        parts = _parts(unit)
        for number, part in enumerate(parts, start=1):
            lines += ["", *_unit(part, name if len(parts) == 1 else f"{name}, part {number}")]
    return "\n".join(lines)


def _parts(unit: NeededUnit) -> list[NeededUnit]:
    """The unit, or several of it where a command cannot be as long as the names of all of its tests."""
    parts: list[list[str]] = []
    room = 0
    for test in unit.tests:
        size = len(test.encode()) + 1
        if size > room:
            parts.append([])
            room = _LONGEST
        parts[-1].append(test)
        room -= size
    first, *others = (replace(unit, tests=tuple(part)) for part in parts)
    return [first, *(replace(each, unknown=0) for each in others)]  # which of them are not known is not told


def _unit(unit: NeededUnit, name: str) -> list[str]:
    command = ["python3", "-m", "pytest", "--junitxml={junit}", *map(kept, unit.tests)]
    lines = ["[[unit]]", f"name = {_text(name)}", f"command = [{', '.join(map(_text, command))}]"]
    if unit.unknown:
        lines.append(f"# of {unit.unknown} of these tests the full need is not known")
    lines.append(f"devices = {unit.devices}")
    return lines


def _text(value: str) -> str:
    """A basic string of TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
