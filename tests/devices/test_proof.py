import pytest

from sooner.devices.find import find_devices
from sooner.devices.proof import Monitor


@pytest.fixture
def gpus(four_gpus):
    return four_gpus.devices()


@pytest.fixture
def monitor(gpus):
    with Monitor(gpus, {}) as monitor:
        monitor.baseline()
        yield monitor


def test_an_untouched_device_is_free_and_sound(monitor, gpus):
    assert [monitor.not_free(gpu) + monitor.fault(gpu) for gpu in gpus] == [""] * 4


def test_a_process_that_was_left_behind_keeps_its_device_from_being_free(monitor, gpus, four_gpus):
    four_gpus.change(1, pids=[77, 12])
    assert monitor.not_free(gpus[1]) == "still used by process 12, 77"
    assert monitor.not_free(gpus[0]) == ""
    four_gpus.change(1, pids=[])
    assert monitor.not_free(gpus[1]) == ""


def test_memory_that_is_freed_late_keeps_its_device_from_being_free_until_then(monitor, gpus, four_gpus):
    four_gpus.change(0, used_mib=261)
    assert monitor.not_free(gpus[0]) == "261 MiB in use, 260 MiB allowed"
    four_gpus.change(0, used_mib=260)
    assert monitor.not_free(gpus[0]) == ""


def test_what_was_there_at_the_baseline_is_not_held_against_a_device(gpus, four_gpus):
    four_gpus.change(0, used_mib=9000, pids=[5])
    with Monitor(gpus, {}) as monitor:
        monitor.baseline(gpus[0])
        assert monitor.not_free(gpus[0]) == ""


def test_a_neighbour_that_leaves_cannot_hide_what_we_leave(gpus, four_gpus):
    four_gpus.change(0, used_mib=9000, pids=[5])
    with Monitor(gpus, {}) as monitor:
        monitor.baseline()
        four_gpus.change(0, used_mib=10, pids=[])
        assert monitor.not_free(gpus[0]) == ""
        four_gpus.change(0, used_mib=5000)
        assert monitor.not_free(gpus[0]) == "5000 MiB in use, 266 MiB allowed"
        four_gpus.change(0, used_mib=10, pids=[5])
        assert monitor.not_free(gpus[0]) == "still used by process 5"


def test_without_a_baseline_a_little_of_the_memory_may_be_in_use(gpus, four_gpus):
    with Monitor(gpus, {}) as monitor:
        four_gpus.change(0, used_mib=1638)
        assert monitor.not_free(gpus[0]) == ""
        four_gpus.change(0, used_mib=1639)
        assert monitor.not_free(gpus[0]) != ""


def test_a_lost_gpu_is_neither_free_nor_sound(monitor, gpus, four_gpus):
    four_gpus.change(2, lost=True)
    assert monitor.not_free(gpus[2]) == "cannot be read: GPU is lost"
    assert monitor.fault(gpus[2]) == "GPU 2 is gone: GPU is lost"
    assert monitor.usage(gpus[2]) is None
    assert monitor.fault(gpus[0]) == ""


def test_a_gpu_that_is_lost_before_the_baseline_does_not_stop_the_others(gpus, four_gpus):
    four_gpus.change(0, lost=True)
    with Monitor(gpus, {}) as monitor:
        monitor.baseline()
        assert monitor.fault(gpus[0]) != ""
        assert monitor.fault(gpus[1]) == ""


def test_memory_errors_count_when_they_rise(gpus, four_gpus):
    four_gpus.change(0, ecc=5)
    with Monitor(gpus, {}) as monitor:
        monitor.baseline()
        assert monitor.fault(gpus[0]) == ""
        four_gpus.change(0, ecc=7)
        assert monitor.fault(gpus[0]) == "GPU 0 counted 2 more uncorrectable memory errors"
        assert monitor.fault(gpus[0]) != ""


def test_an_xid_of_the_hardware_is_a_fault_and_one_of_the_program_is_not(monitor, gpus, four_gpus):
    four_gpus.write(events=[{"uuid": gpus[0].uuid, "xid": 31}, {"uuid": gpus[1].uuid, "xid": 79}])
    assert monitor.fault(gpus[0]) == ""
    assert monitor.fault(gpus[1]) == "GPU 1 reported Xid 79 (GPU has fallen off the bus)"


def test_whole_gpus_and_mig_instances_are_watched_through_one_library(four_gpus):
    four_gpus.change(0, mig=[{"uuid": "MIG-x"}])
    devices = (*find_devices("MIG-x", {}).devices, *find_devices("1,", {}).devices)
    with Monitor(devices, {}) as monitor:
        four_gpus.write(events=[{"uuid": uuid, "xid": 79} for uuid in ("GPU-aaaaaaaa", "GPU-bbbbbbbb")])
        assert all(monitor.fault(device) for device in devices)


@pytest.mark.parametrize("spec", ["virtual:2", "cpu:2"])
def test_pretended_devices_are_always_free_and_sound(spec):
    devices = find_devices(spec, {}).devices
    with Monitor(devices, {}) as monitor:
        monitor.baseline()
        assert [monitor.not_free(device) + monitor.fault(device) for device in devices] == ["", ""]
        assert monitor.usage(devices[0]) is None


def test_amd_devices_are_read_where_the_environment_says(kfd):
    kfd.gpu(1, unique_id=1)
    env = {"SOONER_KFD_ROOT": str(kfd.root)}
    (device,) = find_devices("auto", env).devices
    with Monitor([device], env) as monitor:
        monitor.baseline()
        assert monitor.not_free(device) + monitor.fault(device) == ""
        kfd.process(9, 1, mib=10)
        kfd.device(1, "ras/umc_err_count", "ue: 1\nce: 0\n")
        assert monitor.not_free(device) == "still used by process 9"
        assert monitor.fault(device) == "GPU 0 counted 1 more uncorrectable memory errors"
