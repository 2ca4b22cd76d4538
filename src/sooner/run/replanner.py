"""Looks for a better order of what waits while the rest runs: in a thread, because devices wait for the event loop."""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sooner.model.devices import Device
from sooner.model.units import UnitKey
from sooner.run import clock
from sooner.schedule.order import new_ranks
from sooner.schedule.work import Work

_SHARE: Final = 4
"""Between two searches so many times the duration of the last one passes: at most a fifth of a core is taken."""


class Replanner:
    """Paces searches for a better order and hands on what they find.

    Args:
        works: The units of the run, by key.
        devices: Its devices.
        host_slots: Units without a device that run at once.
        found: Called in the event loop with new ranks, if there are any.
    """

    def __init__(
        self,
        works: Mapping[UnitKey, Work],
        devices: Sequence[Device],
        *,
        host_slots: int,
        found: Callable[[Mapping[UnitKey, int]], None],
    ) -> None:
        self._works = works
        self._devices = devices
        self._host_slots = host_slots
        self._found = found
        self._search: asyncio.Future[dict[UnitKey, int]] | None = None
        self._began = self._not_before = 0.0

    def consider(self, waiting: Sequence[UnitKey], running: Sequence[tuple[UnitKey, float]], now: float) -> None:
        """Begin a search unless one goes on or the last one was just now.

        Args:
            waiting: Units that have not started.
            running: Units that run, and for how many seconds already.
            now: Seconds of the run's clock.
        """
        busy = self._search is not None and not self._search.done()
        if busy or now < self._not_before or not waiting:
            return
        works = [self._works[key] for key in waiting]
        begun = [(self._works[key], seconds) for key, seconds in running]
        search = functools.partial(new_ranks, works, begun, self._devices, host_slots=self._host_slots)
        self._began = now
        self._search = asyncio.get_running_loop().run_in_executor(None, search)
        self._search.add_done_callback(self._done)

    def _done(self, search: "asyncio.Future[dict[UnitKey, int]]") -> None:
        now = clock.now()
        self._not_before = now + _SHARE * (now - self._began)
        if not search.cancelled() and search.result():
            self._found(search.result())
