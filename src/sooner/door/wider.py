"""Tests that skipped themselves where fewer devices were visible than the run has: they are tried with all of them.

A test without a mark is given one device. If it skips itself there because it wants two, nobody would ever run it, and
nobody would notice: a skip for lack of devices is a coverage hole, not a result. Which skips these may be is told from
the words of the test's file; those that skip with all devices too keep their first report.
"""

import re
from collections.abc import Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from sooner.door.reporting import outcome_of
from sooner.door.units import DoorUnit, Level
from sooner.door.worker import Ran
from sooner.model.units import UnitKey

_WORDS: Final = re.compile(
    r"gpus?\b|cuda|\bhip\b|rocm|nccl|rccl|device_count|num_devices|n_devices|world_size|multi_?(gpu|device)",
    re.IGNORECASE,
)


class Wider:
    """Holds back the skips that may be for lack of devices.

    Args:
        items: The items of the session.
        devices: How many devices the run has.
    """

    def __init__(self, items: Sequence[pytest.Item], devices: int) -> None:
        self._items = items
        self._devices = devices
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
        if not _speaks_of_devices(str(self._items[ran.item].path)):
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


@cache
def _speaks_of_devices(path: str) -> bool:
    try:
        return bool(_WORDS.search(Path(path).read_text(encoding="utf-8", errors="replace")))
    except OSError:
        return False
