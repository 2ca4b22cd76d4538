"""What a test uses where it is not known which way it goes: where ways differ in that, it is less sure."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sooner.plan.needs.evaluator.values import UNKNOWN, Extent, Raised, Skip, Unknown

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine


class Perhaps(Unknown):
    """A value, or something that is false, it is not known which (`flag() and 4`)."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def extent(machine: "Machine") -> Extent:
    """What the test has used by now, a device that a worker has only chosen with it."""
    trace = machine.trace
    return frozenset(trace.touched), frozenset(trace.of_ranks | trace.chosen), trace.used, trace.ranks


def _used(machine: "Machine") -> Extent:
    trace = machine.trace
    return frozenset(trace.touched), frozenset(trace.of_ranks), trace.used, trace.ranks


class Ways:
    """Ways that exclude each other: each starts with what was used before them, and what any of them uses counts."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._before = _used(machine)
        self._ends: list[Extent] = []
        self._all: list[Extent] = []

    def begin(self) -> None:
        """Go one of them."""
        trace = self._machine.trace
        trace.touched, trace.of_ranks = set(self._before[0]), set(self._before[1])
        trace.used, trace.ranks = self._before[2:]

    def end(self, *, goes_on: bool) -> None:
        """One has been gone to its end; that it stops the test is told otherwise."""
        self._all.append(_used(self._machine))
        if goes_on:
            self._ends.append(extent(self._machine))

    def conclude(self) -> None:
        """Note what all of them have used."""
        trace = self._machine.trace
        for touched, of_ranks, used, ranks in self._all:
            trace.touched |= touched
            trace.of_ranks |= of_ranks
            trace.used = max(trace.used, used)
            trace.ranks = trace.ranks if ranks is None else max(trace.ranks or 0, ranks)
        self._machine.guesses += len(set(self._ends)) > 1


def each_way(machine: "Machine", ways: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each of several ways comes to, of which one is gone; what some raise is not raised.

    Raises:
        Raised: All do.
    """
    gone, found, stops = Ways(machine), [], []
    for way in ways:
        gone.begin()
        try:
            found.append(way())
        except Raised as raised:
            found.append(UNKNOWN)
            stops.append(raised)
        gone.end(goes_on=True)
    gone.conclude()
    if len(stops) == len(ways):
        raise next((each for each in stops if each.device), stops[0])
    return found


@contextmanager
def perhaps_gone(machine: "Machine") -> Iterator[None]:
    """A way that may not be gone: what it uses is less sure; it is not where it skips or lacks another vendor's device.

    Raises:
        Raised: It fails for another reason.
    """
    ways = Ways(machine)
    ways.begin()
    try:
        yield
    except Skip:
        machine.guesses += 1
    except Raised as raised:
        if not raised.is_of_another_vendor:
            raise
    finally:
        ways.end(goes_on=True)
        ways.begin()
        ways.end(goes_on=True)
        ways.conclude()


def doubt_what_follows(machine: "Machine", left: Sequence[Extent]) -> None:
    """What was used since some way may have left a loop or a function is less sure."""
    if left and any(each != extent(machine) for each in left):
        machine.guesses += 1
