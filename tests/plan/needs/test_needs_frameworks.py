"""What frameworks' own runners and lists have: PyTorch's operators, torchtitan's tests, workers that end themselves."""

import textwrap

from small_projects import devices_of, needs_of

from sooner.cli.needs_project import find_project
from sooner.door.needs_asking import shipped_rules
from sooner.plan.needs import Sources, infer_needs, load_rules

_INVOCATIONS = "torch/testing/_internal/common_methods_invocations.py"


def profile(needs):
    return "".join(each.value[0] for each in needs.profile.values())


def test_operators_are_named_from_the_source_of_their_list():
    found = needs_of(
        "test_ops.py",
        {
            _INVOCATIONS: """
            op_db: List[OpInfo] = [
                UnaryUfuncInfo('abs',
                               aliases=('absolute',)),
                # the second has a variant
                OpInfo(
                    "linalg.norm",
                    variant_test_name="subgradients",
                ),
            ]
            """,
            "test_ops.py": """
            import torch
            from torch.testing._internal.common_device_type import instantiate_device_type_tests, ops
            from torch.testing._internal.common_methods_invocations import op_db
            from torch.testing._internal.common_utils import TestCase

            class TestOps(TestCase):
                @ops(op_db, allowed_dtypes=(torch.float,))
                def test_op(self, device, dtype, op):
                    op(torch.ones(1, device=device, dtype=dtype))

            instantiate_device_type_tests(TestOps, globals(), only_for="cuda")
            """,
        },
    )
    assert list(found) == [
        "TestOpsCUDA::test_op_abs_cuda_float32",
        "TestOpsCUDA::test_op_linalg_norm_subgradients_cuda_float32",
    ]


def test_types_of_numbers_that_a_test_is_parametrized_by_stand_behind_its_kind_of_device():
    found = needs_of(
        "test_types.py",
        {
            "test_types.py": """
            import torch
            from torch.testing._internal.common_device_type import instantiate_device_type_tests
            from torch.testing._internal.common_utils import TestCase, parametrize

            class TestTypes(TestCase):
                @parametrize("dtype", [torch.float32, torch.half])
                @parametrize("size", [3])
                def test_one(self, device, dtype, size):
                    torch.ones(size, device=device, dtype=dtype)

                @parametrize("dtypes", [(torch.float, torch.int)])
                def test_two(self, device, dtypes):
                    torch.ones(1, device=device)

            instantiate_device_type_tests(TestTypes, globals(), only_for="cuda")
            """
        },
    )
    assert list(found) == [
        "TestTypesCUDA::test_one_float32_size_3_cuda_float32",
        "TestTypesCUDA::test_one_float16_size_3_cuda_float16",
        "TestTypesCUDA::test_two_dtypes0_cuda_float32_int32",
    ]


def test_a_skip_that_pytorch_keeps_under_a_name_of_its_own_is_read_where_its_source_is_in_the_tree():
    test = """
        import torch
        from torch.testing._internal.common_device_type import platform_that_attends as supported
        from torch.testing._internal.common_utils import TestCase

        class TestIt(TestCase):
            @supported
            def test_one(self):
                device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
                torch.ones(1, device=device)
        """
    kept = """
        import unittest
        import torch

        platform_that_attends = unittest.skipUnless(
            torch.cuda.is_available()
            and torch.utils._triton.has_triton()
            and torch.cuda.get_device_capability() >= (8, 0),
            "Requires CUDA and Triton",
        )
        """
    source = "torch/testing/_internal/common_device_type.py"
    assert devices_of("test_it.py", {"test_it.py": test, source: kept}) == {"TestIt::test_one": (1, 1, 1)}


def test_who_asks_how_exactly_a_device_multiplies_uses_none():
    test = """
        import torch
        from torch.testing._internal.common_cuda import tf32_is_not_fp32, tf32_on_and_off
        from torch.testing._internal.common_device_type import instantiate_device_type_tests
        from torch.testing._internal.common_utils import TestCase

        class TestIt(TestCase):
            @tf32_on_and_off(0.005)
            def test_one(self, device):
                torch.ones(1, device=device)

            def test_two(self, device):
                close = 0.1 if tf32_is_not_fp32() else 0.01
                assert torch.ones(1, device=device) > close

        instantiate_device_type_tests(TestIt, globals())
        """
    asked = """
        import functools
        import torch

        def tf32_is_not_fp32():
            if not torch.cuda.is_available():
                return False
            return torch.cuda.get_device_properties(torch.cuda.current_device()).major >= 8

        def tf32_on_and_off(tf32_precision=1e-5):
            def wrapper(func):
                @functools.wraps(func)
                def wrapped(*args, **kwargs):
                    tf32_is_not_fp32()
                    func(*args, **kwargs)
                return wrapped
            return wrapper
        """
    found = devices_of("test_it.py", {"test_it.py": test, "torch/testing/_internal/common_cuda.py": asked})
    assert found == {
        "TestItCPU::test_one_cpu": (0, None, 0),
        "TestItCPU::test_two_cpu": (0, None, 0),
        "TestItCUDA::test_one_cuda": (1, 1, 1),
        "TestItCUDA::test_two_cuda": (1, 1, 1),
    }


def test_a_pass_without_workers_is_none_at_which_a_test_runs():
    (found,) = needs_of(
        "test_wide.py",
        {
            "test_wide.py": """
            import torch
            from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_lt_x_gpu

            class TestWide(MultiProcessTestCase):
                @property
                def world_size(self):
                    return min(4, torch.cuda.device_count())

                @skip_if_lt_x_gpu(4)
                def test_four(self):
                    torch.ones(1).cuda(self.rank)
            """
        },
    ).values()
    assert (profile(found), found.vacuous) == ("rsssrr", [0])
    assert (found.min, found.gpu_min, found.full, found.adaptive) == (4, 4, 4, False)


def test_what_one_test_puts_into_the_environment_is_not_there_when_another_file_is_imported():
    files = {
        "test_a.py": """
        import os
        def test_sets():
            os.environ["WIDTH"] = "8"
        """,
        "test_b.py": """
        import os
        import pytest
        import torch
        WIDTH = int(os.environ.get("WIDTH", "2"))

        @pytest.mark.skipif(torch.cuda.device_count() < WIDTH, reason="")
        def test_reads():
            torch.ones(1).cuda()
        """,
    }
    texts = {name: textwrap.dedent(text) for name, text in files.items()}
    rules = load_rules([("rules.toml", shipped_rules())])
    found = {
        each.nodeid: each for each in infer_needs(Sources(texts, texts.get), ["test_a.py", "test_b.py"], rules=rules)
    }
    assert found["test_b.py::test_reads"].min == 2


def test_a_loop_that_sleeps_waits_for_something_that_does_not_happen_here():
    (found,) = needs_of(
        "test_wait.py",
        {
            "test_wait.py": """
            import time
            import torch

            def arrived():
                return unknown_number() == 3

            def test_waits():
                while True:
                    if arrived():
                        break
                    time.sleep(0.1)
                torch.ones(1).cuda()
            """
        },
    ).values()
    assert profile(found) == "frrrrr"


