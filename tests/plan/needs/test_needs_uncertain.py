"""What is said where a value is not known: the most of what it may be, and no more than that."""

from small_projects import devices_of, needs_of


def test_workers_of_one_of_several_numbers_are_taken_to_be_the_most_of_them_and_that_is_no_certainty():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch.distributed as dist
            import torch.multiprocessing as mp
            import elsewhere

            def work(rank, size):
                dist.init_process_group("nccl", rank=rank, world_size=size)

            def size_of():
                if elsewhere.flag():
                    return 2
                return 3

            def test_branches():
                size = None
                if elsewhere.flag():
                    size = 4
                mp.spawn(work, args=(size,), nprocs=size)

            def test_expression():
                size = 4 if elsewhere.flag() else 2
                mp.spawn(work, args=(size,), nprocs=size)

            def test_function():
                mp.spawn(work, args=(size_of(),), nprocs=size_of())

            def test_another_thing():
                size = 4 if elsewhere.flag() else "four"
                mp.spawn(work, args=(1,), nprocs=1)
            """
        },
    )
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {
        "test_branches": (4, 4),
        "test_expression": (4, 4),
        "test_function": (3, 3),
        "test_another_thing": (1, 1),
    }
    assert [each.confidence.name for each in found.values()] == ["MEDIUM", "MEDIUM", "MEDIUM", "HIGH"]


def test_degrees_whose_product_is_not_the_number_of_ranks_are_refused_by_the_record_that_is_given_them():
    found = devices_of(
        "tests/test_it.py",
        {
            "pkg/__init__.py": "",
            "pkg/degrees.py": """
            from dataclasses import dataclass

            @dataclass
            class Degrees:
                replicas: int
                shards: int
                stages: int
                world_size: int

                def __post_init__(self):
                    self._look()

                def _look(self):
                    for each in (self.replicas, self.stages):
                        assert each >= 1, "degrees are positive"
                    if self.shards < 0:
                        self.shards = self.world_size // (self.replicas * self.stages)
                    if self.replicas * self.shards * self.stages != self.world_size:
                        raise ValueError("not all ranks are used")
            """,
            "tests/test_it.py": """
            import torch
            from torch.testing._internal.common_fsdp import FSDPTest
            from pkg.degrees import Degrees

            class TestIt(FSDPTest):
                def test_four_exactly(self):
                    Degrees(replicas=2, shards=2, stages=1, world_size=self.world_size)
                    torch.randn(8, 8).cuda()

                def test_even(self):
                    Degrees(replicas=2, shards=-1, stages=1, world_size=self.world_size)
                    torch.randn(8, 8).cuda()

                def test_half(self):
                    Degrees(replicas=self.world_size // 2, shards=-1, stages=1, world_size=self.world_size)
                    torch.randn(8, 8).cuda()

                def test_refused(self):
                    with self.assertRaises(ValueError):
                        Degrees(replicas=3, shards=5, stages=1, world_size=self.world_size)

                def test_another_world(self):
                    Degrees(replicas=3, shards=5, stages=1, world_size=16)
            """,
        },
    )
    assert found == {
        "TestIt::test_four_exactly": (4, 4, 4),
        "TestIt::test_even": (2, 2, 8),
        "TestIt::test_half": (2, 2, 8),
        "TestIt::test_refused": (1, 1, 8),
        "TestIt::test_another_world": (1, 1, 8),
    }


def test_a_name_of_a_remote_device_with_too_many_parts_is_refused_before_any_device_is_used():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            from torch.distributed.nn import RemoteModule

            class TestIt(unittest.TestCase):
                def test_refused(self):
                    with self.assertRaisesRegex(ValueError, "Could not parse"):
                        RemoteModule("worker1/cuda:0/cuda:1", object)

                def test_used(self):
                    RemoteModule("worker1/cuda:1", object)
            """
        },
    )
    assert found == {"TestIt::test_refused": (0, None, 0), "TestIt::test_used": (2, 2, 2)}


def test_a_test_that_leaves_with_one_device_and_uses_two_with_more_uses_none_of_them_with_one():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from elsewhere import work

            needs_one = pytest.mark.skipif(not torch.cuda.is_available(), reason="a device")

            @needs_one
            def test_leaves():
                if not torch.cuda.device_count() > 1:
                    return
                torch.ones(1).cuda(1)

            @needs_one
            def test_says_nothing():
                work()
            """
        },
    )
    assert found == {"test_leaves": (1, 2, 2), "test_says_nothing": (1, 1, 1)}


def test_arrays_of_jax_are_on_the_first_device_and_types_on_none():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp

            def test_array():
                assert (jnp.arange(4) + 1).sum() == 10

            def test_type():
                assert jnp.issubdtype(jnp.dtype("float32"), jnp.floating)
            """
        },
    )
    assert found == {"test_array": (0, 1, 1), "test_type": (0, None, 0)}


def test_a_number_of_workers_that_nobody_knows_is_no_certainty():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch.multiprocessing as mp
            import elsewhere

            def work(rank):
                pass

            def test_unknown():
                mp.spawn(work, nprocs=elsewhere.size())

            def test_known():
                mp.spawn(work, nprocs=2)
            """
        },
    )
    assert {name: each.confidence.name for name, each in found.items()} == {
        "test_unknown": "MEDIUM",
        "test_known": "HIGH",
    }


def test_a_switch_of_the_environment_that_is_taken_as_on_leaves_a_doubt():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import pytest
            import torch

            @pytest.mark.skipif(os.getenv("RUN_BIG") != "1", reason="big")
            def test_switched():
                torch.zeros(1, device="cuda:3")

            def test_plain():
                torch.zeros(1, device="cuda:3")

            @pytest.mark.skipif(os.getenv("LEAVE_OUT") == "1", reason="asked for")
            def test_by_default():
                torch.zeros(1, device="cuda:3")
            """
        },
    )
    assert {name: (each.min, each.confidence.name) for name, each in found.items()} == {
        "test_switched": (4, "MEDIUM"),
        "test_plain": (4, "HIGH"),
        "test_by_default": (4, "HIGH"),
    }


