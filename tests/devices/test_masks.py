import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.devices.masks import amd_visible, nvidia_visible, virtual_visible, visible_env, widest_gang
from sooner.devices.source import Inventory
from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.model.errors import DevicesError


def made(kind, count):
    return tuple(
        Device(
            id=DeviceId(f"{kind}:{index}"),
            kind=kind,
            index=index,
            visible=str(index),
            uuid=f"GPU-{index:x}{index:07x}",
        )
        for index in range(count)
    )


def inventory(kind=DeviceKind.NVIDIA, count=4):
    return Inventory(devices=made(kind, count), ordinals=made(kind, count))


MIG = tuple(
    Device(
        id=DeviceId(f"mig:MIG-{letter}"),
        kind=DeviceKind.MIG,
        index=index,
        visible=f"MIG-{letter}",
        uuid=f"MIG-{letter}",
    )
    for index, letter in enumerate("xyz")
)
DIVIDED = Inventory(devices=MIG, ordinals=MIG[:1])


def nvidia(mask, of=None):
    return [device.index for device in nvidia_visible(of or inventory(), {"CUDA_VISIBLE_DEVICES": mask}).devices]


def amd(**env):
    return amd_visible(inventory(DeviceKind.AMD), env).devices


def virtual(count=4, accelerators=False, **env):
    devices = virtual_visible(made(DeviceKind.VIRTUAL, count), env, has_accelerators=lambda: accelerators).devices
    return [device.index for device in devices]


def test_without_a_mask_every_device_is_visible():
    assert nvidia_visible(inventory(), {}).devices == inventory().devices
    assert [device.index for device in amd()] == [0, 1, 2, 3]
    assert virtual() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("mask", "left"),
    [
        ("1,3", [1, 3]),
        ("3,1", [3, 1]),
        (" 2 , 0 ", [2, 0]),
        ("", []),
        ("-1", []),
        ("0,2,-1,1", [0, 2]),
        ("0,9,1", [0]),
        ("NoDevFiles", []),
        ("2,2", []),
        ("0,1,", [0, 1]),
        ("1gpu,2", [1, 2]),
        ("GPU-2", [2]),
        ("gpu-2,GPU-30", [2, 3]),
        ("GPU-", []),
        ("GPU-2,GPU-9,GPU-1", [2]),
        ("1,GPU-3", [1, 3]),
    ],
)
def test_cuda_masks_mean_what_they_mean_to_cuda(mask, left):
    assert nvidia(mask) == left


def test_several_mig_instances_of_a_mask_are_all_ours_though_a_process_sees_one():
    assert nvidia("MIG-z,MIG-x", DIVIDED) == [2, 0]


def test_an_index_on_a_divided_gpu_names_its_first_instance():
    assert nvidia("0", DIVIDED) == [0]


def test_a_mask_that_hides_or_ends_early_says_so():
    assert nvidia_visible(inventory(), {"CUDA_VISIBLE_DEVICES": "-1"}).notes == (
        "CUDA_VISIBLE_DEVICES='-1' hides all 4 devices",
    )
    assert "ends at '9'" in nvidia_visible(inventory(), {"CUDA_VISIBLE_DEVICES": "0,9"}).notes[0]
    assert "twice" in nvidia_visible(inventory(), {"CUDA_VISIBLE_DEVICES": "1,1"}).notes[0]


def test_hip_masks_do_not_concern_nvidia_devices():
    assert nvidia_visible(inventory(), {"HIP_VISIBLE_DEVICES": "-1"}).devices == inventory().devices


def test_hip_indexes_what_rocr_leaves():
    (device,) = amd(ROCR_VISIBLE_DEVICES="2,3", HIP_VISIBLE_DEVICES="1")
    assert (device.index, device.visible) == (3, "1")


def test_rocr_takes_uuids():
    assert [(device.index, device.visible) for device in amd(ROCR_VISIBLE_DEVICES="GPU-3,0")] == [
        (3, "0"),
        (0, "1"),
    ]


def test_hip_reads_cudas_mask_too_and_we_stay_inside_both():
    assert [device.index for device in amd(CUDA_VISIBLE_DEVICES="1")] == [1]
    assert [device.index for device in amd(HIP_VISIBLE_DEVICES="0,1", CUDA_VISIBLE_DEVICES="1,2")] == [1]


def test_a_repeated_entry_ends_a_rocm_mask():
    assert [device.index for device in amd(HIP_VISIBLE_DEVICES="2,2,1")] == [2]


def test_index_masks_narrow_virtual_devices_and_say_so():
    assert virtual(CUDA_VISIBLE_DEVICES="2,3") == [2, 3]
    assert virtual(HIP_VISIBLE_DEVICES="1", CUDA_VISIBLE_DEVICES="1") == [1]
    assert virtual(ROCR_VISIBLE_DEVICES="2,3", HIP_VISIBLE_DEVICES="0") == [2]
    seen = virtual_visible(made("virtual", 4), {"CUDA_VISIBLE_DEVICES": "0"}, has_accelerators=lambda: True)
    assert seen.notes == ("CUDA_VISIBLE_DEVICES narrows 4 virtual devices to 1",)


