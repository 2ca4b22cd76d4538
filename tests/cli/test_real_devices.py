"""`sooner run` on NVIDIA devices, pretended by a fake NVML that a file drives."""

import json
from pathlib import Path

import pytest

FAKES = Path(__file__).parents[1] / "devices" / "fakes"
GIB = 1024


@pytest.fixture
def gpus(project, monkeypatch):
    """Two free GPUs; returns a shell line that sets what a GPU reports from now on."""
    state = project / "nvml.json"
    gpus = [{"uuid": f"GPU-{i}", "bus": f"00000000:0{i}:00.0", "used_mib": 500} for i in range(2)]
    state.write_text(json.dumps({"gpus": gpus}))
    monkeypatch.setenv("SOONER_KFD_ROOT", str(project / "no-kfd"))
    monkeypatch.setenv("FAKE_NVML_STATE", str(state))
    monkeypatch.setenv("PYTHONPATH", str(FAKES))

    def change(index, **facts):
        program = (
            f"import json, os, pathlib; p = pathlib.Path({str(state)!r}); s = json.loads(p.read_text());"
            f" s['gpus'][{index}].update({facts!r}); t = p.with_suffix('.new');"
            f" t.write_text(json.dumps(s)); t.replace(p)"
        )
        return f'python3 -c "{program}"'

    return change


def test_units_see_gpus_by_index_in_pci_order(sooner, run, gpus):
    line = "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER $SOONER_DEVICES"
    done = sooner("run", sooner.plan(("a", line, "devices = 2")), "--out", "out")
    assert done.returncode == 0, done.stderr
    assert run.log("a") == "0,1 PCI_BUS_ID nvidia:0,nvidia:1\n"


def test_a_gpu_whose_memory_comes_back_late_is_waited_for(sooner, run, gpus):
    free = f"sleep 1; {gpus(0, used_mib=500)}"
    plan = sooner.plan(("a", gpus(0, used_mib=70 * GIB)), ("b", free), ("pair", "true", "devices = 2", "priority = -1"))
    done = sooner("run", plan, "--out", "out")
    assert done.returncode == 0, done.stderr
    assert run.outcomes == {"a": "passed", "b": "passed", "pair": "passed"}
    assert not [event for event in run.events if event["event"] == "device"]


def test_a_gpu_that_does_not_become_free_is_put_aside_and_named(sooner, run, gpus):
    units = [
        ("a", gpus(0, used_mib=70 * GIB)),
        *((str(i), "sleep 0.2") for i in range(12)),
    ]  # long enough for the wait to end
    done = sooner("run", sooner.plan(*units), "--out", "out", SOONER_RUN_SETTLE_S="0.5")
    assert set(run.outcomes.values()) == {"passed"}
    assert "GPU 0 put aside: not free 0.5 s after its last unit: 71680 MiB in use" in done.stderr


def test_a_gpu_that_falls_off_the_bus_is_put_aside_for_later_runs_too(sooner, run, gpus):
    plan = sooner.plan(("a", f"{gpus(0, lost=True)}; exit 1"), ("b", "sleep 0.3"))
    done = sooner("run", plan, "--out", "out", "--retries", 1)
    assert run.results["a"]["attempts"][0]["outcome"] == "worker_lost"
    assert "GPU 0 put aside: device fault: GPU 0 is gone" in done.stderr
    assert sooner("run", sooner.plan(("x", gpus(0, lost=False))), "--devices", "1,").returncode == 0
    assert "GPU 0 is put aside" in sooner("run", sooner.plan(("y", "true"))).stdout
    states = {device["id"]: device["state"] for device in json.loads(sooner("devices", "--json").stdout)}
    assert states == {"nvidia:0": "quarantined", "nvidia:1": "free"}
    assert sooner("devices", "--clear", "nvidia:0").returncode == 0


def test_a_unit_that_needs_a_gpu_that_was_put_aside_is_a_hole(sooner, run, gpus):
    plan = sooner.plan(("a", gpus(0, used_mib=70 * GIB)), ("pair", "true", "devices = 2", 'after = ["a"]'))
    done = sooner("run", plan, "--out", "out", SOONER_RUN_SETTLE_S="0.3")
    assert run.outcomes == {"a": "passed", "pair": "hole"}
    assert done.returncode == 10