def test_files_with_lists_of_torchtitans_are_found_in_a_folder(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "features.py").write_text("ALL = [ OverrideDefinitions([[]], 'a', 'a', ngpu=2)]\n")
    (tmp_path / "tests" / "other.py").write_text("ALL = []\n")
    assert find_project([str(tmp_path)]).tests == ("tests/features.py",)


def test_a_mesh_uses_the_devices_that_it_is_made_of():
    found = needs_of(
        "test_mesh.py",
        {
            "test_mesh.py": """
            import jax
            import numpy as np
            from jax.experimental import mesh_utils
            from jax.sharding import Mesh

            def test_all():
                mesh = Mesh(np.array(jax.devices()).reshape(jax.device_count(), 1), ("x", "y"))
                assert mesh

            def test_some():
                with Mesh(np.asarray(jax.devices()[:2]), ("x",)):
                    pass

            def test_shape():
                mesh_utils.create_device_mesh((2, 2), devices=jax.devices()[:4])

            def test_mapped():
                jax.pmap(lambda x: x)(np.arange(jax.device_count()))

            def test_one():
                jax.device_put(np.ones(2), jax.devices()[0])
            """
        },
    )
    said = {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    assert said == {
        "test_all": (0, 1, 8),
        "test_some": (0, 1, 2),
        "test_shape": (4, 4, 4),
        "test_mapped": (0, 1, 8),
        "test_one": (0, 1, 1),
    }


def test_jax_makes_devices_of_the_host_where_a_module_asks_for_them():
    found = needs_of(
        "mesh_test.py",
        {
            "mesh_test.py": """
            import contextlib
            from jax._src import test_util as jtu

            stack = contextlib.ExitStack()

            def setUpModule():
                stack.enter_context(jtu.set_host_platform_device_count(8))

            class MeshTest(jtu.JaxTestCase):
                def test_eight(self):
                    mesh = jtu.create_global_mesh((4, 2), ("x", "y"))

                @jtu.with_mesh([("x", 2), ("y", 2)])
                def test_four(self):
                    pass

                @jtu.with_explicit_mesh((2,), ("x",))
                def test_two(self, mesh):
                    pass
            """
        },
    )
    said = {name.partition("::")[2]: (profile(each), each.gpu_min, each.full) for name, each in found.items()}
    assert said == {"test_eight": ("rssssr", 8, 8), "test_four": ("rsssrr", 4, 4), "test_two": ("rsrrrr", 2, 2)}


def test_horovod_starts_the_ranks_that_it_is_told():
    found = needs_of(
        "test_ranks.py",
        {
            "test_ranks.py": """
            import torch

            def work():
                import horovod.torch as hvd
                hvd.init()
                if torch.cuda.is_available():
                    torch.cuda.set_device(hvd.local_rank())

            def test_ranks():
                from horovod import run
                run(work, num_proc=torch.cuda.device_count() or 4, use_gloo=True)
            """
        },
    )
    assert (found["test_ranks"].min, found["test_ranks"].gpu_min, found["test_ranks"].full) == (0, 1, 8)
    assert found["test_ranks"].ranks["0"] == 4


def test_a_program_uses_the_gpus_that_it_is_told():
    found = needs_of(
        "test_program.py",
        {
            "test_program.py": """
            import subprocess
            import sys

            def compare(base=8, other=4):
                command = [sys.executable, "compare.py", f"--base-ngpus={base}", "--other-ngpus", str(other)]
                assert subprocess.run(command).returncode == 0

            def test_default():
                compare()

            def test_two():
                compare(2, 2)
            """
        },
    )
    assert [found[name].min for name in ("test_default", "test_two")] == [8, 2]


def test_a_precompiled_run_is_an_entry_of_torchtitans_list():
    found = needs_of(
        "run_tests.py",
        {
            "run_tests.py": """
            def build():
                return [
                    PrecompileTestDefinition("python precompile.py", ["--a"], "first", test_name="one", ngpu=4),
                    PrecompileTestDefinition(command="", test_name="two", test_descr="second"),
                ]
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {"one": 4, "two": 8}


def test_a_group_of_ranks_that_nobody_has_fails():
    found = needs_of(
        "test_group.py",
        {
            "test_group.py": """
            import os
            import torch
            import torch.distributed as dist

            def start():
                rank, size = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
                torch.cuda.set_device(rank)
                dist.init_process_group("nccl", world_size=size, rank=rank)

            def test_groups():
                start()
                dist.new_group([0, 3])

            def test_broadcast():
                start()
                dist.broadcast(torch.ones(1).cuda(), src=6)

            def test_world():
                start()
                dist.new_group(list(range(dist.get_world_size())))
            """
        },
    )
    said = {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    assert said == {"test_groups": (4, 4, 8), "test_broadcast": (7, 7, 8), "test_world": (1, 1, 8)}


def test_a_test_that_never_runs_with_one_backend_runs_with_the_other():
    found = needs_of(
        "test_spawn.py",
        {
            "test_spawn.py": """
            import os
            import sys
            import unittest
            import torch
            import torch.distributed as dist
            from torch.testing._internal.common_distributed import MultiProcessTestCase

            BACKEND = os.environ["BACKEND"]

            class SpawnTest(MultiProcessTestCase):
                @property
                def world_size(self):
                    return os.environ["WORLD_SIZE"]

                def setUp(self):
                    super().setUp()
                    self._spawn_processes()

                @unittest.skipIf(BACKEND == "nccl", "on the host")
                def test_host(self):
                    dist.init_process_group(BACKEND, world_size=int(self.world_size), rank=self.rank)

                @unittest.skipIf(BACKEND == "gloo", "on devices")
                def test_devices(self):
                    dist.init_process_group(BACKEND, world_size=int(self.world_size), rank=self.rank)

                @unittest.skip("never")
                def test_never(self):
                    pass
            """
        },
    )
    said = {name.partition("::")[2]: (each.min, each.gpu_min, each.backend) for name, each in found.items()}
    assert said == {"test_host": (0, None, ["gloo"]), "test_devices": (1, 1, ["nccl"]), "test_never": (None, None, [])}
    assert found["SpawnTest::test_devices"].ranks["4"] == 4


def test_a_file_that_refuses_to_be_imported_without_a_variable_is_run_by_who_sets_it():
    found = needs_of(
        "test_spawn.py",
        {
            "test_spawn.py": """
            import os
            from os import path
            import torch
            from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_lt_x_gpu

            if (
                "BACKEND" not in os.environ
                or "SHARED_FOLDER" not in os.environ
                or not path.exists(path.join(os.environ["SHARED_FOLDER"], "barrier"))
            ):
                raise RuntimeError("BACKEND and SHARED_FOLDER are missing")

            class SpawnTest(MultiProcessTestCase):
                def setUp(self):
                    super().setUp()
                    self._spawn_processes()

                @skip_if_lt_x_gpu(4)
                def test_four(self):
                    torch.ones(1).cuda(self.rank)
            """
        },
    )
    four = found["SpawnTest::test_four"]
    assert (four.min, four.gpu_min, four.full, four.confidence) == (4, 4, 4, "medium")


def test_pytorch_up_to_2_5_starts_two_or_three_ranks_where_later_ones_start_one_for_each_device():
    spawning = """
        import os
        import torch
        import torch.distributed as dist
        from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_small_worldsize

        class SpawnTest(MultiProcessTestCase):
            @property
            def world_size(self):
                return int(os.environ["WORLD_SIZE"])

            def setUp(self):
                super().setUp()
                self._spawn_processes()

            def _join(self):
                if torch.cuda.device_count() < self.world_size:
                    self.skipTest("a device for each rank")
                dist.init_process_group("nccl", world_size=self.world_size, rank=self.rank)

            def test_all(self):
                self._join()

            @skip_if_small_worldsize
            def test_group(self):
                self._join()
    """
    helper = """
        import os
        import sys

        def skip_if_small_worldsize(func):
            def wrapper(*args, **kwargs):
                if int(os.environ["WORLD_SIZE"]) LIMIT:
                    sys.exit(73)
                return func(*args, **kwargs)
            return wrapper
    """
    said = {}
    for limit in ("<= 2", "< 8"):
        found = needs_of(
            "test/distributed/test_spawn.py",
            {
                "test/distributed/test_spawn.py": spawning,
                "torch/__init__.py": "",
                "torch/testing/__init__.py": "",
                "torch/testing/_internal/__init__.py": "",
                "torch/testing/_internal/common_distributed.py": helper.replace("LIMIT", limit),
            },
        )
        said[limit] = {name.partition("::")[2]: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    assert said == {
        "<= 2": {"test_all": (2, 2, 3), "test_group": (3, 3, 3)},
        "< 8": {"test_all": (1, 1, 8), "test_group": (8, 8, 8)},
    }


def test_kinds_of_devices_that_pytorch_lists_are_the_host_and_cuda_where_there_is_a_device():
    found = needs_of(
        "test_kinds.py",
        {
            "test_kinds.py": """
            import torch

            def test_each_kind():
                for device in torch.testing.get_all_device_types():
                    torch.ones(2, device=device)
            """
        },
    )
    each_kind = found["test_each_kind"]
    assert (each_kind.min, each_kind.gpu_min, each_kind.full, each_kind.confidence) == (0, 1, 1, "high")


def test_megatrons_helpers_start_a_rank_for_each_device_where_they_are_not_in_the_tree():
    found = needs_of(
        "tests/unit_tests/test_layers.py",
        {
            "tests/unit_tests/test_layers.py": """
            from tests.unit_tests.test_utilities import Utils

            def test_two():
                Utils.initialize_model_parallel(2, 1)

            def test_all():
                Utils.initialize_model_parallel(tensor_model_parallel_size=Utils.world_size)

            def test_instances_of_the_optimizer():
                Utils.initialize_model_parallel(2, num_distributed_optimizer_instances=2)
            """
        },
    )
    assert (found["test_instances_of_the_optimizer"].min, found["test_instances_of_the_optimizer"].full) == (4, 8)
    assert (found["test_two"].min, found["test_two"].full, found["test_two"].adaptive) == (2, 8, True)
    assert (found["test_all"].min, found["test_all"].full) == (1, 8)


def test_seeding_devices_by_megatron_uses_the_current_one():
    library = """
    import torch
    from megatron.core import tensor_parallel

    def seed(number):
        torch.manual_seed(number)
        if torch.cuda.device_count() > 0:
            tensor_parallel.model_parallel_cuda_manual_seed(number)
    """
    text = """
    from megatron.core import tensor_parallel

    from lib import seed

    def test_own():
        tensor_parallel.model_parallel_cuda_manual_seed(3)

    def test_library():
        seed(3)
    """
    found = needs_of("tests/test_it.py", {"lib/__init__.py": library, "tests/test_it.py": text})
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_own": (1, 1, 1),
        "test_library": (0, 1, 1),
    }


def test_a_launcher_of_the_library_under_test_runs_what_it_is_given():
    found = needs_of(
        "tests/test_launch.py",
        {
            "lib/__init__.py": "",
            "lib/parallel.py": """
            class Model:
                @staticmethod
                def spawn(fn, args, backend, nproc_per_node=1):
                    start_processes(fn, args=(fn, args), nprocs=nproc_per_node)
            """,
            "tests/test_launch.py": """
            import torch
            from lib.parallel import Model

            def work(rank, device):
                torch.ones(1, device=f"{device}:{rank}")

            def test_all():
                Model.spawn(work, args=("cuda",), backend="nccl", nproc_per_node=torch.cuda.device_count())

            def test_three():
                Model.spawn(work, args=("cuda",), backend="gloo", nproc_per_node=3)

            def test_host():
                Model.spawn(work, args=("cpu",), backend="gloo", nproc_per_node=3)
            """,
        },
    )
    said = {name: (each.gpu_min, each.full) for name, each in found.items()}
    assert said == {"test_all": (1, 8), "test_three": (3, 3), "test_host": (None, 0)}


def test_what_a_file_puts_into_the_environment_while_it_is_imported_holds_for_its_tests():
    found = needs_of(
        "tests/mesh_test.py",
        {
            "tests/other.py": "import os\nos.environ['WIDTH'] = '8'\n",
            "tests/mesh_test.py": """
            import os
            os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
            import jax
            import other
            import pytest

            def test_four():
                if jax.device_count() < 4:
                    pytest.skip("four")

            def test_other_file():
                assert os.environ.get("WIDTH", "1") == "1"
            """,
        },
    )
    assert profile(found["test_four"]) == "rsssrr"
    assert profile(found["test_other_file"]) == "rrrrrr"


def test_a_tensor_that_is_made_without_a_device_is_on_the_host():
    found = needs_of(
        "test_tensors.py",
        {
            "test_tensors.py": """
            import torch

            def check(tensor):
                if tensor.is_cuda:
                    tensor.to("cuda:1")

            def test_host():
                check(torch.randn(3))

            def test_device():
                check(torch.randn(3, device="cuda"))

            def measure(device):
                return torch.cuda.memory_stats() if device.type == "cuda" else {}

            def test_measured_on_the_host():
                measure(torch.randn(3).device)

            def test_measured():
                torch.set_default_device("cuda")
                measure(torch.randn(3).device)
            """
        },
    )
    assert [(each.gpu_min, each.full) for each in found.values()] == [(None, 0), (1, 2), (None, 0), (1, 1)]


def test_local_tensors_have_all_ranks_in_one_process_on_one_device():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch.testing._internal.common_distributed import skip_if_lt_x_gpu
            from torch.testing._internal.common_utils import NestedTensorTestCase, NoTest, TestCase
            from torch.testing._internal.distributed._tensor.common_dtensor import (
                create_local_tensor_test_class,
                DTensorTestBase,
                with_comms,
            )

            if not torch.cuda.is_available():
                TestCase = NoTest

            class MeshTest(DTensorTestBase):
                @with_comms
                def test_mesh(self):
                    mesh = self.build_device_mesh()
                    torch.ones(1, device=self.device_type)

                @with_comms
                def test_left_out(self):
                    pass

                @skip_if_lt_x_gpu(4)
                @with_comms
                def test_four(self):
                    torch.ones(1, device=self.device_type)

            MeshTestWithLocalTensor = create_local_tensor_test_class(MeshTest, skipped_tests=["test_left_out"])

            class Nested(NestedTensorTestCase):
                def test_host(self):
                    torch.ones(1)

            class OnDevices(TestCase):
                def test_device(self):
                    torch.ones(1, device="cuda")
            """
        },
    )
    said = {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    assert said == {
        "MeshTest::test_mesh": (0, 2, 4),
        "MeshTest::test_left_out": (0, 2, 4),
        "MeshTest::test_four": (4, 4, 4),
        "MeshTestWithLocalTensor::test_mesh": (0, 2, 2),
        "MeshTestWithLocalTensor::test_left_out": (None, None, None),
        "MeshTestWithLocalTensor::test_four": (4, 4, 4),
        "Nested::test_host": (0, None, 0),
        "OnDevices::test_device": (1, 1, 1),
    }


def test_ranks_that_are_kept_for_all_tests_of_a_class_have_a_device_each_or_are_on_the_host():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch.distributed.device_mesh import init_device_mesh
            from torch.testing._internal.distributed._tensor.common_dtensor import DTensorContinuousTestBase

            class PlacementTest(DTensorContinuousTestBase):
                world_size = 4

                def test_as_many(self):
                    self.build_device_mesh()

                def test_two_by_two(self):
                    init_device_mesh(self.device_type, (2, 2))
                    torch.ones(1, device=self.device_type)

            class OptimizerTest(DTensorContinuousTestBase):
                def test_as_many_as_there_are(self):
                    self.build_device_mesh()
                    torch.ones(self.world_size, device=self.device_type)
            """
        },
    )
    unsaid = found["OptimizerTest::test_as_many_as_there_are"]
    assert (unsaid.min, unsaid.gpu_min, unsaid.full) == (0, 1, 8)
    assert "".join(state[0] for state in unsaid.profile.values()) == "rrrrrr"
    for each in ("PlacementTest::test_as_many", "PlacementTest::test_two_by_two"):
        assert (found[each].min, found[each].gpu_min, found[each].full) == (0, 4, 4)
        assert "".join(state[0] for state in found[each].profile.values()) == "rsssrr"


def test_what_only_the_first_rank_does_is_looked_at_too():
    found = needs_of(
        "test_ranks.py",
        {
            "test_ranks.py": """
            import torch
            import torch.multiprocessing as mp
            from torch.distributed.nn import RemoteModule

            def work(rank, body):
                if rank == 0:
                    body()

            def use():
                torch.ones(1, device="cuda:2")

            def remote():
                RemoteModule("worker1/cuda:1", torch.nn.Linear, (1, 1))
                RemoteModule("worker0/cpu", torch.nn.Linear, (1, 1))

            def test_first():
                mp.spawn(work, args=(use,), nprocs=2)

            def test_remote():
                mp.spawn(work, args=(remote,), nprocs=2)

            def test_host():
                mp.spawn(work, args=(print,), nprocs=2)
            """
        },
    )
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {
        "test_first": (3, 3),
        "test_remote": (2, 2),
        "test_host": (0, None),
    }


def test_devices_that_a_program_text_names_are_used():
    found = needs_of(
        "test_programs.py",
        {
            "test_programs.py": """
            import subprocess
            import sys

            def test_each():
                for task in range(4):
                    program = f'import jax; jax.config.update("jax_cuda_visible_devices", "{task}");'
                    subprocess.Popen([sys.executable, "-c", program])
            """
        },
    )
    assert found["test_each"].min == 4


def test_cupys_words_for_tools_and_platforms_need_no_device():
    found = needs_of(
        "test_host.py",
        {
            "test_host.py": """
            import unittest
            from unittest import mock

            import cupy
            from cupy import cuda
            from cupy.cuda import runtime
            from cupyx import jit, profiler

            def test_mark():
                cuda.nvtx.MarkC("here", 0)

            def test_profile():
                with mock.patch("cupy_backends.cuda.api.runtime.profilerStart"):
                    with profiler.profile():
                        pass

            def test_version():
                assert runtime._getCUDAMajorVersion() > 10
                assert cuda.nccl.get_version() > 2000 and cuda.nccl.NcclConfig()

            @jit.rawkernel()
            def kernel(x):
                x[0] = 1

            def test_kernel():
                kernel((1,), (1,), ())

            def test_size():
                assert cupy.ndim(3) == 0 and cupy.float32(3) == 3

            @unittest.skipUnless(runtime.is_hip, "only there")
            def test_elsewhere():
                cupy.ones(1)

            @unittest.skipIf(runtime.is_hip, "not there")
            def test_here():
                cupy.ones(1)
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {
        "test_mark": 0,
        "test_profile": 0,
        "test_version": 0,
        "test_kernel": 1,
        "test_size": 0,
        "test_elsewhere": None,
        "test_here": 1,
    }


def test_entries_of_a_list_have_the_names_that_its_function_gives_them():
    found = devices_of(
        "tests/models.py",
        {
            "tests/__init__.py": """
            from dataclasses import dataclass

            @dataclass
            class OverrideDefinitions:
                override_args: tuple = ()
                test_descr: str = "default"
                test_name: str = "default"
                ngpu: int = 4
                disabled: bool = False
            """,
            "tests/models.py": """
            import dataclasses
            from tests import OverrideDefinitions

            def _on(entry, backend):
                if entry.ngpu == 2:
                    return entry
                return dataclasses.replace(entry, test_name=f"{entry.test_name}_{backend}")

            def build():
                entries = [
                    OverrideDefinitions([["a"]], "One", "one", ngpu=8),
                    OverrideDefinitions([["b"]], "Two", "two", ngpu=2),
                    OverrideDefinitions([["c"]], "Three", "three"),
                ]
                return [_on(each, "typed") for each in entries]
            """,
        },
    )
    assert found == {"one_typed": (8, 8, 8), "two": (2, 2, 2), "three_typed": (4, 4, 4)}


def test_entries_of_a_comprehension_are_as_many_as_it_makes_with_their_names():
    found = devices_of(
        "tests/overlap.py",
        {
            "tests/overlap.py": """
            from elsewhere import OverrideDefinitions

            def build():
                wide = 8
                modes = [("batch", wide, False), ("seq", 4, False), ("both", 4, True)]
                return [
                    OverrideDefinitions([["--plain"]], "Plain", "plain", ngpu=wide),
                    *[
                        OverrideDefinitions([["--mode", mode]], "Overlap", f"overlap_{mode}", ngpu=many, disabled=off)
                        for mode, many, off in modes
                    ],
                ]
            """,
        },
    )
    assert found == {
        "plain": (8, 8, 8),
        "overlap_batch": (8, 8, 8),
        "overlap_seq": (4, 4, 4),
        "overlap_both": (None, None, None),
    }


def test_verls_groups_of_workers_keep_the_devices_of_their_pool_and_are_its_ranks():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import ray
            import torch
            from torch.distributed.device_mesh import init_device_mesh
            from verl.single_controller.base import Worker
            from verl.single_controller.ray import RayClassWithInitArgs, RayResourcePool, RayWorkerGroup
            from verl.single_controller.ray.base import merge_resource_pool, split_resource_pool

            @ray.remote
            class Plain(Worker):
                def __init__(self, x):
                    super().__init__()

            @ray.remote
            class Meshed(Worker):
                def __init__(self):
                    super().__init__()
                    torch.distributed.init_process_group(backend="nccl")
                    init_device_mesh("cuda", mesh_shape=[2, torch.distributed.get_world_size() // 4])

            def group(sizes, **options):
                pool = RayResourcePool(sizes, **options)
                return RayWorkerGroup(pool, RayClassWithInitArgs(cls=Plain, x=1))

            def test_four():
                group([4]).work(1)

            def test_host():
                group([2], use_gpu=False).work(1)

            def test_all():
                assert group([torch.cuda.device_count()]).world_size == torch.cuda.device_count()

            def test_two_pools():
                group([1]), group([2])

            def test_shared_pool():
                pool = RayResourcePool(process_on_nodes=[2])
                for _ in range(2):
                    RayWorkerGroup(resource_pool=pool, ray_cls_with_init=RayClassWithInitArgs(Plain, 1))

            def test_parts():
                first, second = RayResourcePool([2]), RayResourcePool([1])
                for pool in (merge_resource_pool(first, second), first):
                    RayWorkerGroup(pool, RayClassWithInitArgs(cls=Plain, x=1))

            def test_split():
                for pool in split_resource_pool(RayResourcePool([4]), split_size=2):
                    RayWorkerGroup(pool, RayClassWithInitArgs(cls=Plain, x=1))

            def test_given_back():
                pool = RayResourcePool([2])
                RayWorkerGroup(pool, RayClassWithInitArgs(cls=Plain, x=1))
                [ray.util.remove_placement_group(each) for each in pool.get_placement_groups()]
                group([2])

            def test_meshed():
                pool = RayResourcePool([torch.cuda.device_count()])
                RayWorkerGroup(pool, RayClassWithInitArgs(Meshed))
            """
        },
    )
    assert found == {
        "test_four": (4, 4, 4),
        "test_host": (0, None, 0),
        "test_all": (1, 1, 8),
        "test_two_pools": (3, 3, 3),
        "test_shared_pool": (2, 2, 2),
        "test_parts": (3, 3, 3),
        "test_split": (4, 4, 4),
        "test_given_back": (2, 2, 2),
        "test_meshed": (4, 4, 8),
    }


def test_ray_trains_workers_are_ranks_that_keep_a_device_each_if_they_use_any():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest
            import ray
            import torch
            from ray.air.config import ScalingConfig
            from ray.train import ScalingConfig as Scaling
            from ray.train.torch import TorchTrainer

            def loop(config=None):
                ray.train.torch.prepare_model(torch.nn.Linear(1, 1))

            def test_two():
                trainer = TorchTrainer(loop, scaling_config=ScalingConfig(num_workers=2, use_gpu=True))
                trainer.fit()
                trainer.fit()

            def test_config():
                scaling = Scaling(num_workers=3, use_gpu=True)
                TorchTrainer(loop, train_loop_config={"a": 1}, scaling_config=scaling).fit()

            def test_more_each():
                scaling = Scaling(num_workers=2, use_gpu=True, resources_per_worker={"CPU": 1, "GPU": 2})
                TorchTrainer(loop, scaling_config=scaling).fit()

            def test_host():
                TorchTrainer(train_loop_per_worker=loop, scaling_config=ScalingConfig(num_workers=2)).fit()

            def test_not_fitted():
                TorchTrainer(loop, scaling_config=ScalingConfig(num_workers=4, use_gpu=True))
            """
        },
    )
    assert found == {
        "test_two": (2, 2, 2),
        "test_config": (3, 3, 3),
        "test_more_each": (4, 4, 4),
        "test_host": (0, None, 0),
        "test_not_fitted": (0, None, 0),
    }


def test_a_device_that_nvml_is_asked_for_must_be_there():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pynvml

            def test_second():
                pynvml.nvmlInit()
                pynvml.nvmlDeviceGetMemoryInfo(pynvml.nvmlDeviceGetHandleByIndex(1))

            def test_started():
                pynvml.nvmlInit()
            """
        },
    )
    assert found == {"test_second": (2, 2, 2), "test_started": (1, 1, 1)}


def test_each_rank_of_accelerates_has_its_own_device():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os

            import torch
            from accelerate import Accelerator, PartialState, notebook_launcher
            from torch.multiprocessing import spawn

            def worker(rank, world):
                os.environ["LOCAL_RANK"] = os.environ["RANK"] = str(rank)
                os.environ["WORLD_SIZE"] = str(world)
                Accelerator().prepare(torch.nn.Linear(2, 2))

            def on_the_host(rank):
                Accelerator(cpu=True).prepare(torch.nn.Linear(2, 2))

            def show():
                print(PartialState())

            def test_three():
                spawn(worker, args=(3,), nprocs=3)

            def test_three_on_the_host():
                spawn(on_the_host, nprocs=3)

            def test_launched():
                notebook_launcher(show, (), num_processes=2)
            """,
        },
    )
    assert found == {"test_three": (0, 3, 3), "test_three_on_the_host": (0, None, 0), "test_launched": (0, 2, 2)}


