"""Names, conditions, errors and other vendors: what decides about devices without saying so."""

import textwrap

import pytest
from small_projects import devices_of, needs_of


def test_a_file_that_needs_a_module_of_another_vendor_never_runs_unless_it_can_do_without():
    found = devices_of(
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
    more = devices_of("test_other.py", {"test_other.py": "try:\n    import torch_npu\nexcept ImportError:\n    pass\n\n"
                                      "def test_there():\n    pass\n"})  # fmt: skip
    assert more == {"test_there": (0, None, 0)}


def test_what_may_do_without_another_vendors_module_is_skipped_where_it_asks_for_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest

            def test_asked():
                xla = pytest.importorskip("torch_xla.core", reason="on other devices")
                xla.run()

            def test_here():
                pytest.importorskip("numpy")
            """
        },
    )
    assert found == {"test_asked": (None, None, None), "test_here": (0, None, 0)}
    module = "import pytest\nxla = pytest.importorskip('torch_xla')\n\ndef test_it():\n    pass\n"
    assert devices_of("test_it.py", {"test_it.py": module}) == {}


def test_names_that_a_function_makes_of_parameters_are_the_same_for_every_number_of_devices():
    found = devices_of(
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


def test_a_skip_that_a_hook_adds_waits_for_an_option_and_does_not_hide_what_a_test_needs():
    found = devices_of(
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


def test_a_text_is_never_equal_to_a_device_of_torchs():
    found = devices_of(
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
    found = devices_of(
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
    found = devices_of(
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


def test_values_that_a_test_is_given_directly_stand_in_for_a_fixtures_own():
    found = devices_of(
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


def test_an_expected_error_whose_message_is_another_does_not_hide_a_missing_device():
    found = devices_of(
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


def test_a_tier_of_devices_has_a_least_and_a_most():
    found = devices_of(
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


def test_a_decorator_that_may_only_skip_is_taken_to_go_on():
    found = devices_of(
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
    found = devices_of(
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
    found = devices_of(
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
    found = devices_of(
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
    found = devices_of(
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
    found = devices_of(
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
    found = devices_of(
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


def test_of_a_list_of_one_name_a_case_is_a_row_of_one_value():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.mark.parametrize(("sizes",), [((2, 2),), ((1, 1),)])
            def test_it(sizes):
                tensor, pipeline = sizes
                if torch.cuda.device_count() < tensor * pipeline:
                    pytest.skip("devices")
                torch.zeros(1).cuda()
            """
        },
    )
    assert found == {"test_it[sizes0]": (4, 4, 4), "test_it[sizes1]": (1, 1, 1)}


def test_what_transformer_engine_is_given_on_the_host_stays_there():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch
            from transformer_engine.pytorch.attention import pad, Shard

            def test_padding():
                tokens = torch.tensor([1, 2, 3])
                pad(tokens.unsqueeze(0), factor=4)

            def test_class():
                assert Shard(torch.zeros(4, 4)).state is None

            def test_parameter():
                Shard([torch.nn.Parameter(torch.empty(2, 2))], group=None)

            def test_device():
                pad(torch.tensor([1, 2], device="cuda"), factor=4)

            def test_parameter_of_a_device():
                Shard([torch.nn.Parameter(torch.empty(2, 2, device="cuda:1"))], group=None)

            def test_both():
                torch.zeros(1, device="cuda")
                pad(torch.tensor([1, 2]), factor=4)
            """
        },
    )
    assert found == {
        "test_padding": (0, None, 0),
        "test_class": (0, None, 0),
        "test_parameter": (0, None, 0),
        "test_device": (1, 1, 1),
        "test_parameter_of_a_device": (2, 2, 2),
        "test_both": (1, 1, 1),
    }


def test_a_hook_is_told_by_name_where_it_executes():
    found = devices_of(
        "tests/test_it.py",
        {
            "accelerate/hooks.py": """
            class AlignDevicesHook:
                def __init__(self, execution_device=None, offload=False):
                    self.execution_device = execution_device
            """,
            "tests/test_it.py": """
            import torch
            from accelerate.hooks import AlignDevicesHook, add_hook_to_module
            from accelerate.test_utils import torch_device

            def test_offloads():
                how = {"execution_device": torch_device, "offload": True}
                add_hook_to_module(torch.nn.Linear(1, 1), AlignDevicesHook(**how))

            def test_second():
                AlignDevicesHook(execution_device="cuda:1")

            def test_host():
                AlignDevicesHook(execution_device="cpu")
            """,
        },
    )
    assert found == {"test_offloads": (0, 1, 1), "test_second": (2, 2, 2), "test_host": (0, None, 0)}


def test_a_module_of_another_vendors_devices_that_is_asked_for_is_not_there():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            from importlib.util import find_spec

            import torch

            def nothing_there():
                return not (torch.cuda.is_available() or find_spec("torch_xla"))

            class TestIt(unittest.TestCase):
                @unittest.skipIf(nothing_there(), "no device")
                def test_it(self):
                    pass

                @unittest.skipIf(not find_spec("anything"), "not installed")
                def test_other(self):
                    pass
            """
        },
    )
    assert found == {"TestIt::test_it": (1, 1, 1), "TestIt::test_other": (0, None, 0)}


