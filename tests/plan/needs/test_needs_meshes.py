"""Meshes and counts of JAX, clusters of Dask, objects of Transformer Engine: what uses devices, and what only says."""

import textwrap

from small_projects import devices_of, needs_of, shipped

from sooner.plan.needs import Sources, infer_needs


def profile(needs):
    return "".join(each.value[0] for each in needs.profile.values())


def test_a_cluster_of_dasks_has_a_worker_for_each_device_or_for_those_that_it_is_told():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            from unittest.mock import patch
            from dask_cuda import CUDAWorker, LocalCUDACluster, utils
            from dask_cuda.utils_test import IncreasedCloseTimeoutNanny
            from distributed import Nanny
            from distributed.utils_test import gen_test
            from mocks import Worker

            class PatientNanny(Nanny):
                async def close(self, timeout=30):
                    return await super().close(timeout=timeout)

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

            def test_some_of_those_that_it_is_told():
                LocalCUDACluster(CUDA_VISIBLE_DEVICES="0,1,2", n_workers=2)

            @patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0,3"})
            def test_environment():
                LocalCUDACluster()

            def test_another_worker():
                LocalCUDACluster(CUDA_VISIBLE_DEVICES="0,3", worker_class=Worker)

            def test_nanny():
                LocalCUDACluster(CUDA_VISIBLE_DEVICES="0,3", worker_class=IncreasedCloseTimeoutNanny)

            def test_nanny_of_its_own():
                LocalCUDACluster(CUDA_VISIBLE_DEVICES="0,3", worker_class=PatientNanny)
            """
        },
    )
    assert found == {
        "test_all": (1, 1, 8),
        "test_told": (3, 3, 3),
        "test_told_in_a_list": (3, 3, 3),
        "test_some": (2, 2, 2),
        "test_some_of_those_that_it_is_told": (2, 2, 2),
        "test_environment": (4, 4, 4),
        "test_another_worker": ("unknown", "unknown", "unknown"),
        "test_nanny": (4, 4, 4),
        "test_nanny_of_its_own": (4, 4, 4),
    }


def test_workers_of_dasks_that_a_program_starts_have_a_device_each():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            from unittest.mock import patch
            from distributed.utils_test import popen

            def test_all(loop):
                with popen(["dask", "scheduler", "--port", "9369"]):
                    with popen(["dask", "cuda", "worker", "127.0.0.1:9369", "--rmm-pool-size", "2 GB"]):
                        pass

            @patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0,2"})
            def test_masked(loop):
                with popen(["dask-cuda-worker", "127.0.0.1:9369"]):
                    pass

            def test_another_worker(loop):
                with popen(["dask", "cuda", "worker", "127.0.0.1:9369", "--worker-class", "mocks.Worker"]):
                    pass

            @patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": "0,3,7,8"})
            def test_another_worker_masked(loop):
                with popen(["dask", "cuda", "worker", "127.0.0.1:9369", "--worker-class", "mocks.Worker"]):
                    pass

            def test_imports(loop, module):
                with popen(["dask", "cuda", "worker", "127.0.0.1:9369", "--pre-import", module]):
                    pass

            def test_none(loop):
                with popen(["dask", "scheduler", "--port", "9369"]), popen(["dask", "cuda", "config", "--help"]):
                    pass
            """
        },
    )
    assert found == {
        "test_all": (1, 1, 8),
        "test_masked": (3, 3, 3),
        "test_another_worker": ("unknown", "unknown", "unknown"),
        "test_another_worker_masked": ("unknown", "unknown", "unknown"),
        "test_imports": (1, 1, 8),
        "test_none": (0, None, 0),
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


def test_what_jax_compiles_or_derives_runs_on_the_first_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax

            def test_compiled():
                double = jax.jit(lambda x: 2 * x)
                assert double(1) == 2

            def test_derived():
                assert jax.grad(lambda x: x * x)(2.0) == 4.0

            def test_guarded():
                @jax.jit
                def double(x):
                    return 2 * x

                if jax.device_count() < 4:
                    raise RuntimeError("four")
                jax.device_put(double(1), jax.devices()[3])

            def test_host():
                assert jax.tree.map(lambda x: x, [1]) == [1]
            """
        },
    )
    assert found == {
        "test_compiled": (0, 1, 1), "test_derived": (0, 1, 1), "test_guarded": (4, 4, 4), "test_host": (0, None, 0),
    }  # fmt: skip


def test_jax_draws_the_cases_of_a_test_as_numpy_does():
    found = devices_of(
        "tests/it_test.py",
        {
            "tests/it_test.py": """
            import jax
            from jax._src import test_util as jtu

            class ItTest(jtu.JaxTestCase):
                @jtu.sample_product(count=[1, 4], flag=[True, False])
                def test_few(self, count, flag):
                    if jax.device_count() < count:
                        self.skipTest("devices")
                    jax.device_put(1, jax.devices()[count - 1])

                @jtu.sample_product([dict(a=1, b=1), dict(a=2, b=2)], c=range(20))
                def test_drawn(self, a, b, c):
                    pass
            """
        },
    )
    # RandomState(42).permutation(4) is 1, 3, 0, 2: the first of two columns changes fastest.
    four, one = (4, 4, 4), (0, 1, 1)
    few = {f"ItTest::test_few{number}": said for number, said in enumerate((four, four, one, one))}
    assert found == few | {f"ItTest::test_drawn{number}": (0, None, 0) for number in range(10)}


def test_a_mesh_that_is_asked_for_by_its_modules_whole_name_is_refused_as_any_other_and_so_is_one_of_no_places():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.multiprocessing as mp

            def work(rank, *shape):
                torch.distributed.init_process_group("nccl")
                torch.distributed.device_mesh.init_device_mesh("cuda", mesh_shape=shape)

            def test_fits():
                mp.spawn(work, args=(2, 1), nprocs=2)

            def test_too_large():
                mp.spawn(work, args=(2, 2), nprocs=2)

            def test_of_none():
                size = torch.cuda.device_count()
                mp.spawn(work, args=(2, size // 4), nprocs=size)
            """
        },
    )
    assert found == {"test_fits": (2, 2, 2), "test_too_large": (None, None, None), "test_of_none": (4, 4, 8)}


