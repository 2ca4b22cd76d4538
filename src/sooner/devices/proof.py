"""Proves that a device is free before it is used again, and sound before a failure is held against a test.

Every question is one instantaneous read: whoever asks decides how long to wait for a better answer.
`fault_in_log` and `device_out_of_memory` read what a test left behind instead.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Final, Self

from sooner.devices.amd import Kfd, kfd_root
from sooner.devices.nvidia import Nvml
from sooner.devices.source import DeviceGone, Source, Usage
from sooner.devices.symptoms import device_out_of_memory, fault_in_log
from sooner.model.devices import Device, DeviceKind

__all__ = ["Monitor", "device_out_of_memory", "fault_in_log"]

_RESIDUE_MIB: Final = 256
"""What may stay above the baseline: page tables and caches that drivers keep. A process that still runs has a
context of some hundred MiB on a data-centre GPU, and is listed besides; this catches those that are not."""
_IDLE_SHARE: Final = 0.02
"""Share of its memory that an idle device may show in use where no baseline was taken: amdgpu and old NVIDIA
drivers count what the firmware reserves (NVML names it `reserved`, apart from `used`, since version 2)."""


class Monitor:
    """Watches some devices through their drivers, which stay open until `close`.

    Virtual devices and cpu slots are always free and never faulty.

    Args:
        devices: What to watch.
        env: Where SOONER_KFD_ROOT is read; by default this process's environment.
    """

    def __init__(self, devices: Sequence[Device], env: Mapping[str, str] | None = None) -> None:
        self._devices = tuple(devices)
        self._sources = _sources(self._devices, os.environ if env is None else env)
        self._baselines: dict[str, Usage] = {}
        for source in set(self._sources.values()):
            source.watch(tuple(one for one in self._devices if self._sources.get(one.kind) is source))

    def baseline(self, *devices: Device) -> None:
        """Remember how devices (if none is named, all) are while nothing of ours runs on them."""
        for device in devices or self._devices:
            source = self._sources.get(device.kind)
            if source is None:
                continue
            try:
                self._baselines[device.id] = source.usage(device)
            except DeviceGone:  # `fault` and `not_free` say so when they are asked
                self._baselines.pop(device.id, None)

    def not_free(self, device: Device) -> str:
        """Why a device is not free for the next unit: what exceeds its baseline; empty when proven free.

        The baseline sinks with what others free, so that their going cannot hide what ours left behind.
        """
        source = self._sources.get(device.kind)
        if source is None:
            return ""
        try:
            now = source.usage(device)
        except DeviceGone as error:
            return f"cannot be read: {error}"
        base = self._baselines.get(device.id)
        if base is None:
            return _excess(now.pids, now.used_mib, _idle_mib(device))
        self._baselines[device.id] = Usage(
            used_mib=min(base.used_mib, now.used_mib), pids=base.pids & now.pids, uncorrected=base.uncorrected
        )
        return _excess(now.pids - base.pids, now.used_mib, base.used_mib + _RESIDUE_MIB)

    def fault(self, device: Device) -> str:
        """What is wrong with the device itself, in a sentence; empty for nothing that its driver knows of."""
        source = self._sources.get(device.kind)
        if source is None:
            return ""
        try:
            reported, now = source.trouble(device), source.usage(device)
        except DeviceGone as error:
            return f"{device.label} is gone: {error}"
        if reported:
            return f"{device.label} reported {reported}"
        base = self._baselines.get(device.id, now)
        rise = now.uncorrected - base.uncorrected
        return f"{device.label} counted {rise} more uncorrectable memory errors" if rise > 0 else ""

    def usage(self, device: Device) -> Usage | None:
        """Read a device now; None for virtual devices, cpu slots and devices that cannot be read."""
        source = self._sources.get(device.kind)
        try:
            return source.usage(device) if source else None
        except DeviceGone:
            return None

    def close(self) -> None:
        """Let go of the drivers."""
        for source in set(self._sources.values()):
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sources(devices: Sequence[Device], env: Mapping[str, str]) -> dict[DeviceKind, Source]:
    """The drivers that these devices need, each opened once."""
    kinds = {device.kind for device in devices}
    sources: dict[DeviceKind, Source] = {}
    if nvidia := kinds & {DeviceKind.NVIDIA, DeviceKind.MIG}:
        sources |= dict.fromkeys(nvidia, Nvml())
    if DeviceKind.AMD in kinds:
        sources[DeviceKind.AMD] = Kfd(kfd_root(env))
    return sources


def _idle_mib(device: Device) -> int:
    return max(_RESIDUE_MIB, int(device.memory_mib * _IDLE_SHARE))


def _excess(pids: frozenset[int], used_mib: int, allowed_mib: int) -> str:
    if pids:
        return f"still used by process {', '.join(map(str, sorted(pids)))}"
    return f"{used_mib} MiB in use, {allowed_mib} MiB allowed" if used_mib > allowed_mib else ""