def test_a_rank_that_joins_with_its_device_and_what_is_loaded_onto_others_need_these():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.distributed as dist
            from torch.multiprocessing import spawn

            def worker(rank, world):
                dist.init_process_group(rank=rank, world_size=world, device_id=torch.device("cuda", rank))

            def test_ranks():
                spawn(worker, args=(3,), nprocs=3)

            def test_loaded_elsewhere():
                torch.load("model.pt", map_location={"cuda:0": "cuda:1"})

            def test_loaded_on_the_host():
                torch.load("model.pt", map_location={"cuda:0": "cpu"})
            """,
        },
    )
    assert found == {
        "test_ranks": (3, 3, 3),
        "test_loaded_elsewhere": (2, 2, 2),
        "test_loaded_on_the_host": (0, None, 0),
    }


def test_lightnings_devices_may_be_numbers_in_a_text():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from pytorch_lightning import Trainer

            def test_two_numbers():
                Trainer(gpus="0, 3").fit(None)

            def test_one_number_and_a_comma():
                Trainer(devices="1,", accelerator="gpu").fit(None)

            def test_a_count():
                Trainer(devices="3", accelerator="gpu").fit(None)
            """,
        },
    )
    assert found == {"test_two_numbers": (4, 4, 4), "test_one_number_and_a_comma": (2, 2, 2), "test_a_count": (3, 3, 3)}