def test_work_mapped_over_an_axis_of_a_known_length_uses_as_many_devices():
    found = needs_of(
        "test_pmap.py",
        {
            "test_pmap.py": """
            import functools
            import jax
            import jax.numpy as jnp

            def test_two():
                tree = {"a": 1.0, "b": [2.0]}
                tree = jax.tree.map(lambda x: jnp.stack([x + i for i in range(2)]), tree)
                state = jax.pmap(lambda x: x)(tree)
                jax.pmap(lambda x: x + 1)(state)

            def test_three():
                keys = jax.random.split(jax.random.key(0), 3)
                jax.pmap(lambda x: x)(keys)

            @functools.partial(jax.pmap, axis_name="i")
            def added(x):
                return x

            def test_decorated():
                added(jnp.ones((2, 5)))

            def test_all():
                jax.pmap(lambda x: x, axis_name="i")(jnp.ones([jax.local_device_count()]))

            def test_one():
                jax.pmap(lambda x: x)(jnp.zeros((1, 4)))

            def test_other_axes():
                jax.pmap(lambda x: x, in_axes=1)(jnp.zeros((3, 1)))

            def test_fits_four():
                list(jnp.arange(16).reshape([jax.local_device_count(), 4]))
            """
        },
    )
    said = {name: (profile(each), each.gpu_min, each.full) for name, each in found.items()}
    assert said == {
        "test_two": ("ffrrrr", 2, 2),
        "test_three": ("fffrrr", 3, 3),
        "test_decorated": ("ffrrrr", 2, 2),
        "test_all": ("rrrrrr", 1, 8),
        "test_one": ("rrrrrr", 1, 1),
        "test_other_axes": ("rrrrrr", 1, 1),
        "test_fits_four": ("ffffrf", 4, 4),
    }


def test_devices_of_the_host_that_a_conftest_asks_for_are_there_for_the_tests_below():
    (found,) = needs_of(
        "pkg/deep/test_it.py",
        {
            "pkg/conftest.py": """
            import chex

            chex.set_n_cpu_devices(2)
            """,
            "pkg/deep/test_it.py": """
            import jax
            import jax.numpy as jnp

            def test_two():
                jax.pmap(lambda x: x)(jnp.array([1, 2]))
            """,
        },
    ).values()
    assert (profile(found), found.gpu_min, found.full) == ("rfrrrr", 2, 2)