def test_a_decorator_that_skips_a_test_because_a_switch_is_off_skips_by_default_only():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import unittest
            import torch

            def slow(test):
                if not os.environ.get("RUN_SLOW", False):
                    return unittest.skip("slow")(test)
                return test

            def slower():
                if not os.environ.get("RUN_SLOW", False):
                    return unittest.skip("slower")
                return lambda test: test

            class TestIt(unittest.TestCase):
                @slow
                def test_slow(self):
                    torch.zeros(1, device="cuda:3")

                @slower()
                def test_slower(self):
                    torch.zeros(1, device="cuda:3")

                @unittest.skip("broken")
                def test_broken(self):
                    pass
            """
        },
    )
    assert {name: (each.min, each.confidence.name) for name, each in found.items()} == {
        "TestIt::test_slow": (4, "MEDIUM"),
        "TestIt::test_slower": (4, "MEDIUM"),
        "TestIt::test_broken": (None, "HIGH"),
    }


def test_a_decorator_that_is_beyond_the_evaluator_loses_no_other_test_of_its_class():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch

            def counted(first):
                total = [a * b + c for a in range(first, 1000) for b in range(1000) for c in range(1000)]
                return lambda test: test

            class TestIt(unittest.TestCase):
                @counted(1)
                @counted(2)
                def test_counted(self):
                    torch.zeros(1, device="cuda:1")

                def test_after(self):
                    torch.zeros(1, device="cuda:3")
            """
        },
    )
    assert found == {"TestIt::test_counted": (2, 2, 2), "TestIt::test_after": (4, 4, 4)}


def test_a_decorator_that_seems_to_refuse_what_it_decorates_loses_no_test():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            def strict(wanted):
                def decorator(impl):
                    if impl.__doc__ != wanted.text():
                        raise ValueError("not this one")
                    return impl
                return decorator

            TABLE = {"a": 1}

            class TestIt:
                @strict(TABLE["b"])
                def test_refused(self):
                    torch.zeros(1).cuda(1)

                def test_other(self):
                    torch.zeros(1).cuda(3)
            """
        },
    )
    assert found == {"TestIt::test_refused": (2, 2, 2), "TestIt::test_other": (4, 4, 4)}


def test_that_an_assertion_holds_leaves_no_doubt():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            @pytest.mark.skipif(torch.cuda.device_count() < 8, reason="eight")
            def test_eight():
                assert 1 == 2
            """
        },
    )
    assert {name: (each.min, each.confidence.name) for name, each in found.items()} == {"test_eight": (8, "HIGH")}


def test_a_mesh_of_torchtitans_is_not_there_for_a_degree_of_one():
    found = devices_of(
        "tests/test_it.py",
        {
            "torchtitan/__init__.py": "",
            "torchtitan/distributed/__init__.py": """
            from torchtitan.distributed.parallel_dims import ParallelDims
            """,
            "torchtitan/distributed/parallel_dims.py": """
            from dataclasses import dataclass, field

            @dataclass
            class ParallelDims:
                dp_replicate: int
                dp_shard: int
                tp: int
                world_size: int
                meshes: dict = field(default_factory=dict)

                def __post_init__(self):
                    if self.dp_shard < 0:
                        self.dp_shard = self.world_size // (self.dp_replicate * self.tp)
                    assert self.dp_replicate * self.dp_shard * self.tp == self.world_size

                def get_mesh(self, dims):
                    mesh = self.meshes.get(dims)
                    if mesh is None:
                        raise ValueError(dims)
                    return mesh
            """,
            "tests/test_it.py": """
            import torch
            from torch.testing._internal.common_fsdp import FSDPTest
            from torchtitan.distributed import ParallelDims

            class TestIt(FSDPTest):
                def make(self, replicas, tp=1):
                    self.dims = ParallelDims(replicas, -1, tp, world_size=self.world_size)

                def test_half(self):
                    self.make(self.world_size // 2)
                    self.dims.get_mesh(["dp_replicate", "fsdp"])

                def test_all(self):
                    self.make(self.world_size)
                    self.dims.get_mesh("dp_replicate")

                def test_shards(self):
                    self.make(1)
                    self.dims.get_mesh("fsdp")

                def test_not_split(self):
                    self.make(1, tp=1)
                    with self.assertRaises(ValueError):
                        self.dims.get_mesh("tp")
            """,
        },
    )
    assert found == {
        "TestIt::test_half": (4, 4, 8),
        "TestIt::test_all": (2, 2, 8),
        "TestIt::test_shards": (1, 1, 8),
        "TestIt::test_not_split": (1, 1, 8),
    }


