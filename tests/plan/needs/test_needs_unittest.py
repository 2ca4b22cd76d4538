"""unittest's own ways: skips that are set as attributes, and classes that are multiplied by cases."""

import pytest
from small_projects import devices_of, needs_of


def test_a_skip_that_is_set_as_an_attribute_is_one_as_unittest_reads_it():
    found = devices_of(
        "test_it.py",
        {
            "helpers.py": """
            def skip_here_if(condition, reason):
                def decorator(func):
                    if condition:
                        func.__unittest_skip__ = True
                        func.__unittest_skip_why__ = reason
                    return func
                return decorator
            """,
            "test_it.py": """
            import torch
            from unittest import TestCase
            from helpers import skip_here_if

            class TestIt(TestCase):
                @skip_here_if(torch.cuda.device_count() < 4, "four devices")
                def test_four(self):
                    assert True

                @skip_here_if(False, "never")
                def test_host(self):
                    assert True

            @skip_here_if(torch.cuda.device_count() < 2, "two devices")
            class TestTwo(TestCase):
                def test_two(self):
                    assert True

            class TestInherits(TestTwo):
                def test_three(self):
                    torch.ones(1, device="cuda:2")
            """,
        },
    )
    assert found == {
        "TestIt::test_four": (4, 4, 4),
        "TestIt::test_host": (0, None, 0),
        "TestTwo::test_two": (2, 2, 2),
        "TestInherits::test_three": (3, 3, 3),
        "TestInherits::test_two": (2, 2, 2),
    }


def test_a_class_of_parameterizeds_is_one_class_for_each_case():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from unittest import TestCase
            from parameterized import parameterized, parameterized_class

            @parameterized_class([{"devices": 1, "kind": "one way"}, {"devices": 4, "kind": "other"}])
            class TestDicts(TestCase):
                def test_it(self):
                    for index in range(self.devices):
                        torch.ones(1, device=f"cuda:{index}")

            @parameterized_class(("devices", "more"), [(1, 2), (2, 3)])
            class TestTuples(TestCase):
                @parameterized.expand(["a", "b"])
                def test_it(self, letter):
                    torch.ones(1, device=f"cuda:{self.devices}")

            def named(cls, number, values):
                return f"{cls.__name__}_{'wide' if values['devices'] > 2 else 'narrow'}"

            @parameterized_class(("devices",), [[2], [3]], class_name_func=named)
            class TestNamed(TestCase):
                def test_it(self):
                    torch.ones(1, device=f"cuda:{self.devices - 1}")
            """
        },
    )
    assert found == {
        "TestDicts_0_one_way::test_it": (1, 1, 1),
        "TestDicts_1_other::test_it": (4, 4, 4),
        "TestTuples_0::test_it_0_a": (2, 2, 2),
        "TestTuples_0::test_it_1_b": (2, 2, 2),
        "TestTuples_1::test_it_0_a": (3, 3, 3),
        "TestTuples_1::test_it_1_b": (3, 3, 3),
        "TestNamed_narrow::test_it": (2, 2, 2),
        "TestNamed_wide::test_it": (3, 3, 3),
    }


def test_a_class_that_is_made_for_each_case_stays_with_the_tests_that_it_inherits():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from unittest import TestCase

            import torch
            from parameterized import parameterized_class

            class TestPlain(TestCase):
                devices = 1

                def test_plain(self):
                    for index in range(self.devices):
                        torch.ones(1, device=f"cuda:{index}")

            @parameterized_class(("devices",), [(2,)])
            class TestCases(TestPlain):
                def test_own(self):
                    torch.ones(1, device=f"cuda:{self.devices - 1}")

            class TestAfter(TestCases):
                def test_after(self):
                    torch.ones(1, device="cuda:3")
            """,
        },
    )
    assert found == {
        "TestPlain::test_plain": (1, 1, 1),
        "TestCases::test_plain": (1, 1, 1),
        "TestCases_0::test_plain": (2, 2, 2),
        "TestCases_0::test_own": (2, 2, 2),
        "TestAfter::test_plain": (1, 1, 1),
        "TestAfter::test_after": (4, 4, 4),
    }


