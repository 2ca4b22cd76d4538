import pytest

from sooner.devices.find import accelerators, find_devices
from sooner.model.devices import DeviceKind
from sooner.model.errors import DevicesError


@pytest.fixture
def find(kfd):
    """Look on a machine whose drivers are pretended, under an environment of one's own."""

    def find(spec, is_taken=lambda _device: False, **env):
        return find_devices(spec, env, kfd=kfd.root, is_taken=is_taken)

    return find


def ids(found):
    return [device.id for device in found.devices]


def test_virtual_devices_are_two_sockets_of_linked_pairs(find):
    devices = find("virtual:8").devices
    assert [device.id for device in devices] == [f"virtual:{index}" for index in range(8)]
    assert [device.visible for device in devices] == list("01234567")
    assert [device.numa for device in devices] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert {device.memory_mib for device in devices} == {81920}
    assert devices[0].links == (1, 1, 2, 3)
    assert devices[6].links == (4, 5, 7, 7)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6])
def test_links_of_virtual_devices_are_mutual(find, count):
    devices = find(f"virtual:{count}").devices
    for one in devices:
        for other in devices:
            assert one.links.count(other.index) == other.links.count(one.index)


def test_cpu_slots_see_no_gpu_and_ignore_masks(find):
    slots = find("cpu:2", CUDA_VISIBLE_DEVICES="-1").devices
    assert [(slot.id, slot.visible, slot.kind) for slot in slots] == [
        ("cpu:0", "", DeviceKind.CPU),
        ("cpu:1", "", DeviceKind.CPU),
    ]


def test_auto_means_nvidia_before_amd(find, four_gpus, kfd):
    kfd.gpu(1)
    assert ids(find("auto")) == ["nvidia:0", "nvidia:1", "nvidia:2", "nvidia:3"]
    four_gpus.write(init_error=9)
    assert ids(find(" auto ")) == ["amd:0"]


def test_the_environment_says_where_kfd_is(kfd):
    kfd.gpu(1)
    assert ids(find_devices("auto", {"SOONER_KFD_ROOT": str(kfd.root)})) == ["amd:0"]


def test_without_accelerators_auto_says_what_was_looked_for_and_what_works(find):
    with pytest.raises(DevicesError, match=r"NVML.*no GPU in .*nodes.*virtual:N.*cpu:N"):
        find("auto")


def test_a_machine_may_be_looked_at_without_insisting(kfd):
    found = accelerators({}, kfd=kfd.root)
    assert found.devices == ()
    assert len(found.notes) == 2


@pytest.mark.usefixtures("four_gpus")
def test_a_mask_that_hides_everything_is_named(find):
    with pytest.raises(DevicesError, match="CUDA_VISIBLE_DEVICES='-1' hides all 4"):
        find("auto", CUDA_VISIBLE_DEVICES="-1")
    with pytest.raises(DevicesError, match="names device 1 twice"):
        find("auto", CUDA_VISIBLE_DEVICES="1,1")


@pytest.mark.usefixtures("four_gpus")
def test_a_number_prefers_devices_that_nobody_has(find):
    assert ids(find("2")) == ["nvidia:0", "nvidia:1"]
    assert ids(find("2", lambda device: device.index in {0, 2})) == ["nvidia:1", "nvidia:3"]
    assert ids(find("3", lambda device: device.index in {0, 2})) == ["nvidia:0", "nvidia:1", "nvidia:3"]


@pytest.mark.usefixtures("four_gpus")
def test_a_number_beyond_what_the_masks_leave_is_refused(find):
    with pytest.raises(DevicesError, match="--devices 3: only 2 can be used here"):
        find("3", CUDA_VISIBLE_DEVICES="1,2")


