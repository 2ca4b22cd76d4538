"""Items become units of scheduling: as small as their fixtures allow, as large as overhead asks for."""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import pytest
from msgspec import Struct

from sooner.model.units import UnitKey
from sooner.schedule.work import Work

_PIECES_PER_DEVICE: Final = 16
"""So many pieces of a suite without wider fixtures per device: ends of the pieces then spread by a few percent."""
_MOST_ITEMS: Final = 200
_FREE: Final = 0
_WIDTH_OF_SCOPE: Final = ("function", "class", "module", "package")


class DoorUnit(Struct, frozen=True, kw_only=True):
    """Items that run one after the other in one worker."""

    key: UnitKey
    items: tuple[int, ...]
    """Positions in `session.items`, in order."""
    devices: int
    isolated: bool


def units_of(items: Sequence[pytest.Item], *, how: str, isolation: str, devices: int) -> list[DoorUnit]:
    """Cut the items into units that keep the order of collection.

    Args:
        items: What was collected.
        how: `--unit`; `auto` keeps a file together if any of its items uses a fixture of the module or package, else
            a class if any uses a fixture of the class, and else cuts pieces of about equal size.
        isolation: `--isolation`.
        devices: How many devices there are.
    """
    longest = max(1, min(_MOST_ITEMS, len(items) // (devices * _PIECES_PER_DEVICE)))
    scopes = _scopes(items) if how == "auto" else {}
    units: list[DoorUnit] = []

    def kinship(i: int) -> tuple[int, int, bool]:
        """What neighbouring items must have in common to be one unit."""
        return _bond(items[i], how, scopes), _width(items[i]), _isolated(items[i], isolation)

    for (bond, width, isolated), group in groupby(range(len(items)), kinship):
        positions = list(group)
        size = 1 if how == "test" else longest if bond == _FREE else len(positions)
        for start in range(0, len(positions), size):
            piece = tuple(positions[start : start + size])
            units.append(DoorUnit(key=UnitKey(str(len(units))), items=piece, devices=width, isolated=isolated))
    return units


def works_of_units(units: Sequence[DoorUnit]) -> list[Work]:
    """The units as the scheduler sees them."""
    return [Work(key=unit.key, devices=unit.devices) for unit in units]


def _bond(item: pytest.Item, how: str, scopes: dict[int, str]) -> int:
    """Identity of the node that the item must stay together with, or _FREE."""
    file = _file(item)
    if how == "auto":
        how = {"package": "file", "module": "file", "class": "class"}.get(scopes[id(file)], "free")
    if how in ("free", "test"):
        return _FREE
    node = item.getparent(pytest.Class) if how == "class" else None
    return id(node or file)


def _file(item: pytest.Item) -> object:
    """The file that the item is in; its parent where it is in none."""
    return next((node for node in item.listchain() if isinstance(node, pytest.File)), item.parent)


def _scopes(items: Sequence[pytest.Item]) -> dict[int, str]:
    """The widest scope of the fixtures that the items of each file use."""
    scopes: dict[int, str] = {}
    for item in items:
        key = id(_file(item))
        scopes[key] = max(scopes.get(key, "function"), _scope(item), key=_WIDTH_OF_SCOPE.index)
    return scopes


def _width(item: pytest.Item) -> int:
    mark = item.get_closest_marker("gpus")
    return int(mark.args[0]) if mark and mark.args else 1


def _isolated(item: pytest.Item, isolation: str) -> bool:
    mark = item.get_closest_marker("isolation")
    return (str(mark.args[0]) if mark and mark.args else isolation) == "fork"


def _scope(item: pytest.Item) -> str:
    """The widest scope below the session of the fixtures that an item uses; `function` where there is none."""
    if not isinstance(item, pytest.Function):
        return "module"
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.values() if info else ()
    scopes = {str(each[-1].scope) for each in definitions if each}
    return max((scope for scope in _WIDTH_OF_SCOPE if scope in scopes), key=_WIDTH_OF_SCOPE.index, default="function")
