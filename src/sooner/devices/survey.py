"""What every device of a machine is doing now, as `sooner devices` says it. Reads only."""

from collections.abc import Sequence

from msgspec import Struct

from sooner.devices.leases import LeaseBook
from sooner.devices.proof import Monitor
from sooner.devices.source import Usage
from sooner.model.devices import Device, DeviceKind, DeviceState


class DeviceReport(Struct, frozen=True, kw_only=True):
    """One device, and whose it is now; its fields are those of `sooner devices --json`."""

    id: str
    kind: DeviceKind
    index: int
    uuid: str
    memory_mib: int
    state: DeviceState
    holder: str | None
    """The run that leases it."""
    reason: str
    """Why it is quarantined or busy; empty otherwise."""
    name: str
    numa: int
    links: tuple[int, ...]
    used_mib: int
    processes: tuple[int, ...]
    """Processes that compute on it, in the driver's namespace."""


def survey(devices: Sequence[Device], book: LeaseBook, monitor: Monitor, *, now: float) -> tuple[DeviceReport, ...]:
    """Report on devices at `now` (epoch seconds); the monitor has no baseline, so that all that runs counts.

    Raises:
        DevicesError: The directory of leases cannot be used.
    """
    return tuple(_report(device, book, monitor, now) for device in devices)


def _report(device: Device, book: LeaseBook, monitor: Monitor, now: float) -> DeviceReport:
    holder = book.holder_of(device)
    state, reason = _state(holder, book.put_aside_reason(device, now=now), monitor.not_free(device))
    usage = monitor.usage(device) or Usage()
    return DeviceReport(
        id=device.id,
        kind=device.kind,
        index=device.index,
        uuid=device.uuid,
        memory_mib=device.memory_mib,
        state=state,
        holder=holder,
        reason=reason,
        name=device.name,
        numa=device.numa,
        links=device.links,
        used_mib=usage.used_mib,
        processes=tuple(sorted(usage.pids)),
    )


def _state(holder: str | None, put_aside: str | None, not_free: str) -> tuple[DeviceState, str]:
    """A lease explains everything else; a mark explains more than what runs there."""
    if holder is not None:
        return DeviceState.LEASED, ""
    if put_aside is not None:
        return DeviceState.QUARANTINED, put_aside
    return (DeviceState.BUSY, not_free) if not_free else (DeviceState.FREE, "")