def test_accelerates_state_uses_a_device_in_a_rank_only_and_what_is_moved_to_its_device_does():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from accelerate import Accelerator, PartialState
            from accelerate.state import AcceleratorState
            from torch.multiprocessing import spawn

            def test_state():
                PartialState()
                assert torch.zeros(2).sum() == 0

            def test_whole_state():
                AcceleratorState()

            def test_moved():
                state = PartialState()
                torch.zeros(2).to(state.device)

            def test_accelerator():
                Accelerator()

            def test_prepared():
                Accelerator().prepare(torch.nn.Linear(2, 2))

            def test_moved_to_the_accelerators():
                torch.zeros(2).to(Accelerator().device)

            def test_told_the_host():
                accelerator = Accelerator(mixed_precision="no", cpu=True)
                model = accelerator.prepare(torch.nn.Linear(2, 2))
                model(torch.zeros(2).to(accelerator.device))

            def worker(rank):
                PartialState()

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two devices")
            def test_ranks():
                spawn(worker, nprocs=2)
            """,
        },
    )
    assert found == {
        "test_state": (0, None, 0),
        "test_whole_state": (0, None, 0),
        "test_moved": (0, 1, 1),
        "test_accelerator": (0, None, 0),
        "test_prepared": (0, 1, 1),
        "test_moved_to_the_accelerators": (0, 1, 1),
        "test_told_the_host": (0, None, 0),
        "test_ranks": (2, 2, 2),
    }
    in_its_tree = devices_of(
        "tests/test_it.py",
        {
            "src/accelerate/__init__.py": "from .accelerator import Accelerator\n",
            "src/accelerate/accelerator.py": """
            class Accelerator:
                def __init__(self, mixed_precision=None, cpu=False):
                    self.cpu = cpu

                @property
                def device(self):
                    return self.state.device

                def prepare(self, *things):
                    return things[0]
            """,
            "tests/test_it.py": """
            import torch
            from accelerate import Accelerator

            def test_prepared():
                Accelerator().prepare(torch.nn.Linear(2, 2))

            def test_told_the_host():
                accelerator = Accelerator(cpu=True)
                accelerator.prepare(torch.nn.Linear(2, 2))(torch.ones(2, device=accelerator.device))

            def test_moved():
                torch.ones(2).to(Accelerator().device)
            """,
        },
    )
    assert in_its_tree == {"test_prepared": (0, 1, 1), "test_told_the_host": (0, None, 0), "test_moved": (0, 1, 1)}


def test_deepspeeds_accelerator_is_the_host_where_there_is_no_device_in_versions_that_ask_pytorch():
    tests = """
    import deepspeed
    import pytest
    import torch
    from deepspeed.accelerator import get_accelerator
    from deepspeed.ops.op_builder import FusedAdamBuilder, InferenceBuilder
    from unit.common import DistributedTest

    class TestOne(DistributedTest):
        world_size = 1

        def test_one(self):
            torch.ones(1, device=get_accelerator().current_device_name())

        def test_half(self):
            deepspeed.initialize(model=torch.nn.Linear(1, 1), config={"fp16": {"enabled": True}})

        def test_guarded(self):
            if not get_accelerator().is_fp16_supported():
                pytest.skip("no half precision")

        def test_type(self):
            if torch.half not in get_accelerator().supported_dtypes():
                pytest.skip("no half precision")

        @pytest.mark.parametrize("dtype", [torch.float, torch.bfloat16], ids=["single", "brain"])
        def test_types(self, dtype):
            if dtype not in get_accelerator().supported_dtypes():
                pytest.skip("no such type")

        def test_there(self):
            if not deepspeed.ops.__compatible_ops__[FusedAdamBuilder.NAME]:
                pytest.skip("no such operator")

        def test_operator(self):
            if not deepspeed.ops.__compatible_ops__[InferenceBuilder.NAME]:
                pytest.skip("no such operator")

    class TestTwo(DistributedTest):
        def test_two(self):
            pass

    class TestOwn(DistributedTest):
        def _launch_procs(self, num_procs, init_method):
            if get_accelerator().device_name() != "cpu":
                return super()._launch_procs(num_procs, init_method)
            self._launch_daemonic_procs(num_procs, init_method)

        def test_two(self):
            torch.ones(1, device=get_accelerator().device_name())

    class TestAlone(DistributedTest):
        world_size = 1
        init_distributed = False

        def test_partitioned(self):
            with deepspeed.zero.Init(config_dict_or_path={}):
                torch.nn.Linear(1, 1)

        def test_engine(self):
            deepspeed.initialize(model=torch.nn.Linear(1, 1), config={})

        def test_off(self):
            with deepspeed.zero.Init(enabled=False):
                torch.nn.Linear(1, 1)

        def test_refused(self):
            with pytest.raises(AssertionError):
                deepspeed.initialize(model=torch.nn.Linear(1, 1), config={})

    class TestCounted(DistributedTest):
        world_size = [1, 2] if get_accelerator().device_count() > 1 else [1]

        def test_counted(self):
            pass
    """
    common = "class DistributedExec:\n    pass\nclass DistributedTest(DistributedExec):\n    pass\n"
    library = "import torch\ndef get_accelerator():\n    return 'cuda' if torch.cuda.is_available() else 'cpu'\n"
    of_tree = {"deepspeed/__init__.py": "", "deepspeed/accelerator/real_accelerator.py": library}
    of_tree["deepspeed/accelerator/__init__.py"] = "from .real_accelerator import get_accelerator\n"
    host = {"TestOne::test_one": (0, 1, 1), "TestOne::test_there": (0, 1, 1), "TestOwn::test_two": (0, 2, 2)}
    rest = {"TestOne::test_half": (1, 1, 1), "TestOne::test_guarded": (1, 1, 1), "TestOne::test_operator": (1, 1, 1)}
    rest |= {"TestTwo::test_two": (2, 2, 2), "TestOne::test_type": (1, 1, 1)}
    host |= {"TestOne::test_types[single]": (0, 1, 1), "TestOne::test_types[brain]": (0, 1, 1)}
    host |= {"TestAlone::test_partitioned": (0, 1, 1), "TestAlone::test_engine": (0, 1, 1)}
    host |= {"TestAlone::test_off": (0, None, 0), "TestAlone::test_refused": (0, None, 0)}

    def needs(said, files):
        given = {"tests/unit/__init__.py": "", "tests/unit/common.py": said, "tests/unit/test_it.py": tests}
        return devices_of("tests/unit/test_it.py", given | files)

    knows_of_gaudi = common + "if accelerator == 'hpu':\n    pass\n"
    for found in (needs(common, of_tree), needs(knows_of_gaudi, {})):
        assert found == host | rest | {"TestCounted::test_counted": (0, 1, 2)}
    one = dict.fromkeys(host, (1, 1, 1)) | {"TestOwn::test_two": (2, 2, 2)}
    assert needs(common, {}) == one | rest | {"TestCounted::test_counted": (1, 1, 2)}


def test_helpers_among_the_tests_of_a_package_are_followed_where_the_package_is_not():
    found = devices_of(
        "jax/experimental/tests/old_test.py",
        {
            "jax/__init__.py": "",
            "jax/experimental/__init__.py": "",
            "jax/experimental/tests/__init__.py": "",
            "jax/experimental/tests/old_util.py": """
            import dataclasses
            import jax
            from jax._src import test_util as jtu
            from jax._src import xla_bridge as xb

            @dataclasses.dataclass
            class Data:
                platform: str

            class OldCase(jtu.JaxTestCase):
                def platform(self):
                    return xb.canonicalize_platform(jax.default_backend())

                def run_one(self, func, data):
                    if self.platform() != data.platform:
                        self.skipTest(data.platform)
                    jax.jit(func)(1.0)
            """,
            "jax/experimental/tests/old_test.py": """
            import dataclasses
            import jax.numpy as jnp
            from jax.experimental.tests import old_util

            class TestOld(old_util.OldCase):
                def test_cuda(self):
                    self.run_one(jnp.sin, old_util.Data("cuda"))

                def test_tpu(self):
                    self.run_one(jnp.sin, old_util.Data("tpu"))

                def test_any(self):
                    data = dataclasses.replace(old_util.Data("cpu"), platform=self.platform())
                    self.run_one(jnp.sin, data)
            """,
        },
    )
    assert found == {
        "TestOld::test_cuda": (1, 1, 1),
        "TestOld::test_tpu": (None, None, None),
        "TestOld::test_any": (0, 1, 1),
    }


def test_tables_of_fbgemms_lie_on_a_device_unless_they_are_told_otherwise():
    found = devices_of(
        "test_tables.py",
        {
            "test_tables.py": """
            import torch
            from fbgemm_gpu.split_table_batched_embeddings_ops_training import DenseTableBatchedEmbeddingBagsCodegen

            def test_either():
                device = "cuda" if torch.cuda.is_available() else "cpu"
                DenseTableBatchedEmbeddingBagsCodegen([(2, 4)], use_cpu=device == "cpu")

            def test_device():
                DenseTableBatchedEmbeddingBagsCodegen([(2, 4)])
            """
        },
    )
    assert found == {"test_either": (0, 1, 1), "test_device": (1, 1, 1)}


def test_degrees_of_torchtitans_decide_where_its_library_is_not_there():
    found = devices_of(
        "test_numerics.py",
        {
            "test_numerics.py": """
            import torch
            from torch.testing._internal.common_fsdp import FSDPTest
            from torchtitan.distributed import ParallelDims

            class TestNumerics(FSDPTest):
                def degrees(self, replicate, **more):
                    return ParallelDims(
                        dp_replicate=replicate, dp_shard=-1, cp=1, tp=1, pp=1, world_size=self.world_size, **more
                    )

                def test_replicate(self):
                    self.degrees(self.world_size).get_mesh(["dp_replicate"])

                def test_hybrid(self):
                    self.degrees(self.world_size // 2).get_mesh(["dp_replicate", "fsdp"])

                def test_shard(self):
                    self.degrees(1, ep=1).get_mesh("fsdp")

                def test_shard_of_old(self):
                    self.degrees(1, ep=1, etp=1).get_mesh("fsdp")

                def test_slice(self):
                    mesh = self.degrees(self.world_size // 2).build_mesh(device_type="cuda")
                    mesh[("dp_replicate", "dp_shard_cp")]
            """
        },
    )
    assert {name.partition("::")[2]: needs for name, needs in found.items()} == {
        "test_replicate": (2, 2, 8),
        "test_hybrid": (4, 4, 8),
        "test_shard": (1, 1, 8),
        "test_shard_of_old": (2, 2, 8),
        "test_slice": (4, 4, 8),
    }


def test_workers_of_torchrecs_are_told_their_rank_by_name():
    found = devices_of(
        "test_sharded.py",
        {
            "test_sharded.py": """
            import unittest
            import torch
            from torchrec.distributed.test_utils.multi_process import MultiProcessContext, MultiProcessTestBase

            class TestSharded(MultiProcessTestBase):
                @staticmethod
                def body(tables, rank, local_size, world_size, backend):
                    with MultiProcessContext(rank, world_size, backend, local_size) as context:
                        torch.ones(1, device=context.device)

                @unittest.skipIf(torch.cuda.device_count() <= 1, "two")
                def test_sharded(self):
                    self._run_multi_process_test(
                        callable=self.body, world_size=2, local_size=2, backend="nccl", tables=[]
                    )
            """
        },
    )
    assert found == {"TestSharded::test_sharded": (2, 2, 2)}


def test_workers_of_vllms_are_told_their_rank_by_the_environment():
    found = devices_of(
        "tests/test_workers.py",
        {
            "tests/test_workers.py": """
            import multiprocessing
            import pytest
            import torch
            from vllm.distributed.parallel_state import init_distributed_environment
            from vllm.utils import update_environment_variables

            def body(env):
                update_environment_variables(env)
                init_distributed_environment()
                torch.cuda.set_device(f"cuda:{torch.distributed.get_rank()}")

            def test_workers():
                if torch.cuda.device_count() < 2:
                    pytest.skip("two")
                processes = []
                for i in range(2):
                    env = {"RANK": str(i), "WORLD_SIZE": "2"}
                    processes.append(multiprocessing.Process(target=body, args=(env,)))
                    processes[-1].start()
            """
        },
    )
    assert found == {"test_workers": (2, 2, 2)}


def test_the_framework_whose_devices_are_counted_is_there():
    found = devices_of(
        "tests/test_launch.py",
        {
            "tests/testing_utils.py": """
            from library.utils import is_tf_available, is_torch_available

            def get_gpu_count():
                if is_torch_available():
                    import torch
                    return torch.cuda.device_count()
                elif is_tf_available():
                    return 3
                return 0
            """,
            "tests/test_launch.py": """
            import subprocess
            from testing_utils import get_gpu_count

            def test_launch():
                subprocess.run(f"torchrun --nproc_per_node {min(2, get_gpu_count())} train.py".split(), check=True)
            """,
        },
    )
    assert found["test_launch"][2] == 2


def test_an_engine_that_is_made_of_its_arguments_starts_as_one_that_is_given_them():
    found = devices_of(
        "tests/test_engine.py",
        {
            "tests/test_engine.py": """
            from vllm import LLM, EngineArgs

            def test_one():
                LLM.from_engine_args(EngineArgs(model="m"))

            def test_four():
                LLM.from_engine_args(EngineArgs(model="m", tensor_parallel_size=4))
            """
        },
    )
    assert found == {"test_one": (1, 1, 1), "test_four": (4, 4, 4)}


def test_an_engine_among_ranks_that_a_launcher_has_started_is_as_wide_as_these_where_its_sizes_are_not_known():
    found = devices_of(
        "tests/test_engine.py",
        {
            "tests/test_engine.py": """
            import os, pytest
            from recipes import settings
            from vllm import EngineArgs, LLMEngine

            def engine(config):
                given = {"tensor_parallel_size": config.degree, "distributed_executor_backend": "external_launcher"}
                return LLMEngine.from_engine_args(EngineArgs(**given))

            def test_of_four():
                if int(os.environ.get("WORLD_SIZE", "1")) != 4:
                    pytest.skip("for four ranks")
                engine(settings())
            """
        },
    )
    assert found == {"test_of_four": (4, 4, 4)}


def test_a_class_that_a_decorator_of_functions_wraps_has_no_tests_in_pytorchs_own_suite_either():
    found = devices_of(
        "test_wrapped.py",
        {
            "test_wrapped.py": """
            from torch.testing._internal.common_utils import TestCase, skipIfHpu

            @skipIfHpu
            class TestLost(TestCase):
                def test_lost(self):
                    pass

            class TestKept(TestCase):
                @skipIfHpu
                def test_kept(self):
                    pass
            """
        },
    )
    assert found == {"TestKept::test_kept": (0, None, 0)}


def test_ranks_that_are_threads_and_as_many_as_devices_are_fewer_on_fewer():
    found = devices_of(
        "test_ops.py",
        {
            "test_ops.py": """
            import torch
            from torch.testing._internal.distributed._tensor.common_dtensor import DTensorOpTestBase

            class TestOps(DTensorOpTestBase):
                def test_op(self):
                    torch.ones(1, device=self.device_type)
            """
        },
    )
    assert found == {"TestOps::test_op": (0, 2, 4)}


def test_who_waits_for_the_memory_of_devices_looks_at_them_and_uses_none():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/utils.py": """
            from pynvml import nvmlDeviceGetHandleByIndex, nvmlDeviceGetMemoryInfo

            def wait_for_gpu_memory_to_clear(*, devices, threshold_bytes=None):
                while True:
                    for each in devices:
                        if nvmlDeviceGetMemoryInfo(nvmlDeviceGetHandleByIndex(each)).used > threshold_bytes:
                            break
                    else:
                        return
            """,
            "tests/test_it.py": """
            import torch
            from tests.utils import wait_for_gpu_memory_to_clear

            def test_one():
                wait_for_gpu_memory_to_clear(devices=[0])

            def test_two():
                wait_for_gpu_memory_to_clear(devices=list(range(2)), threshold_bytes=1)

            def test_all():
                wait_for_gpu_memory_to_clear(devices=list(range(torch.cuda.device_count())))
            """,
        },
    )
    assert {name: each[0] for name, each in found.items()} == {"test_one": 1, "test_two": 2, "test_all": 1}


def test_what_deepspeed_finds_when_it_is_installed_is_not_what_was_found_where_it_was_packed():
    found = devices_of(
        "tests/unit/test_it.py",
        {
            "deepspeed/__init__.py": "",
            "deepspeed/git_version_info.py": """
            try:
                from .git_version_info_installed import *
            except ModuleNotFoundError:
                torch_info = {"version": "0.0", "cuda_version": "0.0", "nccl_version": "0.0"}
            """,
            "deepspeed/git_version_info_installed.py": """
            torch_info = {"version": "0.0", "bf16_support": False, "cuda_version": "0.0", "nccl_version": "0.0"}
            """,
            "tests/unit/test_it.py": """
            import pytest, torch
            from deepspeed.git_version_info import torch_info

            def is_recent(text, major):
                return int(text.split(".")[0]) >= major

            def test_it():
                if not (torch_info["bf16_support"] and is_recent(torch_info["cuda_version"], 11)):
                    pytest.skip("needs BFloat16")
                torch.ones(1, device="cuda:1")
            """,
        },
    )
    assert found == {"test_it": (2, 2, 2)}


def test_what_is_loaded_is_where_a_function_moves_it():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import functools
            import torch

            def move(number, storage, location):
                return storage.cuda(number)

            def test_by_a_lambda():
                torch.load("file", map_location=lambda storage, location: storage.cuda(1))

            def test_by_a_function():
                torch.load("file", functools.partial(move, 3))

            def test_that_leaves_it_on_the_host():
                torch.load("file", map_location=lambda storage, location: storage)

            def test_of_which_nothing_is_known(where):
                torch.load("file", map_location=where)
            """
        },
    )
    assert found == {
        "test_by_a_lambda": (2, 2, 2),
        "test_by_a_function": (4, 4, 4),
        "test_that_leaves_it_on_the_host": (0, None, 0),
        "test_of_which_nothing_is_known": (0, None, 0),
    }


