"""The slow part, on purpose: ranks and process groups that are made and destroyed for each test.

With plain pytest the tests of `LifeCycle` start two interpreters each and take some 3 s each; `pytest --gpus=auto` runs
the same class, unmodified, on ranks that are kept. Whatever a suite saves, it saves here.
"""

import os

import pytest
import torch
import torch.distributed as dist

from ranks import device

pytest.importorskip("expecttest", reason="torch.testing needs it")

from torch.testing._internal.common_distributed import MultiProcessTestCase

EPOCHS = 5


def make_and_destroy_groups() -> list[float]:
    """As a suite does in which each test makes its own group: the sums of every epoch."""
    sums = []
    for _ in range(EPOCHS):
        group = dist.new_group(list(range(dist.get_world_size())))
        tensor = torch.full((1,), float(dist.get_rank() + 1), device=device())
        dist.all_reduce(tensor, group=group)
        sums.append(tensor.item())
        dist.barrier()
        dist.destroy_process_group(group)
    return sums


@pytest.mark.gpus(4)
@pytest.mark.parametrize("_again", range(3))
def test_ranks_that_nobody_had_before(world, _again):
    ranks = world(4, is_kept=False)
    assert ranks.run(make_and_destroy_groups) == [[10.0] * EPOCHS] * 4
    assert len({*ranks.pids, os.getpid()}) == 5


@pytest.mark.gpus(4)
def test_groups_that_come_and_go_on_ranks_that_stay(world):
    assert world(4).run(make_and_destroy_groups) == [[10.0] * EPOCHS] * 4


@pytest.mark.gpus(2)
class LifeCycleTest(MultiProcessTestCase):
    """As PyTorch writes its own; nothing here knows of sooner."""

    @property
    def world_size(self) -> int:
        return 2

    def setUp(self) -> None:
        super().setUp()
        self._spawn_processes()

    def _join(self) -> None:
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size)

    def test_ranks_know_each_other(self) -> None:
        self._join()
        ranks = [None] * self.world_size
        dist.all_gather_object(ranks, self.rank)
        self.assertEqual(ranks, [0, 1])

    def test_ranks_add_up(self) -> None:
        self._join()
        tensor = torch.full((4,), self.rank + 1.0)
        dist.all_reduce(tensor)
        self.assertEqual(tensor, torch.full((4,), 3.0))

    def test_ranks_are_not_the_process_of_the_test(self) -> None:
        self._join()
        pids = [None] * self.world_size
        dist.all_gather_object(pids, os.getpid())
        self.assertEqual(len(set(pids)), self.world_size)
