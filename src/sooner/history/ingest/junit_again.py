"""Cases that stand in a JUnit file of pytest's again: what the second record says about the first one. Pure.

- pytest-rerunfailures runs what failed again, and (from 16.6.1 on, and before 2022) leaves of the attempt that failed a
  case without a result, which anywhere else means that it passed: pytest-rerunfailures #170.
- PyTorch's own `rerun` elements tell of it. Then the result of the case itself is none.
- What a tear-down did is a second record of the same attempt where the test had failed already.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sooner.history.fingerprints import digest_of
from sooner.history.outcomes import BROKEN, HistoryOutcome
from sooner.history.tables import TestRow

TEARDOWN: Final = "failed on teardown"
"""pytest's word for an error after the test itself."""
_AGAIN: Final = "run again by pytest, which did not write why"
_MOST: Final = 50_000
"""Cases that are held: with many workers, thousands of others may have begun before one runs again."""


class Case(Struct, frozen=True, gc=False):
    """The last record of a case so far."""

    row: TestRow
    has_result: bool
    """Whether something in it says what it came to."""
    tells_attempts: bool
    """Whether it told of attempts before."""


class Again:
    """Holds each case back until it came again, or a great many others came.

    Args:
        emit: Takes the rows.
    """

    def __init__(self, emit: Callable[[TestRow], None]) -> None:
        self._emit = emit
        self._held: OrderedDict[Hashable, Case] = OrderedDict()

    def take(self, case: Case) -> None:
        """Take a record in, in the order of the file."""
        row = case.row
        name = row.unit, row.node_id, row.variant
        if (earlier := self._held.pop(name, None)) is not None:
            if earlier.row.outcome in BROKEN and row.message.startswith(TEARDOWN):
                self._held[name] = earlier
                return
            self._end(earlier)
        self._held[name] = case
        if len(self._held) > _MOST:
            _, oldest = self._held.popitem(last=False)
            self._emit(oldest.row)

    def _end(self, case: Case) -> None:
        """Another attempt came after it."""
        if case.has_result:
            self._emit(case.row)
        elif not case.tells_attempts:
            self._emit(
                replace(case.row, outcome=HistoryOutcome.FAILED, message=_AGAIN, message_digest=digest_of(_AGAIN))
            )

    def close(self) -> None:
        """Nothing comes any more."""
        held, self._held = self._held, OrderedDict()
        for case in held.values():
            self._emit(case.row)