def test_torchtitans_own_word_decides_which_meshes_of_one_there_are():
    for kept, least in (("True", 1), ("degree > 1", 2)):
        found = devices_of(
            "tests/test_it.py",
            {
                "torchtitan/__init__.py": "",
                "torchtitan/distributed/__init__.py": "",
                "torchtitan/distributed/parallel_dims.py": f"""
                from dataclasses import dataclass

                @dataclass
                class ParallelDims:
                    dp_shard: int
                    cp: int
                    world_size: int

                    def __post_init__(self):
                        if self.dp_shard < 0:
                            self.dp_shard = self.world_size // self.cp

                    def _mesh_exist(self, name, degree):
                        if name == "fsdp":
                            return {kept}
                        return degree > 1

                    def get_mesh(self, dims):
                        return self.world_mesh[dims]
                """,
                "tests/test_it.py": """
                from torch.testing._internal.common_fsdp import FSDPTest
                from torchtitan.distributed.parallel_dims import ParallelDims

                class TestIt(FSDPTest):
                    def test_shards(self):
                        ParallelDims(-1, 1, world_size=self.world_size).get_mesh("fsdp")

                    def test_shards_of_a_context(self):
                        ParallelDims(1, self.world_size, world_size=self.world_size).get_mesh("fsdp")

                    def test_no_context(self):
                        with self.assertRaises(ValueError):
                            ParallelDims(-1, 1, world_size=self.world_size).get_mesh(["fsdp", "cp"])
                """,
            },
        )
        assert found == {
            "TestIt::test_shards": (least, least, 8),
            "TestIt::test_shards_of_a_context": (least, least, 8),
            "TestIt::test_no_context": (1, 1, 8),
        }


def test_devices_that_are_looked_at_and_left_out_for_what_nobody_knows_are_counted_as_kept():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            def devices():
                found = [torch.cuda.get_device_properties(each) for each in range(torch.cuda.device_count())]
                return len([each for each in found if each.name not in {"a display"}])

            @pytest.mark.parametrize("size", range(2, min(3, devices()) + 1))
            def test_each(size):
                torch.ones(1, device="cuda")

            @pytest.mark.skipif(devices() < 3, reason="devices")
            def test_guarded():
                torch.ones(1, device="cuda")
            """
        },
    )
    assert found == {"test_each[2]": (2, 2, 2), "test_each[3]": (3, 3, 3), "test_guarded": (3, 3, 3)}


def test_a_switch_that_is_taken_as_on_takes_no_other_condition_of_the_mark_with_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import pytest
            import torch

            IS_ASKED = os.environ.get("ASKED", "0") == "1"

            @pytest.mark.skipif(not IS_ASKED or torch.cuda.device_count() < 2, reason="devices")
            def test_or():
                torch.ones(1, device="cuda")

            @pytest.mark.skipif(not (IS_ASKED and torch.cuda.device_count() >= 2), reason="devices")
            def test_and():
                torch.ones(1, device="cuda")

            @pytest.mark.skipif(not IS_ASKED or not all([torch.cuda.device_count() >= 3, IS_ASKED]), reason="devices")
            def test_all():
                torch.ones(1, device="cuda")
            """
        },
    )
    assert found == {"test_or": (2, 2, 2), "test_and": (2, 2, 2), "test_all": (3, 3, 3)}


def test_a_device_that_pytorch_is_asked_to_wait_for_or_to_count_is_used():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            TWO = torch.cuda.device_count() >= 2

            def test_waits():
                torch.cuda.synchronize()
                if TWO:
                    torch.cuda.synchronize("cuda:1")

            def test_counts():
                assert torch.cuda.memory_allocated(torch.device("cuda", 2)) == 0  # whatever there is

            def test_sums_up():
                torch.cuda.memory_summary(torch.device("cuda", 2))

            def test_draws():
                state = torch.cuda.get_rng_state()
                torch.cuda.set_rng_state(state, device=1)
            """
        },
    )
    assert found == {
        "test_waits": (1, 1, 2),
        "test_counts": (0, None, 0),
        "test_sums_up": (3, 3, 3),
        "test_draws": (2, 2, 2),
    }


def test_the_kind_of_device_that_pytorch_finds_for_itself_is_there_if_a_device_is():
    found = devices_of(
        "tests/test_it.py",
        {
            "pkg/tools.py": """
            from torch._utils import _get_available_device_type, _get_device_module

            KIND = _get_available_device_type() or "cuda"
            MODULE = _get_device_module(KIND)
            """,
            "tests/test_it.py": """
            import unittest
            import torch
            from pkg.tools import KIND, MODULE

            class TestIt(unittest.TestCase):
                @unittest.skipUnless(MODULE.is_available(), "no device")
                def test_one(self):
                    torch.ones(2, device=KIND)

                @unittest.skipIf(MODULE.device_count() < 2, "two devices")
                def test_two(self):
                    torch.ones(2, device=KIND + ":1")
            """,
        },
    )
    assert found == {"TestIt::test_one": (1, 1, 1), "TestIt::test_two": (2, 2, 2)}


def test_pytorchs_module_of_the_host_lacks_what_only_devices_have_and_that_of_cuda_has_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import pytest

            def remembers(kind):
                module = getattr(torch, kind, None)
                return bool(module and hasattr(module, "set_rng_state"))

            @pytest.mark.parametrize("kind", ["cpu", "cuda"])
            def test_named(kind):
                if remembers(kind):
                    torch.ones(1, device="cuda")

            def test_chosen():
                if remembers("cuda" if torch.cuda.device_count() > 2 else "cpu"):
                    torch.ones(1, device="cuda")

            def test_not_known():
                if hasattr(torch.cpu, "something_new"):
                    torch.ones(1, device="cuda")
            """
        },
    )
    assert found == {
        "test_named[cpu]": (0, None, 0),
        "test_named[cuda]": (1, 1, 1),
        "test_chosen": (0, 3, 3),
        "test_not_known": (0, 1, 1),
    }


