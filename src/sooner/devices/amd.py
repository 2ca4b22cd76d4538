"""AMD devices through the kernel's sysfs: needs no ROCm, and initialises nothing.

Sources: Linux `drivers/gpu/drm/amd/amdkfd/kfd_topology.c` (nodes, mem_banks, io_links; a node that the
container's device cgroup hides is not readable), `kfd_process.c` (proc/PID/vram_GPU), `amdgpu_ras.c`
(ras/*_err_count). HIP numbers GPUs in the order of these nodes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

from sooner.devices.source import DeviceGone, Inventory, Usage
from sooner.model.devices import Device, DeviceId, DeviceKind

KFD_ROOT: Final = Path("/sys/class/kfd/kfd")
_MIB: Final = 1 << 20
_XGMI: Final = 11
"""HSA_IOLINK_TYPE_XGMI."""
_FRAME_BUFFER: Final = (1, 2)
"""HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC and _PRIVATE: the device's own memory."""


def kfd_root(env: Mapping[str, str]) -> Path:
    """Where kfd is: the kernel's place, or SOONER_KFD_ROOT (containers may mount sysfs elsewhere)."""
    return Path(env.get("SOONER_KFD_ROOT") or KFD_ROOT)


class _Node(Struct, frozen=True, kw_only=True):
    """A GPU in the topology."""

    number: int
    path: Path
    gpu_id: int
    properties: dict[str, int]
    drm: Path
    """Its directory below `class/drm`."""

    @property
    def uuid(self) -> str:
        """As ROCr spells it; empty for GPUs without a serial."""
        unique = self.properties.get("unique_id", 0)
        return f"GPU-{unique:016x}" if unique else ""


class Kfd:
    """The kernel's compute driver, read below `root`."""

    def __init__(self, root: Path = KFD_ROOT) -> None:
        self._root = root
        self._drm = root.parent.parent / "drm"

    def inventory(self) -> Inventory:
        """Every GPU that this process may open, in the order of HIP."""
        nodes = self._nodes()
        places = {node.number: index for index, node in enumerate(nodes)}
        devices = tuple(_device(index, node, places) for index, node in enumerate(nodes))
        absent = "" if devices else f"no GPU in {self._root / 'topology/nodes'}"
        return Inventory(devices=devices, ordinals=devices, absent=absent)

    def watch(self, devices: tuple[Device, ...]) -> None:
        """Nothing to do: sysfs has counters, no events."""

    def usage(self, device: Device) -> Usage:
        """Memory, processes and memory errors of one device now.

        Raises:
            DeviceGone: The kernel does not list it any more.
        """
        node = self._node_of(device)
        return Usage(
            used_mib=_number(node.drm / "device/mem_info_vram_used") // _MIB,
            pids=frozenset(self._pids(node)),
            uncorrected=sum(_uncorrected(path) for path in node.drm.glob("device/ras/*_err_count")),
        )

    def trouble(self, device: Device) -> str:  # noqa: ARG002 - the shape of a Source
        """Nothing: what the kernel counts is part of `usage`."""
        return ""

    def close(self) -> None:
        """Nothing is held open."""

    def _nodes(self) -> list[_Node]:
        found = (self._node(path) for path in (self._root / "topology/nodes").glob("[0-9]*"))
        return sorted((node for node in found if node), key=lambda node: node.number)

    def _node(self, path: Path) -> _Node | None:
        """A node that is a GPU and may be used; None for CPUs and for GPUs that a device cgroup hides."""
        properties, gpu_id = _properties(path / "properties"), _number(path / "gpu_id")
        if not gpu_id or not properties.get("simd_count"):
            return None
        drm = self._drm / f"renderD{properties.get('drm_render_minor', 0)}"
        return _Node(number=int(path.name), path=path, gpu_id=gpu_id, properties=properties, drm=drm)

    def _node_of(self, device: Device) -> _Node:
        nodes = self._nodes()
        if not device.uuid and device.index < len(nodes):
            return nodes[device.index]
        for node in nodes:
            if device.uuid and node.uuid == device.uuid:
                return node
        raise DeviceGone("the kernel does not list it any more")

    def _pids(self, node: _Node) -> list[int]:
        # A process that opened kfd has a file for every GPU: only memory says that it computes on this one.
        files = (self._root / "proc").glob(f"[0-9]*/vram_{node.gpu_id}")
        return [int(file.parent.name) for file in files if _number(file) > 0]


def _device(index: int, node: _Node, places: Mapping[int, int]) -> Device:
    return Device(
        id=DeviceId(f"amd:{index}"),
        kind=DeviceKind.AMD,
        index=index,
        visible=str(index),
        uuid=node.uuid,
        name=_text(node.drm / "device/product_name") or _text(node.path / "name"),
        memory_mib=_memory_mib(node),
        numa=_number(node.drm / "device/numa_node", default=-1),
        links=_links(node, places),
    )


def _memory_mib(node: _Node) -> int:
    banks = (_properties(path) for path in node.path.glob("mem_banks/*/properties"))
    return sum(bank.get("size_in_bytes", 0) for bank in banks if bank.get("heap_type") in _FRAME_BUFFER) // _MIB


def _links(node: _Node, places: Mapping[int, int]) -> tuple[int, ...]:
    links = (_properties(path) for path in node.path.glob("io_links/*/properties"))
    ends = (places.get(link.get("node_to", -1)) for link in links if link.get("type") == _XGMI)
    return tuple(sorted(end for end in ends if end is not None))


def _properties(path: Path) -> dict[str, int]:
    """Lines of `name value`; empty where the file cannot be read."""
    pairs = (line.partition(" ") for line in _text(path).splitlines())
    return {name: int(value) for name, _, value in pairs if value.strip().isdecimal()}


def _uncorrected(path: Path) -> int:
    r"""The first number of `ue: 3\nce: 0`."""
    words = _text(path).split()
    return int(words[1]) if words[:1] == ["ue:"] and words[1].isdigit() else 0


def _number(path: Path, default: int = 0) -> int:
    try:
        return int(_text(path))
    except ValueError:
        return default


def _text(path: Path) -> str:
    # Files of sysfs come and go with processes and cgroups: one that cannot be read says nothing.
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError):
        return ""
