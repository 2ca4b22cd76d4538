"""Items become units of scheduling: as small as their fixtures allow, as large as overhead asks for."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from types import MappingProxyType
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
_SCOPE_OF_MARK: Final = {"dependency": "module", "incremental": "class"}
"""Marks that make a test's outcome follow from those of others, which only the process knows that ran these:
pytest-dependency, and the recipe for incremental tests in pytest's own documentation."""


class Level(StrEnum):
    """How much a test shares with others, from the most to the least."""

    WARM = "warm"
    """One process runs many tests under state guards."""
    FORK = "fork"
    """A child of a process that has imported and collected everything, for this test alone."""
    FRESH = "fresh"
    """A new interpreter that imports and collects the test's file."""


class DoorUnit(Struct, frozen=True, kw_only=True):
    """Items that run one after the other in one worker."""

    key: UnitKey
    items: tuple[int, ...]
    """Positions in `session.items`, in order."""
    devices: int
    level: Level
    keeps_fixtures: bool
    """Whether the items share fixtures wider than a function."""
    is_by_evidence: bool = False
    """A process of its own that nobody asked for: budget or evidence did."""


def units_of(
    items: Sequence[pytest.Item],
    *,
    how: str,
    isolation: str,
    reuse: bool,
    devices: int,
    is_alone: Callable[[int], bool] | None = None,
    needs: Callable[[int], int] = lambda _: 1,
    seconds: Mapping[int, float] = MappingProxyType({}),
) -> list[DoorUnit]:
    """Cut the items into units that keep the order of collection.

    Args:
        items: What was collected.
        how: `--unit`; `auto` keeps a file together if any of its items uses a fixture of the module or package, else
            a class if any uses a fixture of the class, and else cuts pieces of about equal size and duration.
        isolation: `--isolation`.
        reuse: Whether a process may run several tests at all.
        devices: How many devices there are.
        is_alone: Says of an item by position, in a file without wider fixtures and without a mark, whether evidence
            speaks for a process of its own; None where there is none.
        needs: Devices of an item without a mark, by position.
        seconds: Expected durations of items, by position, where known.

    Raises:
        pytest.UsageError: A mark that says nothing that can be understood.
    """
    most = max(1, min(_MOST_ITEMS, len(items) // (devices * _PIECES_PER_DEVICE)))
    most_s = sum(seconds.values()) / (devices * _PIECES_PER_DEVICE)
    scopes = _scopes(items)
    units: list[DoorUnit] = []

    def goes_alone(i: int) -> bool:
        """Whether evidence gives an item a process of its own."""
        if is_alone is None or how not in ("auto", "test") or items[i].get_closest_marker("isolation"):
            return False
        return scopes[id(_file(items[i]))] == "function" and is_alone(i)

    def kinship(i: int) -> tuple[int, int, Level, bool]:
        """What neighbouring items must have in common to be one unit."""
        alone = goes_alone(i)
        level = Level.FORK if alone else _level(items[i], isolation, reuse=reuse)
        return _bond(items[i], how, scopes), width_of(items[i], needs(i)), level, alone

    for (bond, width, level, is_by_evidence), group in groupby(range(len(items)), kinship):
        positions = list(group)
        alone = how == "test" or (level is not Level.WARM and how == "auto")
        size = 1 if alone else most if bond == _FREE else len(positions)
        for piece in _pieces(positions, size, seconds, most_s if bond == _FREE else math.inf):
            units.append(
                DoorUnit(
                    key=UnitKey(str(len(units))),
                    items=piece,
                    devices=width,
                    level=level,
                    keeps_fixtures=scopes[id(_file(items[piece[0]]))] != "function",
                    is_by_evidence=is_by_evidence,
                )
            )
    return units


def _pieces(
    positions: Sequence[int], most: int, seconds: Mapping[int, float], most_s: float
) -> Iterator[tuple[int, ...]]:
    """Cut so that no piece has more than `most` items, nor, unless it is one item, takes longer than `most_s`."""
    if not seconds:
        yield from (tuple(positions[start : start + most]) for start in range(0, len(positions), most))
        return
    piece: list[int] = []
    spent = 0.0
    for position in positions:
        takes = seconds.get(position, 0.0)
        if piece and (len(piece) >= most or spent + takes > most_s):
            yield tuple(piece)
            piece, spent = [], 0.0
        piece.append(position)
        spent += takes
    if piece:
        yield tuple(piece)


def works_of_units(units: Sequence[DoorUnit], seconds: Mapping[int, float]) -> list[Work]:
    """The units as the scheduler sees them.

    Args:
        units: All of them.
        seconds: Expected duration of items, by position, where known.
    """
    return [
        Work(
            key=unit.key,
            devices=unit.devices,
            seconds=sum(seconds[i] for i in unit.items) if all(i in seconds for i in unit.items) else None,
        )
        for unit in units
    ]


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


def width_of(item: pytest.Item, unmarked: int) -> int:
    """How many devices a test needs at the same time; `unmarked` if its marks do not say.

    Raises:
        pytest.UsageError: Its mark does not say a number.
    """
    mark = item.get_closest_marker("gpus")
    if mark is None:
        return unmarked
    number = mark.args[0] if mark.args else mark.kwargs.get("n")
    if not isinstance(number, int) or number < 0:
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.gpus(n) takes a number of devices, not {number!r}")
    return number


def _level(item: pytest.Item, isolation: str, *, reuse: bool) -> Level:
    mark = item.get_closest_marker("isolation")
    asked = mark.args[0] if mark and mark.args else isolation
    levels = {"auto": Level.WARM, "world": Level.WARM, "warm": Level.WARM, "fork": Level.FORK, "fresh": Level.FRESH}
    if asked not in levels:
        known = ", ".join(name for name in levels if name != "auto")
        raise pytest.UsageError(f"{item.nodeid}: @pytest.mark.isolation(level) takes one of {known}, not {asked!r}")
    strictest = max((levels[asked], levels[isolation]), key=list(Level).index)
    return Level.FORK if strictest is Level.WARM and not reuse else strictest


def _scope(item: pytest.Item) -> str:
    """The widest scope below the session of the fixtures that an item uses; `function` where there is none."""
    if not isinstance(item, pytest.Function):
        return "module"
    info = getattr(item, "_fixtureinfo", None)
    definitions = info.name2fixturedefs.values() if info else ()
    scopes = {str(each[-1].scope) for each in definitions if each}
    scopes |= {scope for mark, scope in _SCOPE_OF_MARK.items() if item.get_closest_marker(mark)}
    return max((scope for scope in _WIDTH_OF_SCOPE if scope in scopes), key=_WIDTH_OF_SCOPE.index, default="function")
