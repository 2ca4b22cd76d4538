"""What every source of devices (NVML, kfd) answers: which devices there are, and how each one is now."""

from typing import Protocol

from msgspec import Struct

from sooner.model.devices import Device


class DeviceGone(Exception):  # noqa: N818 - what happened; caught inside this room, users never see it
    """A device that was there cannot be read any more: lost, reset needed, or removed."""


class Inventory(Struct, frozen=True, kw_only=True):
    """The devices of one source, before any mask."""

    devices: tuple[Device, ...] = ()
    ordinals: tuple[Device | None, ...] = ()
    """What an index in a mask names; None where the device there cannot be used."""
    notes: tuple[str, ...] = ()
    absent: str = ""
    """Why there is no device; empty where there are some."""


class Usage(Struct, frozen=True, kw_only=True):
    """What one device carries at this instant."""

    used_mib: int = 0
    """Memory in use, in MiB; 0 where the driver does not say."""
    pids: frozenset[int] = frozenset()
    """Processes that compute on it, in the driver's process namespace."""
    uncorrected: int = 0
    """Uncorrectable memory errors since the driver was loaded; 0 where it does not say."""


class Source(Protocol):
    """A driver that devices can be read through."""

    def inventory(self) -> Inventory:
        """List the devices; a missing driver is an inventory with a reason, not an error."""

    def watch(self, devices: tuple[Device, ...]) -> None:
        """Collect fault reports on these devices from now on."""

    def usage(self, device: Device) -> Usage:
        """Read one device now.

        Raises:
            DeviceGone: It cannot be read any more.
        """

    def trouble(self, device: Device) -> str:
        """What the driver reported on the device since `watch`; empty for nothing."""

    def close(self) -> None:
        """Let go of the driver."""