def test_jax_runs_where_it_is_told_to_and_has_as_many_devices_of_the_host_as_it_is_told():
    tests = """
    import jax
    import jax.numpy as jnp
    import lib
    import numpy as np
    from jax.sharding import Mesh

    def test_arrays():
        jax.jit(jnp.sum)(jnp.zeros(3))

    def test_mesh():
        Mesh(np.array(jax.devices()).reshape(2, 2), ("x", "y"))

    def test_map():
        jax.pmap(lambda x: x)(jnp.zeros((jax.local_device_count(), 3)))

    def test_library():
        lib.made()

    def test_device():
        jnp.zeros(jax.devices("gpu")[0].id)
    """
    library = "import jax.numpy as jnp\n\ndef made():\n    return jnp.zeros(3)\n"

    def found(told):
        four = "import os\nos.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=4'\n"
        files = {"lib/__init__.py": library, "tests/conftest.py": f"{four}{told}\n", "tests/test_it.py": tests}
        return devices_of("tests/test_it.py", files)

    by_name = found("os.environ['JAX_PLATFORM_NAME'] = 'cpu'")  # the others can still be asked for
    host = dict.fromkeys(("test_arrays", "test_mesh", "test_map", "test_library"), (0, None, 0))
    assert by_name == host | {"test_device": (1, 1, 1)}
    for told in (
        "os.environ.setdefault('JAX_PLATFORMS', 'cpu')",
        "import jax\njax.config.update('jax_platforms', 'cpu')",
    ):
        assert found(told) == host | {"test_device": (None, None, None)}
    one = dict.fromkeys(("test_arrays", "test_library"), (0, 1, 1))
    several = {"test_mesh": (0, 4, 4), "test_map": (0, 1, 8), "test_device": (1, 1, 1)}
    assert found("os.environ['JAX_PLATFORMS'] = ''") == one | several


def test_jax_makes_its_arrays_on_the_device_that_is_its_default():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp
            import pytest

            @pytest.fixture
            def on_host():
                with jax.default_device(jax.devices("cpu")[0]):
                    yield

            def test_fixture(on_host):
                jnp.zeros(3)

            def test_host():
                with jax.default_device(jax.devices("cpu")[0]):
                    jnp.zeros(3)

            def test_left():
                with jax.default_device(jax.devices("cpu")[0]):
                    jnp.zeros(3)
                jnp.zeros(3)

            def test_third():
                with jax.default_device(jax.devices("gpu")[2]):
                    jnp.zeros(3)

            def test_setting():
                jax.config.update("jax_default_device", jax.devices("cpu")[0])
                jnp.zeros(3)
            """
        },
    )
    said = {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    host = dict.fromkeys(("test_fixture", "test_host", "test_setting"), (0, None, 0))
    assert said == host | {"test_left": (0, 1, 1), "test_third": (3, 3, 3)}


def test_jax_that_may_be_told_the_host_is_not_said_to_be_there_for_certain():
    (found,) = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            from somewhere import is_small

            if is_small():
                os.environ["JAX_PLATFORMS"] = "cpu"
            import jax.numpy as jnp

            def test_it():
                jnp.zeros(3)
            """
        },
    ).values()
    assert (found.gpu_min, found.confidence.value) == (1, "medium")


def test_what_a_conftest_has_set_is_there_while_a_file_below_is_imported():
    files = {
        "conftest.py": """
        import os

        is_done = False

        def start():
            global is_done
            if not is_done:
                is_done = True
                os.environ["JAX_PLATFORMS"] = "cpu"
        """,
        "test_first.py": """
        from conftest import start
        start()

        def test_nothing():
            pass
        """,
        "test_second.py": """
        from conftest import start
        start()
        import jax
        import pytest

        SIZE = jax.device_count()

        @pytest.mark.skipif(SIZE > 1, reason="a device of the host")
        def test_it():
            pass
        """,
    }
    texts = {name: textwrap.dedent(text) for name, text in files.items()}
    _, found = infer_needs(Sources(texts, texts.get), ["test_first.py", "test_second.py"], rules=shipped())
    assert profile(found) == "rrrrrr"


def test_a_test_that_wants_jax_to_refuse_more_devices_than_there_are_passes_without_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax, pytest
            import jax.numpy as jnp

            def test_one_more():
                with pytest.raises(ValueError):
                    jax.pmap(lambda x: x)(jnp.ones((jax.device_count() + 1, 2)))

            def test_matched():
                with pytest.raises(ValueError, match="but only .* XLA devices"):
                    jax.pmap(lambda x: x)(jnp.ones((jax.device_count() * 2,)))

            def test_of_a_mesh():
                with pytest.raises(ValueError, match="product of mesh_shape"):
                    jax.make_mesh((jax.device_count() + 1,), ("x",))

            def test_matched_by_another_message():
                with pytest.raises(ValueError, match="axis_name"):
                    jax.pmap(lambda x: x)(jnp.ones((4, 2)))

            def test_of_another_kind():
                with pytest.raises(TypeError):
                    jax.pmap(lambda x: x)(jnp.ones((4, 2)))
            """
        },
    )
    assert {name: need[0] for name, need in found.items()} == {
        "test_one_more": 0, "test_matched": 0, "test_of_a_mesh": 0, "test_matched_by_another_message": 4,
        "test_of_another_kind": 4,
    }  # fmt: skip


def test_what_a_private_function_of_transformer_engine_gives_is_called_without_a_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import transformer_engine.pytorch as te
            from transformer_engine.pytorch.attention import backends

            def test_wrapped():
                received = {}
                backends._renamed(received.update)(window=(-1, 0))
                assert received == {"window": (None, 0)}

            def test_layer():
                te.Linear(4, 4)(torch.ones(4, 4, device="cuda"))
            """
        },
    )
    assert found == {"test_wrapped": (0, None, 0), "test_layer": (1, 1, 1)}