def test_how_long_a_list_is_that_grew_in_a_loop_of_which_nobody_knows_the_turns_is_not_known():
    found = devices_of(
        "tests/test_it.py",
        {
            "pkg/steps.py": """
            from outside import count

            def _step(data, stored):
                stored.append(data)

            def run(data):
                stored = []
                for each in range(count()):
                    _step(data, stored)
                return stored
            """,
            "tests/test_it.py": """
            import pytest
            import torch
            from outside import names_of, more
            from pkg.steps import run

            def test_of_a_library():
                results = run(torch.ones(2, device="cuda"))
                assert len(results) == 8

            def test_of_its_own():
                found = []
                for name in names_of():
                    found.append(name)
                if len(found) < 2:
                    pytest.skip("two names")
                torch.ones(2, device="cuda:1")

            def test_while():
                found = []
                while more():
                    found.append(1)
                assert len(found) == 3
                torch.ones(2, device="cuda")

            def test_known_within():
                for name in names_of():
                    found = []
                    for each in (1, 2):
                        found.append(each)
                    torch.ones(2, device=f"cuda:{len(found)}")
            """,
        },
    )
    assert found == {
        "test_of_a_library": (1, 1, 1),
        "test_of_its_own": (2, 2, 2),
        "test_while": (1, 1, 1),
        "test_known_within": (3, 3, 3),
    }


def test_a_failure_of_our_making_does_not_turn_a_skip_that_nobody_knows_into_a_certain_one():
    (found,) = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            import unittest
            import elsewhere

            def skip_without_engine(test):
                @functools.wraps(test)
                def wrapper(*args, **kwargs):
                    if "engine" not in elsewhere.engines():
                        raise unittest.SkipTest("no engine")
                    else:
                        test(*args, **kwargs)
                return wrapper

            class TestIt(unittest.TestCase):
                @skip_without_engine
                def test_counts(self):
                    seen = {"one": 2}
                    for name in elsewhere.names():
                        if name in seen:
                            seen[name] -= 1
                    assert all(each == 0 for each in seen.values())
            """
        },
    ).values()
    assert (found.min, found.full) == (0, 0)


def test_a_decorator_that_looks_at_the_class_in_a_functions_name_finds_it():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            def expected_to_fail(test):
                parts = test.__qualname__.split(".")
                assert len(parts) == 2, "for tests of classes"
                class_name, name = parts
                return unittest.skipIf((class_name, name) == ("TestIt", "test_two"), "this one")(test)

            class TestIt(unittest.TestCase):
                @expected_to_fail
                def test_one(self):
                    pass

                @expected_to_fail
                def test_two(self):
                    pass

                class Inner:
                    def method(self):
                        pass

                @unittest.skipIf(Inner.__qualname__ != "TestIt.Inner", "")
                @unittest.skipIf(Inner.method.__qualname__ != "TestIt.Inner.method", "")
                def test_three(self):
                    pass
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {
        "TestIt::test_one": 0,
        "TestIt::test_two": None,
        "TestIt::test_three": 0,
    }


def test_a_file_that_needs_a_device_to_be_imported_if_a_flag_says_so_is_less_sure():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import acme

            SIZES = [4] if acme.is_fast() and torch.zeros(1, device="cuda").sum() > 1 else [2]

            def test_it():
                pass
            """
        },
    )
    assert [(each.min, each.confidence.value) for each in found.values()] == [(0, "medium")]


def test_what_a_device_can_do_is_taken_as_enough_for_what_a_file_asks_for():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch

            ON_NEW = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (8, 0)
            SIZES = [1, 2] if ON_NEW else [3]

            def generation():
                major, minor = torch.cuda.get_device_capability(0)
                return major * 10 + minor

            @pytest.mark.parametrize("size", SIZES)
            def test_sizes(size):
                torch.ones(size)

            @pytest.mark.skipif(not torch.cuda.is_available(), reason="")
            def test_generation():
                if generation() < 90:
                    return
                torch.ones(1, device="cuda:1")

            @pytest.mark.skipif(not torch.cuda.is_available(), reason="")
            def test_memory():
                if torch.cuda.get_device_properties(0).total_memory / 1e9 > 30:
                    torch.ones(1, device="cuda:2")

            @pytest.mark.skipif(not ON_NEW, reason="")
            def test_exactly():
                if torch.cuda.get_device_capability()[0] != 9:
                    return
                torch.ones(1, device="cuda:1")

            @pytest.mark.skipif(torch.cuda.is_available() and generation() >= 90, reason="not on new devices")
            def test_old():
                torch.ones(1, device="cuda")
            """
        },
    )
    assert {name: each.gpu_min for name, each in found.items()} == {
        "test_sizes[3]": None,
        "test_sizes[1]": 1,
        "test_sizes[2]": 1,
        "test_generation": 2,
        "test_memory": 3,
        "test_exactly": 2,
        "test_old": 1,
    }


def test_a_skip_of_devices_that_can_more_is_not_believed_whoever_asks_them():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import pytest
            import torch
            from torch.testing._internal.common_cuda import SM90OrLater, SM100OrLater
            from vllm.platforms import current_platform

            @pytest.mark.parametrize("kind", ["float", "int"])
            def test_removed(kind):
                if kind == "int" and current_platform.has_device_capability((10, 0)):
                    pytest.skip("removed")
                torch.ones(1, device="cuda")

            class TestIt(unittest.TestCase):
                @unittest.skipIf(SM90OrLater, "")
                def test_old(self):
                    torch.ones(1, device="cuda")

                @unittest.skipIf(not SM90OrLater, "")
                def test_new(self):
                    torch.ones(1, device="cuda:1")

                def test_in_the_body(self):
                    if SM100OrLater:
                        self.skipTest("not yet")
                    torch.ones(1, device="cuda:1")
            """
        },
    )
    assert {name: (each.gpu_min, each.confidence) for name, each in found.items()} == {
        "test_removed[float]": (1, "high"),
        "test_removed[int]": (1, "medium"),
        "TestIt::test_old": (1, "medium"),
        "TestIt::test_new": (2, "high"),
        "TestIt::test_in_the_body": (2, "medium"),
    }