def test_pytorchs_own_parameters_are_named_as_pytorch_names_them():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import enum
            import torch
            from torch.distributed.fsdp import BackwardPrefetch, CPUOffload
            from torch.testing._internal.common_utils import (
                TestCase, instantiate_parametrized_tests, parametrize, subtest, swap,
            )

            class Mode(enum.Enum):
                ONE = enum.auto()
                FOUR = enum.auto()

            class Word(str, enum.Enum):
                A = "a"

            def touch(count):
                for index in range(count):
                    torch.ones(1, device=f"cuda:{index}")

            class TestIt(TestCase):
                @parametrize("mode", [Mode.ONE, Mode.FOUR])
                def test_member(self, mode):
                    touch(4 if mode is Mode.FOUR else 1)

                @parametrize("word", [Word.A])
                def test_word(self, word):
                    touch(1)

                @parametrize("offload", [CPUOffload(offload_params=True), None])
                @parametrize("prefetch", [BackwardPrefetch.BACKWARD_PRE])
                def test_outside(self, offload, prefetch):
                    touch(2)

                @swap([True, False])
                @parametrize("kind", [str, int])
                def test_kind(self, kind):
                    touch(1)

                @parametrize("count", [subtest(3, name="three"), 2])
                def test_subtest(self, count):
                    touch(count)

            instantiate_parametrized_tests(TestIt)
            """
        },
    )
    assert found == {
        "TestIt::test_member_mode0": (1, 1, 1),
        "TestIt::test_member_mode1": (4, 4, 4),
        "TestIt::test_word_word_Word_A": (1, 1, 1),
        "TestIt::test_outside_offload0_prefetch0": (2, 2, 2),
        "TestIt::test_outside_offload1_prefetch0": (2, 2, 2),
        **{f"TestIt::test_kind_swap_{swap}_kind{kind}": (1, 1, 1) for swap in (True, False) for kind in (0, 1)},
        "TestIt::test_subtest_three": (3, 3, 3),
        "TestIt::test_subtest_count_2": (2, 2, 2),
    }


def test_decorators_of_one_of_pytorchs_cases_guard_this_one():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch
            from torch.testing._internal.common_device_type import (
                instantiate_device_type_tests, onlyCPU, onlyCUDA, onlyOn, skipMeta,
            )
            from torch.testing._internal.common_utils import TestCase, parametrize, subtest

            class TestIt(TestCase):
                @parametrize("n", [
                    subtest(1, name="there", decorators=[onlyCUDA, skipMeta]),
                    subtest(2, name="here", decorators=[onlyCPU]),
                    subtest(3, name="on", decorators=[onlyOn(["cuda"])]),
                    subtest(4, name="never", decorators=[unittest.skip("old")]),
                    5,
                ])
                def test_it(self, device, n):
                    torch.ones(n, device=device)

            instantiate_device_type_tests(TestIt, globals())
            """
        },
    )
    said = {name: "".join(each.profile[size].value[0] for size in "01") for name, each in found.items()}
    assert said == {
        **{f"TestItCPU::test_it_{name}_cpu": "ss" for name in ("there", "on", "never")},
        **{f"TestItCPU::test_it_{name}_cpu": "rr" for name in ("here", "n_5")},
        **{f"TestItCUDA::test_it_{name}_cuda": "as" for name in ("here", "never")},
        **{f"TestItCUDA::test_it_{name}_cuda": "ar" for name in ("there", "on", "n_5")},
    }


def test_a_decorator_that_pytorch_applies_to_some_cases_only_skips_these():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            import unittest
            from torch.testing._internal.common_utils import (
                TestCase, decorateIf, instantiate_parametrized_tests, parametrize,
            )

            class TestIt(TestCase):
                @decorateIf(unittest.skip, lambda params: params["wide"] and not params["causal"])
                @parametrize("wide", [True, False])
                @parametrize("causal", [True, False])
                def test_it(self, wide, causal):
                    torch.ones(1, device="cuda:3" if wide else "cuda:0")

            instantiate_parametrized_tests(TestIt)
            """
        },
    )
    assert found == {
        "TestIt::test_it_wide_True_causal_True": (4, 4, 4),
        "TestIt::test_it_wide_True_causal_False": (None, None, None),
        "TestIt::test_it_wide_False_causal_True": (1, 1, 1),
        "TestIt::test_it_wide_False_causal_False": (1, 1, 1),
    }


def test_pytorchs_names_for_records_of_its_own_are_looked_up_by_their_text():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            from torch.distributed.fsdp import CPUOffload, ShardingStrategy
            from torch.testing._internal.common_fsdp import FSDPTest, subtest_name
            from torch.testing._internal.common_utils import instantiate_parametrized_tests, parametrize

            names = {
                str(CPUOffload(offload_params=True)): "offload",
                str(CPUOffload(offload_params=False)): "stay",
                str(ShardingStrategy.NO_SHARD): "no_shard",
            }
            cases = [
                (CPUOffload(offload_params=True), None),
                (CPUOffload(offload_params=False), ShardingStrategy.NO_SHARD),
            ]

            class TestIt(FSDPTest):
                @property
                def world_size(self):
                    return 2

                @parametrize("offload,strategy", cases, functools.partial(subtest_name, names))
                def test_it(self, offload, strategy):
                    pass

            instantiate_parametrized_tests(TestIt)
            """
        },
    )
    assert list(found) == ["TestIt::test_it_offload_none", "TestIt::test_it_stay_no_shard"]


