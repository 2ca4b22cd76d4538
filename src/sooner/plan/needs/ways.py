"""What a test uses where it is not known which way it goes: where ways differ in that, it is less sure."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sooner.plan.needs.values import UNKNOWN, Extent, Raised

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine


def extent(machine: "Machine") -> Extent:
    """What the test has used by now."""
    trace = machine.trace
    return frozenset(trace.touched), trace.used, trace.ranks


class Ways:
    """Ways that exclude each other: each starts with what was used before them, and what any of them uses counts."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._before = extent(machine)
        self._ends: list[Extent] = []
        self._all: list[Extent] = []

    def begin(self) -> None:
        """Go one of them."""
        trace = self._machine.trace
        trace.touched, trace.used, trace.ranks = set(self._before[0]), *self._before[1:]

    def end(self, *, goes_on: bool) -> None:
        """One has been gone to its end; that it stops the test is told otherwise."""
        self._all.append(extent(self._machine))
        if goes_on:
            self._ends.append(self._all[-1])

    def conclude(self) -> None:
        """Note what all of them have used."""
        trace = self._machine.trace
        for touched, used, ranks in self._all:
            trace.touched |= touched
            trace.used = max(trace.used, used)
            trace.ranks = trace.ranks if ranks is None else max(trace.ranks or 0, ranks)
        self._machine.guesses += len(set(self._ends)) > 1


def each_way(machine: "Machine", ways: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of several ways comes to, of which one is gone; what it raises is not raised."""
    gone, found = Ways(machine), []
    for way in ways:
        gone.begin()
        try:
            found.append(way())
        except Raised:
            found.append(UNKNOWN)
        gone.end(goes_on=True)
    gone.conclude()
    return found


def doubt_what_follows(machine: "Machine", left: Sequence[Extent]) -> None:
    """What was used since some way may have left a loop or a function is less sure."""
    if left and any(each != extent(machine) for each in left):
        machine.guesses += 1