def test_what_follows_a_loop_of_many_long_turns_is_looked_at():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import random
            import torch

            def test_samples():
                rows = torch.zeros((4096, 8))
                chosen = []
                for row in range(4096):
                    pool = list(range(512))
                    random.shuffle(pool)
                    for column in range(8):
                        rows[row, column] = pool[column]
                        chosen.append(column)
                assert len(chosen) == 8 * 4096
                rows.to("cuda:1")
            """
        },
    )["test_samples"]
    assert (found.min, found.gpu_min, found.full, found.confidence.value) == (2, 2, 2, "high")


def test_a_test_that_a_decorator_of_the_library_tries_again_does_its_own_work():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/retrying.py": """
            import functools
            import time

            def retry(times, kinds):
                def decorate(func):
                    @functools.wraps(func)
                    def wrapper(*args, **kwargs):
                        for attempt in range(times):
                            try:
                                return func(*args, **kwargs)
                            except kinds:
                                time.sleep(1)
                    return wrapper
                return decorate
            """,
            "tests/test_it.py": """
            import unittest
            import torch
            from lib.retrying import retry

            class Common:
                def __init_subclass__(cls, **kwargs):
                    super().__init_subclass__(**kwargs)
                    for name in dir(cls):
                        if name.startswith("test_"):
                            setattr(cls, name, retry(times=3, kinds=(ConnectionError,))(getattr(cls, name)))

                def test_common(self):
                    self.model.to("cuda" if torch.cuda.is_available() else "cpu")

            class TestModel(Common, unittest.TestCase):
                def setUp(self):
                    self.model = torch.nn.Linear(1, 1)

                def test_wide(self):
                    torch.ones(1, device="cuda:2")

                def test_skipped(self):
                    if torch.cuda.device_count() < 4:
                        self.skipTest("four")
                    torch.ones(1, device="cuda:0")
            """,
        },
    )
    assert found == {
        "TestModel::test_common": (0, 1, 1),
        "TestModel::test_wide": (3, 3, 3),
        "TestModel::test_skipped": (4, 4, 4),
    }


def test_a_device_that_a_function_of_the_library_is_given_by_its_place_is_used():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/caches.py": """
            import torch

            def create_caches(blocks, kind, device="cuda"):
                return [torch.empty(blocks, device=device)]

            def is_fast(device):
                return device != "cpu"
            """,
            "tests/test_it.py": """
            import pytest
            from lib.caches import create_caches, is_fast

            @pytest.fixture
            def factory():
                return create_caches

            @pytest.mark.parametrize("device", ["cpu", "cuda:2"])
            def test_created(factory, device):
                factory(4, "auto", device)

            def test_asked():
                assert is_fast("cuda")
            """,
        },
    )
    assert found == {
        "test_created[cpu]": (0, None, 0),
        "test_created[cuda:2]": (3, 3, 3),
        "test_asked": (0, None, 0),
    }


def test_a_function_that_asks_of_its_device_alone_uses_none_whatever_it_is_called():
    found = devices_of(
        "tests/test_it.py",
        {
            "lib/platform.py": """
            def has_capability(number, index):
                return query(number, index)

            def query(number, index):
                return number > 8
            """,
            "lib/groups.py": """
            import torch
            from lib import platform

            def _has_multicast(device):
                return torch.cuda.get_device_properties(device).multicast

            def group_can_attempt(group, device):
                index = device.index
                return index is not None and platform.has_capability(9, index) and _has_multicast(device)

            def group_warms(group, device):
                index = device.index
                if device.type == "cuda":
                    group.warm(index)
            """,
            "tests/test_it.py": """
            import torch
            from lib import groups

            def test_asked(monkeypatch):
                monkeypatch.setattr(groups, "_has_multicast", lambda _device: True)
                assert groups.group_can_attempt(object(), torch.device("cuda:3"))

            def test_asked_by_name(monkeypatch):
                monkeypatch.setattr(groups, "_has_multicast", lambda _device: True)
                assert groups.group_can_attempt(object(), device=torch.device("cuda:3"))

            def test_used(world):
                groups.group_warms(world, torch.device("cuda:2"))
            """,
        },
    )
    assert found == {"test_asked": (0, None, 0), "test_asked_by_name": (0, None, 0), "test_used": (3, 3, 3)}


def test_a_mark_that_is_sure_to_skip_but_is_made_where_another_may_be_skips_nothing():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            from elsewhere import check

            def marks():
                found = check()
                if isinstance(found, str):
                    yield pytest.mark.skipif(True, reason=found)
                else:
                    yield pytest.mark.skipif(not found, reason="not there")

            def required(test):
                for mark in marks():
                    test = mark(test)
                return test

            @required
            def test_either():
                pass

            @pytest.mark.skipif(True, reason="always")
            def test_skipped():
                pass
            """
        },
    )
    assert found == {"test_either": (0, None, 0), "test_skipped": (None, None, None)}


def test_what_a_comprehension_does_is_done_where_it_is_not_known_what_it_goes_over():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from elsewhere import is_good, tasks

            def test_turns():
                return [torch.rand(3, device="cuda") for task in tasks()]

            def test_number():
                return sum(torch.rand(3, device="cuda:1").item() for _ in range(tasks().count))

            def test_condition():
                return {name: torch.rand(3, device="cuda") for name in ["a", "b"] if is_good(name)}

            def test_within():
                return [torch.rand(3, device="cuda") for task in tasks() for name in task]

            def test_nothing():
                return [torch.rand(3, device="cuda") for task in tasks() if False]

            def test_host():
                return [torch.rand(3) for task in tasks()]
            """
        },
    )
    assert found == {
        "test_turns": (1, 1, 1),
        "test_number": (2, 2, 2),
        "test_condition": (1, 1, 1),
        "test_within": (1, 1, 1),
        "test_nothing": (0, None, 0),
        "test_host": (0, None, 0),
    }


def test_of_one_of_several_numbers_is_known_what_holds_of_the_most_of_them():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest
            import torch
            from elsewhere import is_there

            def count():
                if not is_there():
                    return 0
                return torch.cuda.device_count()

            def test_two():
                if count() < 2:
                    pytest.skip("two devices")

            def test_two_the_other_way():
                if 2 > count():
                    pytest.skip("two devices")

            @pytest.mark.skipif(not count() >= 3, reason="three devices")
            def test_three():
                pass
            """
        },
    )
    assert {name: (each.min, each.gpu_min) for name, each in found.items()} == {
        "test_two": (2, 2),
        "test_two_the_other_way": (2, 2),
        "test_three": (3, 3),
    }
    assert found["test_two"].confidence.name == "MEDIUM"


