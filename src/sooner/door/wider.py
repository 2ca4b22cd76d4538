"""Tests that skipped themselves where fewer devices were visible than the run has: they are tried with all of them.

A test without a mark is given one device. If it skips itself there because it wants two, nobody would ever run it, and
nobody would notice: a skip for lack of devices is a coverage hole, not a result. Which skips these may be is told from
the words of the test's file and from what is known of its needs; those that skip with all devices too keep their first
report.
"""

from collections.abc import Sequence
from itertools import groupby

import pytest

from sooner.door.reporting import outcome_of
from sooner.door.units import DoorUnit, Level
from sooner.door.widths import Widths, speaks_of_devices
from sooner.door.worker import Ran
from sooner.model.units import UnitKey


class Wider:
    """Holds back the skips that may be for lack of devices.

    Args:
        items: The items of the session.
        devices: How many devices the run has.
        widths: What is known of the needs of tests.
        are_pretended: Whether the devices are virtual.
    """

    def __init__(self, items: Sequence[pytest.Item], devices: int, widths: Widths, *, are_pretended: bool) -> None:
        self._items = items
        self._devices = devices
        self._widths = widths
        self._are_pretended = are_pretended
        self._skipped: dict[int, Ran] = {}

    @property
    def has_some(self) -> bool:
        """Whether any test is to be tried again."""
        return bool(self._skipped)

    def holds_back(self, ran: Ran, width: int) -> bool:
        """Whether this is such a skip; it is then reported after the second try."""
        if not 0 < width < self._devices or outcome_of(ran.messages) != "skipped" or ran.item in self._skipped:
            return False
        if any(kind == "report" and value.get("wasxfail") is not None for kind, value in ran.messages):
            return False
        if not speaks_of_devices(str(self._items[ran.item].path)):
            return False
        if not self._widths.may_run_on_all(ran.item, width, are_pretended=self._are_pretended):
            return False
        self._skipped[ran.item] = ran
        return True

    def better(self, ran: Ran) -> Ran:
        """What to report after the second try: the first skip if it skipped again."""
        first = self._skipped.get(ran.item)
        return first if first is not None and outcome_of(ran.messages) == "skipped" else ran

    def units(self) -> list[DoorUnit]:
        """The tests to try again, on all devices, the tests of a file together."""
        files = groupby(sorted(self._skipped), lambda number: str(self._items[number].path))
        return [
            DoorUnit(
                key=UnitKey(f"wider {path}"),
                items=tuple(numbers),
                devices=self._devices,
                level=Level.WARM,
                keeps_fixtures=True,
            )
            for path, numbers in files
        ]
