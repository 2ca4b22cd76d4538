"""NVIDIA devices through NVML, which lists and watches them without ever initialising CUDA.

Everything that NVML may not support on a GPU or driver is optional; only a GPU that is lost is told apart.
`pynvml` is imported when the first `Nvml` is made.
"""

from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

from sooner.devices.source import DeviceGone, Inventory, Usage
from sooner.model.devices import Device, DeviceId, DeviceKind

DEVICE_XIDS: Final = {
    48: "double-bit ECC error",
    62: "internal micro-controller halt",
    64: "row remapping failed",
    74: "NVLink error",
    79: "GPU has fallen off the bus",
    94: "contained memory error",
    95: "uncontained memory error",
    110: "security fault",
    119: "GSP does not answer",
    120: "GSP error",
    140: "unrecovered ECC error",
    143: "GPU initialisation failure",
}
"""Xids that speak of the device and not of the program on it (13, 31, 43, 45 are an ordinary bug's).

Source: NVIDIA's Xid catalogue, https://docs.nvidia.com/deploy/xid-errors/."""

_MIB: Final = 1 << 20
_MPS_SERVER: Final = "nvidia-cuda-mps-server"
"""Starts with the first client of MPS and stays: it belongs to the machine, not to a test."""
_PCI: Final = Path("/sys/bus/pci/devices")