def test_cases_of_expand_are_numbered_with_as_many_digits_as_the_last_one_has():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            from unittest import TestCase
            from parameterized import parameterized

            class TestIt(TestCase):
                @parameterized.expand([(str(number),) for number in range(11)])
                def test_it(self, number):
                    pass
            """
        },
    )
    assert list(found) == [f"TestIt::test_it_{number:02}_{number}" for number in range(11)]


def test_a_decorator_that_the_rules_do_not_know_is_looked_for_in_the_tree_and_else_read_by_its_name():
    test = """
        import torch
        from torch.testing._internal.common_utils import TestCase, old_skip_if

        class TestIt(TestCase):
            @old_skip_if(torch.cuda.device_count() < 4, "four devices")
            def test_four(self):
                assert True

            @old_skip_if(not torch.distributed.is_available(), "no c10d")
            def test_host(self):
                assert True
        """
    helper = """
        def old_skip_if(condition, reason):
            def decorator(func):
                if condition:
                    func.__unittest_skip__ = True
                return func
            return decorator
        """
    wanted = {"TestIt::test_four": (4, 4, 4), "TestIt::test_host": (0, None, 0)}
    assert devices_of("test_it.py", {"test_it.py": test}) == wanted
    assert devices_of("test_it.py", {"test_it.py": test, "torch/testing/_internal/common_utils.py": helper}) == wanted


def test_a_decorator_of_a_package_whose_name_says_when_it_skips_skips_then():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from acme import skip_test_if, skipUnless, skipper, testing

            @skip_test_if(torch.cuda.device_count() < 2)
            def test_two():
                assert True

            @skipUnless(torch.cuda.device_count() > 2, reason="three")
            def test_three():
                assert True

            @testing.skip_if(torch.cuda.is_available(), "for the host")
            def test_host():
                assert True

            @skipper(torch.cuda.device_count() < 2)
            def test_not_known():
                assert True
            """
        },
    )
    assert found == {
        "test_two": (2, 2, 2),
        "test_three": (3, 3, 3),
        "test_host": (0, None, 0),
        "test_not_known": (0, None, 0),
    }


def test_a_skip_as_an_attribute_under_a_condition_that_is_not_known_is_taken_as_not_met():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch
            import torch.distributed
            from acme import is_there
            from torch.testing._internal.common_utils import sandcastle_skip, sandcastle_skip_if

            NO_NCCL = not hasattr(torch.distributed, "ProcessGroupNCCL")

            def skip_here_if(condition):
                def decorator(func):
                    if condition:
                        func.__unittest_skip__ = True
                    return func
                return decorator

            class TestIt(unittest.TestCase):
                @skip_here_if(is_there("a file"))
                def test_not_known(self):
                    torch.ones(1).cuda(1)

                @unittest.skipIf(NO_NCCL, "NCCL")
                def test_nccl(self):
                    torch.ones(1).cuda(1)

                @sandcastle_skip("flaky")
                def test_never(self):
                    assert True

                @sandcastle_skip_if(torch.cuda.device_count() < 3, "three")
                def test_three(self):
                    assert True
            """
        },
    )
    assert found == {
        "TestIt::test_not_known": (2, 2, 2),
        "TestIt::test_nccl": (2, 2, 2),
        "TestIt::test_never": (None, None, None),
        "TestIt::test_three": (3, 3, 3),
    }


def test_names_of_cases_that_are_not_known_are_the_same_in_each_run():
    text = """
    from absl.testing import parameterized
    from elsewhere import NAMES, thing

    class Test(parameterized.TestCase):
        @parameterized.named_parameters((NAMES[0], 1), (thing(), 2), ("k", 3), dict(testcase_name=f"_{thing()}", x=4))
        def test_it(self, x):
            pass
    """
    names = list(needs_of("tests/test_a.py", {"tests/test_a.py": text}))
    assert not [name for name in names if " at 0x" in name or "object" in name]
    assert "Test::test_it_k" in names
    assert len(names) == 4


def test_what_workers_share_through_a_manager_is_what_was_put_into_it():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import multiprocessing
            import sys
            import unittest
            import torch

            CODES = {"devices": 75}

            class TestIt(unittest.TestCase):
                def setUp(self):
                    global CODES
                    shared = multiprocessing.Manager().dict()
                    shared.update(CODES)
                    CODES = shared

                def test_one(self):
                    if torch.cuda.device_count() < 3:
                        sys.exit(CODES["devices"])
                    torch.ones(1, device="cuda:2")

                def test_listed(self):
                    sizes = multiprocessing.Manager().list()
                    sizes.append(2)
                    torch.ones(1, device=f"cuda:{sizes[0]}")
            """
        },
    )
    assert {name: "".join(verdict.value[0] for verdict in each.profile.values()) for name, each in found.items()} == {
        "TestIt::test_one": "sssrrr",
        "TestIt::test_listed": "fffrrr",
    }


