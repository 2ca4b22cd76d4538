import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import sooner
from sooner.cli.devices import devices
from sooner.devices.find import find_devices
from sooner.devices.leases import LeaseBook
from sooner.model.errors import DevicesError

FAKES = Path(__file__).parent / "fakes"
MASKS = (
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "SLURM_JOB_GPUS",
    "SLURM_STEP_GPUS",
)


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """No mask, no AMD device, and leases of this test's own."""
    for name in MASKS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SOONER_KFD_ROOT", str(tmp_path / "no-kfd"))
    monkeypatch.setenv("SOONER_LEASE_DIR", str(tmp_path / "leases"))


@pytest.fixture
def book(tmp_path):
    return LeaseBook(tmp_path / "leases")


def sooner_devices(*args):
    return CliRunner().invoke(devices, args, catch_exceptions=False)


def reported(*args):
    return {row["id"]: row for row in json.loads(sooner_devices("--json", *args).stdout)}


def test_a_machine_without_accelerators_is_no_error():
    result = sooner_devices()
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no accelerator can be used here" in result.stderr
    assert json.loads(sooner_devices("--json").stdout) == []


def test_every_device_is_reported_with_the_fields_of_the_interface():
    row = reported("--devices", "virtual:2")["virtual:1"]
    assert (
        row | {"kind": "virtual", "index": 1, "uuid": "", "memory_mib": 81920, "state": "free", "holder": None} == row
    )
    assert (row["numa"], row["links"], row["processes"]) == (1, [0, 0], [])


def test_a_leased_device_names_its_holder(book):
    (first, _) = find_devices("virtual:2", {}).devices
    with book.try_lease(first, holder="nightly"):
        rows = reported("--devices", "virtual:2")
    assert [row["state"] for row in rows.values()] == ["leased", "free"]
    assert rows["virtual:0"]["holder"].startswith("nightly (pid ")


def test_busy_quarantined_and_leased_devices_say_why(four_gpus, book):
    four_gpus.change(0, pids=[7])
    four_gpus.change(1, used_mib=50_000)
    gpus = four_gpus.devices()
    book.put_aside(gpus[2], "Xid 79", time.time())
    with book.try_lease(gpus[3], holder="nightly"):
        four_gpus.change(3, pids=[8])
        rows = list(reported().values())
    assert [row["state"] for row in rows] == ["busy", "busy", "quarantined", "leased"]
    assert [row["reason"] for row in rows[:3]] == [
        "still used by process 7",
        "50000 MiB in use, 1638 MiB allowed",
        "Xid 79",
    ]
    assert [row["processes"] for row in rows] == [[7], [], [], [8]]


@pytest.mark.parametrize("name", ["nvidia:2", "GPU-cccccccc"])
def test_a_mark_can_be_taken_away(four_gpus, book, name):
    book.put_aside(four_gpus.devices()[2], "Xid 79", time.time())
    result = sooner_devices("--clear", name)
    assert "nvidia:2 is no longer put aside" in result.stderr
    assert reported()["nvidia:2"]["state"] == "free"
    assert "was not put aside" in sooner_devices("--clear", name).stderr


@pytest.mark.usefixtures("four_gpus")
def test_a_mark_of_an_unknown_device_cannot_be_taken_away():
    with pytest.raises(DevicesError, match=r"'nvidia:9' is no device.*nvidia:0"):
        sooner_devices("--clear", "nvidia:9")


def test_the_table_is_aligned_and_leaves_empty_columns_out():
    lines = sooner_devices("--devices", "cpu:2").stdout.splitlines()
    assert lines == ["ID     STATE", "cpu:0  free", "cpu:1  free"]


def test_notes_go_to_stderr(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    result = sooner_devices("--devices", "virtual:4", "--json")
    assert [row["id"] for row in json.loads(result.stdout)] == ["virtual:1"]
    assert "note: CUDA_VISIBLE_DEVICES narrows 4 virtual devices to 1" in result.stderr


def in_a_process(*args):
    path = os.pathsep.join([str(FAKES), str(Path(sooner.__file__).parents[1])])
    return subprocess.run(
        [sys.executable, *args],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.usefixtures("four_gpus")
def test_the_command_lists_gpus_in_a_process_of_its_own():
    code = "from sooner.cli.devices import devices; devices()"
    rows = json.loads(in_a_process("-c", code, "--json", "--devices", "2").stdout)
    assert [row["uuid"] for row in rows] == ["GPU-aaaaaaaa", "GPU-bbbbbbbb"]


def test_importing_the_room_imports_no_driver():
    code = "import sys, sooner.cli.devices, sooner.devices.survey; print('pynvml' in sys.modules)"
    assert in_a_process("-c", code).stdout == "False\n"
