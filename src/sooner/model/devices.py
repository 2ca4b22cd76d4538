"""Devices as facts: what a machine has, before anything runs on it."""

from enum import StrEnum
from typing import NewType

from msgspec import Struct

DeviceId = NewType("DeviceId", str)
"""Stable name of a device on its machine: `nvidia:0`, `mig:MIG-...`, `amd:2`, `cpu:1`, `virtual:3`; in a run on several
machines behind the machine's name: `gpu-node-7/nvidia:0`."""


class DeviceKind(StrEnum):
    """Where a device comes from."""

    NVIDIA = "nvidia"
    MIG = "mig"
    AMD = "amd"
    CPU = "cpu"
    VIRTUAL = "virtual"


class DeviceState(StrEnum):
    """What `sooner devices` says of a device now."""

    FREE = "free"
    LEASED = "leased"
    BUSY = "busy"
    QUARANTINED = "quarantined"


class Device(Struct, frozen=True, kw_only=True):
    """One device that can be leased."""

    id: DeviceId
    kind: DeviceKind
    index: int
    """Position among the machine's devices of its kind; PCI order for NVIDIA."""
    visible: str
    """How this device is spelled in CUDA_VISIBLE_DEVICES / HIP_VISIBLE_DEVICES; empty hides all (cpu slots)."""
    uuid: str = ""
    name: str = ""
    memory_mib: int = 0
    """Total memory, in MiB; 0 where unknown."""
    numa: int = -1
    """NUMA node, -1 where unknown."""
    links: tuple[int, ...] = ()
    """Indices of the devices that a fast link (NVLink, xGMI) joins to this one; a double link is listed twice."""
    node: str = ""
    """The machine that has it, where a run has several; a unit's devices are of one."""

    @property
    def label(self) -> str:
        """How people call it in progress lines: `GPU 3`, `slot 2`, `GPU 3 of gpu-node-7`."""
        return f"{self.word} {self.index}{f' of {self.node}' if self.node else ''}"

    @property
    def word(self) -> str:
        """What people call devices of its kind."""
        return "slot" if self.kind is DeviceKind.CPU else "GPU"
