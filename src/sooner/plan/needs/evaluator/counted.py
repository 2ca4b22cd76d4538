"""The number of visible devices, as a number that notices what is asked of it.

A test that only compares the number (`device_count() < 2`) does the same with 2, 3, 4 and 8 devices: it is evaluated
once for all of them. What is done with the number besides comparing it makes the evaluation hold for it alone.
"""

import math
from collections.abc import Callable
from typing import Any, Final, Self

from sooner.plan.needs.evaluator.trace import COUNT


class Counted(int):
    """The number of visible devices.

    Args:
        value: The number.
        ask: Told of each question: the fewest devices for which the answer is the same; COUNT for this number only.
    """

    ask: Callable[[int], None]

    def __new__(cls, value: int, ask: Callable[[int], None]) -> Self:
        """The number, with somebody to tell."""
        made = super().__new__(cls, value)
        made.ask = ask
        return made

    def _from(self, fewest: float) -> None:
        """Fewer devices than this have another answer; if there are not so many, this is no limit from below."""
        is_limit = not math.isnan(fewest) and fewest <= self.real
        self.ask(max(0, math.ceil(fewest)) if is_limit and math.isfinite(fewest) else 0)

    def __lt__(self, other: Any) -> Any:
        """N < 4: the same from 4 on."""
        return self._ordered(other, int.__lt__, 0)

    def __ge__(self, other: Any) -> Any:
        """N >= 4: the same from 4 on."""
        return self._ordered(other, int.__ge__, 0)

    def __le__(self, other: Any) -> Any:
        """N <= 4: the same from 5 on."""
        return self._ordered(other, int.__le__, 1)

    def __gt__(self, other: Any) -> Any:
        """N > 4: the same from 5 on."""
        return self._ordered(other, int.__gt__, 1)

    def _ordered(self, other: Any, operation: Callable[[int, Any], Any], more: int) -> Any:
        if isinstance(other, Counted):
            return operation(self.real, other.real)
        if isinstance(other, float):
            self.ask(COUNT)
            return operation(self.real, math.ceil(other)) if more == 0 else operation(self.real, math.floor(other))
        if isinstance(other, int):
            self._from(other + more)
        return operation(self.real, other)

    def __eq__(self, other: object) -> Any:
        """N == 4: the same from 5 on, and for 4 alone."""
        if isinstance(other, int) and not isinstance(other, Counted):
            self._from(other)
            self._from(other + 1)
        return int.__eq__(self.real, other.real if isinstance(other, Counted) else other)

    def __ne__(self, other: object) -> Any:
        """As `==`."""
        same = self.__eq__(other)
        return same if same is NotImplemented else not same

    def __bool__(self) -> bool:
        """Whether there is any."""
        self._from(1)
        return self.real > 0

    def __hash__(self) -> int:
        """As a key, it is this number."""
        return hash(int(self))


def _used(name: str) -> Callable[..., Any]:
    plain = getattr(int, name)

    def used(self: Counted, *args: Any) -> Any:
        self.ask(COUNT)
        return plain(self.real, *(each.real if isinstance(each, Counted) else each for each in args))

    used.__name__ = name
    return used


_USES: Final = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "floordiv", "rfloordiv", "truediv", "rtruediv", "mod", "rmod", "pow",
    "rpow", "and", "rand", "or", "ror", "xor", "rxor", "lshift", "rlshift", "rshift", "rrshift", "divmod", "rdivmod",
    "neg", "pos", "abs", "invert", "int", "index", "float", "str", "repr", "format", "round", "trunc", "floor", "ceil",
)  # fmt: skip
for _name in _USES:
    setattr(Counted, f"__{_name}__", _used(f"__{_name}__"))


def uncounted(value: Any) -> Any:
    """A value that is used in a way of which the number would not know: this number only."""
    return int(value) if isinstance(value, Counted) else value


def uncounted_in(value: Any) -> Any:
    """The right side of `"%d of %d" % (n, m)` too."""
    return tuple(uncounted(each) for each in value) if isinstance(value, tuple) else uncounted(value)
