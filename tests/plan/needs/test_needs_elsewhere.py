"""What tests let others do for them: threads, executors, libraries that are told a number of devices; and names."""

import textwrap

from sooner.cli.needs_static import shipped_rules
from sooner.plan.needs import Sources, infer_needs, load_rules


def needs_of(path, files):
    texts = {name: textwrap.dedent(text) for name, text in files.items()}
    rules = load_rules([("rules.toml", shipped_rules())])
    return {
        each.nodeid.partition("::")[2]: (each.min, each.gpu_min, each.full)
        for each in infer_needs(Sources(texts, texts.get), [path], rules=rules)
    }


def test_a_function_that_an_executor_or_a_thread_runs_is_a_part_of_the_test():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import asyncio
            import threading
            from concurrent.futures import ThreadPoolExecutor

            import torch

            def work(index=0):
                return torch.ones(1, device=f"cuda:{index}")

            async def test_loop():
                await asyncio.get_event_loop().run_in_executor(executor=None, func=work)

            async def test_to_thread():
                await asyncio.to_thread(work, 1)

            def test_pool():
                with ThreadPoolExecutor() as pool:
                    pool.submit(work, 2).result()

            def test_thread():
                thread = threading.Thread(target=work, args=(1,))
                thread.start()
                thread.join()

            def test_thread_that_waits():
                threading.Thread(target=work)
            """
        },
    )
    assert found == {
        "test_loop": (1, 1, 1),
        "test_to_thread": (2, 2, 2),
        "test_pool": (3, 3, 3),
        "test_thread": (2, 2, 2),
        "test_thread_that_waits": (0, None, 0),
    }


def test_what_is_started_on_a_number_of_devices_needs_them_and_what_describes_it_does_not():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            from types import SimpleNamespace
            from engines import Engine, EngineConfig, Generator, Request, Topology

            def test_told():
                Request(tp_size=8)
                Topology(SimpleNamespace(tensor_parallel_size=4), num_gpus=4)

            def test_engine():
                Engine(model="m", tp_size=4)

            def test_generator():
                Generator.from_pretrained("m", num_gpus=2)

            def test_description():
                EngineConfig(tensor_parallel_size=8)
            """
        },
    )
    assert found == {
        "test_engine": (4, 4, 4),
        "test_generator": (2, 2, 2),
        "test_description": (0, None, 0),
        "test_told": (0, None, 0),
    }


def test_a_file_that_needs_a_module_of_another_vendor_never_runs_unless_it_can_do_without():
    found = needs_of(
        "test_it.py",
        {"test_it.py": "import torch_xla.core as xc\n\ndef test_here():\n    pass\n"}
        | {
            "test_other.py": """
            try:
                import torch_npu
            except ImportError:
                torch_npu = None

            def test_there():
                pass
            """
        },
    )
    assert found == {"test_here": (None, None, None)}
    more = needs_of("test_other.py", {"test_other.py": "try:\n    import torch_npu\nexcept ImportError:\n    pass\n\n"
                                      "def test_there():\n    pass\n"})  # fmt: skip
    assert more == {"test_there": (0, None, 0)}


