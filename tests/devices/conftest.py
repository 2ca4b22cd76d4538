import importlib.util
import json
import sys
from pathlib import Path

import pytest

from sooner.devices.find import find_devices

FAKES = Path(__file__).parent / "fakes"


class FakeNvml:
    """The state file of the pretended NVML."""

    def __init__(self, path):
        self.path = path
        self.state = {"gpus": []}

    def write(self, **changes):
        self.state |= changes
        self.path.write_text(json.dumps(self.state))

    def change(self, index, **changes):
        self.state["gpus"][index] |= changes
        self.write()

    def devices(self):
        """What is found through it without a mask."""
        return find_devices("auto", {}).devices


@pytest.fixture(autouse=True)
def fake_nvml(tmp_path, monkeypatch):
    """NVML as a test writes it, never the machine's own; at first there is no driver."""
    fake = FakeNvml(tmp_path / "nvml.json")
    fake.write(init_error=12)
    monkeypatch.setenv("FAKE_NVML_STATE", str(fake.path))
    spec = importlib.util.spec_from_file_location("pynvml", FAKES / "pynvml.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return fake


@pytest.fixture
def four_gpus(fake_nvml):
    """Four GPUs on two sockets: 0-1 joined by two NVLinks, 2-3 by one."""
    bus = [f"00000000:{place}:00.0" for place in ("1B", "3D", "9A", "CC")]
    links = [[bus[1]] * 2, [bus[0]] * 2, [bus[3]], [bus[2]]]
    gpus = [
        {"uuid": f"GPU-{letter * 8}", "bus": bus[i], "nvlinks": links[i], "used_mib": 4, "ecc": 0}
        for i, letter in enumerate("abcd")
    ]
    fake_nvml.write(init_error=None, gpus=gpus)
    return fake_nvml


@pytest.fixture
def kfd(tmp_path):
    """An empty sysfs in which a test puts AMD GPUs."""
    return FakeKfd(tmp_path / "sys/class")


class FakeKfd:
    """A pretended `/sys/class` with kfd's topology: node 0 is the CPU."""

    def __init__(self, root):
        self.root = root / "kfd/kfd"
        self.drm = root / "drm"
        self.file("topology/nodes/0/properties", "cpu_cores_count 64\nsimd_count 0\n")
        self.file("topology/nodes/0/gpu_id", "0\n")

    def file(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def gpu(self, node, *, unique_id=0, peers=(), numa=0):
        top = f"topology/nodes/{node}"
        minor = 127 + node
        self.file(f"{top}/properties", f"simd_count 304\ndrm_render_minor {minor}\nunique_id {unique_id}\n")
        self.file(f"{top}/gpu_id", f"{node}00\n")
        self.file(f"{top}/name", "gfx942\n")
        self.file(f"{top}/mem_banks/0/properties", f"heap_type 1\nsize_in_bytes {192 << 30}\n")
        self.file(f"{top}/mem_banks/1/properties", "heap_type 4\nsize_in_bytes 65536\n")
        self.file(f"{top}/io_links/0/properties", f"type 2\nnode_from {node}\nnode_to 0\n")
        for place, peer in enumerate(peers, start=1):
            self.file(f"{top}/io_links/{place}/properties", f"type 11\nnode_from {node}\nnode_to {peer}\n")
        self.device(node, "numa_node", f"{numa}\n")
        self.device(node, "mem_info_vram_used", f"{300 << 20}\n")

    def device(self, node, name, text):
        path = self.drm / f"renderD{127 + node}/device" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def process(self, pid, node, mib):
        self.file(f"proc/{pid}/vram_{node}00", f"{mib << 20}\n")
