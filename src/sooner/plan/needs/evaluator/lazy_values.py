"""What gives its items one after the other: generators, and what Python's builtins and `itertools` make of others."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, cast

from sooner.plan.needs.evaluator.values import (
    MISSING,
    UNKNOWN,
    Args,
    Decided,
    Frame,
    Native,
    OneOf,
    Raised,
    Skip,
    Stream,
    Unknown,
    hard,
)

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MOST: Final = 4096
Turns = Iterator[tuple[Any, bool]]
"""Values, one after the other, and whether each may not be there."""


class Numbered(Unknown):
    """What `enumerate` gives of nobody knows how many things.

    Args:
        start: The number of the first.
    """

    __slots__ = ("start",)

    def __init__(self, start: int) -> None:
        super().__init__("enumerate")
        self.start = start


class Endless(Unknown):
    """An iterator without an end.

    Args:
        values: It, as Python has it: what is taken from it is gone.
    """

    __slots__ = ("values",)

    def __init__(self, values: Iterator[Any]) -> None:
        super().__init__("itertools")
        self.values = values


class Turn(Unknown):
    """Things of which nobody knows how many there are, and what is known of those of one turn.

    Args:
        rows: These, in order.
    """

    __slots__ = ("rows",)

    def __init__(self, rows: list[Any]) -> None:
        super().__init__("turn")
        self.rows = rows


def turns_of(values: Any) -> list[Any]:
    """What a loop is given where nobody knows how often it turns: what is known of one turn, which stands for all."""
    values = values.unknown if isinstance(values, Generator) else values
    return values.rows if isinstance(values, Turn) else [turn_of(values)]


def turn_of(values: Any) -> Any:
    """What a loop is given in the one turn that stands for all, where nobody knows how often it turns."""
    return (OneOf(values.start), UNKNOWN) if isinstance(values, Numbered) else UNKNOWN


class NotKnownError(Exception):
    """It is not known what is given next.

    Args:
        instead: What is known of all that is given.
    """

    def __init__(self, instead: Any = UNKNOWN) -> None:
        super().__init__()
        self.instead = instead


class Generator(Decided):
    """What a generator still has to give: what it does for an item is done when that is asked for.

    Args:
        machine: Evaluates.
        turns: Does it.
        at_once: Gives all that it gives, as far as that is known, where nothing was asked for yet.
        frame: Of its function.
    """

    __slots__ = ("_forks", "_given", "_place", "_turns", "at_once", "frame", "unknown")

    def __init__(
        self,
        machine: "Machine",
        turns: Turns,
        at_once: Callable[[], Any] | None = None,
        frame: Frame | None = None,
    ) -> None:
        super().__init__(truth=True)
        machine.has_lazy = True
        self.path = "generator"
        self._forks = machine.forks
        self._turns, self.at_once, self.frame = turns, at_once, frame
        self._given: list[tuple[Any, bool]] = []
        self._place = 0
        self.unknown: Any = MISSING
        """What is known of it, where it is not known what it gives."""

    def turns(self, machine: "Machine") -> Turns:
        """What it has still to give; on one of several ways, of which others come to the same place, it stays there."""
        place = self._place
        while place < len(self._given) or self._has_more():
            turn = self._given[place]
            place += 1
            if machine.forks <= self._forks:
                self._place = place
            yield turn

    def values(self, machine: "Machine") -> Iterator[Any]:
        """The same without whether each may not be there."""
        return (value for value, _ in self.turns(machine))

    def _has_more(self) -> bool:
        try:
            turn = next(self._turns, None)
        except NotKnownError as error:
            self.unknown = error.instead
            self._turns = iter([(each, False) for each in turns_of(error.instead)])
            turn = next(self._turns, None)
        if turn is None:
            return False
        self.at_once = None
        self._given.append(turn)
        return True

    def items(self, machine: "Machine") -> list[Any] | None:
        """All that it has still to give; None where that is not known."""
        found = hard(self._all_at_once() if self.at_once is not None else self._rest(machine))
        self.unknown = self.unknown if isinstance(found, list) else found
        return found if self.unknown is MISSING else None

    def whole(self, machine: "Machine") -> Any:
        """The same as a value; what is raised is raised where somebody goes through it.

        Raises:
            Raised: A device is missing.
        """
        if self.at_once is not None:
            return self._all_at_once()
        found: Stream = Stream(())
        try:
            found.extend(self._rest(machine))
        except (Raised, Skip) as stop:
            if isinstance(stop, Raised) and stop.device:
                raise
            found.extend(value for value, _ in self._given[self._place :])
            found.end = stop
        return found if self.unknown is MISSING else self.unknown

    def _all_at_once(self) -> Any:
        at_once, self.at_once, self._turns = cast("Callable[[], Any]", self.at_once), None, iter(())
        return at_once()

    def _rest(self, machine: "Machine") -> list[Any]:
        found = list(islice(self.turns(machine), _MOST))
        values = [value for value, _ in found]
        machine.added.mark(values, {place for place, (_, is_perhaps) in enumerate(found) if is_perhaps})
        return values

    def attribute(self, machine: "Machine", name: str) -> Any:
        """Its methods."""
        if name in ("send", "asend"):
            return Native("next", lambda args, _kwargs: self._send(machine, args))
        if name in ("__next__", "__anext__"):
            return Native("next", lambda args, _kwargs: self.next(machine, args))
        if name in ("close", "aclose"):
            return Native("next", lambda _args, _kwargs: self._close())
        return MISSING

    def next(self, machine: "Machine", default: Args) -> Any:
        """What it gives next.

        Raises:
            Raised: There is no more, and nobody says what else.
        """
        for value in self.values(machine):
            return value if self.unknown is MISSING else UNKNOWN
        if default:
            return default[0]
        raise Raised("StopIteration", "")

    def _send(self, machine: "Machine", args: Args) -> Any:
        if self.frame is not None:
            self.frame.sent = args[0] if args else None
        return self.next(machine, [])

    def _close(self) -> None:
        if self.frame is not None and self._given:
            self.frame.raised = Raised("GeneratorExit", "")
            self._has_more()
        self._turns, self.at_once, self._place = iter(()), None, len(self._given)