def test_names_that_a_function_makes_of_parameters_are_the_same_for_every_number_of_devices():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            from parameterized import parameterized
            from elsewhere import tag

            def safe(function, number, param):
                return "%s_%s" % (function.__name__, parameterized.to_safe_name(str(param.args)))

            def unsafe(function, number, param):
                return "%s_%s" % (function.__name__, tag(param))

            class TestIt(unittest.TestCase):
                @parameterized.expand([[True, 2]], name_func=safe)
                def test_known(self, flag, count):
                    pass

                @parameterized.expand([[True]], name_func=unsafe)
                def test_unknown(self, flag):
                    pass
            """
        },
    )
    assert found == {"TestIt::test_known__True_2_": (0, None, 0), "TestIt::test_unknown_0": (0, None, 0)}


def test_a_launcher_that_joins_a_group_of_nccls_by_default_takes_a_device_for_each_rank():
    found = needs_of(
        "tests/test_it.py",
        {
            "library/__init__.py": "",
            "library/start.py": "def launch(rank, world_size, port, backend='nccl'):\n    pass\n",
            "tests/test_it.py": """
            import torch.multiprocessing as mp
            from library.start import launch

            def work(rank, world_size):
                launch(rank, world_size, 29500)

            def host(rank, world_size):
                launch(rank, world_size, 29500, backend="gloo")

            def test_devices():
                mp.spawn(work, args=(4,), nprocs=4)

            def test_host():
                mp.spawn(host, args=(4,), nprocs=4)
            """,
        },
    )
    assert found["test_devices"] == (4, 4, 4)
    assert found["test_host"][:2] == (0, None)


def test_a_skip_that_a_hook_adds_waits_for_an_option_and_does_not_hide_what_a_test_needs():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/conftest.py": """
            import pytest

            def pytest_collection_modifyitems(config, items):
                if config.getoption("--optional"):
                    return
                skip_optional = pytest.mark.skip(reason="need --optional option to run")
                for item in items:
                    if "optional" in item.keywords:
                        item.add_marker(skip_optional)
            """,
            "tests/test_it.py": """
            import pytest
            import torch

            @pytest.mark.optional
            @pytest.mark.skipif(torch.cuda.device_count() < 4, reason="devices")
            def test_optional():
                torch.ones(1, device="cuda:3")

            @pytest.mark.skip
            def test_skipped():
                pass
            """,
        },
    )
    assert found == {"test_optional": (4, 4, 4), "test_skipped": (None, None, None)}


def test_results_that_are_compared_under_scipys_name_are_computed_on_a_device_too():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            from cupy import testing

            @testing.numpy_cupy_allclose(scipy_name="scp", accept_error=ValueError)
            def test_spline(xp, scp):
                scp.interpolate.make_interp_spline([0, 2, 1], [0, 1, 2], k=1)
            """
        },
    )
    assert found == {"test_spline": (1, 1, 1)}


def test_classes_that_cupy_makes_of_cases_have_its_names_and_their_own_needs():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import cupy
            import numpy
            from cupy import testing

            @testing.parameterize({"count": 2, "dtype": numpy.float32}, {"count": 3, "dtype": numpy.float64})
            class TestOld(unittest.TestCase):
                def test_it(self):
                    for index in range(self.count):
                        cupy.cuda.Device(index).use()

            @testing.parameterize(*testing.product({"n": [1, 4], "host": [False]}))
            class TestNew:
                def test_it(self):
                    cupy.cuda.Device(self.n - 1).use()

            @testing.parameterize({"types": (numpy.int8, None), "at": (..., [1])})
            class TestTypes:
                def test_it(self):
                    cupy.ones(1)
            """
        },
    )
    assert found == {
        "TestOld_param_0_{count=2, dtype=float32}::test_it": (2, 2, 2),
        "TestOld_param_1_{count=3, dtype=float64}::test_it": (3, 3, 3),
        "TestNew::test_it[_param_0_{host=False, n=1}]": (1, 1, 1),
        "TestNew::test_it[_param_1_{host=False, n=4}]": (4, 4, 4),
        "TestTypes::test_it[_param_0_{at=(Ellipsis, [1]), types=(<class 'numpy.int8'>, None)}]": (1, 1, 1),
    }


def test_a_text_is_never_equal_to_a_device_of_torchs():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.mark.parametrize("device", ["cpu"])
            def test_host(device):
                if device == torch.device("cuda"):
                    torch.cuda.set_device(1)
            """
        },
    )
    assert found == {"test_host[cpu]": (0, None, 0)}