def test_a_class_that_a_decorator_of_functions_wraps_has_no_tests_left():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import functools
            import unittest
            from torch.testing._internal.common_distributed import skip_if_lt_x_gpu

            def quietly(wrapped):
                @functools.wraps(wrapped)
                def wrapper(*args, **kwargs):
                    return wrapped(*args, **kwargs)

                return wrapper

            def kept(wrapped):
                if isinstance(wrapped, type):
                    return wrapped
                return quietly(wrapped)

            @skip_if_lt_x_gpu(2)
            class Hidden(unittest.TestCase):
                def test_hidden(self):
                    pass

            @quietly
            class TestQuiet:
                def test_quiet(self):
                    pass

            @kept
            class TestKept:
                @skip_if_lt_x_gpu(2)
                def test_kept(self):
                    pass
            """
        },
    )
    assert found == {"TestKept::test_kept": (2, 2, 2)}


def test_what_a_class_of_nothing_is_asked_to_assert_it_has_not():
    found = devices_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import unittest
            import torch

            TestCase = unittest.TestCase
            if not torch.cuda.is_available():
                TestCase = object  # nothing for unittest to find; pytest does

            class TestIt(TestCase):
                def test_counts(self):
                    self.assertEqual(1 + 1, 2)

                def test_plain(self):
                    assert 1 + 1 == 2
            """
        },
    )
    assert found == {"TestIt::test_counts": (1, 1, 1), "TestIt::test_plain": (0, None, 0)}


def test_a_skip_of_unittests_wraps_a_function_whoever_calls_it_and_a_mark_of_pytests_does_not():
    found = devices_of(
        "test_wrapped.py",
        {
            "test_wrapped.py": """
            import unittest
            import pytest
            import torch

            class TestPair(unittest.TestCase):
                @unittest.skipIf(torch.cuda.device_count() <= 1, "two")
                def setUp(self):
                    super().setUp()

                @unittest.skipUnless(torch.cuda.device_count() >= 3, "three")
                def of_three(self):
                    pass

                @pytest.mark.skipif(torch.cuda.device_count() < 4, reason="a mark on what is no test")
                def of_four(self):
                    pass

                def test_pair(self):
                    pass

                def test_three(self):
                    self.of_three()

                def test_marked(self):
                    self.of_four()

            @unittest.skip("not now")
            def later():
                pass

            def test_later():
                later()
            """
        },
    )
    assert found == {
        "TestPair::test_pair": (2, 2, 2),
        "TestPair::test_three": (3, 3, 3),
        "TestPair::test_marked": (2, 2, 2),
        "test_later": (None, None, None),
    }


def test_a_skip_that_is_caught_by_its_name_is_none():
    found = devices_of(
        "test_caught.py",
        {
            "test_caught.py": """
            import unittest
            import pytest
            import torch

            @unittest.skip("as an error")
            def skipped():
                pass

            class TestCaught(unittest.TestCase):
                def test_expected(self):
                    with self.assertRaises(unittest.SkipTest):
                        skipped()

                def test_of_pytests(self):
                    with pytest.raises(pytest.skip.Exception):
                        pytest.skip("as an error")

                def test_handled(self):
                    try:
                        skipped()
                    except unittest.SkipTest:
                        torch.ones(1, device="cuda:1")

                def test_another(self):
                    with self.assertRaises(RuntimeError):
                        skipped()

                def test_passed_on(self):
                    try:
                        skipped()
                    except unittest.SkipTest:
                        raise
            """
        },
    )
    assert found == {
        "TestCaught::test_expected": (0, None, 0),
        "TestCaught::test_of_pytests": (0, None, 0),
        "TestCaught::test_handled": (2, 2, 2),
        "TestCaught::test_another": (None, None, None),
        "TestCaught::test_passed_on": (None, None, None),
    }


