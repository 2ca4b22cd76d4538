from pathlib import Path

import pytest

from sooner.devices.amd import Kfd, kfd_root
from sooner.devices.source import DeviceGone, Inventory
from sooner.model.devices import Device, DeviceKind


def test_gpus_are_listed_in_the_order_of_their_nodes(kfd):
    kfd.gpu(10, unique_id=0xBEEF, peers=(2,), numa=1)
    kfd.gpu(2, unique_id=0xCAFE, peers=(10,))
    first, second = Kfd(kfd.root).inventory().devices
    assert first == Device(
        id="amd:0",
        kind=DeviceKind.AMD,
        index=0,
        visible="0",
        uuid="GPU-000000000000cafe",
        name="gfx942",
        memory_mib=192 * 1024,
        numa=0,
        links=(1,),
    )
    assert (second.id, second.numa, second.links) == ("amd:1", 1, (0,))


def test_a_marketing_name_is_preferred(kfd):
    kfd.gpu(1)
    kfd.device(1, "product_name", "AMD Instinct MI300X OAM\n")
    assert Kfd(kfd.root).inventory().devices[0].name == "AMD Instinct MI300X OAM"


def test_gpus_that_a_cgroup_hides_are_not_listed_and_not_linked(kfd):
    kfd.gpu(1, peers=(2,))
    kfd.gpu(2)
    (kfd.root / "topology/nodes/2/properties").unlink()
    (device,) = Kfd(kfd.root).inventory().devices
    assert device.links == ()


def test_a_machine_without_kfd_has_no_devices_and_says_where_it_looked(tmp_path):
    assert Kfd(tmp_path).inventory() == Inventory(absent=f"no GPU in {tmp_path}/topology/nodes")


def test_a_machine_with_only_cpu_nodes_has_no_devices(kfd):
    assert Kfd(kfd.root).inventory().devices == ()


def test_usage_counts_only_processes_with_memory_on_that_gpu(kfd):
    kfd.gpu(1, unique_id=1)
    kfd.gpu(2, unique_id=2)
    kfd.process(41, 1, mib=500)
    kfd.process(41, 2, mib=0)
    kfd.device(2, "ras/umc_err_count", "ue: 3\nce: 9\n")
    source = Kfd(kfd.root)
    first, second = map(source.usage, source.inventory().devices)
    assert (first.used_mib, first.pids, first.uncorrected) == (300, {41}, 0)
    assert (second.pids, second.uncorrected) == (frozenset(), 3)


def test_a_gpu_without_a_serial_is_found_by_its_place(kfd):
    kfd.gpu(1)
    source = Kfd(kfd.root)
    (device,) = source.inventory().devices
    assert device.uuid == ""
    assert source.usage(device).used_mib == 300


def test_a_gpu_that_the_kernel_dropped_is_gone(kfd):
    kfd.gpu(1, unique_id=1)
    source = Kfd(kfd.root)
    (device,) = source.inventory().devices
    kfd.file("topology/nodes/1/gpu_id", "0\n")
    with pytest.raises(DeviceGone):
        source.usage(device)


def test_the_environment_may_move_the_root():
    assert kfd_root({}) == Path("/sys/class/kfd/kfd")
    assert kfd_root({"SOONER_KFD_ROOT": "/host/sys/class/kfd/kfd"}) == Path("/host/sys/class/kfd/kfd")