def test_a_skip_behind_a_condition_that_is_not_known_does_not_keep_a_test_from_ever_running():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            from packaging.version import Version
            from models import installed

            def check(on_fail):
                if Version(installed()) < Version("4"):
                    text = "too old"
                else:
                    return None
                if on_fail == "skip":
                    pytest.skip(text)

            def test_host():
                check("skip")
            """
        },
    )
    assert found == {"test_host": (0, None, 0)}


def test_the_generation_of_a_device_decides_neither_a_tests_skip_nor_its_cases():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from vllm.platforms import current_platform

            @pytest.mark.skipif(not torch.cuda.is_available(), reason="devices")
            @pytest.mark.parametrize("wide", [True, False] if current_platform.is_device_capability(90) else [False])
            def test_cases(wide):
                if current_platform.is_device_capability(100):
                    pytest.skip("not on these")
                torch.ones(1, device="cuda")
            """
        },
    )
    assert found == {"test_cases[True]": (1, 1, 1), "test_cases[False]": (1, 1, 1)}


def test_accelerates_launcher_takes_one_device_or_all_where_it_is_told_no_number():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import torch

            def test_one():
                subprocess.run(["accelerate", "launch", "script.py"])

            def test_all():
                command = ["accelerate", "launch"]
                if torch.cuda.device_count() > 1:
                    command += ["--multi_gpu"]
                subprocess.run(command + ["script.py"])

            def test_of_a_file():
                subprocess.run(["accelerate", "launch", "--config_file", "two.yaml", "script.py"])
            """
        },
    )
    assert found == {"test_one": (0, 1, 1), "test_all": (0, 1, 8), "test_of_a_file": (0, None, 0)}


def test_an_error_of_cupys_and_a_version_need_no_device():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import cupy
            from cupy.cuda import cufft, runtime

            new = pytest.mark.skipif(runtime.runtimeGetVersion() < 10010, reason="old")

            @new
            def test_error():
                assert cufft.CuFFTError(1).args

            def test_array():
                cupy.zeros(1)
            """
        },
    )
    assert found == {"test_error": (0, None, 0), "test_array": (1, 1, 1)}


def test_of_a_command_with_unknown_parts_the_known_words_count():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import shlex
            import subprocess
            import torch
            from elsewhere import port, script

            def test_split():
                command = f"torchrun --nproc_per_node={min(2, torch.cuda.device_count())} --port {port()}".split()
                subprocess.run(command)

            def test_shell():
                subprocess.run(f"torchrun --nproc_per_node=4 {script} --port={port()}", shell=True)

            def test_shlex():
                subprocess.run(shlex.split(f"torchrun --nproc_per_node 3 {script}"))
            """
        },
    )
    assert found == {"test_split": (1, 1, 2), "test_shell": (4, 4, 4), "test_shlex": (3, 3, 3)}


def test_values_that_a_test_is_given_directly_stand_in_for_a_fixtures_own():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.fixture(params=[1, 2, 4])
            def size(request):
                return request.param

            def test_fixture(size):
                torch.ones(1, device=f"cuda:{size - 1}")

            @pytest.mark.parametrize("size, name", [(3, "a")])
            def test_given(size, name):
                torch.ones(1, device=f"cuda:{size - 1}")
            """
        },
    )
    assert found == {
        "test_fixture[1]": (1, 1, 1),
        "test_fixture[2]": (2, 2, 2),
        "test_fixture[4]": (4, 4, 4),
        "test_given[3-a]": (3, 3, 3),
    }


