"""The leases of one run: which devices it holds, which others hold, and how two runs never wait for each other.

A run holds what it can get and uses it until nothing waits any more, then gives idle devices back early. A run that has
nothing running and still cannot start may hold devices while it waits for more only behind the machine's one
*turnstile* (where a run has several machines: those of all, taken in one order); without it, it gives everything back
and tries again. So of several runs that want all devices exactly one gathers them, and the others follow.
"""

from collections.abc import Mapping, Sequence

from sooner.model.devices import Device
from sooner.run.machine import Book, Held


class Holding:
    """The devices of one run, as positions in its device list.

    Args:
        books: The leases of each machine, by the name of its node.
        devices: The devices of the run.
        holder: The run's name, as others shall read it.
    """

    def __init__(self, books: Mapping[str, Book], devices: Sequence[Device], *, holder: str) -> None:
        self._books = books
        self._devices = devices
        self._holder = holder
        self._leases: dict[int, Held] = {}
        self._turnstiles: list[Held] = []
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
            device = self._devices[i]
            lease = self._books[device.node].try_lease(device, holder=self._holder)
            if lease is not None:
                self._leases[i] = lease
                gained.append(i)
        return gained

    def may_gather(self) -> bool:
        """Whether this run may hold devices while it waits for more."""
        if not self._turnstiles:
            for node in sorted({device.node for device in self._devices}):
                turnstile = self._books[node].turnstile(holder=self._holder)
                if turnstile is None:
                    self.end_gathering()
                    return False
                self._turnstiles.append(turnstile)
        return True

    def end_gathering(self) -> None:
        """Something runs: others may gather."""
        while self._turnstiles:
            self._turnstiles.pop().release()

    def release(self, positions: Sequence[int]) -> list[int]:
        """Give back devices that nothing runs on; returns those that were held."""
        held = [i for i in positions if i in self._leases]
        for i in held:
            self._leases.pop(i).release()
        return held

    def holder_of(self, position: int) -> str:
        """Who holds a device that this run does not; empty where nobody does any more."""
        device = self._devices[position]
        return self._books[device.node].holder_of(device) or ""

    def close(self) -> None:
        """Give everything back."""
        self.release(list(self._leases))
        self.end_gathering()
