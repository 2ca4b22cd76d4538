import socket

import pytest

pytest.importorskip("torch")

import torch.distributed as dist

from sooner.warm.groups import connect_store


def test_a_torch_that_was_built_without_libuv_has_a_store_too(monkeypatch):
    built_with = dist.TCPStore

    def built_without(*args, use_libuv=True, **more):
        if use_libuv:
            raise dist.DistStoreError("use_libuv was requested but PyTorch was built without libuv support, run ...")
        return built_with(*args, use_libuv=False, **more)

    monkeypatch.setattr(dist, "TCPStore", built_without)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        serves = connect_store("127.0.0.1", port, listener=listener.detach(), timeout_s=30)
    serves.set("key", "value")
    assert connect_store("127.0.0.1", port, listener=None, timeout_s=30).get("key") == b"value"


def test_a_store_that_nobody_serves_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(dist.DistNetworkError):
        connect_store("127.0.0.1", port, listener=None, timeout_s=0.1)
