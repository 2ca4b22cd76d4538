"""Fixtures and marks of pytest's plugins that many suites use."""

from small_projects import needs_of


def least(found):
    return {name: (each.min, each.gpu_min) for name, each in found.items()}


def test_what_mocker_and_monkeypatch_put_in_a_place_is_there_until_it_is_undone():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import os
            import pytest
            import torch

            def need(count):
                if torch.cuda.device_count() < count:
                    pytest.skip("few")

            def test_patch(mocker):
                mocker.patch("torch.cuda.device_count", return_value=4)
                need(4)

            def test_object(mocker):
                mocker.patch.object(torch.cuda, "device_count", lambda: 4)
                need(4)

            def test_environment(mocker):
                mocker.patch.dict(os.environ, {"SIZE": "3"})
                need(int(os.environ["SIZE"]))

            def test_of_the_module(module_mocker):
                module_mocker.patch("torch.cuda.device_count", return_value=4)
                need(4)

            def test_spy(mocker):
                mocker.spy(torch.cuda, "device_count")
                need(2)

            def test_stopped(mocker):
                mocker.patch("torch.cuda.device_count", return_value=4)
                mocker.stopall()
                need(3)

            def test_undone(monkeypatch):
                monkeypatch.setattr("torch.cuda.device_count", lambda: 4)
                monkeypatch.undo()
                need(3)

            def test_item_of_the_environment(monkeypatch):
                monkeypatch.setitem(os.environ, "SIZE", "3")
                need(int(os.environ["SIZE"]))
            """
        },
    )
    assert least(found) == {
        "test_patch": (0, None),
        "test_object": (0, None),
        "test_environment": (3, 3),
        "test_of_the_module": (0, None),
        "test_spy": (2, 2),
        "test_stopped": (3, 3),
        "test_undone": (3, 3),
        "test_item_of_the_environment": (3, 3),
    }


def test_a_fixture_may_be_a_parameter_and_a_test_may_be_repeated():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import pytest
            import torch
            from pytest_lazy_fixtures import lf

            @pytest.fixture
            def one():
                return 1

            @pytest.fixture
            def four():
                if torch.cuda.device_count() < 4:
                    pytest.skip("four")
                return 4

            @pytest.fixture(params=[lf("one"), pytest.param(lf("four"), id="most")])
            def size(request):
                return request.param

            @pytest.mark.parametrize("count", [lf("one"), lf("four"), 2])
            def test_lazy(count):
                if torch.cuda.device_count() < count:
                    pytest.skip("few")

            def test_of_a_fixture(size):
                if torch.cuda.device_count() < size:
                    pytest.skip("few")

            @pytest.mark.repeat(2)
            @pytest.mark.parametrize("letter", ["a", "b"])
            def test_again(letter):
                pass
            """
        },
    )
    assert least(found) == {
        "test_lazy[one]": (1, 1),
        "test_lazy[four]": (4, 4),
        "test_lazy[2]": (2, 2),
        "test_of_a_fixture[one]": (1, 1),
        "test_of_a_fixture[most]": (4, 4),
        "test_again[a-1-2]": (0, None),
        "test_again[a-2-2]": (0, None),
        "test_again[b-1-2]": (0, None),
        "test_again[b-2-2]": (0, None),
    }


def test_what_is_measured_is_run():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import torch

            def test_function(benchmark):
                benchmark(torch.zeros, 1, device="cuda")

            def test_own(benchmark):
                @benchmark
                def work():
                    torch.zeros(1, device="cuda")

            def test_pedantic(benchmark):
                benchmark.pedantic(torch.zeros, args=(1,), kwargs={"device": "cuda"})

            def test_set_up(benchmark):
                benchmark.pedantic(torch.zeros, setup=lambda: ((1,), {"device": "cuda"}))

            def test_of_unknown_names(benchmark, request):
                benchmark.pedantic(lambda **named: torch.zeros(1, device="cuda"), kwargs=request.param)

            def test_host(benchmark):
                benchmark(torch.zeros, 1)
            """
        },
    )
    assert least(found) == {
        "test_function": (1, 1),
        "test_own": (1, 1),
        "test_pedantic": (1, 1),
        "test_set_up": (1, 1),
        "test_of_unknown_names": (1, 1),
        "test_host": (0, None),
    }


def test_a_part_of_a_test_that_is_skipped_leaves_the_others():
    found = needs_of(
        "test_it.py",
        {
            "test_it.py": """
            import unittest

            import pytest
            import torch

            class TestIt(unittest.TestCase):
                def test_some(self):
                    for count in (1, 2, 4):
                        with self.subTest(count=count):
                            if torch.cuda.device_count() < count:
                                self.skipTest("few")
                            torch.zeros(1, device=f"cuda:{count - 1}")

                def test_all(self):
                    for count in (2, 4):
                        with self.subTest(count=count):
                            if torch.cuda.device_count() < count:
                                self.skipTest("few")

                def test_before(self):
                    if torch.cuda.device_count() < 2:
                        self.skipTest("few")
                    with self.subTest("first"):
                        pass

                def test_fails(self):
                    for count in (1, 2):
                        with self.subTest(count=count):
                            self.assertGreaterEqual(torch.cuda.device_count(), count)

            def test_of_pytest(subtests):
                for count in (0, 2):
                    with subtests.test(count=count):
                        if torch.cuda.device_count() < count:
                            pytest.skip("few")
            """
        },
    )
    assert {name: (*least, found[name].full) for name, least in least(found).items()} == {
        "TestIt::test_some": (1, 1, 4),
        "TestIt::test_all": (2, 2, 4),
        "TestIt::test_before": (2, 2, 2),
        "TestIt::test_fails": (2, 2, 2),
        "test_of_pytest": (0, None, 2),
    }