def test_a_device_of_a_negative_number_is_chosen_by_nobody():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch

            def test_of_the_last_device():
                torch.cuda.set_device(torch.cuda.device_count() - 1)
                torch.ones(1).cuda()

            def test_of_none():
                torch.cuda.set_device(-1)

            def test_of_the_second_still():
                torch.cuda.set_device(1)
                torch.cuda.set_device(-1)
                torch.ones(1).cuda()
            """
        },
    )
    assert found == {
        "test_of_the_last_device": (1, 1, 1),
        "test_of_none": (0, None, 0),
        "test_of_the_second_still": (2, 2, 2),
    }


def test_tensors_are_on_the_device_that_they_are_loaded_or_cast_or_scattered_to():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch

            def test_loaded():
                torch.load("file", map_location="cuda:1")

            def test_loaded_on_the_host():
                torch.load("file", "cpu")
                torch.load("file")

            def test_loaded_somewhere(where):
                torch.load("file", map_location=where)
                torch.load("file", map_location=lambda storage, place: storage)

            def test_cast():
                torch.ones(1).type("torch.cuda.FloatTensor")

            def test_cast_on_the_host():
                torch.ones(1).type("torch.FloatTensor").type(torch.float64)

            def test_scattered():
                torch.nn.parallel.scatter(torch.ones(4), [0, "cuda:2"])

            def test_scattered_on_a_device():
                torch.nn.parallel.scatter(torch.ones(4), target_gpus=[0])
            """
        },
    )
    assert found == {
        "test_loaded": (2, 2, 2),
        "test_loaded_on_the_host": (0, None, 0),
        "test_loaded_somewhere": (0, None, 0),
        "test_cast": (1, 1, 1),
        "test_cast_on_the_host": (0, None, 0),
        "test_scattered": (3, 3, 3),
        "test_scattered_on_a_device": (1, 1, 1),
    }


def test_a_mask_of_blocks_is_made_on_the_first_device_where_no_device_is_named():
    text = """
    import torch
    from torch.nn.attention import flex_attention
    from torch.nn.attention.flex_attention import create_block_mask

    def causal(batch, head, query, key):
        return query >= key

    def test_told_nothing():
        create_block_mask(causal, B=1, H=1, Q_LEN=128, KV_LEN=128)

    def test_told_none():
        flex_attention.create_block_mask(causal, 1, 1, 128, 128, None)

    def test_told():
        create_block_mask(causal, 1, 1, 128, 128, device="cuda")

    def test_of_the_host():
        create_block_mask(causal, 1, 1, 128, 128, "cpu")
    """
    expected = {
        "test_told_nothing": (0, 1, 1), "test_told_none": (0, 1, 1), "test_told": (1, 1, 1),
        "test_of_the_host": (0, None, 0),
    }  # fmt: skip
    assert devices_of("test_it.py", {"test_it.py": text}) == expected
    of_long_ago = {
        "test_it.py": text,
        "torch/nn/attention/flex_attention.py": 'def create_block_mask(device: str = "cuda"): ...',
    }
    assert devices_of("test_it.py", of_long_ago)["test_told_nothing"] == (1, 1, 1)