def test_a_class_of_unittest_may_use_fixtures_by_their_names():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import pytest, torch

            @pytest.fixture
            def three():
                if torch.cuda.device_count() < 3:
                    pytest.skip("three")

            @pytest.fixture(scope="class")
            def world(request):
                request.cls.world = 2

            @pytest.mark.usefixtures("world")
            class Used(unittest.TestCase):
                def test_world(self):
                    torch.cuda.set_device(self.world - 1)

                @pytest.mark.usefixtures("three")
                def test_three(self):
                    torch.ones(1).cuda()
            """,
        },
    )
    assert found == {"Used::test_world": (2, 2, 2), "Used::test_three": (3, 3, 3)}


def test_a_set_up_may_go_by_what_the_test_is_called_and_by_what_a_decorator_has_put_on_it():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch

            N = torch.cuda.device_count()

            def least(count):
                def decorate(test):
                    test.least = count
                    return test
                return decorate

            class Marked(unittest.TestCase):
                def setUp(self):
                    test = getattr(self, self._testMethodName)
                    if N < getattr(test, "least", 1):
                        self.skipTest("too few")
                    if hasattr(test, "most") and N < test.most:
                        self.skipTest("too few")

                @least(3)
                def test_three(self):
                    torch.ones(1).cuda()

                def test_plain(self):
                    torch.ones(1).cuda()

                def test_most(self):
                    torch.ones(1).cuda()

                test_most.most = 4

            class Named(unittest.TestCase):
                def setUp(self):
                    if self.id().endswith("Named.test_two") and N < 2:
                        self.skipTest("too few")

                def test_two(self):
                    torch.ones(1).cuda()
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "Marked::test_three": 3, "Marked::test_plain": 1, "Marked::test_most": 4, "Named::test_two": 2,
    }  # fmt: skip


def test_tests_may_be_put_into_a_module_and_a_class_by_the_names_of_the_scope():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import sys
            import unittest
            import torch

            def make(count):
                def test(self=None):
                    torch.cuda.set_device(count - 1)
                return test

            class Base(unittest.TestCase):
                count = 1

                def test_it(self):
                    torch.cuda.set_device(self.count - 1)

            for count in (1, 2):
                locals()[f"test_local_{count}"] = make(count)
                setattr(sys.modules[__name__], f"Case{count}", type(f"Case{count}", (Base,), {"count": count}))

            class TestMade:
                for count in (3, 4):
                    vars()[f"test_{count}"] = make(count)
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "Base::test_it": 1, "test_local_1": 1, "test_local_2": 2, "Case1::test_it": 1, "Case2::test_it": 2,
        "TestMade::test_3": 3, "TestMade::test_4": 4,
    }  # fmt: skip


def test_a_test_that_is_taken_out_of_its_class_is_none():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch

            class Base(unittest.TestCase):
                count = 1

                def test_it(self):
                    torch.cuda.set_device(self.count - 1)

                def test_generic(self):
                    raise NotImplementedError

                def test_other(self):
                    self.count = 4
                    del self.count
                    torch.cuda.set_device(self.count - 1)

            for count in (1, 2):
                setattr(Base, f"test_generic_{count}", lambda self, count=count: torch.cuda.set_device(count - 1))
            delattr(Base, "test_generic")

            class Wide(Base):
                count = 3

            del Base.test_it
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "Base::test_other": 1, "Base::test_generic_1": 1, "Base::test_generic_2": 2,
        "Wide::test_other": 3, "Wide::test_generic_1": 1, "Wide::test_generic_2": 2,
    }  # fmt: skip


def test_what_the_library_takes_away_under_a_condition_that_nobody_knows_is_no_doubt_of_the_test_s():
    found = needs_of(
        "tests/test_it.py",
        {
            "src/library/hooks.py": """
            import settings

            def remove(module):
                if settings.flag():
                    delattr(module, "hook")
                return module
            """,
            "tests/test_it.py": """
            import torch
            from library.hooks import remove

            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.hook = None

            def test_it():
                model = Model()
                remove(model)
                model.to("cuda:1")
            """,
        },
    )
    assert (found["test_it"].confidence, found["test_it"].min) == ("high", 2)


def test_a_test_that_is_told_to_skip_through_its_base_class_is_skipped_not_failed():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import jax
            import jax.numpy as jnp
            from absl.testing import parameterized

            def skip_large(case):
                if jax.default_backend() == "cpu":
                    raise parameterized.TestCase.skipTest(case, "too large")

            class TestIt(parameterized.TestCase):
                def test_large(self):
                    skip_large(self)
                    jnp.zeros(2)
            """
        },
    )["TestIt::test_large"]
    assert (found.min, found.gpu_min, found.full) == (1, 1, 1)
    assert found.profile["0"] == "skip"


def test_a_class_of_tests_that_cannot_be_made_of_a_tests_name_never_runs_and_those_that_inherit_from_it_do():
    found = devices_of(
        "test_base.py",
        {
            "test_base.py": """
            import functools

            import torch
            from absl.testing import parameterized

            class Base(parameterized.TestCase):
                def __init__(self, *args, compute, exact=True):
                    super().__init__(*args)
                    self.compute = compute

                def test_it(self):
                    self.compute(torch.ones(2, device="cuda"))

            class TestOnes(Base):
                def __init__(self, *args):
                    super().__init__(*args, compute=torch.sum)

            class TestTwos(parameterized.TestCase):
                def __init__(self, name, compute):
                    super().__init__(name)

                def test_it(self):
                    torch.ones(2, device="cuda")
            """
        },
    )
    assert found == {
        "Base::test_it": (None, None, None),
        "TestOnes::test_it": (1, 1, 1),
        "TestTwos::test_it": (None, None, None),
    }