@pytest.mark.usefixtures("four_gpus")
def test_a_list_holds_machine_indices_within_the_mask(find):
    assert ids(find("3,1", CUDA_VISIBLE_DEVICES="1,2,3")) == ["nvidia:3", "nvidia:1"]
    assert ids(find("3,")) == ["nvidia:3"]
    with pytest.raises(DevicesError, match=r"'0' is hidden by the inherited mask.*1 \(GPU-bbbbbbbb\)"):
        find("0,1", CUDA_VISIBLE_DEVICES="1")
    with pytest.raises(DevicesError, match="'7' names no device"):
        find("7,")


def test_a_list_of_amd_devices_is_spelled_as_rocr_leaves_them(find, kfd):
    for node in (1, 2, 3):
        kfd.gpu(node, unique_id=node)
    (device,) = find("2,", ROCR_VISIBLE_DEVICES="1,2").devices
    assert (device.id, device.visible) == ("amd:2", "1")


@pytest.mark.usefixtures("four_gpus")
def test_a_list_may_hold_beginnings_of_uuids(find):
    assert ids(find("GPU-cc,gpu-a")) == ["nvidia:2", "nvidia:0"]
    for ambiguous in ("GPU-", "GPU-x"):
        with pytest.raises(DevicesError, match="names no device, or several"):
            find(ambiguous)


def test_mig_instances_are_used_when_named_or_alone(find, four_gpus):
    four_gpus.change(0, mig=[{"uuid": "MIG-x"}, {"uuid": "MIG-y"}])
    found = find("auto")
    assert ids(found) == ["nvidia:1", "nvidia:2", "nvidia:3"]
    assert "2 MIG instances are left out" in found.notes[0]
    assert ids(find("1,")) == ["nvidia:1"]
    assert ids(find("MIG-y")) == ["mig:MIG-y"]
    assert ids(find("auto", CUDA_VISIBLE_DEVICES="MIG-y,MIG-x")) == ["mig:MIG-y", "mig:MIG-x"]
    assert "one MIG instance a process" in find("auto", CUDA_VISIBLE_DEVICES="MIG-y").notes[0]
    with pytest.raises(DevicesError, match="mixes"):
        find("MIG-y,GPU-b")


def test_indices_count_mig_instances_where_all_gpus_are_divided(find, four_gpus):
    four_gpus.write(gpus=[four_gpus.state["gpus"][0] | {"mig": [{"uuid": "MIG-x"}, {"uuid": "MIG-y"}]}])
    assert ids(find("1,")) == ["mig:MIG-y"]


@pytest.mark.parametrize(
    "spec",
    ["", "none", "8x", "-1", "0,,1", "0;1", ",", "virtual", "virtual:", "virtual:x", "cuda:1", "GPU", "²"],
)
def test_a_spec_that_is_not_understood_is_refused_with_what_is_allowed(find, spec):
    with pytest.raises(DevicesError, match="is not understood: allowed are auto"):
        find(spec)


@pytest.mark.parametrize("spec", ["0", "virtual:0", "cpu:0", "virtual:1000000000"])
@pytest.mark.usefixtures("four_gpus")
def test_a_number_of_devices_is_between_one_and_many(find, spec):
    with pytest.raises(DevicesError, match="between 1 and 1024"):
        find(spec)


@pytest.mark.usefixtures("four_gpus")
def test_a_device_is_listed_once(find):
    with pytest.raises(DevicesError, match="twice"):
        find("1,GPU-b")


def test_a_mask_narrows_virtual_devices(find):
    assert ids(find("virtual:4", CUDA_VISIBLE_DEVICES="2,3")) == ["virtual:2", "virtual:3"]
    with pytest.raises(DevicesError, match="leaves none of virtual:2"):
        find("virtual:2", CUDA_VISIBLE_DEVICES="4,5")


def test_a_hiding_mask_concerns_virtual_devices_only_on_a_machine_with_accelerators(find, four_gpus):
    with pytest.raises(DevicesError, match="hides accelerators"):
        find("virtual:2", CUDA_VISIBLE_DEVICES="")
    four_gpus.write(init_error=12)
    assert ids(find("virtual:2", CUDA_VISIBLE_DEVICES="")) == ["virtual:0", "virtual:1"]
