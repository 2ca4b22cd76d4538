import pytest
import torch
from deepspeed.accelerator import get_accelerator
from unit.common import DistributedFixture, DistributedTest


class TestDefault(DistributedTest):
    def test_two_by_default(self):
        torch.ones(1).to(get_accelerator().device_name())


class TestOne(DistributedTest):
    world_size = 1

    def test_one(self):
        torch.ones(1, device=get_accelerator().current_device_name())

    @pytest.mark.parametrize("stage", [1, 2])
    @pytest.mark.parametrize("offload", [True, False])
    def test_stages(self, stage, offload):
        pass


class TestFour(DistributedTest):
    world_size = 4

    def test_four(self):
        pass

    @pytest.mark.world_size(2)
    def test_mark_wins(self):
        pass


class TestSeveral(DistributedTest):
    world_size = [1, 2, 4]

    def test_runs_small_ones_and_then_skips(self):
        pass


class TestPair(DistributedTest):
    world_size = [1, 2]

    def test_pair(self):
        pass


class TestHost(DistributedTest):
    world_size = 1
    requires_cuda_env = False

    def test_without_devices(self):
        pass


class TestThree(TestFour):
    world_size = 3

    def test_own(self):
        pass


class saved_by_four(DistributedFixture):
    world_size = 4

    def run(self, class_tmpdir):
        pass


class saved_by_two(DistributedFixture):
    world_size = 2

    def run(self, tmpdir):
        pass


class TestLoaded(DistributedTest):
    world_size = 2

    def test_fixture_is_wider(self, saved_by_four):
        pass

    def test_fixture_is_as_wide(self, saved_by_two):
        pass


class TestSkipped(DistributedTest):
    world_size = 2

    def test_in_the_body(self):
        if get_accelerator().device_count() < 4:
            pytest.skip("needs four devices")

    def test_precision(self):
        if not get_accelerator().is_bf16_supported():
            pytest.skip("no bf16")


def test_plain_function():
    assert [1, 2] == sorted([2, 1])


@pytest.mark.parametrize("ranks", [[0, 1], [0, 1, 2, 3, 4, 5, 6, 7]])
def test_config_of_many_ranks(ranks):
    config = {"world_size": len(ranks), "ranks": ranks}
    assert config["world_size"] == len(ranks)