class Nvml:
    """The driver's management library, opened once; `absent` says why where there is none."""

    def __init__(self, *, pci_root: Path = _PCI) -> None:
        self._pci_root = pci_root
        self._events: Any = None
        self._xids: dict[str, int] = {}
        self.absent = self._open()

    def _open(self) -> str:
        try:
            import pynvml
        except ImportError:
            return "nvidia-ml-py is not installed"
        self._api: Any = pynvml
        try:
            self._api.nvmlInit()
        except pynvml.NVMLError as error:
            return f"NVML: {error}"
        return ""

    def close(self) -> None:
        """Shut NVML down; every later question is answered as if there were no driver."""
        if self.absent:
            return
        if self._events is not None:
            self._ask(None, "nvmlEventSetFree", self._events)
        self._ask(None, "nvmlShutdown")
        self.absent = "NVML was shut down"

    def inventory(self) -> Inventory:
        """Every GPU in PCI order, MIG instances in the place of a GPU that is divided."""
        if self.absent:
            return Inventory(absent=self.absent)
        handles = [self._handle_at(index) for index in range(self._ask(0, "nvmlDeviceGetCount"))]
        buses = {self._bus(handle): index for index, handle in enumerate(handles) if handle is not None}
        found: list[Device] = []
        ordinals: list[Device | None] = []
        notes: list[str] = []
        for index, handle in enumerate(handles):
            here, note = self._devices_at(index, handle, buses)
            found += here
            ordinals.append(here[0] if here else None)
            notes += [note] * bool(note)
        return _numbered(found, ordinals, notes)

    def watch(self, devices: tuple[Device, ...]) -> None:
        """Have the driver queue Xid events of these GPUs; where it cannot, they are simply not known."""
        self._events = None if self.absent else self._ask(None, "nvmlEventSetCreate")
        if self._events is None:
            return
        for device in devices:
            with suppress(DeviceGone):  # `usage` and `trouble` say so
                gpu, kind = self._gpu_of(self._handle(device)), self._api.nvmlEventTypeXidCriticalError
                self._ask(None, "nvmlDeviceRegisterEvents", gpu, kind, self._events)

    def usage(self, device: Device) -> Usage:
        """Memory, processes and memory errors of one device now.

        Raises:
            DeviceGone: The GPU is lost, or the MIG instance was destroyed.
        """
        handle = self._handle(device)
        running = self._ask([], "nvmlDeviceGetComputeRunningProcesses", handle)
        kinds = (self._api.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, self._api.NVML_VOLATILE_ECC)
        return Usage(
            used_mib=self._memory(handle)[0],
            pids=frozenset(process.pid for process in running if not self._is_mps_server(process.pid)),
            uncorrected=self._ask(0, "nvmlDeviceGetTotalEccErrors", self._gpu_of(handle), *kinds),
        )

    def trouble(self, device: Device) -> str:
        """The first Xid about the hardware since `watch`; a divided GPU's is that of every instance."""
        self._drain()
        xid = self._xids.get(self._uuid(self._gpu_of(self._handle(device))))
        return f"Xid {xid} ({DEVICE_XIDS[xid]})" if xid else ""

    def _drain(self) -> None:
        # The event may be about another GPU than was asked about: its loss is told when it is read itself.
        with suppress(DeviceGone):
            while (event := self._next_event()) is not None:
                if event.eventData in DEVICE_XIDS:
                    self._xids.setdefault(self._uuid(event.device), int(event.eventData))

    def _next_event(self) -> Any:
        """A queued event; None where there is none (NVML then says that the wait timed out)."""
        return None if self._events is None else self._ask(None, "nvmlEventSetWait", self._events, 0)

    def _ask(self, default: Any, call: str, *args: Any) -> Any:
        """Call NVML; `default` where this GPU or this driver does not say."""
        try:
            return getattr(self._api, call)(*args)
        except self._api.NVMLError as error:
            if error.value in {self._api.NVML_ERROR_GPU_IS_LOST, self._api.NVML_ERROR_RESET_REQUIRED}:
                raise DeviceGone(str(error)) from error
            return default

    def _handle_at(self, index: int) -> Any:
        try:
            return self._ask(None, "nvmlDeviceGetHandleByIndex", index)
        except DeviceGone:
            return None

    def _handle(self, device: Device) -> Any:
        if self.absent:
            raise DeviceGone(self.absent)
        # A GPU that left the bus is reported as lost, not found or "unknown error", depending on the driver.
        handle = self._ask(None, "nvmlDeviceGetHandleByUUID", device.uuid)
        if handle is None:
            raise DeviceGone("NVML does not find it any more")
        return handle

    def _gpu_of(self, handle: Any) -> Any:
        """The whole GPU of a MIG instance; a whole GPU is its own."""
        return self._ask(handle, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)

    def _devices_at(self, index: int, handle: Any, buses: dict[str, int]) -> tuple[list[Device], str]:
        if handle is None:
            return [], f"GPU {index} cannot be read (lost?): it is left out"
        try:
            if not self._is_divided(handle):
                return [self._device(index, handle, self._links(handle, buses))], ""
            instances = [self._device(index, instance) for instance in self._instances(handle)]
        except DeviceGone as error:
            return [], f"GPU {index} is left out: {error}"
        if not instances:
            return [], f"GPU {index} is in MIG mode and has no instance: it is left out"
        return instances, ""

    def _device(self, index: int, handle: Any, links: tuple[int, ...] | None = None) -> Device:
        """A whole GPU where links are given, otherwise a MIG instance of GPU `index`."""
        uuid = self._uuid(handle)
        whole = links is not None
        return Device(
            id=DeviceId(f"nvidia:{index}" if whole else f"mig:{uuid}"),
            kind=DeviceKind.NVIDIA if whole else DeviceKind.MIG,
            index=index,
            visible=str(index) if whole else uuid,
            uuid=uuid,
            name=self._ask("", "nvmlDeviceGetName", handle),
            memory_mib=self._memory(handle)[1],
            numa=self._numa(self._gpu_of(handle)),
            links=links or (),
        )

    def _is_divided(self, handle: Any) -> bool:
        current, _pending = self._ask((0, 0), "nvmlDeviceGetMigMode", handle)
        return bool(current == self._api.NVML_DEVICE_MIG_ENABLE)

    def _instances(self, handle: Any) -> list[Any]:
        places = range(self._ask(0, "nvmlDeviceGetMaxMigDeviceCount", handle))
        asked = (self._ask(None, "nvmlDeviceGetMigDeviceHandleByIndex", handle, place) for place in places)
        return [instance for instance in asked if instance is not None]

    def _links(self, handle: Any, buses: dict[str, int]) -> tuple[int, ...]:
        """GPUs at the other ends of active NVLinks; the ends at an NVSwitch are no GPU and say nothing."""
        ends = []
        for link in range(self._api.NVML_NVLINK_MAX_LINKS):
            if self._ask(0, "nvmlDeviceGetNvLinkState", handle, link):
                pci = self._ask(None, "nvmlDeviceGetNvLinkRemotePciInfo", handle, link)
                ends.append(buses.get(_bus_name(pci), -1))
        return tuple(sorted(end for end in ends if end >= 0))

    def _memory(self, handle: Any) -> tuple[int, int]:
        """Used and total MiB. Version 2 keeps what the driver reserves out of `used`; old drivers lack it."""
        info = self._ask(None, "nvmlDeviceGetMemoryInfo", handle, self._api.nvmlMemory_v2)
        info = info or self._ask(None, "nvmlDeviceGetMemoryInfo", handle)
        return (info.used // _MIB, info.total // _MIB) if info else (0, 0)

    def _numa(self, handle: Any) -> int:
        """The node whose CPUs are near, -1 where unknown."""
        # nvmlDeviceGetNumaNodeId answers something else: the node that the GPU's own memory is (Grace).
        try:
            return int((self._pci_root / self._bus(handle) / "numa_node").read_text())
        except (OSError, ValueError):
            return -1

    def _bus(self, handle: Any) -> str:
        return _bus_name(self._ask(None, "nvmlDeviceGetPciInfo", handle))

    def _uuid(self, handle: Any) -> str:
        return str(self._ask("", "nvmlDeviceGetUUID", handle))

    def _is_mps_server(self, pid: int) -> bool:
        return PurePath(self._ask("", "nvmlSystemGetProcessName", pid)).name == _MPS_SERVER


def _bus_name(pci: Any) -> str:
    """A PCI address as sysfs spells it: `0000:3b:00.0`; NVML writes `00000000:3B:00.0`."""
    if pci is None:
        return ""
    text = pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _numbered(found: list[Device], ordinals: list[Device | None], notes: list[str]) -> Inventory:
    """Number MIG instances over the machine, and spell GPUs by UUID where CUDA may count otherwise.

    That is so where a GPU is lost or divided: how those behind it are counted depends on the CUDA version.
    """
    by_index = all(device is not None and device.kind is DeviceKind.NVIDIA for device in ordinals)
    instances = [device.id for device in found if device.kind is DeviceKind.MIG]

    def final(device: Device) -> Device:
        if device.kind is DeviceKind.MIG:
            return msgspec.structs.replace(device, index=instances.index(device.id))
        return device if by_index else msgspec.structs.replace(device, visible=device.uuid)

    return Inventory(
        devices=tuple(map(final, found)),
        ordinals=tuple(final(device) if device else None for device in ordinals),
        notes=tuple(notes),
        absent="" if found else "NVML lists no GPU that can be used",
    )
