import os
import unittest
from dataclasses import dataclass
from unittest import mock

import pytest
import torch
import torch.multiprocessing as mp
from guards import MAX_DEVICES, Sized, at_least, needs, needs_pair

WORLD_SIZE = 8
HAS_FOUR = torch.cuda.device_count() >= 4
SIZES = [1, 2, 4]


def work(rank, world_size):
    torch.cuda.set_device(rank)


@needs(4)
def test_decorator_of_the_project():
    pass


@at_least(3)
def test_mark_of_a_function():
    pass


@needs_pair
def test_mark_of_a_name():
    pass


@pytest.mark.devices(4)
def test_hook_of_conftest():
    pass


@pytest.mark.big
def test_hook_adds_a_mark():
    pass


def test_fixture_is_a_guard(pair):
    torch.ones(1, device=pair[1])


def test_fixture_multiplies(device):
    torch.ones(1, device=device)


def test_session_pool(pool):
    mp.spawn(work, args=(pool,), nprocs=pool)


@pytest.mark.usefixtures("pair")
def test_fixture_by_mark():
    pass


def test_assert_and_no_skip():
    assert torch.cuda.device_count() >= 2, "at least two"
    torch.ones(1, device="cuda:1")


def test_limit_of_the_environment():
    n = min(MAX_DEVICES, torch.cuda.device_count())
    if n < 2:
        pytest.skip("two")


def test_return_early():
    if not torch.cuda.is_available():
        return
    torch.ones(1, device="cuda")


def test_decoy_strings():
    text = "CUDA_VISIBLE_DEVICES=0,3,6,8 torchrun --nproc_per_node=8 run.py"
    assert "nproc" in text


def test_decoy_constant():
    assert WORLD_SIZE == 8


def test_decoy_mock():
    group = mock.MagicMock(world_size=8)
    with mock.patch("torch.cuda.device_count", return_value=8):
        assert torch.cuda.device_count() == 8
    assert group.world_size == 8


def test_decoy_local():
    world_size = 4
    device = torch.device("cuda:3")
    assert device.index == 3


def test_decoy_environment(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3,4,5,6,7")
    assert len(os.environ["CUDA_VISIBLE_DEVICES"].split(",")) == 8


def test_dead_guard():
    if WORLD_SIZE < 4 and torch.cuda.device_count() < 4:
        pytest.skip("never")


def test_touches_two_needs_four():
    if torch.cuda.device_count() < 4:
        pytest.skip("four")
    for i in [1, 3]:
        torch.ones(1, device=f"cuda:{i}")


@pytest.mark.skipif(not HAS_FOUR, reason="four")
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
def test_stricter_guard_wins():
    pass


@pytest.mark.skip(reason="flaky")
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
def test_another_skip_wins():
    pass


@pytest.mark.skipif(torch.cuda.device_count() != 1, reason="exactly one")
def test_one_only():
    pass


@pytest.mark.skipif(torch.cuda.is_available(), reason="host")
def test_host_only():
    pass


@pytest.mark.skipif(torch.cuda.device_count() in (1, 3), reason="none or even")
def test_not_monotone():
    pass


@pytest.mark.parametrize("n", SIZES)
def test_sizes(n):
    if n > torch.cuda.device_count():
        pytest.skip("more")
    mp.spawn(work, args=(n,), nprocs=n)


def test_many_sizes_then_skips():
    for n in SIZES:
        if n > torch.cuda.device_count():
            pytest.skip("more")
        mp.spawn(work, args=(n,), nprocs=n)


def test_sizes_that_fit():
    for n in [s for s in SIZES if s <= torch.cuda.device_count()]:
        mp.spawn(work, args=(n,), nprocs=n)


@pytest.mark.parametrize("rank", range(torch.cuda.device_count()))
def test_ids_follow_the_host(rank):
    torch.ones(1, device=f"cuda:{rank}")


class TestSized(Sized):
    def test_two(self):
        pass


class TestFourSized(Sized):
    factor = 2

    def test_four(self):
        pass


class TestMarked:
    pytestmark = [pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")]

    def test_two(self):
        pass

    @needs(3)
    def test_three(self):
        pass


if torch.cuda.device_count() >= 2:

    def test_defined_for_two():
        torch.ones(1, device="cuda:1")


class Cases(unittest.TestCase):
    def test_raises(self):
        if torch.cuda.device_count() < 6:
            raise unittest.SkipTest("six")

    @unittest.expectedFailure
    def test_expected(self):
        self.fail("always")

    def test_error_is_wanted(self):
        with self.assertRaises(RuntimeError):
            torch.ones(1, device="cuda:99")

    @unittest.skipIf(os.environ.get("FAST") == "1", "fast")
    @unittest.skipUnless(torch.cuda.device_count() > 1, "two")
    def test_switch(self):
        pass


@dataclass
class Case:
    name: str
    ngpu: int = 2


CASES = [Case("small", 1), Case("usual"), Case(name="wide", ngpu=8)]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_cases(case):
    if torch.cuda.device_count() < case.ngpu:
        pytest.skip("more")