def test_what_a_match_statement_chooses_follows_from_the_number_of_devices():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            N = torch.cuda.device_count()
            match N:
                case 0 | 1:
                    @pytest.mark.skip
                    def test_defined(): pass
                case _:
                    def test_defined(): pass

            if (count := torch.cuda.device_count()) > 0:
                for least in (count,):
                    pass

            @pytest.mark.skipif(count < 3, reason="three")
            def test_walrus(): pass

            @pytest.mark.skipif(N < 4 or least < 4, reason="four")
            def test_target(): pass

            def test_guard():
                match torch.cuda.device_count():
                    case 0 | 1 as few:
                        pytest.skip(f"{few}")
                    case n if n < 4:
                        pytest.skip("few")
                    case _:
                        pass
            """
        },
    )
    assert found == {
        "test_defined": (2, 2, 2),
        "test_walrus": (3, 3, 3),
        "test_target": (4, 4, 4),
        "test_guard": (4, 4, 4),
    }


def test_what_a_fixture_asks_of_the_requests_keywords_is_known():
    found = devices_of(
        "test_it.py",
        {
            "conftest.py": """
            import pytest
            import torch

            @pytest.fixture(autouse=True)
            def enough(request):
                if "big" in request.keywords and torch.cuda.device_count() < 8:
                    pytest.skip("big")
                if "wide" in request.node.keywords and torch.cuda.device_count() < 4:
                    pytest.skip("wide")
            """,
            "test_it.py": """
            import pytest

            @pytest.mark.big
            def test_big(): pass

            @pytest.mark.wide
            def test_wide(): pass

            def test_host(): pass
            """,
        },
    )
    assert found == {"test_big": (8, 8, 8), "test_wide": (4, 4, 4), "test_host": (0, None, 0)}


def test_hooks_of_plugins_that_a_conftest_or_a_test_file_names_are_run():
    hook = """
            import pytest
            import torch

            def pytest_runtest_setup(item):
                mark = item.get_closest_marker("{mark}")
                if mark is not None and torch.cuda.device_count() < mark.args[0]:
                    pytest.skip("too few")
            """
    found = devices_of(
        "tests/test_it.py",
        {
            "conftest.py": 'pytest_plugins = ["tests.plugins.one"]\n',
            "tests/plugins/__init__.py": "",
            "tests/__init__.py": "",
            "tests/plugins/one.py": 'pytest_plugins = "tests.plugins.two"\n' + textwrap.dedent(hook.format(mark="one")),
            "tests/plugins/two.py": hook.format(mark="two"),
            "tests/plugins/own.py": hook.format(mark="own"),
            "tests/test_it.py": """
            import pytest

            pytest_plugins = ("tests.plugins.own",)

            @pytest.mark.one(2)
            def test_one(): pass

            @pytest.mark.two(3)
            def test_two(): pass

            @pytest.mark.own(4)
            def test_own(): pass
            """,
        },
    )
    assert found == {"test_one": (2, 2, 2), "test_two": (3, 3, 3), "test_own": (4, 4, 4)}


def test_what_a_pool_maps_is_run_for_each_item_and_a_program_of_asyncio_is_a_program():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import asyncio
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor
            import torch

            def work(rank, size):
                torch.cuda.set_device(rank)

            def test_map():
                with ProcessPoolExecutor(3) as pool:
                    list(pool.map(work, range(3), [3] * 3))

            def test_starmap():
                with multiprocessing.Pool(2) as pool:
                    pool.starmap(work, [(0, 2), (1, 2)])

            async def test_program():
                await asyncio.create_subprocess_exec("torchrun", "--nproc_per_node=2", "train.py")
            """,
            "train.py": """
            import os
            import torch
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            """,
        },
    )
    assert {name: each[0] for name, each in found.items()} == {"test_map": 3, "test_starmap": 2, "test_program": 2}


