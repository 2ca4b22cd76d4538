"""The leases of one run: which devices it holds, which others hold, and how two runs never wait for each other.

A run holds what it can get and uses it until nothing waits any more, then gives idle devices back early. A run that has
nothing running and still cannot start may hold devices while it waits for more only behind the machine's one
*turnstile*; without it, it gives everything back and tries again. So of several runs that want all devices exactly one
gathers them, and the others follow.
"""

from collections.abc import Sequence

from sooner.devices.leases import Lease, LeaseBook
from sooner.model.devices import Device


class Holding:
    """The devices of one run, as positions in its device list.

    Args:
        book: The machine's leases.
        devices: The devices of the run.
        holder: The run's name, as others shall read it.
    """

    def __init__(self, book: LeaseBook, devices: Sequence[Device], *, holder: str) -> None:
        self._book = book
        self._devices = devices
        self._holder = holder
        self._leases: dict[int, Lease] = {}
        self._turnstile: Lease | None = None
        self.gone: set[int] = set()
        """Devices put aside: never leased again by this run."""

    @property
    def missing(self) -> list[int]:
        """Devices that this run could use and does not hold."""
        return [i for i in range(len(self._devices)) if i not in self._leases and i not in self.gone]

    def descriptors(self, positions: Sequence[int]) -> list[int]:
        """The open locks of these devices, for the processes that run on them."""
        return [self._leases[i].fd for i in positions]

    def acquire(self) -> list[int]:
        """Lease what is missing and free now; returns what was gained."""
        gained = []
        for i in self.missing:
            lease = self._book.try_lease(self._devices[i], holder=self._holder)
            if lease is not None:
                self._leases[i] = lease
                gained.append(i)
        return gained

    def may_gather(self) -> bool:
        """Whether this run may hold devices while it waits for more."""
        if self._turnstile is None:
            self._turnstile = self._book.turnstile(holder=self._holder)
        return self._turnstile is not None

    def end_gathering(self) -> None:
        """Something runs: others may gather."""
        if self._turnstile is not None:
            self._turnstile.release()
            self._turnstile = None

    def release(self, positions: Sequence[int]) -> list[int]:
        """Give back devices that nothing runs on; returns those that were held."""
        held = [i for i in positions if i in self._leases]
        for i in held:
            self._leases.pop(i).release()
        return held

    def holder_of(self, position: int) -> str:
        """Who holds a device that this run does not; empty where nobody does any more."""
        return self._book.holder_of(self._devices[position]) or ""

    def close(self) -> None:
        """Give everything back."""
        self.release(list(self._leases))
        self.end_gathering()