def test_transformer_engine_asks_a_device_what_it_can_do():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": """
            import os
            import pytest
            from transformer_engine_jax import get_device_compute_capability

            @pytest.fixture(autouse=True, scope="module")
            def fused():
                if get_device_compute_capability(0) >= 90:
                    os.environ["FUSED"] = "1"
                yield
            """,
            "tests/test_it.py": """
            def test_words():
                assert "a" + "b" == "ab"
            """,
        },
    )
    assert found == {"test_words": (1, 1, 1)}


def test_a_case_that_transformer_engines_plugin_runs_has_a_device_for_each_rank_that_it_asks_for():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            import torch.distributed as dist
            from transformer_engine.common.testing import Case, CaseSkip, benchmark

            NUM_GPUS = min(4, torch.cuda.device_count())

            def joins(rank, world, address, port):
                torch.cuda.set_device(rank)
                dist.init_process_group("nccl", init_method=f"tcp://{address}:{port}", rank=rank, world_size=world)
                return {"rank": rank, "world": world}

            def fills(state):
                if 1024 % state["world"] != 0:
                    raise CaseSkip("not divisible")
                return state | {"input": torch.ones(4, device="cuda")}

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
            @benchmark("size", [4096])
            @pytest.mark.parametrize("size", [1024])
            def test_ranks(size):
                return Case(setup=fills, evaluate=lambda state: state["input"], dist_init=joins, num_gpus=NUM_GPUS)

            def test_eight():
                return Case(setup=fills, evaluate=lambda state: state["input"], dist_init=joins, num_gpus=8)

            @benchmark("size", [4096])
            @pytest.mark.parametrize("size", [1024])
            def test_alone(size):
                return Case(setup=lambda _: torch.ones(size, device="cuda"), evaluate=lambda state: state * 2)

            def test_unavailable():
                def refuses(state):
                    if torch.cuda.device_count() < 3:
                        raise CaseSkip("three")
                return Case(setup=refuses, evaluate=lambda state: None)
            """
        },
    )
    assert found == {
        "test_ranks[1024]": (2, 2, 4),
        "test_eight": (8, 8, 8),
        "test_alone[1024]": (1, 1, 1),
        "test_unavailable": (3, 3, 3),
    }


def test_parameters_that_are_sharded_without_a_mesh_are_moved_to_a_device_if_there_is_one():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from torch import nn
            from torch.distributed.device_mesh import init_device_mesh
            from torch.distributed.fsdp import fully_shard

            def test_moved():
                fully_shard(nn.Linear(2, 2))

            def test_on_a_mesh_of_the_host():
                fully_shard(nn.Linear(2, 2), mesh=init_device_mesh("cpu", (1,)))

            def test_refused():
                with pytest.raises(ValueError, match="does not support"):
                    fully_shard(nn.ModuleList())
            """
        },
    )
    assert found == {
        "test_moved": (0, 1, 1),
        "test_on_a_mesh_of_the_host": (0, None, 0),
        "test_refused": (0, None, 0),
    }


def test_a_mesh_of_which_nobody_knows_the_shape_is_of_all_devices():
    text = """
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental import mesh_utils
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    import elsewhere

    def put(mesh):
        jax.device_put(jnp.ones(8), NamedSharding(mesh, PartitionSpec()))

    def test_arranged():
        put(Mesh(mesh_utils.create_device_mesh(elsewhere.shape()), ("x",)))

    def test_arranged_of_some():
        put(Mesh(mesh_utils.create_device_mesh(elsewhere.shape(), jax.devices()[:2]), ("x",)))

    def test_made():
        put(jax.make_mesh(elsewhere.shape(), ("x",)))

    def test_made_of_pairs():
        put(jax.make_mesh((elsewhere.count(), 2), ("x", "y")))

    def test_over():
        put(Mesh(np.array(elsewhere.devices()).reshape(2, 2), ("x", "y")))

    def test_known():
        put(Mesh(mesh_utils.create_device_mesh((2,), jax.devices()[:2]), ("x",)))
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.gpu_min, each.full, each.confidence) for name, each in found.items()} == {
        "test_arranged": (0, 1, 8, "medium"),
        "test_arranged_of_some": (0, 1, 2, "medium"),
        "test_made": (0, 1, 8, "medium"),
        "test_made_of_pairs": (2, 2, 8, "medium"),
        "test_over": (0, 1, 1, "medium"),
        "test_known": (2, 2, 2, "high"),
    }