def test_what_a_case_says_reaches_a_test_that_takes_everything():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from absl.testing import parameterized

            class TestIt(parameterized.TestCase):
                @parameterized.product([dict(shards=1), dict(shards=2)], dtype=[None])
                def test_sharded(self, dtype, **shape):
                    if torch.cuda.device_count() < shape["shards"]:
                        self.skipTest("devices")
                    torch.ones(2, device=f"cuda:{shape['shards'] - 1}")
            """
        },
    )
    assert found == {"TestIt::test_sharded0": (1, 1, 1), "TestIt::test_sharded1": (2, 2, 2)}


def test_a_test_case_lacks_what_neither_its_files_nor_unittest_give_it():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/__init__.py": "",
            "tests/common.py": """
            class Mixin:
                def test_has(self):
                    if not hasattr(self, "_compiled"):
                        self.skipTest("nothing is compiled")

                def test_get(self):
                    if getattr(self, "_compiled", None) is None:
                        self.skipTest("nothing is compiled")

                def test_of_unittests(self):
                    if not hasattr(self, "addCleanup"):
                        self.skipTest("no cleanup")
            """,
            "tests/test_it.py": """
            import unittest
            from acme.testing import AcmeCase
            from .common import Mixin

            class TestWithout(Mixin, unittest.TestCase):
                pass

            class TestWith(Mixin, unittest.TestCase):
                def setUp(self):
                    self._compiled = object

            class TestFromElsewhere(Mixin, AcmeCase):
                pass
            """,
        },
    )
    assert {name: (each.profile["1"].value, each.confidence.name) for name, each in found.items()} == {
        "TestWithout::test_has": ("skip", "HIGH"),
        "TestWithout::test_get": ("skip", "HIGH"),
        "TestWithout::test_of_unittests": ("run", "HIGH"),
        "TestWith::test_has": ("run", "HIGH"),
        "TestWith::test_get": ("run", "HIGH"),
        "TestWith::test_of_unittests": ("run", "HIGH"),
        "TestFromElsewhere::test_has": ("run", "MEDIUM"),
        "TestFromElsewhere::test_get": ("run", "MEDIUM"),
        "TestFromElsewhere::test_of_unittests": ("run", "MEDIUM"),
    }


def test_what_decorates_a_test_that_expand_has_made_its_cases_of_decorates_none_of_them():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import torch
            from absl.testing import absltest, parameterized as absl_parameterized
            from parameterized import parameterized

            needs_two = unittest.skipIf(torch.cuda.device_count() < 2, "two")

            class TestIt(unittest.TestCase):
                @parameterized.expand([(1,), (2,)])
                @needs_two
                def test_below(self, x):
                    pass

                @needs_two
                @parameterized.expand([(1,), (2,)])
                def test_above(self, x):
                    pass

            class TestOthers(absl_parameterized.TestCase):
                @absltest.skip("not yet")
                @absl_parameterized.parameters(1, 2)
                def test_one(self, x):
                    pass

                @unittest.skipIf(False, "never")
                @absl_parameterized.parameters(1, 2)
                def test_many(self, x):
                    pass

                @absl_parameterized.parameters(1, 2)
                @unittest.skip("not yet")
                def test_each(self, x):
                    pass
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {
        "TestIt::test_below_0": 2,
        "TestIt::test_below_1": 2,
        "TestIt::test_above_0": 0,
        "TestIt::test_above_1": 0,
        "TestOthers::test_one": None,
        "TestOthers::test_many0": 0,
        "TestOthers::test_many1": 0,
        "TestOthers::test_each0": None,
        "TestOthers::test_each1": None,
    }


def test_cases_of_param_are_given_by_position_and_by_name_and_partial_methods_are_tests():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            import unittest

            import torch
            from parameterized import param, parameterized

            class TestIt(unittest.TestCase):
                def needs(self, count):
                    if torch.cuda.device_count() < count:
                        self.skipTest("few")

                @parameterized.expand([param(size=1), param("a b", size=4), param.explicit(("c",), {"size": 3})])
                def test_param(self, name="x", size=2):
                    self.needs(size)

                @parameterized.expand(
                    [param(2, kind="nccl")], name_func=lambda f, i, p: f"{f.__name__}_{p.args[0]}_{p.kwargs['kind']}"
                )
                def test_named(self, size, kind):
                    self.needs(size)

                def _run(self, first, size=1):
                    self.needs(first + size)

                test_one_more = functools.partialmethod(_run, 1)
                test_many_more = functools.partialmethod(_run, 1, size=3)
                again = functools.partialmethod(_run, 2)

                def test_calls_one(self):
                    self.again(size=2)
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {
        "TestIt::test_param_0": 1,
        "TestIt::test_param_1_a_b": 4,
        "TestIt::test_param_2_c": 3,
        "TestIt::test_named_2_nccl": 2,
        "TestIt::test_one_more": 2,
        "TestIt::test_many_more": 4,
        "TestIt::test_calls_one": 4,
    }


def test_cases_of_a_test_that_takes_everything_by_position_reach_it_so():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import torch
            from absl.testing import parameterized as absl_parameterized
            from parameterized import parameterized

            def need(count):
                if torch.cuda.device_count() < count:
                    raise unittest.SkipTest("few")

            class TestIt(unittest.TestCase):
                @parameterized.expand([(2, "a"), (3, "b")])
                def test_all(self, *args):
                    need(args[0])

                @parameterized.expand(lambda: [(2, 2)])
                def test_first_and_rest(self, first, *rest):
                    need(first + rest[0])

            class TestOther(absl_parameterized.TestCase):
                @absl_parameterized.parameters((1, 2), (4, 2))
                def test_all(self, *sizes):
                    need(max(sizes))
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {
        "TestIt::test_all_0": 2,
        "TestIt::test_all_1": 3,
        "TestIt::test_first_and_rest_0": 4,
        "TestOther::test_all0": 2,
        "TestOther::test_all1": 4,
    }


def test_a_metaclass_of_the_tests_own_makes_their_classes():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import elsewhere
            import pytest
            import torch

            class Guarding(type):
                def __new__(mcs, name, bases, names):
                    for key, value in list(names.items()):
                        if key.startswith("test_"):
                            names[key] = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")(value)
                    return super().__new__(mcs, name, bases, names)

            class TestGuarded(metaclass=Guarding):
                def test_a(self):
                    pass

            class Sized(type):
                def __new__(mcs, name, bases, names, sizes=()):
                    made = super().__new__(mcs, name, bases, names)
                    for size in sizes:
                        def test(self, size=size):
                            if torch.cuda.device_count() < size:
                                self.skipTest("few")
                        setattr(made, f"test_{size}", test)
                    return made

            class TestSized(unittest.TestCase, metaclass=Sized, sizes=(1, 4)):
                def test_own(self):
                    pass

            class Initialising(type):
                def __init__(cls, name, bases, names):
                    super().__init__(name, bases, names)
                    cls.least = 3

            class TestInitialised(metaclass=Initialising):
                def test_a(self):
                    if torch.cuda.device_count() < self.least:
                        pytest.skip("few")

            class TestHeir(TestInitialised):
                pass

            class Taking(type):
                def __new__(mcs, name, bases, names):
                    names.pop("test_gone", None)
                    return type.__new__(mcs, name, bases, names)

            class TestTaking(metaclass=Taking):
                def test_gone(self):
                    pass

                def test_stays(self):
                    pass

            class Unknown(type):
                def __new__(mcs, name, bases, names):
                    return elsewhere.make(mcs, name, bases, names)

            class TestUnknown(metaclass=Unknown):
                def test_a(self):
                    pass
            """
        },
    )
    assert {name: (each.min, each.confidence.value) for name, each in found.items()} == {
        "TestGuarded::test_a": (2, "high"),
        "TestSized::test_own": (0, "high"),
        "TestSized::test_1": (1, "high"),
        "TestSized::test_4": (4, "high"),
        "TestInitialised::test_a": (3, "high"),
        "TestHeir::test_a": (3, "high"),
        "TestTaking::test_stays": (0, "high"),
        "TestUnknown::test_a": (0, "medium"),
    }


