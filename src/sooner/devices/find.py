"""Finds the devices that a run may use: what was asked for, within what the machine has and the masks leave.

The environment is an argument. Drivers are opened only when the request needs them, and closed again.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from sooner.devices.amd import Kfd, kfd_root
from sooner.devices.leases import LeaseBook
from sooner.devices.masks import amd_visible, matching, nvidia_visible, virtual_visible
from sooner.devices.nvidia import Nvml
from sooner.devices.source import Inventory
from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.model.errors import DevicesError

_MADE_UP: Final = re.compile(r"(virtual|cpu):(\d+)")
_LIST_ENTRY: Final = re.compile(r"\d+|(?:GPU|MIG)-\S*", re.IGNORECASE)
_MOST: Final = 1024
"""More slots than any machine has cores or GPUs: a larger number is a slip of the keyboard."""
_VIRTUAL_MIB: Final = 81_920
"""80 GiB, as an A100 or H100 has."""
_ALLOWED: Final = (
    "allowed are auto, a number (8), a list of indices (0,1 or 3,), a list of UUIDs (GPU-...,MIG-...), "
    "virtual:N and cpu:N"
)
_WITHOUT: Final = "pass --devices virtual:N to schedule on N pretended GPUs, or --devices cpu:N for N slots without GPU"


class Found(Struct, frozen=True, kw_only=True):
    """Devices that a run may lease, and what its user must know about them, one sentence each."""

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()


def nobody(_device: Device) -> bool:
    """Say that no device is taken."""
    return False


def find_devices(
    spec: str,
    env: Mapping[str, str],
    *,
    kfd: Path | None = None,
    is_taken: Callable[[Device], bool] = nobody,
) -> Found:
    """Find the devices that `spec` asks for.

    Args:
        spec: `auto`, `N`, `virtual:N`, `cpu:N`, `0,1` (machine indices; `3,` for one) or `UUID,...`.
        env: The inherited environment: masks, SOONER_KFD_ROOT.
        kfd: Root of AMD's driver in sysfs; by default as the environment says.
        is_taken: Devices that `N` uses only when there are too few others.

    Raises:
        DevicesError: The spec is not understood, or asks for more than there is.
    """
    spec = spec.strip()
    if made_up := _MADE_UP.fullmatch(spec):
        return _made_up(made_up[1], _count(spec, made_up[2]), env, kfd)
    if spec != "auto" and not spec.isdecimal() and not _is_list(spec):
        raise DevicesError(f"--devices {spec!r} is not understood: {_ALLOWED}")
    inventory, seen = _look(env, kfd)
    if not seen.devices:
        raise DevicesError(f"no accelerator can be used here ({'; '.join(seen.notes)}): {_WITHOUT}")
    if spec == "auto":
        return _one_kind(seen)
    if spec.isdecimal():
        return _at_most(_count(spec, spec), _one_kind(seen), is_taken)
    return _listed(spec, inventory, seen)


def usable_devices(spec: str, env: Mapping[str, str], book: LeaseBook, *, now: float) -> Found:
    """What `find_devices` finds, those that nobody holds first, without what is put aside at `now` (epoch seconds).

    Raises:
        DevicesError: As `find_devices`; or every device is put aside.
    """
    found = find_devices(spec, env, is_taken=lambda device: book.holder_of(device) is not None)
    usable, notes = [], list(found.notes)
    for device in found.devices:
        reason = book.put_aside_reason(device, now=now)
        if reason is None:
            usable.append(device)
        else:
            notes.append(f"{device.label} is put aside ({reason}); `sooner devices --clear {device.id}` takes it back")
    if not usable:
        raise DevicesError(f"every device is put aside: {'; '.join(notes)}")
    return Found(devices=tuple(usable), notes=tuple(notes))


def accelerators(env: Mapping[str, str], *, kfd: Path | None = None) -> Found:
    """Every accelerator that the masks leave us; none is a `Found` whose notes say what was looked for."""
    return _look(env, kfd)[1]


def _look(env: Mapping[str, str], kfd: Path | None) -> tuple[Inventory, Found]:
    """The machine's devices and those of them that the masks leave: NVIDIA's if there are any, else AMD's."""
    nvml = Nvml()
    try:
        nvidia = nvml.inventory()
    finally:
        nvml.close()
    if nvidia.devices:
        seen = nvidia_visible(nvidia, env)
        return nvidia, Found(devices=seen.devices, notes=nvidia.notes + seen.notes)
    amd = Kfd(kfd or kfd_root(env)).inventory()
    if amd.devices:
        seen = amd_visible(amd, env)
        return amd, Found(devices=seen.devices, notes=nvidia.notes + seen.notes)
    return amd, Found(devices=(), notes=(*nvidia.notes, nvidia.absent, amd.absent))