def test_data_parallel_takes_all_devices_unless_it_is_told_which():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="devices")
            def test_all():
                torch.nn.DataParallel(torch.nn.Linear(1, 1))

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="devices")
            def test_two():
                torch.nn.DataParallel(torch.nn.Linear(1, 1), device_ids=[0, 1])
            """
        },
    )
    assert found == {"test_all": (2, 2, 8), "test_two": (2, 2, 2)}


def test_an_expected_error_whose_message_is_another_does_not_hide_a_missing_device():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import pytest
            import torch

            class TestIt(unittest.TestCase):
                def test_leak(self):
                    with self.assertRaisesRegex(RuntimeError, "confirmed a leak on device 0"):
                        torch.ones(1, device="cuda")

                def test_called(self):
                    self.assertRaisesRegex(RuntimeError, "shapes differ", lambda: torch.ones(1, device="cuda:1"))

                def test_missing(self):
                    with self.assertRaisesRegex(RuntimeError, "No CUDA GPUs"):
                        torch.ones(1, device="cuda")

            def test_match():
                with pytest.raises(RuntimeError, match="same device"):
                    torch.ones(1, device="cuda:2")

            def test_ordinal():
                with pytest.raises(RuntimeError, match="invalid device ordinal"):
                    torch.ones(1, device="cuda:64")
            """
        },
    )
    assert found == {
        "TestIt::test_leak": (1, 1, 1),
        "TestIt::test_called": (2, 2, 2),
        "TestIt::test_missing": (0, 1, 1),
        "test_match": (3, 3, 3),
        "test_ordinal": (0, None, 0),
    }


def test_data_parallel_takes_the_devices_that_it_is_given_or_all():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.nn.parallel as dp

            def test_two(m=None, x=None):
                dp.data_parallel(m, x, (0, 1))

            def test_named(m=None, x=None):
                dp.data_parallel(m, x, device_ids=(torch.device("cuda:2"), torch.device("cuda:0")))

            def test_counted(m=None, x=None):
                x = torch.ones(1, device="cuda:1")
                dp.data_parallel(m, x, range(torch.cuda.device_count()))

            def test_wrapped(m=None):
                torch.nn.DataParallel(m, [torch.device("cuda:1")])
            """
        },
    )
    assert found == {
        "test_two": (0, 2, 2),
        "test_named": (0, 3, 3),
        "test_counted": (2, 2, 8),
        "test_wrapped": (0, 2, 2),
    }


def test_a_tier_of_devices_has_a_least_and_a_most():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from tests.utils import gpu_tier_mark

            @gpu_tier_mark(min_gpus=2, max_gpus=4)
            def test_tier():
                torch.ones(1, device="cuda")

            @gpu_tier_mark(max_gpus=1)
            def test_one():
                torch.ones(1, device="cuda")
            """
        },
    )
    assert found == {"test_tier": (2, 2, 2), "test_one": (1, 1, 1)}


def test_ray_waits_for_the_devices_of_all_that_keep_some():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import ray
            import torch
            from ray.util.placement_group import placement_group
            from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

            @ray.remote(num_gpus=1)
            def task(rank):
                return torch.ones(1, device="cuda")

            @ray.remote(num_gpus=1)
            class Actor:
                def work(self, index):
                    torch.ones(1, device=f"cuda:{index}")

            @ray.remote
            class Host:
                def work(self):
                    return 1

            def test_tasks():
                ray.get([task.remote(each) for each in range(3)])

            def test_actors():
                actors = [Actor.remote() for _ in range(3)]
                ray.get([each.work.remote(0) for each in actors])

            def test_one_after_the_other():
                for _ in range(3):
                    actor = Actor.remote()
                    ray.kill(actor)

            def test_halves():
                actors = [Host.options(num_gpus=0.5).remote() for _ in range(2)]

            def test_groups():
                one = ray.util.placement_group([{"GPU": 1, "CPU": 1}] * 2, strategy="PACK")
                other = placement_group([{"GPU": 1}] * 2)
                ray.get([one.ready(), other.ready()])
                Actor.options(scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=one)).remote()

            def test_given():
                Actor.options(num_gpus=4).remote()

            def test_what_an_actor_does():
                ray.get(Actor.options(num_gpus=2).remote().work.remote(1))

            def test_host():
                assert ray.get(Host.remote().work.remote()) == 1
            """
        },
    )
    assert found == {
        "test_tasks": (1, 1, 1),
        "test_actors": (3, 3, 3),
        "test_one_after_the_other": (1, 1, 1),
        "test_halves": (1, 1, 1),
        "test_groups": (4, 4, 4),
        "test_given": (4, 4, 4),
        "test_what_an_actor_does": (2, 2, 2),
        "test_host": (0, None, 0),
    }


def test_what_ranks_gather_is_not_what_was_in_the_list_and_a_rank_that_is_not_there_gets_nothing():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.distributed as dist
            from torch.testing._internal.common_distributed import MultiProcessTestCase

            class TestIt(MultiProcessTestCase):
                def setUp(self):
                    super().setUp()
                    self._spawn_processes()

                @property
                def world_size(self):
                    return torch.cuda.device_count()

                def _start(self):
                    dist.init_process_group("nccl", world_size=self.world_size, rank=self.rank)

                def test_gathered(self):
                    self._start()
                    found = [None] * dist.get_world_size()
                    dist.all_gather_object(found, self.rank)
                    for rank, each in enumerate(found):
                        self.assertEqual(rank, each)

                def test_sent(self):
                    self._start()
                    given = [None]
                    if self.rank == 0:
                        dist.send_object_list(given, 1)
                    if self.rank == 1:
                        dist.recv_object_list(given, 0)
                        self.assertEqual(99, given[0])
            """
        },
    )
    assert found == {"TestIt::test_gathered": (1, 1, 8), "TestIt::test_sent": (2, 2, 8)}