def test_what_no_branch_has_bound_is_after_them_what_it_was():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            import elsewhere, torch
            from torch.distributed.fsdp import MixedPrecision
            from torch.testing._internal.common_fsdp import subtest_name
            from torch.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize

            half, full = MixedPrecision(param_dtype=torch.float16), MixedPrecision()
            if elsewhere.version() > (2, 10):
                brain = MixedPrecision(param_dtype=torch.bfloat16)

            name_of = functools.partial(subtest_name, {str(half): "half", str(full): "full"})

            class TestIt(TestCase):
                @parametrize("precision", [half, full], name_of)
                def test_at(self, precision):
                    pass

            instantiate_parametrized_tests(TestIt)
            """
        },
    )
    assert list(found) == ["TestIt::test_at_half", "TestIt::test_at_full"]


def test_a_file_that_skips_itself_under_a_condition_that_is_not_known_is_less_sure():
    helper = """
        import pytest
        from acme import configuration, Device

        def skipif(item, whole_module=False):
            if item == "nodevice" and not isinstance(configuration["platform"], Device):
                if whole_module:
                    pytest.skip("on devices only", allow_module_level=True)
                return pytest.mark.skip("on devices only")
            return pytest.mark.skipif(False, reason="")
    """
    files = {
        "tests/helper.py": helper,
        "tests/test_module.py": """
            import pytest
            from acme import configuration

            if not configuration.is_fast():
                pytest.skip("slow", allow_module_level=True)

            def test_it():
                pass
        """,
        "tests/test_asked.py": """
            from helper import skipif

            pytestmark = skipif("nodevice", whole_module=True)

            def test_it():
                pass
        """,
        "tests/test_decorated.py": """
            from helper import skipif

            @skipif("nodevice")
            def test_it():
                pass

            def test_other():
                pass

            @skipif("anything")
            def test_known():
                pass
        """,
        "tests/test_importing.py": """
            from test_module import test_it as other

            def test_it():
                pass
        """,
    }

    def sure(name):
        found = needs_of(f"tests/{name}.py", files)
        assert all(each.min == 0 for each in found.values())
        return {name: each.confidence.value for name, each in found.items()}

    assert sure("test_module") == {"test_it": "medium"}
    assert sure("test_asked") == {"test_it": "medium"}
    assert sure("test_decorated") == {"test_it": "medium", "test_other": "high", "test_known": "high"}
    assert sure("test_importing")["test_it"] == "medium"


def test_what_a_way_binds_that_may_leave_a_loop_may_hold_after_it():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import pytest, torch
            from acme import is_fast

            def skipif(items):
                reason = False
                for each in items:
                    if each == "slow" and not is_fast():
                        reason = "slow"
                        break
                if reason is False:
                    return pytest.mark.skipif(False, reason="")
                return pytest.mark.skip(reason)

            @skipif(["slow"])
            def test_guarded():
                pass

            @skipif(["other"])
            def test_free():
                pass
            """
        },
    )
    assert {name: (each.min, each.confidence.value) for name, each in found.items()} == {
        "test_guarded": (0, "medium"),
        "test_free": (0, "high"),
    }


def test_a_variable_that_nobody_sets_is_not_in_the_environment_by_default():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import pytest
            import torch

            where = "cuda:1" if "ON_CLUSTER" in os.environ else "cpu"

            def test_host():
                torch.ones(1, device=where)

            @pytest.mark.skipif("ON_CLUSTER" not in os.environ, reason="a cluster")
            def test_cluster():
                torch.ones(1, device="cuda:1")

            def test_masked():
                if "CUDA_VISIBLE_DEVICES" in os.environ:
                    pytest.skip("masked")
                torch.ones(1, device="cuda:0")
            """
        },
    )
    said = {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    assert said == {"test_host": (0, None, 0), "test_cluster": (2, 2, 2), "test_masked": (1, 1, 1)}


def test_a_list_of_which_only_the_beginning_was_made_may_hold_anything_else():
    names = ", ".join(f'("key{number}", "Model{number}")' for number in range(400))
    found = needs_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/auto.py": f"""
            from collections import OrderedDict

            NAMES = OrderedDict([{names}])

            def values_of(mapping):
                result = []
                for each in mapping.values():
                    if isinstance(each, (list, tuple)):
                        result += list(each)
                    else:
                        result.append(each)
                return result
            """,
            "tests/test_it.py": """
            import unittest

            import torch
            from acme.auto import NAMES, values_of

            class TestIt(unittest.TestCase):
                def test_first(self):
                    if "Model1" not in values_of(NAMES):
                        self.skipTest("no model")
                    torch.ones(1, device="cuda:0")

                def test_last(self):
                    if "Model399" not in values_of(NAMES):
                        self.skipTest("no model")
                    torch.ones(1, device="cuda:1")

                def test_last_of_a_copy(self):
                    if "Model399" not in [*values_of(NAMES), "Other"]:
                        self.skipTest("no model")
                    torch.ones(1, device="cuda:1")
            """,
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "TestIt::test_first": (1, 1, 1),
        "TestIt::test_last": (2, 2, 2),
        "TestIt::test_last_of_a_copy": (2, 2, 2),
    }
    assert all(found[name].confidence != "high" for name in found if "last" in name)


def test_what_checks_a_map_of_devices_puts_nothing_on_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            from acme import Model, Quantizer

            PLACES = {"first": "cuda:0", "second": "cuda:1"}

            def test_refused():
                with pytest.raises(ValueError, match="one device"):
                    Quantizer().validate_environment(device_map=PLACES)

            def test_loaded():
                Model.from_pretrained("small", device_map=PLACES)
            """
        },
    )
    assert found == {"test_refused": (0, None, 0), "test_loaded": (2, 2, 2)}


