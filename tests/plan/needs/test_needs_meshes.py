"""Meshes and counts of JAX, clusters of Dask, objects of Transformer Engine: what uses devices, and what only says."""

from small_projects import devices_of


def test_a_cluster_of_dasks_has_a_worker_for_each_device_or_for_those_that_it_is_told():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            from unittest.mock import patch
            from dask_cuda import CUDAWorker, LocalCUDACluster, utils
            from distributed.utils_test import gen_test
            from mocks import Worker

            @gen_test(timeout=20)
            async def test_all():
                async with LocalCUDACluster(asynchronous=True) as cluster:
                    assert len(cluster.workers) == utils.get_n_gpus()

            def test_told():
                with LocalCUDACluster(CUDA_VISIBLE_DEVICES="0,2"):
                    pass

            def test_told_in_a_list():
                LocalCUDACluster([0, 1, 2])

            def test_some():
                LocalCUDACluster(n_workers=2, threads_per_worker=1)

            @patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0,3"})
            def test_environment():
                LocalCUDACluster()

            def test_another_worker():
                LocalCUDACluster(CUDA_VISIBLE_DEVICES="0,3", worker_class=Worker)
            """
        },
    )
    assert found == {
        "test_all": (1, 1, 8),
        "test_told": (3, 3, 3),
        "test_told_in_a_list": (3, 3, 3),
        "test_some": (1, 1, 2),
        "test_environment": (4, 4, 4),
        "test_another_worker": ("unknown", "unknown", "unknown"),
    }


def test_a_mesh_of_more_places_than_jax_has_devices_fails_and_counting_alone_uses_none_where_others_are_used():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import numpy as np
            from jax.sharding import Mesh

            def meshes():
                return [(2, (1, 2))] if len(jax.devices()) >= 2 else []

            def test_four():
                Mesh(np.asarray(jax.devices()[:4]).reshape(2, 2), ("x", "y"))

            def test_rest():
                Mesh(np.asarray(jax.devices()).reshape((-1, 2)), ("x", "y"))

            def test_loop():
                for count, shape in meshes():
                    Mesh(np.asarray(jax.devices()[:count]).reshape(*shape), ("x", "y"))

            def test_counted():
                assert jax.device_count() > 0

            def test_memory():
                if jax.devices()[0].memory_stats() is None:
                    raise __import__("unittest").SkipTest("no memory")
            """
        },
    )
    assert found == {
        "test_four": (4, 4, 4),
        "test_rest": (2, 2, 8),
        "test_loop": (0, 2, 2),
        "test_counted": (0, 1, 1),
        "test_memory": (1, 1, 1),
    }


def test_methods_of_transformer_engines_objects_use_no_device_of_their_own():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import transformer_engine.pytorch as te
            from transformer_engine.pytorch.cache import Cache, Shard
            from transformer_engine.jax.cpp_extensions.gemm import Gemm
            from transformer_engine.jax.flax import extend
            from transformer_engine.jax.sharding import MeshResource, global_shard_guard

            def test_state():
                shard = Shard(torch.zeros(4, 4))
                shard.set_state("waiting")
                assert Cache().reserve(shard) == 0

            def test_moved():
                shard = Shard(torch.zeros(4, 4))
                shard.cuda()

            def test_moved_by_name():
                Shard(torch.zeros(4, 4)).to("cuda:1")

            def test_specifications():
                with global_shard_guard(MeshResource(dp_resource="dp")):
                    Gemm._specs(((2, 2), None))

            def test_layer():
                te.Linear(4, 4).eval()

            def test_rules():
                assert extend((("a", None), ("b", ["x"]))) is not None
            """
        },
    )
    assert found == {
        "test_state": (0, None, 0),
        "test_moved": (1, 1, 1),
        "test_moved_by_name": (2, 2, 2),
        "test_specifications": (0, None, 0),
        "test_layer": (1, 1, 1),
        "test_rules": (0, None, 0),
    }


def test_what_is_made_of_jaxs_devices_uses_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            from jax.sharding import PositionalSharding, SingleDeviceSharding
            from elsewhere import LocalMesh, DeviceConfig, count

            def test_all():
                PositionalSharding(jax.devices())

            def test_second():
                SingleDeviceSharding(jax.devices()[1])

            def test_first_four():
                LocalMesh(devices=jax.local_devices()[:4])

            def test_said():
                DeviceConfig(jax.devices())

            def test_counted():
                assert count(jax.devices()) > 0
            """
        },
    )
    assert found == {
        "test_all": (0, 1, 8),
        "test_second": (2, 2, 2),
        "test_first_four": (0, 1, 4),
        "test_said": (0, 1, 1),
        "test_counted": (0, 1, 1),
    }
