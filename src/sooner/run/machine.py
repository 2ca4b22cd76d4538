"""What the dispatcher needs of a machine: leases, the state of devices, ports, and somebody who starts units.

This process's own machine is made of `devices` and `supervision`; another one answers through an agent that runs there
(`run/backends`). The dispatcher does not know which it talks to.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from sooner.model.devices import Device
from sooner.run.supervision.client import Spawn


class Held(Protocol):
    """The right to something, until it is released."""

    @property
    def fd(self) -> int:
        """What a `Spawn` names it by: on this machine the descriptor of its lock."""

    def release(self) -> None:
        """Give it back."""


class Book(Protocol):
    """The leases of a machine; see `devices.leases`."""

    def try_lease(self, device: Device, *, holder: str) -> Held | None:
        """Lease a device that nobody holds."""

    def turnstile(self, *, holder: str) -> Held | None:
        """The one right to hold devices while waiting for more."""

    def holder_of(self, device: Device) -> str | None:
        """Who holds a device, for people."""

    def put_aside(self, device: Device, reason: str, at: float) -> None:
        """Mark a device as not to be used for a day."""


class Watch(Protocol):
    """Who knows the state of a machine's devices; see `devices.proof`."""

    def baseline(self, *devices: Device) -> None:
        """Remember how devices are while nothing of ours runs on them."""

    def not_free(self, device: Device) -> str:
        """Why a device is not free for the next unit; empty where it is."""

    def fault(self, device: Device) -> str:
        """What is wrong with the device itself; empty for nothing."""


class LeasedPort(Protocol):
    """A TCP port that is ours until it is released."""

    @property
    def number(self) -> int:
        """The port."""

    def release(self) -> None:
        """Give it back."""


class PortBook(Protocol):
    """Hands out TCP ports; see `run.ports`."""

    def lease(self, count: int) -> Sequence[LeasedPort]:
        """Lease so many ports."""

    def lease_ahead(self) -> None:
        """Lease one while no device waits for it."""

    def close(self) -> None:
        """Give back what was leased ahead."""


class Starter(Protocol):
    """Starts units and reports what becomes of them; see `run.supervision.client`."""

    def listen(self) -> None:
        """Begin to hand on reports in the running event loop."""

    def spawn(self, spawn: Spawn) -> None:
        """Ask for a unit to be started."""

    def stop(self, unit_id: str) -> None:
        """Ask for a unit to be ended, with its grace."""

    def kill(self, unit_id: str) -> None:
        """Ask for a unit to be ended at once."""

    def close(self) -> None:
        """Wait until nothing is left, and let go."""


class Machine(Struct, frozen=True):
    """One machine of a run."""

    book: Book
    watch: Watch
    ports: PortBook
    starter: Starter
