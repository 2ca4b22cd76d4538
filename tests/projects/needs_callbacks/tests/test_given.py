"""Functions that are given to libraries which are not in the tree: launchers, and what runs them once."""

import jax
import pytest
import torch
import torch.distributed as dist
from inhouse.testing import on_ranks, retry, run_distributed, run_with


def check(rank, world_size, size=3):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)
    torch.ones(size).cuda(rank)


def worker():
    dist.init_process_group("nccl")
    torch.ones(1).cuda()


def on_the_host(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def guarded(rank, world_size):
    if torch.cuda.device_count() < 3:
        pytest.skip("three devices")
    torch.ones(1).cuda(rank)


def test_a_number_of_ranks():
    run_distributed(check, 4)


def test_a_number_by_name():
    run_distributed(check, world_size=2, size=5)


def test_the_number_first():
    on_ranks(4, worker)


def test_ranks_on_the_host():
    run_distributed(on_the_host, 4)


def test_a_guard_within():
    run_distributed(guarded, world_size=2)


def test_run_again_until_it_passes():
    retry(lambda: torch.ones(1).cuda())


def test_run_once():
    run_with(worker, timeout=30)


def test_only_numbers():
    assert run_with(lambda x: x + 1, 3)


def test_a_known_library_decides_itself():
    assert jax.make_jaxpr(lambda x: torch.ones(1).cuda(), 3)


@retry
def test_decorated():
    assert torch.ones(1).sum() == 1
