"""The number of visible devices notices what is asked of it, and one evaluation holds for as many sizes as it may."""

import operator as op
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_projects import devices_of, shipped

from sooner.plan.needs import Sources
from sooner.plan.needs.evaluator.counted import Counted, uncounted
from sooner.plan.needs.evaluator.trace import COUNT
from sooner.plan.needs.infer import Inference

_SIZES = st.integers(0, 8)


def asked(size, question):
    told = []
    answer = question(Counted(size, told.append))
    return answer, max(told, default=0)


@given(_SIZES, st.integers(-1, 9), st.sampled_from([op.lt, op.le, op.gt, op.ge, op.eq, op.ne]))
def test_a_comparison_says_from_where_on_it_has_the_same_answer(size, limit, compare):
    def ask(number):
        return compare(number, limit)

    answer, fewest = asked(size, ask)
    assert all(ask(other) is answer for other in range(fewest, size + 1))


@pytest.mark.parametrize(
    "use",
    [
        lambda n: n + 1, lambda n: 8 // max(n, 1) + n, lambda n: n % 2 == 0, lambda n: [0] * n, lambda n: f"{n}", str,
        lambda n: -n, lambda n: {n: 1}, int, lambda n: list(range(uncounted(n))), lambda n: 3 - n,
    ],
)  # fmt: skip
def test_any_other_use_holds_for_this_number_only(use):
    assert asked(4, use)[1] == COUNT


def test_the_smaller_of_two_numbers_is_compared_only():
    assert asked(8, lambda n: min(4, n)) == (4, 4)
    assert asked(3, lambda n: min(4, n))[1] == 0


def test_it_is_the_number_that_it_stands_for():
    number = Counted(3, lambda _asked: None)
    assert (number, number + 1, list(range(number)), bool(number)) == (3, 4, [0, 1, 2], True)
    assert {3: "three"}[number] == "three"


def test_functions_that_take_a_number_without_asking_it_hold_for_that_number_only():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import itertools, math
            import pytest, torch

            N = torch.cuda.device_count()

            def test_logarithm():
                if math.log2(max(N, 1)) < 2:
                    pytest.skip("four")

            def test_divisor():
                if math.gcd(N, 4) < 4 or N == 0:
                    pytest.skip("four")

            def test_bits():
                if N.bit_length() < 2:
                    pytest.skip("two")

            def test_few():
                if len(list(itertools.islice("abcdefgh", N))) < 3:
                    pytest.skip("three")

            def test_start():
                if list(enumerate("a", N))[0][0] < 2:
                    pytest.skip("two")
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_logarithm": 4, "test_divisor": 4, "test_bits": 2, "test_few": 3, "test_start": 2,
    }  # fmt: skip


def test_what_a_test_follows_from_is_asked_with_each_number_of_devices_however_it_was_put_there():
    """One evaluation holds for many numbers: not where a class or a table was made of the number before."""
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import unittest
            import pytest, torch

            N = torch.cuda.device_count()

            def case(least):
                @unittest.skipIf(N < least, "few")
                class Case(unittest.TestCase):
                    def test_it(self):
                        pass
                return Case

            Made = case(3)

            for least in (2, 4):
                globals()[f"Made{least}"] = case(least)

            class Inherits(case(4)):
                pass

            class Later(unittest.TestCase):
                def test_it(self):
                    if not self.enough:
                        self.skipTest("few")

            Later.enough = N >= 3
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "Made::test_it": 3, "Made2::test_it": 2, "Made4::test_it": 4, "Inherits::test_it": 4, "Later::test_it": 3,
    }  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "TABLE['n'] = N", "TABLE.update(n=N)", "for each in range(N): COUNTED.append(each); TABLE['n'] = len(COUNTED)",
        "os.environ['COUNT'] = str(N); TABLE = {'n': os.environ['COUNT']}", "Kept.n = N; TABLE = vars(Kept)",
    ],
)  # fmt: skip
def test_what_a_statement_of_a_module_changes_follows_from_what_it_asks(statement):
    text = f"""
        import os
        import pytest, torch

        N = torch.cuda.device_count()
        TABLE, COUNTED = {{}}, []

        class Kept:
            pass

        {statement}

        def test_it():
            if int(TABLE["n"]) < 3:
                pytest.skip("few")
        """
    assert devices_of("test_it.py", {"test_it.py": text})["test_it"][0] == 3


def test_that_a_module_could_use_a_device_while_it_was_imported_is_known_for_each_number():
    found = devices_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest, torch

            try:
                torch.cuda.set_device(2)
                THREE = True
            except RuntimeError:
                THREE = False

            def test_it():
                if not THREE:
                    pytest.skip("few")
            """,
        },
    )
    assert found["test_it"][0] == 3


def test_what_a_hook_makes_of_a_case_is_asked_with_each_number_of_devices():
    found = devices_of(
        "test_it.py",
        {
            "conftest.py": """
            import pytest, torch

            N = torch.cuda.device_count()

            def pytest_generate_tests(metafunc):
                if "many" in metafunc.fixturenames:
                    metafunc.parametrize("many", [N >= 4], ids=["many"])
                if "some" in metafunc.fixturenames:
                    few = pytest.mark.skipif(N < 3, reason="few")
                    metafunc.parametrize("some", [pytest.param(3, marks=few)])
            """,
            "test_it.py": """
            import pytest

            def test_value(many):
                if not many:
                    pytest.skip("few")

            def test_mark(some):
                pass
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {"test_value[many]": 4, "test_mark[3]": 3}


def test_a_value_of_the_library_that_is_the_same_with_any_number_of_devices_does_not_follow_from_it():
    texts = {
        "acme/flags.py": textwrap.dedent(
            """
            import os
            import torch

            VISIBLE = len(os.environ["CUDA_VISIBLE_DEVICES"].strip()) > 0
            FORK = len(os.environ["CUDA_VISIBLE_DEVICES"]) < 100
            EACH = 24 // max(1, torch.cuda.device_count())
            """
        )
    }
    module = Inference(Sources(texts, texts.get), shipped()).machine(8).load("acme/flags.py")
    follows = {name: module.asked_by(name) for name in ("VISIBLE", "FORK", "EACH") if name in module.env.names}
    assert follows == {"VISIBLE": 1, "FORK": 0, "EACH": COUNT}


def test_what_follows_from_values_of_the_library_is_known_for_each_number():
    found = devices_of(
        "tests/test_it.py",
        {
            "acme/__init__.py": "",
            "acme/flags.py": """
            import os

            VISIBLE = len(os.environ["CUDA_VISIBLE_DEVICES"].strip()) > 0
            LENGTH = len(os.environ["CUDA_VISIBLE_DEVICES"])
            MANY = LENGTH >= 5 if VISIBLE else False
            """,
            "tests/test_it.py": """
            import pytest
            from acme.flags import LENGTH, MANY, VISIBLE

            def test_visible():
                if not VISIBLE:
                    pytest.skip("none")

            def test_length():
                if LENGTH < 7:
                    pytest.skip("few")

            @pytest.mark.skipif(not MANY, reason="few")
            def test_many():
                pass
            """,
        },
    )
    assert {name: least for name, (least, _, _) in found.items()} == {
        "test_visible": 1,
        "test_length": 4,
        "test_many": 3,
    }