def _made_up(kind: str, count: int, env: Mapping[str, str], kfd: Path | None) -> Found:
    if kind == "cpu":
        slots = (Device(id=DeviceId(f"cpu:{i}"), kind=DeviceKind.CPU, index=i, visible="") for i in range(count))
        return Found(devices=tuple(slots))
    devices = [_virtual(index, count) for index in range(count)]
    seen = virtual_visible(devices, env, has_accelerators=lambda: bool(_look({}, kfd or kfd_root(env))[1].devices))
    if not seen.devices:
        raise DevicesError(f"the inherited mask leaves none of virtual:{count} ({'; '.join(seen.notes)})")
    return Found(devices=seen.devices, notes=seen.notes)


def _virtual(index: int, count: int) -> Device:
    """A pretended GPU: two sockets, quads joined by single links, pairs by a second one."""
    quad = range(index // 4 * 4, min(index // 4 * 4 + 4, count))
    links = [peer for peer in quad if peer != index for _ in range(2 if peer // 2 == index // 2 else 1)]
    return Device(
        id=DeviceId(f"virtual:{index}"),
        kind=DeviceKind.VIRTUAL,
        index=index,
        visible=str(index),
        name="virtual GPU",
        memory_mib=_VIRTUAL_MIB,
        numa=0 if index < (count + 1) // 2 else 1,
        links=tuple(links),
    )


def _count(spec: str, digits: str) -> int:
    if not 1 <= int(digits) <= _MOST:
        raise DevicesError(f"--devices {spec!r}: the number of devices must be between 1 and {_MOST}")
    return int(digits)


def _is_list(spec: str) -> bool:
    return all(_LIST_ENTRY.fullmatch(entry.strip()) for entry in spec.removesuffix(",").split(","))


def _one_kind(found: Found) -> Found:
    """Whole GPUs where there are some: a unit cannot hold a MIG instance together with anything else."""
    whole = tuple(device for device in found.devices if device.kind is not DeviceKind.MIG)
    divided = len(found.devices) - len(whole)
    if not divided:
        return found
    if whole:
        note = f"{divided} MIG instances are left out beside whole GPUs: name them by UUID to use them"
        return Found(devices=whole, notes=(*found.notes, note))
    note = "CUDA opens one MIG instance a process: every unit can hold one device"
    return Found(devices=found.devices, notes=(*found.notes, note))


def _at_most(count: int, found: Found, is_taken: Callable[[Device], bool]) -> Found:
    if count > len(found.devices):
        masks = f" ({'; '.join(found.notes)})" if found.notes else ""
        raise DevicesError(f"--devices {count}: only {len(found.devices)} can be used here{masks}; {_WITHOUT}")
    chosen = sorted(found.devices, key=is_taken)[:count]
    return Found(devices=tuple(device for device in found.devices if device in chosen), notes=found.notes)


def _listed(spec: str, inventory: Inventory, seen: Found) -> Found:
    visible = {device.id: device for device in seen.devices}
    chosen = [_chosen(entry, inventory, visible) for entry in spec.removesuffix(",").split(",")]
    _refuse_mixtures(spec, chosen)
    return _one_kind(Found(devices=tuple(chosen), notes=seen.notes))


def _chosen(entry: str, inventory: Inventory, visible: Mapping[DeviceId, Device]) -> Device:
    """The visible device that an index or a UUID names; indices are the machine's, whatever the masks."""
    by_index = _by_index(inventory.devices) if entry.strip().isdecimal() else ()
    device = matching(entry, by_index, inventory.devices)
    if device is None or device.id not in visible:
        hidden = "is hidden by the inherited mask" if device else "names no device, or several"
        there = ", ".join(f"{one.index} ({one.uuid or one.id})" for one in visible.values())
        raise DevicesError(f"--devices: {entry.strip()!r} {hidden}; those that can be used here are {there}")
    return visible[device.id]


def _by_index(devices: Sequence[Device]) -> list[Device | None]:
    """Devices at their machine index: whole GPUs, or the instances where all GPUs are divided."""
    whole = [device for device in devices if device.kind is not DeviceKind.MIG] or list(devices)
    places = {device.index: device for device in whole}
    return [places.get(index) for index in range(max(places, default=-1) + 1)]


def _refuse_mixtures(spec: str, chosen: Sequence[Device]) -> None:
    if len({device.id for device in chosen}) < len(chosen):
        raise DevicesError(f"--devices {spec!r} names a device twice")
    if len({device.kind for device in chosen}) > 1:
        raise DevicesError(f"--devices {spec!r} mixes MIG instances and whole GPUs: give each its own run")