def test_what_asks_for_a_package_that_works_on_devices_only_may_do_without_one():
    needs = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import subprocess
            import sys
            from accelerate.test_utils import require_transformer_engine

            @require_transformer_engine
            def test_it_is_imported_when_it_is_asked_for():
                subprocess.run([sys.executable, "-c", "import accelerate"])
            """
        },
    )["test_it_is_imported_when_it_is_asked_for"]
    assert needs.confidence.value == "medium"


def test_of_devices_of_which_one_is_meant_the_most_is_taken_and_the_host_where_none_is_there():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import elsewhere

            def test_expression():
                torch.ones(1, device="cuda:1" if elsewhere.flag() else "cuda")

            def test_branches():
                device = torch.device("cuda:2")
                if elsewhere.flag():
                    device = torch.device("cuda:0")
                torch.ones(1, device=device)

            def test_host():
                device = "cuda:1" if elsewhere.flag() else "cpu"
                torch.ones(1, device=device)

            def test_both_of_the_host():
                torch.ones(1, device=torch.device("cpu") if elsewhere.flag() else "cpu")
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_expression": (2, 2, 2),
        "test_branches": (3, 3, 3),
        "test_host": (0, 2, 2),
        "test_both_of_the_host": (0, None, 0),
    }
    assert {each.confidence.name for name, each in found.items() if name != "test_both_of_the_host"} == {"MEDIUM"}


def test_what_grows_with_one_of_several_numbers_is_known_of_the_most_of_them():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import elsewhere

            def size():
                return 3 if elsewhere.flag() else 2

            def test_range():
                for number in range(size()):
                    torch.ones(1, device=number)

            def test_sum():
                for number in range(size() + 1):
                    torch.ones(1, device=number)

            def test_product():
                for number in range(2 * size()):
                    torch.ones(1, device=number)

            def test_difference():
                torch.ones(1, device=size() - 1)

            def test_that_does_not_grow():
                torch.ones(1, device=5 - size())
            """
        },
    )
    assert {name: each.gpu_min for name, each in found.items()} == {
        "test_range": 3,
        "test_sum": 4,
        "test_product": 6,
        "test_difference": 3,
        "test_that_does_not_grow": None,
    }
    assert {each.confidence.name for each in found.values()} == {"MEDIUM"}


def test_what_a_way_that_may_not_be_gone_adds_to_a_list_may_not_be_there():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import elsewhere

            DEVICES = ["cpu"]
            if torch.cuda.is_available():
                DEVICES.append("cuda")
            if elsewhere.has_xpu():
                DEVICES.append("xpu")

            def devices():
                found = ["cpu"]
                if elsewhere.flag():
                    found.append("cuda:1")
                return found

            def test_of_another_vendor():
                for device in DEVICES:
                    torch.ones(1, device=device)

            def test_of_a_number():
                for device in devices():
                    torch.ones(1, device=device)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_of_another_vendor": (0, 1, 1),
        "test_of_a_number": (2, 2, 2),
    }
    assert found["test_of_a_number"].confidence.name == "MEDIUM"


def test_each_of_several_functions_of_which_one_is_meant_is_called():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import elsewhere

            def one():
                torch.ones(1, device="cuda")

            def two():
                torch.ones(1, device="cuda:1")

            WAYS = {"one": one, "two": two}

            def test_expression():
                run = one if elsewhere.flag() else two
                run()

            def test_table():
                WAYS[elsewhere.name()]()

            def test_one_that_is_elsewhere():
                run = one
                if elsewhere.flag():
                    run = elsewhere.run
                run()
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_expression": (1, 1, 2),
        "test_table": (1, 1, 2),
        "test_one_that_is_elsewhere": (0, 1, 1),
    }
    assert {each.confidence.name for each in found.values()} == {"MEDIUM"}


def test_an_item_of_which_nobody_knows_where_it_stands_is_one_of_few_devices_or_small_numbers():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import torch.multiprocessing as mp
            import elsewhere

            DEVICES = ["cuda:0", "cuda:2"]
            RANKS = {"small": 2, "large": 4}
            WIDTHS = {"small": 1024, "large": 4096}

            def work(rank, size):
                torch.ones(1, device=rank)

            def test_device():
                torch.ones(1, device=DEVICES[elsewhere.place()])

            def test_ranks():
                ranks = RANKS[elsewhere.name()]
                mp.spawn(work, args=(ranks,), nprocs=ranks)

            def test_guard():
                if torch.cuda.device_count() < RANKS[elsewhere.name()]:
                    return
                torch.ones(1).cuda()

            def test_width():
                for number in range(WIDTHS[elsewhere.name()]):
                    torch.ones(number)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_device": (3, 3, 3),
        "test_ranks": (4, 4, 4),
        "test_guard": (0, 2, 2),
        "test_width": (0, None, 0),
    }


