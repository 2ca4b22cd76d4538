"""What is said where Ray has no cluster for us, or only a part of one, by what stands in for Ray; names of nodes."""

import socket
from types import SimpleNamespace

import pytest

from sooner.model.errors import DevicesError, UsageError
from sooner.run.backends.ray_driver import RayDriver, _names
from sooner.run.backends.ray_nodes import RayCluster
from sooner.run.supervision.messages import receive_request


@pytest.fixture
def gather(tmp_path, monkeypatch):
    """Ask for the nodes of a cluster; Ray's `init` is a function of this text."""

    def ask(text):
        (tmp_path / "ray.py").write_text(f"def init(address, **_options):\n    {text}\ndef nodes():\n    return []\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        cluster = RayCluster()
        try:
            cluster.gather("virtual:2", tmp_path, say=print)
        finally:
            cluster.close()

    return ask


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "Could not find any running Ray instance. Please specify the one to connect to by setting `--address` flag",
            "Could not find any running Ray instance.",
        ),
        (
            "Version mismatch: The cluster was started with:\n    Ray: 2.9\n    Python: 3.11",
            "Version mismatch: The cluster was started with: Ray: 2.9 Python: 3.11",
        ),
        ("Failed to connect.\nTraceback (most recent call last):\n  File", "Failed to connect."),
        ("", "RuntimeError"),
    ],
)
def test_what_ray_says_is_told_without_what_is_not_for_our_users(gather, said, told, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(UsageError) as caught:
        gather(f"raise RuntimeError({said!r})")
    assert str(caught.value).startswith(f"no Ray cluster can be reached ({told}): start one with `ray start --head`")


def test_an_empty_address_is_none(gather, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "")
    with pytest.raises(DevicesError, match="no node of the Ray cluster has GPUs"):
        gather("assert address == 'auto', address")


def test_the_address_of_a_dashboard_is_told_from_that_of_a_cluster(gather, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:8265")
    with pytest.raises(UsageError, match=r"RAY_ADDRESS=http://.* is the address of a dashboard: .*HOST:6379"):
        gather("pass")


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        (["a.example.org", "b.example.org"], ["a", "b"]),
        (["a", "a"], ["a-1", "a-2"]),
        (["a", "a-1", "a"], ["a-2", "a-1", "a-3"]),
        (["10.0.0.1", "10.0.0.2"], ["10.0.0.1", "10.0.0.2"]),
    ],
)
def test_every_node_has_a_name_of_its_own(hosts, names):
    assert list(_names([{"NodeManagerHostname": host} for host in hosts])) == names


class BusyRay:
    """A cluster of nodes with four GPUs each; an actor is ready where so many are free, in the end everywhere."""

    def __init__(self, *, freed_after=99, **free):
        self.waits_left = freed_after
        self.ids = {f"{number:056x}": name for number, name in enumerate(free, start=1)}
        self.free = {node_id: float(free[name]) for node_id, name in self.ids.items()}
        self.killed = []
        self._private = SimpleNamespace(state=self)

    def available_resources_per_node(self):
        return {node_id: {"GPU": free} for node_id, free in self.free.items()}

    def nodes(self):
        common = {"Alive": True, "Resources": {"GPU": 4.0}}
        return [{"NodeID": node_id, "NodeManagerHostname": name, **common} for node_id, name in self.ids.items()]

    def remote(self, **_options):
        return lambda _kind: self

    def options(self, *, num_gpus, scheduling_strategy):
        ready = SimpleNamespace(is_free=num_gpus <= self.free[scheduling_strategy.node_id])
        actor = SimpleNamespace(gpus=num_gpus, __ray_ready__=SimpleNamespace(remote=lambda: ready))
        actor.send = actor.receive = actor.end = SimpleNamespace(remote=lambda *_: None, options=lambda **_: actor.end)
        return SimpleNamespace(remote=lambda _environment: actor)

    def wait(self, asked, **_options):
        self.waits_left -= 1
        ready = [one for one in asked if one.is_free or self.waits_left < 0]
        return ready, [one for one in asked if one not in ready]

    def get(self, _ready, **_options):
        return b""

    def kill(self, actor):
        self.killed.append(actor.gpus)


def said(ray, spec):
    """What the driver tells the runner; sockets to agents are closed."""
    pytest.importorskip("ray")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        RayDriver(ray, theirs).gather(spec)
        messages = []
        while not messages or "done" not in messages[-1]:
            message, fds = receive_request(ours)
            messages.append(message)
            for fd in fds:
                socket.socket(fileno=fd).close()
        return messages


def test_of_a_node_of_which_others_keep_a_part_the_rest_is_taken():
    ray = BusyRay(one=4, two=3, three=0)
    messages = said(ray, "auto")
    assert "Waiting for 2 of 3 nodes of the Ray cluster" in messages[0]["waiting"]
    assert [one["node"] for one in messages if "node" in one] == ["one", "two"]
    assert [one["note"] for one in messages if "note" in one] == [
        "two takes part with only 3 GPUs: other jobs of the cluster have the others",
        "three is left out: its GPUs were not free for 120 s",
    ]
    assert ray.killed[:2] == [4, 4], "what waited for the whole nodes"


def test_a_number_of_devices_is_all_of_them_or_none():
    assert [one["node"] for one in said(BusyRay(one=4, two=1), "2") if "node" in one] == ["one"]


def test_where_no_node_is_free_the_run_waits_for_one():
    messages = said(BusyRay(one=0, two=0, freed_after=5), "auto")
    assert sum("waiting" in one for one in messages) == 3
    assert [one["node"] for one in messages if "node" in one] == ["one", "two"]