def test_a_decorator_that_may_only_skip_is_taken_to_go_on():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import unittest

            import pytest
            import torch
            from elsewhere import has_torch, reasons_against

            def cases():
                found = []
                for name in ("a", "b"):
                    marks = []
                    if reasons_against(name):
                        marks.append(pytest.mark.skip(reason="not here"))
                    found.append(pytest.param(name, marks=marks))
                return found

            @pytest.mark.parametrize("name", cases())
            def test_cases(name):
                torch.ones(1, device="cuda")

            def need_two(test):
                if not has_torch():
                    return unittest.skip(reason="needs PyTorch")(test)
                return unittest.skipUnless(torch.cuda.device_count() > 1, "needs two devices")(test)

            class TestIt(unittest.TestCase):
                @need_two
                def test_two(self):
                    torch.ones(1, device="cuda:1")

            if has_torch():

                @unittest.skip("always")
                def test_never():
                    pass
            """
        },
    )
    assert found == {
        "test_cases[a]": (1, 1, 1),
        "test_cases[b]": (1, 1, 1),
        "TestIt::test_two": (2, 2, 2),
        "test_never": (None, None, None),
    }


def test_the_device_of_transformers_tests_is_known_in_its_tree_too():
    found = needs_of(
        "tests/test_it.py",
        {
            "src/transformers/__init__.py": "",
            "src/transformers/testing_utils.py": """
            import unittest
            from elsewhere import has_torch, first_device, dispatch

            torch_device = first_device() if has_torch() else None

            def backend_device_count(device):
                return dispatch(device)

            def require_torch_accelerator(test):
                return unittest.skipUnless(torch_device is not None and torch_device != "cpu", "needs one")(test)

            def require_torch_multi_accelerator(test):
                if not has_torch():
                    return unittest.skip(reason="needs PyTorch")(test)
                return unittest.skipUnless(backend_device_count(torch_device) > 1, "needs several")(test)
            """,
            "tests/test_it.py": """
            import unittest
            import torch
            from transformers.testing_utils import (
                require_torch_accelerator,
                require_torch_multi_accelerator,
                torch_device,
            )

            class TestIt(unittest.TestCase):
                @require_torch_accelerator
                def test_one(self):
                    torch.ones(1).to(torch_device)

                @require_torch_multi_accelerator
                def test_two(self):
                    torch.ones(1).to(f"{torch_device}:1")

                def test_any(self):
                    torch.ones(1).to(torch_device)
            """,
        },
    )
    assert found == {"TestIt::test_one": (1, 1, 1), "TestIt::test_two": (2, 2, 2), "TestIt::test_any": (0, 1, 1)}


def test_what_is_put_on_another_vendors_device_never_runs():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            def test_moved():
                torch.ones(1).to("mps")

            def test_made():
                torch.ones(1, device="xpu:0")

            def test_named():
                assert torch.device("hpu").type == "hpu"

            @pytest.mark.skipif(not torch.backends.mps.is_available(), reason="no MPS")
            def test_guarded():
                torch.ones(1).to("mps")

            def test_expected():
                with pytest.raises(RuntimeError):
                    torch.ones(1, device="mps")
            """
        },
    )
    assert found == {
        "test_moved": (None, None, None),
        "test_made": (None, None, None),
        "test_named": (0, None, 0),
        "test_guarded": (None, None, None),
        "test_expected": (0, None, 0),
    }