def test_a_property_that_is_assigned_does_what_its_setter_says():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest
            import torch

            class Job:
                def __init__(self, ranks):
                    self.ranks = ranks

                @property
                def ranks(self):
                    return self._ranks

                @ranks.setter
                def ranks(self, count):
                    self._ranks = 2 * count

                @ranks.deleter
                def ranks(self):
                    del self._ranks

            def test_four():
                job = Job(1)
                job.ranks = 2
                if torch.cuda.device_count() < job.ranks:
                    pytest.skip("not enough devices")
                torch.ones(1, device="cuda")
            """
        },
    )
    assert found == {"test_four": (4, 4, 4)}


def test_numbers_are_found_in_records_enumerations_and_texts():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import dataclasses
            import enum
            import json
            from typing import NamedTuple

            import numpy as np
            import pytest
            import torch

            class Shape(NamedTuple):
                rows: int = 1
                columns: int = 3

            class Size(enum.IntEnum):
                SMALL = 2
                LARGE = 4

            @dataclasses.dataclass
            class Job:
                name: str = "job"
                ranks: int = 4
                shape: Shape = dataclasses.field(default_factory=Shape)

            def require(count):
                if torch.cuda.device_count() < count:
                    pytest.skip("not enough devices")

            def test_item_of_a_named_tuple():
                require(Shape(2, 4)[1])

            def test_last_item():
                require(Shape()[-1])

            def test_member():
                require(Size.LARGE)

            def test_sum_of_members():
                require(Size.SMALL + 1)

            def test_equal_member():
                if Size.LARGE == 4:
                    require(4)

            def test_field():
                require(dataclasses.asdict(Job(ranks=3))["ranks"])

            def test_text():
                require(json.loads('{"world": [2, 4]}')["world"][1])

            def test_product():
                require(np.prod((2, 2)))

            def test_product_along_an_axis():
                require(np.prod([[2, 2]], axis=0))
            """
        },
    )
    assert {name: each[0] for name, each in found.items()} == {
        "test_item_of_a_named_tuple": 4,
        "test_last_item": 3,
        "test_member": 4,
        "test_sum_of_members": 3,
        "test_equal_member": 4,
        "test_field": 3,
        "test_text": 4,
        "test_product": 4,
        "test_product_along_an_axis": 0,
    }


def test_the_accelerator_that_is_waited_for_must_be_there():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch

            def test_waits():
                torch.accelerator.synchronize()

            def test_waits_for_the_second():
                torch.accelerator.synchronize("cuda:1")

            def test_waits_if_there_is_one():
                if torch.accelerator.is_available():
                    torch.accelerator.synchronize()

            def test_memory():
                torch.accelerator.empty_cache()
                torch.accelerator.reset_peak_memory_stats()
                torch.accelerator.max_memory_allocated()

            def test_memory_of_a_device():
                torch.accelerator.get_memory_info()

            def test_stream():
                torch.Stream()

            def test_stream_of_the_host():
                torch.Stream(device="cpu")

            def test_stream_by_its_numbers():
                torch.Stream(stream_id=1, device_index=2, device_type=3)

            def test_event_on_a_stream():
                stream, event = torch.Stream(), torch.Event()
                event.record(stream)
            """
        },
    )
    assert found == {
        "test_waits": (1, 1, 1),
        "test_waits_for_the_second": (2, 2, 2),
        "test_waits_if_there_is_one": (0, 1, 1),
        "test_memory": (0, None, 0),
        "test_memory_of_a_device": (1, 1, 1),
        "test_stream": (1, 1, 1),
        "test_stream_of_the_host": (0, None, 0),
        "test_stream_by_its_numbers": (0, None, 0),
        "test_event_on_a_stream": (1, 1, 1),
    }


def test_what_pytorch_does_without_a_device_is_what_it_does_without_a_driver():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import torch

            def test_event_that_is_only_made():
                event = torch.cuda.Event(enable_timing=True)
                event.synchronize()
                assert event.query()

            def test_event_that_is_recorded():
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                start.record()
                end.record()

            def test_event_that_is_waited_for():
                torch.Event().wait()

            def test_statistics():
                torch.cuda.reset_peak_memory_stats()
                assert torch.cuda.max_memory_allocated() == 0

            def test_graph():
                torch.cuda.CUDAGraph()

            def test_allocator():
                assert torch.cuda.get_allocator_backend() == "native"
                torch.cuda.memory_snapshot()
                torch.cuda.graph_pool_handle()
            """
        },
    )
    one, host = (1, 1, 1), (0, None, 0)
    assert found == {
        "test_event_that_is_only_made": host,
        "test_event_that_is_recorded": one,
        "test_event_that_is_waited_for": one,
        "test_statistics": one,
        "test_graph": one,
        "test_allocator": host,
    }


