"""What is said where Ray has no cluster for us, by modules in the place of Ray's; and names of nodes."""

import pytest

from sooner.model.errors import DevicesError, UsageError
from sooner.run.backends.ray_driver import _names
from sooner.run.backends.ray_nodes import RayCluster


@pytest.fixture
def gather(tmp_path, monkeypatch):
    """Ask for the nodes of a cluster; Ray's `init` is a function of this text."""

    def ask(text):
        (tmp_path / "ray.py").write_text(f"def init(address, **_options):\n    {text}\ndef nodes():\n    return []\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        cluster = RayCluster()
        try:
            cluster.gather("virtual:2", tmp_path)
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
    with pytest.raises(DevicesError, match="none of the 0 nodes"):
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