def test_what_is_asked_of_the_library_does_not_depend_on_the_number_of_devices():
    found = needs_of(
        "tests/test_it.py",
        {
            "engine/__init__.py": """
            from elsewhere import made

            def pick(name):
                return None if name == "last" else made(name)
            """,
            "tests/test_it.py": """
            import pytest
            import torch
            from engine import pick

            @pytest.mark.parametrize("name", list("abcdefghij"))
            def test_many(name):
                if torch.cuda.device_count() < 4:
                    pytest.skip("needs four")
                if pick(name) is None:
                    raise RuntimeError("nothing to pick")

            def test_counted():
                for index in range(torch.cuda.device_count()):
                    torch.ones(1, device=f"cuda:{index}")
                if pick("last") is None:
                    raise RuntimeError("nothing to pick")
            """,
        },
    )
    assert found["test_counted"] == (0, 1, 8)


def test_a_test_that_is_only_there_with_devices_runs_on_them():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import torch
            from compiler import compiled

            class Common:
                def test_add(self):
                    assert compiled(self.device)

            class HostTests(unittest.TestCase):
                device = "cpu"

            HostTests.test_add = Common.test_add

            if torch.cuda.is_available():

                class DeviceTests(unittest.TestCase):
                    device = "cuda"

                    def test_add(self):
                        assert compiled(self.device)
            """
        },
    )
    assert found["DeviceTests::test_add"] == (1, 1, 1)


def test_what_a_package_makes_on_demand_has_its_name_however_often_it_is_asked_for():
    found = needs_of(
        "tests/test_it.py",
        {
            "vllm/__init__.py": """
            from elsewhere import load

            def __getattr__(name):
                return load(name)
            """,
            "tests/test_it.py": "import vllm\n\n"
            + "".join(f"def test_{n}():\n    vllm.LLM('m', tensor_parallel_size=2)\n\n" for n in range(20)),
        },
    )
    assert set(found.values()) == {(2, 2, 2)}


def test_a_test_for_one_device_alone_does_not_fail_for_what_is_not_about_devices():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            rows = []

            @pytest.mark.skipif(torch.cuda.device_count() != 1, reason="one device only")
            def test_one():
                torch.ones(1, device="cuda")
                assert rows[2]

            @pytest.mark.skipif(torch.cuda.is_available(), reason="host only")
            def test_host():
                assert rows[2]

            @pytest.mark.skipif(torch.cuda.device_count() > 2, reason="at most two")
            def test_two():
                assert rows[2]
                torch.ones(1, device="cuda:1")
            """
        },
    )
    assert found == {"test_one": (1, 1, 1), "test_host": (0, None, 0), "test_two": (2, 2, 2)}


def test_a_test_that_joins_a_group_of_nccl_through_the_library_has_a_device():
    found = needs_of(
        "tests/test_it.py",
        {
            "engine/__init__.py": """
            def start(world_size=-1, rank=-1, method="env://", backend="nccl"):
                pass
            """,
            "tests/test_it.py": """
            import pytest
            from engine import start

            @pytest.fixture
            def group():
                start(world_size=1, rank=0, backend="nccl")

            def test_grouped(group):
                pass

            def test_default():
                start(1, 0)

            def test_on_the_host():
                start(world_size=1, rank=0, backend="gloo")
            """,
        },
    )
    assert found == {"test_grouped": (1, 1, 1), "test_default": (1, 1, 1), "test_on_the_host": (0, None, 0)}