def test_the_kind_and_number_of_devices_that_accelerates_tests_ask_for_are_those_that_are_there():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/helpers.py": """
            import pytest
            from accelerate.test_utils.testing import get_backend

            torch_device, device_count, memory_allocated = get_backend()

            def require_non_cpu(test):
                return pytest.mark.skipif(torch_device == "cpu", reason="needs a device")(test)

            def require_several(test):
                return pytest.mark.skipif(torch_device == "cpu" or device_count < 2, reason="needs several")(test)
            """,
            "tests/test_it.py": """
            from helpers import require_non_cpu, require_several

            @require_non_cpu
            class TestIt:
                def test_one(self):
                    pass

                @require_several
                def test_several(self):
                    pass
            """,
        },
    )
    assert found == {"TestIt::test_one": (1, 1, 1), "TestIt::test_several": (2, 2, 2)}


def test_a_test_that_is_not_for_pytest_never_runs_under_it():
    found = devices_of(
        "test_runner.py",
        {
            "test_runner.py": """
            import sys
            import unittest

            class TestRunner(unittest.TestCase):
                @unittest.skipIf("pytest" in sys.modules, "for the project's own runner")
                def test_by_itself(self):
                    pass

                @unittest.skipIf("pytest" not in sys.modules, "wants pytest's fixtures")
                def test_by_pytest(self):
                    pass
            """
        },
    )
    assert found == {"TestRunner::test_by_itself": (None, None, None), "TestRunner::test_by_pytest": (0, None, 0)}


def test_a_folder_of_tests_that_is_named_as_the_library_is_not_the_library():
    found = devices_of(
        "tests/acme/core/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/core.py": """
            import torch

            def count():
                return torch.cuda.device_count()
            """,
            "tests/__init__.py": "",
            "tests/acme/__init__.py": "",
            "tests/acme/core/__init__.py": "",
            "tests/acme/core/helpers.py": "FEWEST = 4",
            "tests/acme/core/test_it.py": """
            import pytest
            from acme.core import count
            from helpers import FEWEST

            @pytest.mark.skipif(count() < 3, reason="three devices")
            def test_three():
                pass

            @pytest.mark.skipif(count() < FEWEST, reason="devices")
            def test_a_script_finds_what_lies_beside_it():
                pass
            """,
        },
    )
    assert found == {"test_three": (3, 3, 3), "test_a_script_finds_what_lies_beside_it": (4, 4, 4)}


def test_processes_of_a_pool_that_find_their_rank_in_the_environment_have_a_device_each():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/launch.py": """
            import os
            import torch.distributed as dist

            def launch_from_torch(config, backend="nccl"):
                launch(config, int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), backend)

            def launch(config, rank, world_size, backend):
                dist.init_process_group(backend, rank=rank, world_size=world_size)

            def describe(config, backend="nccl"):
                return {}
            """,
            "tests/test_it.py": """
            import multiprocessing as mp
            import os

            from acme.launch import describe, launch_from_torch

            def build(rank, world_size):
                os.environ["RANK"] = os.environ["LOCAL_RANK"] = str(rank)
                os.environ["WORLD_SIZE"] = str(world_size)

            def work(args):
                build(*args)
                launch_from_torch({})
                for step in range(2000):
                    update = [each for each in range(40)]
                return args[0]

            def on_host(args):
                build(*args)
                launch_from_torch({}, backend="gloo")
                return args[0]

            def told(args):
                build(*args)
                return describe({})

            def test_map():
                with mp.get_context("spawn").Pool(processes=4) as pool:
                    pool.map(work, [[rank, 4] for rank in range(4)])

            def test_host():
                with mp.Pool(2) as pool:
                    assert pool.map(on_host, [(0, 2), (1, 2)]) == [0, 1]

            def test_told():
                with mp.Pool(2) as pool:
                    pool.map(told, [(0, 2), (1, 2)])
            """,
        },
    )
    assert found == {"test_map": (4, 4, 4), "test_host": (0, None, 0), "test_told": (0, None, 0)}


def test_ranks_are_given_to_a_pool_one_by_one():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            import multiprocessing
            import torch
            from acme import workers

            def body(rank, world_size, more=1):
                if world_size <= torch.cuda.device_count():
                    torch.cuda.set_device(rank)
                return torch.cuda.is_available()

            def wrapped(function, *args, **kwargs):
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    raise RuntimeError("told as text") from None

            def test_partial():
                results, kwargs = [], {"world_size": 2}
                with multiprocessing.get_context("spawn").Pool(processes=2) as pool:
                    for rank in range(2):
                        kwargs["rank"] = rank
                        call = functools.partial(wrapped, body, **kwargs)
                        results.append(pool.apply_async(call, error_callback=lambda error: None))
                    assert all(each.get() == torch.cuda.is_available() for each in results)

            def test_places():
                with multiprocessing.Pool(4) as pool:
                    results = [pool.apply_async(body, (rank, 4)) for rank in range(4)]
                    [each.wait() for each in results]

            def test_names():
                with multiprocessing.Pool(2) as pool:
                    [pool.apply(body, kwds={"rank": rank, "world_size": 2}) for rank in range(2)]

            def test_each_item():
                with multiprocessing.Pool(2) as pool:
                    list(pool.imap_unordered(functools.partial(body, world_size=2), range(2)))

            def test_a_pool_of_somebody():
                with workers() as pool:
                    [pool.apply(body, (rank,), {"world_size": 2}) for rank in range(2)]

            def test_told():
                told = []
                with multiprocessing.Pool(2) as pool:
                    pool.map_async(int, ["3"], callback=told.extend).wait()
                assert torch.cuda.device_count() >= told[0]
            """,
        },
    )
    assert found == {
        "test_partial": (0, 2, 2), "test_places": (0, 4, 4), "test_names": (0, 2, 2), "test_each_item": (0, 2, 2),
        "test_a_pool_of_somebody": (0, 2, 2), "test_told": (3, 3, 3),
    }  # fmt: skip