def test_a_decorator_that_wraps_all_functions_of_a_class_once_keeps_its_tests():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import functools
            import os
            import types
            import unittest
            import torch

            def require_token(case):
                token = os.getenv("TOKEN")
                if isinstance(case, type):
                    for name in dir(case):
                        found = getattr(case, name)
                        if isinstance(found, types.FunctionType):
                            setattr(case, name, require_token(found))
                    return case
                if getattr(case, "__token__", False):
                    return case

                @functools.wraps(case)
                def wrapper(*args, **kwargs):
                    return case(*args, **kwargs)

                wrapper.__token__ = True
                return wrapper

            @require_token
            class ModelTest(unittest.TestCase):
                def setUp(self):
                    self.device = "cuda"

                def test_model(self):
                    torch.ones(1, device=self.device)
            """
        },
    )
    assert found == {"ModelTest::test_model": (1, 1, 1)}


def test_a_test_that_may_have_been_wrapped_is_not_lost_and_that_is_no_certainty():
    needs = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest
            import torch
            from acme import is_traced

            def traced(func):
                def wrapper(*args, **kwargs):
                    return func(*args, **kwargs)
                return wrapper

            def trace_all(case):
                for name in dir(case):
                    if name.startswith("test_"):
                        found = getattr(case, name)
                        setattr(case, name, traced(found) if is_traced() else found)
                return case

            @trace_all
            class ModelTest(unittest.TestCase):
                def test_model(self):
                    torch.ones(1, device="cuda")
            """
        },
    )["ModelTest::test_model"]
    assert (needs.min, needs.gpu_min, needs.full, needs.confidence.value) == (1, 1, 1, "medium")