def test_what_one_way_writes_to_an_attribute_or_an_item_is_not_there_on_the_other():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import contextlib
            import unittest
            import torch
            import torch.multiprocessing as mp
            import elsewhere

            def work(rank):
                torch.ones(1, device=rank)

            class Config:
                def __init__(self):
                    self.ranks = 2
                    if elsewhere.flag():
                        self.ranks = 4

            class Settings:
                ranks = 3

            if elsewhere.flag():
                Settings.ranks = 2

            def sizes():
                found = {"ranks": 4}
                if elsewhere.flag():
                    found["ranks"] = 2
                return found

            def sizes_that_differ():
                found = {"ranks": 1}
                if elsewhere.flag():
                    found["ranks"] = 2
                else:
                    assert found["ranks"] == 1
                return found

            def test_attribute():
                mp.spawn(work, nprocs=Config().ranks)

            def test_attribute_of_a_class():
                mp.spawn(work, nprocs=Settings.ranks)

            def test_item():
                mp.spawn(work, nprocs=sizes()["ranks"])

            def test_item_that_the_other_way_asks_for():
                mp.spawn(work, nprocs=sizes_that_differ()["ranks"])

            class TestIt(unittest.TestCase):
                def setUp(self):
                    self.device = "cuda:1"
                    if elsewhere.flag():
                        self.device = "cuda"

                def test_it(self):
                    torch.ones(1, device=self.device)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_attribute": (4, 4, 4),
        "test_attribute_of_a_class": (3, 3, 3),
        "test_item": (4, 4, 4),
        "test_item_that_the_other_way_asks_for": (2, 2, 2),
        "TestIt::test_it": (2, 2, 2),
    }
    assert {each.confidence.name for each in found.values()} == {"MEDIUM"}


def test_what_one_way_writes_that_is_no_number_is_what_was_written_last():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import elsewhere

            class Stage:
                def run(self):
                    torch.ones(1, device="cuda:2")

            class Holder:
                def __init__(self):
                    self.stage = None
                    if elsewhere.flag():
                        self.stage = Stage()

            def test_it():
                Holder().stage.run()
            """
        },
    )
    assert found == {"test_it": (3, 3, 3)}


def test_what_one_of_several_ways_yields_is_one_of_several():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            from contextlib import contextmanager
            import torch
            import elsewhere

            @contextmanager
            def device():
                if elsewhere.flag():
                    yield "cuda"
                else:
                    yield "cuda:1"

            def devices():
                yield "cuda"
                if elsewhere.flag():
                    yield "cuda:2"

            def test_context():
                with device() as name:
                    torch.ones(1, device=name)

            def test_generator():
                for name in devices():
                    torch.ones(1, device=name)
            """
        },
    )
    assert {name: (each.min, each.gpu_min, each.full) for name, each in found.items()} == {
        "test_context": (2, 2, 2),
        "test_generator": (3, 3, 3),
    }
    assert {each.confidence.name for each in found.values()} == {"MEDIUM"}


def test_cases_of_which_only_a_part_is_known_are_one_entry_with_what_is_known():
    text = """
    import itertools

    import elsewhere
    import pytest
    import torch

    DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
    ROWS = [(kind, device) for kind in elsewhere.KINDS for device in DEVICES]

    def params(rows):
        return [pytest.param(*row, marks=pytest.mark.slow) for row in rows]

    @pytest.mark.parametrize("kind,device", itertools.product(elsewhere.KINDS, DEVICES))
    def test_product(kind, device):
        torch.ones(2, device=device)

    @pytest.mark.parametrize("kind,device", list(itertools.islice(itertools.product(elsewhere.KINDS, DEVICES), 2)))
    def test_beginning(kind, device):
        torch.ones(2, device=device)

    @pytest.mark.parametrize("kind,device", ROWS)
    def test_written(kind, device):
        torch.ones(2, device=device)

    @pytest.mark.parametrize("kind,device", params(ROWS))
    def test_made(kind, device):
        torch.ones(2, device=device)

    @pytest.mark.parametrize("case,kind,device", itertools.product(range(12), elsewhere.KINDS, DEVICES))
    def test_many(case, kind, device):
        torch.ones(2, device=device)

    @pytest.mark.parametrize("kind,device", itertools.product(elsewhere.KINDS, ["cpu"]))
    def test_host(kind, device):
        torch.ones(2, device=device)

    def test_loop():
        for kind, device in itertools.product(elsewhere.KINDS, DEVICES):
            torch.ones(2, device=device)

    def test_unknown():
        assert len(ROWS) > 3 and ROWS[2]
        torch.ones(2)
    """
    found = needs_of("tests/test_it.py", {"tests/test_it.py": text})
    said = {name: (each.min, each.gpu_min, each.full) for name, each in found.items()}
    assert said == {
        "test_product": (0, 1, 1),
        "test_beginning": (0, 1, 1),
        "test_written": (0, 1, 1),
        "test_made": (0, 1, 1),
        "test_many": (0, 1, 1),
        "test_host": (0, None, 0),
        "test_loop": (0, 1, 1),
        "test_unknown": (0, None, 0),
    }
    assert all(found[name].confidence.value == "low" for name in ("test_product", "test_beginning", "test_written"))


def test_what_a_module_is_after_it_was_imported_again_is_not_sure():
    found = needs_of(
        "tests/test_it.py",
        {
            "src/acme/__init__.py": "",
            "src/acme/sizes.py": "import os\nGPUS = int(os.environ.get('GPUS', '2'))",
            "tests/test_it.py": """
            import importlib
            import torch
            from acme import sizes

            def test_again(monkeypatch):
                monkeypatch.setenv("GPUS", "3")
                importlib.reload(sizes)
                torch.ones(1, device=sizes.GPUS - 1)

            def test_once(monkeypatch):
                monkeypatch.setenv("GPUS", "3")
                torch.ones(1, device=sizes.GPUS - 1)
            """,
        },
    )
    said = {name: (each.gpu_min, each.confidence) for name, each in found.items()}
    assert said == {"test_again": (2, "medium"), "test_once": (2, "high")}