def test_a_command_is_put_together_of_texts_that_are_not_all_known():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import subprocess
            import sys
            import torch

            PLACE = os.environ["PLACE"]

            def run(text):
                subprocess.run([sys.executable, *text.split()], check=True)

            def test_in_place():
                text = f"-m torch.distributed.run --nproc_per_node={torch.cuda.device_count()} "
                text += f"work.py --out {PLACE}"
                run(text)

            def test_in_parts():
                run("-m torch.distributed.run --nproc_per_node=4 work.py --out " + PLACE + " --quiet")
            """,
            "work.py": """
            import os
            import torch
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            """,
        },
    )
    assert found == {"test_in_place": (1, 1, 8), "test_in_parts": (4, 4, 4)}


def test_what_a_package_of_the_host_calls_a_device_is_another_thing_or_refused_or_only_kept():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import argparse
            import os
            from types import SimpleNamespace
            import acme
            import numpy
            import pytest

            def test_refused():
                with pytest.raises(ValueError, match="device"):
                    numpy.arange(3, device="gpu")

            def test_node(tmp_path):
                os.mknod(tmp_path / "node", device=3)

            def test_settings():
                assert SimpleNamespace(device="cuda:1").device == "cuda:1"
                assert argparse.Namespace(device="cuda:1", rank=0).rank == 0

            def test_elsewhere():
                acme.run(device="cuda:1")
            """
        },
    )
    on_the_host = dict.fromkeys(("test_refused", "test_node", "test_settings"), (0, None, 0))
    assert found == {**on_the_host, "test_elsewhere": (2, 2, 2)}


