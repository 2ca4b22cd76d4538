"""Units on a real Ray cluster: two nodes, here on one machine, each with leases of its own."""

import contextlib
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from real_runs import Sooner

pytestmark = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")

RAY = Path(sys.executable).with_name("ray")
QUIET = ["--disable-usage-stats", "--num-cpus=1", "--num-gpus=0", "--object-store-memory=100000000"]
WIDE = """
[[unit]]
name = "one"
run = "sleep 0.5; echo $SOONER_DEVICES"
devices = 2

[[unit]]
name = "two"
run = "sleep 0.5; echo $SOONER_DEVICES"
devices = 2
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, seconds=60):
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.1)


class Cluster:
    """Processes of `ray start`, each with all that it started."""

    def __init__(self, folder):
        self.folder, self.port, self.nodes = folder, free_port(), []

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self, *options):
        """Start a node, and wait until it is a part of the cluster."""
        name = f"node-{len(self.nodes)}"
        masks = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")  # of whoever runs this test
        env = {key: value for key, value in os.environ.items() if key not in masks and not key.startswith("SOONER_")}
        env |= {"SOONER_LEASE_DIR": str(self.folder / name), "PYTHONUNBUFFERED": "1", "RAY_AUTH_MODE": "disabled"}
        said = self.folder / f"{name}.log"
        with said.open("w") as output:
            node = psutil.Popen([str(RAY), "start", "--block", *QUIET, *options], env=env, stdout=output, stderr=output)
        self.nodes.append(node)
        until(lambda: "Ray runtime started" in said.read_text())

    def kill(self, node):
        """As when a machine is switched off."""
        processes = [*node.children(recursive=True), node]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, timeout=10)
        node.wait()


@pytest.fixture(scope="module")
def cluster():
    folder = Path(tempfile.mkdtemp(prefix="sr-", dir="/tmp"))  # paths of sockets are short
    made = Cluster(folder)
    try:
        made.start("--head", f"--port={made.port}", f"--temp-dir={folder}", "--include-dashboard=false")
        made.start(f"--address={made.address}")
        yield made
    finally:
        for node in made.nodes:
            if node.is_running():
                made.kill(node)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sooner(cluster, project, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # not as a token of whoever runs this test has it
    return Sooner(project)


def results(folder):
    lines = (folder / "results.jsonl").read_text().splitlines()
    return {one["unit"]: one for one in map(json.loads, lines)}


def started(events):
    """How many attempts have started, by the journal."""
    return events.read_text().count('"event":"started"') if events.exists() else 0


def nodes_of(result):
    return [{device.partition("/")[0] for device in attempt["devices"]} for attempt in result["attempts"]]


def test_units_run_on_all_nodes_at_once_and_each_on_one(sooner, project, cluster):
    (project / "plan.toml").write_text(WIDE + '[[unit]]\nname = "here"\nrun = "true"\ndevices = 0\n')
    done = sooner("run", "plan.toml", "--backend", "ray", "--devices", "virtual:2", "--out", "out")
    assert done.returncode == 0, done.stderr
    found = results(project / "out")
    one, two = nodes_of(found["one"])[0], nodes_of(found["two"])[0]
    assert len(one) == len(two) == 1
    assert one != two
    assert (project / "out/logs/one.log").read_text().count("/virtual:") == 2
    assert found["here"]["attempts"][0]["devices"] == []


def test_what_all_nodes_have_together_no_unit_has(sooner, project, cluster):
    (project / "plan.toml").write_text('[[unit]]\nname = "wide"\nrun = "true"\ndevices = 4\n')
    command = ["run", "plan.toml", "--backend", "ray", "--devices", "virtual:2", "--out", "out"]
    done = sooner(*command, "--on-missing", "hole")
    assert (done.returncode, results(project / "out")["wide"]["outcome"]) == (10, "hole"), done.stderr


def test_nodes_without_gpus_are_no_devices(sooner, project, cluster):
    (project / "plan.toml").write_text(WIDE)
    done = sooner("run", "plan.toml", "--backend", "ray")
    assert done.returncode == 4
    assert "no node of the Ray cluster has GPUs (nodes: 2): pass --devices virtual:N" in done.stderr


def test_a_node_that_is_lost_costs_its_attempts_and_nothing_else(sooner, project, cluster):
    (project / "plan.toml").write_text(WIDE.replace("sleep 0.5", "sleep 1"))
    command = [sys.executable, "-m", "sooner", "run", "plan.toml", "--backend", "ray", "--devices", "virtual:2"]
    process = subprocess.Popen([*command, "--retries", "1", "--out", "out"], stderr=subprocess.PIPE, text=True)
    events = project / "out/events.jsonl"
    until(lambda: started(events) == 2)
    (agents,) = [one for one in cluster.nodes[1].children(recursive=True) if "ray::Relay" in " ".join(one.cmdline())]
    agents.kill()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    outcomes = [[attempt["outcome"] for attempt in one["attempts"]] for one in results(project / "out").values()]
    assert sorted(outcomes) == [["passed"], ["worker_lost", "passed"]]


def test_a_runner_that_is_killed_leaves_nothing_running_on_any_node(sooner, project, cluster):
    (project / "plan.toml").write_text(WIDE.replace("sleep 0.5", "sleep 600; true"))
    command = [sys.executable, "-m", "sooner", "run", "plan.toml", "--backend", "ray", "--devices", "virtual:2"]
    process = subprocess.Popen([*command, "--out", "out"], stderr=subprocess.DEVNULL)
    events = project / "out/events.jsonl"
    until(lambda: started(events) == 2)
    units = [json.loads(line)["pid"] for line in events.read_text().splitlines() if '"started"' in line]
    assert all(map(psutil.pid_exists, units))
    process.send_signal(signal.SIGKILL)
    process.wait()
    until(lambda: not any(map(psutil.pid_exists, units)))
    until((project / "out/results.jsonl").exists)
    assert {one["outcome"] for one in results(project / "out").values()} == {"worker_lost"}


def test_a_cluster_that_is_not_there_is_one_clear_error(project, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    (project / "plan.toml").write_text(WIDE)
    done = Sooner(project)("run", "plan.toml", "--backend", "ray", "--devices", "virtual:2")
    assert done.returncode == 4
    assert "no Ray cluster can be reached" in done.stderr
    assert "ray start --head" in done.stderr
