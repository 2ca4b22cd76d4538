"""What a test may need of those before it: tests of one class or module pass state on, and pieces part them.

In plain pytest they run in one process. Where pieces of a file run in several, a failure may only say that an earlier
test ran elsewhere. Whether it does is found out by running the earlier ones again before it, as long as that is cheap.
"""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import Final

import pytest

from sooner.door.units import DoorUnit

_MOST_S: Final = 5.0
"""So much may the earlier tests of one class or module take again for failures that turn out to be failures. A file
that is broken has many failures, and its next one is news, too."""


class Earlier:
    """The tests before each test of its class, or of its module outside classes.

    Args:
        items: The items of the session.
        units: What they were cut into.
        seconds: Expected duration of items, by position, where known.
    """

    def __init__(self, items: Sequence[pytest.Item], units: Sequence[DoorUnit], seconds: Mapping[int, float]) -> None:
        self._items = items
        self._widths = {number: unit.devices for unit in units for number in unit.items}
        self._seconds = dict(seconds)
        self._spent: defaultdict[int, float] = defaultdict(float)
        self._siblings: dict[tuple[int, int | None], list[int]] = {}

    def took(self, number: int, seconds: float) -> None:
        """Note how long a test took; infinity if it lost its process."""
        self._seconds[number] = seconds

    def elsewhere(self, number: int, here: Container[int]) -> list[int]:
        """Those before it that are not in `here`, in order; none where running them again would cost too much."""
        before = [each for each in self._of_parent(number) if each < number and each not in here]
        return before if self._spent[self._parent(number)] + self._cost(before) <= _MOST_S else []

    def was_futile(self, number: int, before: Sequence[int]) -> None:
        """Note that a test failed also after these."""
        self._spent[self._parent(number)] += self._cost(before)

    def _cost(self, numbers: Sequence[int]) -> float:
        return sum(self._seconds.get(each, 0.0) for each in numbers)

    def _parent(self, number: int) -> int:
        return id(self._items[number].parent)

    def _of_parent(self, number: int) -> Sequence[int]:
        """The tests of its class or module that need as many devices."""
        if not self._siblings:
            for each, width in sorted(self._widths.items()):
                self._siblings.setdefault((self._parent(each), width), []).append(each)
        return self._siblings.get((self._parent(number), self._widths.get(number)), ())