def test_what_is_put_on_a_device_while_a_file_is_imported_is_there_for_the_tests_that_use_it():
    found = devices_of(
        "tests/test_values.py",
        {
            "tests/values.py": """
            import torch

            KEPT = torch.ones(3, device="cuda" if torch.cuda.is_available() else "cpu")
            HOST = torch.ones(3)
            """,
            "tests/test_values.py": """
            import jax
            import jax.numpy as jnp
            import pytest
            import torch
            from values import HOST, KEPT

            device = "cuda" if torch.cuda.is_available() else "cpu"
            x = torch.rand(3, device=device)
            twice = 2 * x
            out = []
            for each in ("a", "b"):
                out.append(x.sum())
            numbers = jnp.arange(3)
            second = torch.ones(1, device="cuda:1") if torch.cuda.device_count() > 1 else None

            @jax.jit
            def total(values):
                return values.sum()

            def test_value():
                assert torch.allclose(twice, out[0])

            def test_imported():
                assert KEPT.sum() == 3

            def test_filled():
                assert out

            def test_arrays():
                assert numbers.sum() == 3

            def test_compiled():
                total(3)

            def test_second():
                assert second is None or second.sum() == 1

            @pytest.mark.parametrize("value", [x, 1])
            def test_host(value):
                assert HOST.sum() == 3 and device and torch.ones(1)
            """,
        },
    )
    one, host = (0, 1, 1), (0, None, 0)
    names = ("test_value", "test_imported", "test_filled", "test_arrays", "test_compiled")
    cases = {name: host for name in found if name.startswith("test_host")}
    assert found == dict.fromkeys(names, one) | {"test_second": (0, 2, 2)} | cases


def test_a_test_whose_file_fails_to_be_imported_without_a_device_fails_then():
    found = devices_of(
        "test_it.py", {"test_it.py": "import torch\nx = torch.ones(1, device='cuda:1')\ndef test_it(): pass\n"}
    )
    assert found == {"test_it": (2, 2, 2)}


def test_a_server_that_sglangs_own_helper_starts_needs_what_its_options_ask_for():
    found = devices_of(
        "test/srt/test_it.py",
        {
            "test/srt/test_it.py": """
            from sglang.srt.utils import is_npu, kill_process_tree
            from sglang.test.test_utils import CustomTestCase, popen_launch_server, run_bench_one_batch_server

            class TestReplicas(CustomTestCase):
                @classmethod
                def setUpClass(cls):
                    options = ["--dp", 2, "--disable-cuda-graph"] if is_npu() else ["--dp", 2]
                    cls.process = popen_launch_server("model", "http://localhost", timeout=60, other_args=options)

                def test_asked(self):
                    pass

            class TestAttention(CustomTestCase):
                @classmethod
                def setUpClass(cls):
                    options = ["--tp", "4", "--enable-dp-attention", "--dp", "4"]
                    cls.process = popen_launch_server("model", "http://localhost", timeout=60, other_args=options)

                def test_asked(self):
                    pass

            class TestAlone(CustomTestCase):
                def test_asked(self):
                    popen_launch_server("model", "http://localhost", 60)

                def test_measured(self):
                    options = ["--tp-size", 2, "--pp-size", 2]
                    run_bench_one_batch_server("model", "http://localhost", None, None, options)
            """
        },
    )
    assert found == {
        "TestReplicas::test_asked": (2, 2, 2),
        "TestAttention::test_asked": (4, 4, 4),
        "TestAlone::test_asked": (1, 1, 1),
        "TestAlone::test_measured": (4, 4, 4),
    }


def test_what_transformer_engine_is_told_in_words_and_types_is_no_array():
    found = devices_of(
        "test_flags.py",
        {
            "test_flags.py": """
            from transformer_engine.jax.cpp_extensions.misc import get_xla_flag

            def test_it():
                assert get_xla_flag("--bar", cast=int) is None
            """
        },
    )
    assert found == {"test_it": (0, None, 0)}


def test_inductors_record_of_a_device_is_made_of_one_that_is_there():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch._inductor.runtime.hints import DeviceProperties
            from torch.testing._internal.inductor_utils import GPU_TYPE

            def test_record():
                assert DeviceProperties.create(torch.device(GPU_TYPE)).type == GPU_TYPE

            def test_record_of_the_host():
                DeviceProperties.create(torch.device("cpu"))
            """
        },
    )
    assert found == {"test_record": (1, 1, 1), "test_record_of_the_host": (0, None, 0)}


def test_a_kind_of_device_that_a_class_outside_names_is_not_used():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from elsewhere.capi import OrtDevice, model

            def test_kind():
                assert OrtDevice.cuda() != OrtDevice.cpu()

            def test_model():
                model.cuda()
            """
        },
    )
    assert found == {"test_kind": (0, None, 0), "test_model": (1, 1, 1)}


