"""When a device that keeps failing is put aside: a pure judgement over how attempts on it ended.

A suite that crashes everywhere says nothing about a device, and a test that always crashes says nothing either. So a
device is put aside only when the last attempts on it were lost by *different* units without a pass between them, while
another device saw a pass in the meantime.
"""

from typing import Final

from sooner.model.outcomes import Outcome
from sooner.model.units import UnitKey

_LIMIT: Final = 3
"""Two different units fail in a row by chance in about 1 % of the places of a suite with 10 % of failures, three in
0.1 %; each further strike costs a test's time on a bad device (pytorch/ci-infra#669 asks for the same)."""
_STRIKES: Final = frozenset({Outcome.CRASHED, Outcome.OUT_OF_MEMORY, Outcome.WORKER_LOST})
"""A failed assertion is the test's; a hang is mostly the test's as well."""


class Strikes:
    """Counts, for each device, the different units in a row that crashed on it."""

    def __init__(self, devices: int) -> None:
        self._units: list[set[UnitKey]] = [set() for _ in range(devices)]
        self._passes_at: list[int] = [0] * devices
        """How many passes the other devices together had when the current row of strikes began."""
        self._passes = 0

    def note(self, key: UnitKey, devices: tuple[int, ...], outcome: Outcome) -> tuple[int, ...]:
        """Take the end of an attempt in; returns the devices that should be put aside now.

        Only attempts on one device count: the members of a gang cannot be told apart.
        """
        if outcome is Outcome.PASSED:
            self._passes += 1
            for device in devices:
                self._units[device].clear()
            return ()
        if outcome not in _STRIKES or len(devices) != 1:
            return ()
        device = devices[0]
        if not self._units[device]:
            self._passes_at[device] = self._passes
        self._units[device].add(key)
        elsewhere = self._passes > self._passes_at[device]
        return (device,) if len(self._units[device]) >= _LIMIT and elsewhere else ()
