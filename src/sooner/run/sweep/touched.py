"""Which devices tests compute on, as the driver sees it while a real sweep runs.

The driver names processes, not tests, and a process keeps its context until it ends. So a test is taken to have touched
the devices on which processes appeared while it ran that were not there when it began: exact for the workers that it
starts, and for whichever test of a process is the first on a device. Of the others nothing is said.
"""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Self

Usage = Callable[[], Sequence[frozenset[int]]]
"""Processes that compute on each device now, by position."""
_PERIOD_S: Final = 0.02


class Touched:
    """Looks at the devices every 20 ms, in a thread of its own, until it is closed.

    Args:
        usage: Asks the driver.
    """

    def __init__(self, usage: Usage) -> None:
        self._usage = usage
        self._times: list[float] = []
        self._seen: list[tuple[frozenset[int], ...]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sooner-touched", daemon=True)

    def __enter__(self) -> Self:
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(_PERIOD_S):
            self._look()

    def _look(self) -> None:
        now = tuple(self._usage())
        if not self._seen or now != self._seen[-1]:
            self._times.append(time.monotonic())
            self._seen.append(now)

    def between(self, began: float, ended: float) -> int:
        """Devices on which a process appeared in this span of the monotonic clock; 0 says nothing."""
        first = max(0, bisect_right(self._times, began) - 1)
        before, during = self._seen[first], self._seen[first + 1 : bisect_right(self._times, ended)]
        return sum(any(now[i] - pids for now in during) for i, pids in enumerate(before))