def test_what_is_around_a_lookup_that_fails_and_is_not_believed_is_done():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import pytest
            import torch

            LAUNCH = ["torchrun", f"--nproc_per_node={min(4, torch.cuda.device_count())}"]

            @pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
            @pytest.mark.parametrize("folders", [[]])
            def test_launched(folders):
                subprocess.run(LAUNCH + ["run.py", f"--folders={folders[0]}"], check=True)
            """
        },
    )
    assert set(found.values()) == {(2, 2, 4)}


def test_tests_that_a_long_loop_copies_into_a_class_are_all_found():
    template = "\n\n".join(f"    def test_{number}(self):\n        self.check({number})" for number in range(800))
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/template.py": "class Template:\n" + template + "\n",
            "tests/test_it.py": textwrap.dedent(
                """
                import copy
                import functools
                import unittest
                import torch
                from template import Template

                def copied(mine, other, suffix, failures=None):
                    for name, value in mine.__dict__.items():
                        if name.startswith("test_"):

                            @functools.wraps(value)
                            def new_test(self, value=value):
                                return value(self)

                            new_test.__dict__ = copy.deepcopy(value.__dict__)
                            failure = failures and failures.get(name)
                            if failure is not None and suffix in failure.suffixes:
                                new_test = unittest.skip("Skipped!")(new_test)
                            setattr(other, f"{name}_{suffix}", new_test)

                class Device(unittest.TestCase):
                    def check(self, number):
                        torch.ones(number, device="cuda")

                copied(Template, Device, "cuda")
                """
            ),
        },
    )
    assert len(found) == 800
    assert set(found.values()) == {(1, 1, 1)}


def test_an_assertion_that_fails_while_a_file_is_imported_takes_no_tests_away_unless_it_asks_for_devices():
    text = """
        import pytest
        import torch

        def checked(number):
            assert {} >= number
            return number

        NUMBER = checked(3)

        @pytest.mark.parametrize("index", range(checked(3)))
        def test_cases(index):
            torch.ones(1, device="cuda")

        def test_it():
            torch.ones(1, device="cuda:1")
        """
    found = devices_of("test_it.py", {"test_it.py": text.format("2")})
    assert {(name.partition("[")[0], needs) for name, needs in found.items()} == {
        ("test_cases", (1, 1, 1)),
        ("test_it", (2, 2, 2)),
    }
    found = needs_of("test_it.py", {"test_it.py": text.format("torch.cuda.device_count()")})
    assert {need.min for need in found.values()} == {3}


STATE_OF_ALL = {
    "tests/test_it.py": """
    import pytest
    import transformer_engine.pytorch as te
    from transformer_engine.pytorch.quantization import FP8GlobalStateManager

    @pytest.fixture(autouse=True)
    def reset_state():
        yield
        FP8GlobalStateManager.reset()

    def test_host():
        assert not FP8GlobalStateManager.is_fp8_enabled()

    def test_asked():
        FP8GlobalStateManager.is_fp8_available()

    def test_layer():
        te.Linear(4, 4)
    """
}
STATE_OF_THE_TREE = {
    "transformer_engine/__init__.py": "",
    "transformer_engine/pytorch/__init__.py": "from .module import Linear",
    "transformer_engine/pytorch/module.py": "class Linear: ...",
    "transformer_engine/pytorch/quantization.py": """
    class FP8GlobalStateManager:
        enabled = False

        @classmethod
        def reset(cls):
            cls.enabled = False

        @classmethod
        def is_fp8_enabled(cls):
            return cls.enabled

        @classmethod
        def is_fp8_available(cls):
            return check_fp8_support()
    """,
}


@pytest.mark.parametrize("library", [{}, STATE_OF_THE_TREE])
def test_what_transformer_engine_keeps_for_all_its_modules_is_kept_on_the_host(library):
    found = devices_of("tests/test_it.py", STATE_OF_ALL | library)
    assert found == {"test_host": (0, None, 0), "test_asked": (1, 1, 1), "test_layer": (1, 1, 1)}