def test_a_class_under_a_bare_skip_of_unittests_has_no_tests():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            @unittest.skip
            class TestGone(unittest.TestCase):
                def test_a(self):
                    pass

            @unittest.skip("why")
            class TestSkipped(unittest.TestCase):
                @unittest.skip
                def test_a(self):
                    pass
            """
        },
    )
    assert {name: each.min for name, each in found.items()} == {"TestSkipped::test_a": None}


def test_what_wraps_the_set_up_of_the_classes_that_inherit_from_it_calls_theirs():
    text = """
    import unittest
    import torch

    class Safe(unittest.TestCase):
        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            setup = cls.setUpClass
            if getattr(setup, "_is_safe", False):
                return
            original = setup.__func__

            def safe(klass):
                try:
                    original(klass)
                except Exception:
                    try:
                        klass.tearDownClass()
                    except Exception:
                        pass
                    raise

            safe._is_safe = True
            cls.setUpClass = classmethod(safe)

    class TestSkipped(Safe):
        @classmethod
        def setUpClass(cls):
            if not torch.cuda.is_available():
                raise unittest.SkipTest("no device")

        def test_it(self):
            pass

    class TestTwo(Safe):
        @classmethod
        def setUpClass(cls):
            torch.cuda.set_device(1)

        def test_it(self):
            pass

    class TestHost(Safe):
        def test_it(self):
            torch.ones(1)
    """
    found = needs_of("test_it.py", {"test_it.py": text})
    assert {name: (each.min, each.full, each.profile["0"]) for name, each in found.items()} == {
        "TestSkipped::test_it": (1, 1, "skip"),
        "TestTwo::test_it": (2, 2, "fail"),
        "TestHost::test_it": (0, 0, "run"),
    }


def test_a_test_that_wants_memory_of_a_device_is_skipped_where_there_is_none():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch
            from torch.testing._internal.common_device_type import instantiate_device_type_tests, largeTensorTest
            from torch.testing._internal.common_utils import TestCase
            from torch.testing._internal.inductor_utils import GPU_TYPE

            class TestLarge(TestCase):
                @largeTensorTest(25e7 * 2 * 4, device=GPU_TYPE)
                def test_named(self):
                    torch.randn(int(25e7), device=GPU_TYPE)

                @largeTensorTest("4GB", "cpu")
                def test_host(self):
                    torch.randn(int(25e7))

            class TestBoth(TestCase):
                @largeTensorTest("4GB")
                def test_it(self, device):
                    torch.randn(int(25e7), device=device)

            instantiate_device_type_tests(TestBoth, globals())
            """
        },
    )
    assert {name.rpartition("::")[2]: (each.profile["0"], each.min, each.gpu_min) for name, each in found.items()} == {
        "test_named": ("skip", 1, 1),
        "test_host": ("run", 0, None),
        "test_it_cpu": ("run", 0, None),
        "test_it_cuda": ("absent", 1, 1),
    }


_PATCHED = """
    import unittest
    import torch
    from torch._dynamo import config
    from torch._dynamo.testing import make_test_cls_with_patches

    class Host(unittest.TestCase):
        at = 1

        def test_host(self):
            torch.ones(1)

        @unittest.skipIf(torch.cuda.device_count() < 2, "two")
        def test_second(self):
            torch.ones(1, device=f"cuda:{self.at}")

    for each in [Host]:
        made = make_test_cls_with_patches(each, "Dynamic", "_dynamic", (config, "dynamic", True))
        globals()[made.__name__] = made
    del each, made
"""
_MAKING = """
    def make_test_cls_with_patches(cls, cls_prefix, fn_suffix, *patches):
        Made = type(f"{cls_prefix}{cls.__name__}", cls.__bases__, {})
        for name in dir(cls):
            if name.startswith("test_"):
                setattr(Made, f"{name}{fn_suffix}", getattr(cls, name))
            elif not hasattr(Made, name):
                setattr(Made, name, getattr(cls, name))
        return Made
"""


@pytest.mark.parametrize("library", [{}, {"torch/__init__.py": "", "torch/_dynamo/testing.py": _MAKING}])
def test_tests_that_pytorch_makes_once_more_with_something_patched_are_found(library):
    found = needs_of("test/test_it.py", {"test/test_it.py": _PATCHED, **library})
    assert {name: (each.min, each.full) for name, each in found.items()} == {
        "Host::test_host": (0, 0),
        "Host::test_second": (2, 2),
        "DynamicHost::test_host_dynamic": (0, 0),
        "DynamicHost::test_second_dynamic": (2, 2),
    }


def test_what_a_base_class_that_nobody_knows_may_call_of_a_test_s_class_leaves_a_doubt():
    found = needs_of(
        "tests/test_it.py",
        {
            "tests/test_it.py": """
            import unittest

            import torch
            from templates.cases import GenericCase

            class TestHook(GenericCase, unittest.TestCase):
                def pre_setup_hook(self):
                    self.x = torch.ones(1, device="cuda")

                def test_it(self):
                    pass

            class TestMoved(GenericCase):
                device = "cuda"

                def post_instantiation_hook(self):
                    self.instance = self.instance.to(self.device)

                def test_it(self):
                    pass

            class TestBelow(TestMoved):
                pass

            class TestOfTheHost(GenericCase):
                def pre_setup_hook(self):
                    self.x = 3

                def test_it(self):
                    pass

            class TestThatCalls(GenericCase):
                def helper(self):
                    return torch.ones(1, device="cuda")

                def test_it(self):
                    pass

                def test_helped(self):
                    self.helper()

            class TestOfUnittest(unittest.TestCase):
                def never_called(self):
                    self.x = torch.ones(1, device="cuda")

                def test_it(self):
                    pass
            """,
        },
    )
    assert {name: each.confidence for name, each in found.items()} == {
        "TestHook::test_it": "medium",
        "TestMoved::test_it": "medium",
        "TestBelow::test_it": "medium",
        "TestOfTheHost::test_it": "high",
        "TestThatCalls::test_it": "high",
        "TestThatCalls::test_helped": "high",
        "TestOfUnittest::test_it": "high",
    }
