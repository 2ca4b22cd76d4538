import sys

import pytest

from sooner.devices.nvidia import Nvml
from sooner.devices.source import DeviceGone, Inventory
from sooner.model.devices import Device, DeviceKind

DIVIDED = [
    {"uuid": "MIG-x", "total_mib": 9856, "used_mib": 7, "pids": [31], "name": "Pretended GPU MIG 1g.10gb"},
    {"uuid": "MIG-y", "total_mib": 9856},
]


def inventory():
    nvml = Nvml()
    try:
        return nvml.inventory()
    finally:
        nvml.close()


@pytest.mark.usefixtures("four_gpus")
def test_gpus_are_listed_in_pci_order_with_what_nvml_knows_of_them():
    first, *rest = inventory().devices
    assert [first.index, *(device.index for device in rest)] == [0, 1, 2, 3]
    assert first == Device(
        id="nvidia:0",
        kind=DeviceKind.NVIDIA,
        index=0,
        visible="0",
        uuid="GPU-aaaaaaaa",
        name="Pretended GPU",
        memory_mib=81920,
        links=(1, 1),
    )


def test_a_double_nvlink_is_listed_twice_and_a_switch_not_at_all(four_gpus):
    four_gpus.change(3, nvlinks=["00000000:FF:00.0", "00000000:9A:00.0"])
    assert [device.links for device in inventory().devices] == [(1, 1), (0, 0), (3,), (2,)]


@pytest.mark.usefixtures("four_gpus")
def test_the_numa_node_is_that_of_the_pci_address(tmp_path):
    for bus, node in (("0000:1b:00.0", 0), ("0000:9a:00.0", 1), ("0000:cc:00.0", -1)):
        (tmp_path / bus).mkdir()
        (tmp_path / bus / "numa_node").write_text(f"{node}\n")
    devices = Nvml(pci_root=tmp_path).inventory().devices
    assert [device.numa for device in devices] == [0, -1, 1, -1]


def test_mig_instances_take_the_place_of_their_gpu(four_gpus):
    four_gpus.change(1, mig=DIVIDED)
    four_gpus.change(2, mig=[{"uuid": "MIG-z"}])
    listed = inventory()
    assert [device.id for device in listed.devices] == [
        "nvidia:0",
        "mig:MIG-x",
        "mig:MIG-y",
        "mig:MIG-z",
        "nvidia:3",
    ]
    assert [device.index for device in listed.devices if device.kind is DeviceKind.MIG] == [0, 1, 2]
    assert [device.id for device in listed.ordinals] == ["nvidia:0", "mig:MIG-x", "mig:MIG-z", "nvidia:3"]
    assert listed.devices[1].memory_mib == 9856


def test_beside_divided_or_lost_gpus_the_others_are_spelled_by_uuid(four_gpus):
    four_gpus.change(1, mig=DIVIDED)
    assert [device.visible for device in inventory().devices] == [
        "GPU-aaaaaaaa",
        "MIG-x",
        "MIG-y",
        "GPU-cccccccc",
        "GPU-dddddddd",
    ]


def test_a_lost_gpu_is_left_out_with_a_note(four_gpus):
    four_gpus.change(1, lost=True)
    listed = inventory()
    assert [device.id for device in listed.devices] == ["nvidia:0", "nvidia:2", "nvidia:3"]
    assert listed.ordinals[1] is None
    assert listed.notes == ("GPU 1 cannot be read (lost?): it is left out",)
    assert {device.visible[:4] for device in listed.devices} == {"GPU-"}


def test_a_gpu_in_mig_mode_without_an_instance_is_left_out_with_a_note(four_gpus):
    four_gpus.change(0, mig=[])
    assert "no instance" in inventory().notes[0]


def test_a_machine_without_a_driver_has_no_devices_and_says_why(fake_nvml):
    assert inventory() == Inventory(absent="NVML: NVML Shared Library Not Found")
    fake_nvml.write(init_error=18)
    assert inventory().absent == "NVML: Driver/library version mismatch"


def test_an_environment_without_nvidia_ml_py_has_no_devices_and_says_why(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    nvml = Nvml()
    nvml.watch(())
    nvml.close()
    assert nvml.inventory() == Inventory(absent="nvidia-ml-py is not installed")


def test_a_driver_without_gpus_says_so(fake_nvml):
    fake_nvml.write(init_error=None)
    assert inventory().absent == "NVML lists no GPU that can be used"


def test_old_drivers_lack_mig_and_the_second_version_of_memory(four_gpus):
    four_gpus.write(old_driver=True)
    assert [device.memory_mib for device in inventory().devices] == [81920] * 4


def test_usage_is_that_of_the_instance_and_errors_are_those_of_its_gpu(four_gpus):
    four_gpus.change(1, mig=DIVIDED, ecc=2, pids=[99])
    nvml = Nvml()
    usage = nvml.usage(nvml.inventory().devices[1])
    assert (usage.used_mib, usage.pids, usage.uncorrected) == (7, {31}, 2)


def test_the_server_of_mps_is_not_a_process_of_ours(four_gpus):
    four_gpus.change(0, pids=[7, 8])
    four_gpus.write(process_names={"7": "/usr/bin/nvidia-cuda-mps-server", "8": "python"})
    nvml = Nvml()
    assert nvml.usage(nvml.inventory().devices[0]).pids == {8}


def test_an_xid_about_the_hardware_is_told_of_the_gpu_that_had_it_and_stays_told(four_gpus):
    nvml = Nvml()
    devices = nvml.inventory().devices
    nvml.watch(devices)
    four_gpus.write(events=[{"uuid": devices[2].uuid, "xid": xid} for xid in (31, 95, 79)])
    assert [nvml.trouble(device) for device in devices] == ["", "", "Xid 95 (uncontained memory error)", ""]
    assert nvml.trouble(devices[2]) == "Xid 95 (uncontained memory error)"


def test_an_xid_of_a_divided_gpu_is_that_of_its_instances(four_gpus):
    four_gpus.change(1, mig=DIVIDED)
    nvml = Nvml()
    devices = nvml.inventory().devices
    nvml.watch(devices)
    four_gpus.write(events=[{"uuid": "GPU-bbbbbbbb", "xid": 48}])
    assert [bool(nvml.trouble(device)) for device in devices] == [False, True, True, False, False]


@pytest.mark.parametrize("change", [{"lost": True}, {"uuid": "GPU-another"}])
def test_a_gpu_that_vanished_is_gone(four_gpus, change):
    nvml = Nvml()
    devices = nvml.inventory().devices
    nvml.watch(devices)
    four_gpus.change(1, **change)
    for ask in (nvml.usage, nvml.trouble):
        with pytest.raises(DeviceGone):
            ask(devices[1])
    assert nvml.usage(devices[0]).used_mib == 4


@pytest.mark.usefixtures("four_gpus")
def test_a_closed_library_finds_its_devices_gone():
    nvml = Nvml()
    (device, *_) = nvml.inventory().devices
    nvml.watch((device,))
    nvml.close()
    nvml.close()
    with pytest.raises(DeviceGone, match="shut down"):
        nvml.usage(device)
