"""`sooner needs --plan`: needs as a plan that `sooner run` takes."""

import json
from collections.abc import Sequence

from sooner.cli.needs_project import Project
from sooner.plan.needs import TestNeeds
from sooner.plan.needs.units import NeededUnit, units_of


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
        lines += ["", *_unit(unit, is_alone=unit.path not in several)]
    return "\n".join(lines)


def _unit(unit: NeededUnit, *, is_alone: bool) -> list[str]:
    stem = unit.path.removesuffix(".py").replace("|", "_")
    name = stem if is_alone else f"{stem} on {unit.devices}"
    command = ["python3", "-m", "pytest", "--junitxml={junit}", *unit.tests]
    lines = ["[[unit]]", f"name = {_text(name)}", f"command = [{', '.join(map(_text, command))}]"]
    if unit.unknown:
        lines.append(f"# of {unit.unknown} of these tests the full need is not known")
    lines.append(f"devices = {unit.devices}")
    return lines


def _text(value: str) -> str:
    """A basic string of TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