@pytest.mark.parametrize("mask", ["", "-1", "GPU-2", "MIG-x"])
def test_masks_without_an_index_leave_virtual_devices_alone_only_without_accelerators(mask):
    assert virtual(CUDA_VISIBLE_DEVICES=mask) == [0, 1, 2, 3]
    with pytest.raises(DevicesError, match=r"hides accelerators of this machine.*cpu:4"):
        virtual(CUDA_VISIBLE_DEVICES=mask, accelerators=True)


def test_slurms_list_counts_where_its_mask_was_removed():
    assert [device.index for device in nvidia_visible(inventory(), {"SLURM_JOB_GPUS": "1,3"}).devices] == [
        1,
        3,
    ]
    step = {"SLURM_JOB_GPUS": "1,3", "SLURM_STEP_GPUS": "3"}
    assert [device.index for device in nvidia_visible(inventory(), step).devices] == [3]
    assert virtual(SLURM_JOB_GPUS="0,1") == [0, 1]


def test_slurms_list_does_not_count_beside_a_mask_or_inside_its_cgroup():
    masked = {"SLURM_JOB_GPUS": "6,7", "CUDA_VISIBLE_DEVICES": "0"}
    assert [device.index for device in nvidia_visible(inventory(), masked).devices] == [0]
    in_cgroup = nvidia_visible(inventory(count=2), {"SLURM_JOB_GPUS": "6,7"})
    assert [device.index for device in in_cgroup.devices] == [0, 1]


def test_a_unit_sees_its_gpus_by_index_in_pci_order():
    assert visible_env(made(DeviceKind.NVIDIA, 4)[1:3]) == {
        "CUDA_VISIBLE_DEVICES": "1,2",
        "HIP_VISIBLE_DEVICES": "1,2",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "SOONER_DEVICES": "nvidia:1,nvidia:2",
    }


def test_a_cpu_slot_hides_every_gpu():
    slot = Device(id=DeviceId("cpu:0"), kind=DeviceKind.CPU, index=0, visible="")
    hidden = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
    assert visible_env([slot]) == hidden | {"SOONER_DEVICES": "cpu:0"}
    assert visible_env([]) == hidden | {"SOONER_DEVICES": ""}


def test_mig_instances_are_spelled_by_uuid_one_a_unit():
    assert visible_env(MIG[:1])["CUDA_VISIBLE_DEVICES"] == "MIG-x"
    assert widest_gang(MIG) == 1
    assert widest_gang(made(DeviceKind.NVIDIA, 4) + MIG) == 4
    assert widest_gang([]) == 0
    for gang in (MIG[:2], (*made(DeviceKind.NVIDIA, 1), MIG[0])):
        with pytest.raises(DevicesError, match="one MIG instance a process"):
            visible_env(gang)


ENTRIES = st.one_of(
    st.integers(-2, 6).map(str),
    st.sampled_from(["", " 1", "GPU-1", "GPU-2", "GPU-", "MIG-x", "x", "1,1", "+2"]),
)
MASKS = st.lists(ENTRIES, max_size=5).map(",".join)
ENVS = st.dictionaries(
    st.sampled_from(["CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "SLURM_JOB_GPUS"]),
    MASKS,
)


@given(ENVS)
def test_no_mask_ever_adds_or_repeats_a_device(env):
    for seen in (nvidia_visible(inventory(), env), amd_visible(inventory(DeviceKind.AMD), env)):
        indices = [device.index for device in seen.devices]
        assert len(set(indices)) == len(indices)
        assert set(indices) <= {0, 1, 2, 3}


@given(env=ENVS, data=st.data())
def test_what_a_unit_sees_through_its_variables_is_exactly_its_gang(env, data):
    for look, kind in ((nvidia_visible, DeviceKind.NVIDIA), (amd_visible, DeviceKind.AMD)):
        devices = look(inventory(kind), env).devices
        gang = data.draw(st.lists(st.sampled_from(devices), unique_by=lambda one: one.id)) if devices else []
        seen = look(inventory(kind), env | visible_env(gang)).devices
        assert [device.id for device in seen] == [device.id for device in gang]


@given(order=st.permutations(range(4)), count=st.integers(1, 4))
def test_virtual_devices_of_an_index_mask_are_spelled_inside_it(order, count):
    mask = ",".join(map(str, order[:count]))
    left = virtual_visible(made("virtual", 4), {"CUDA_VISIBLE_DEVICES": mask}, has_accelerators=lambda: True)
    assert visible_env(left.devices)["CUDA_VISIBLE_DEVICES"] == mask
