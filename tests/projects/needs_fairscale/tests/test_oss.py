import pytest
import torch
import torch.multiprocessing as mp
from fair.testing.testing import (
    get_world_sizes,
    skip_if_less_than_four_gpu,
    skip_if_no_cuda,
    skip_if_single_gpu,
    spawn_for_all_world_sizes,
)


def run(rank, world_size, backend="nccl"):
    torch.distributed.init_process_group(backend, rank=rank, world_size=world_size)
    torch.cuda.set_device(rank)


def run_on_host(rank, world_size):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world_size)


@skip_if_no_cuda
def test_one():
    mp.spawn(run, args=(1,), nprocs=1)


@skip_if_single_gpu
def test_as_many_as_there_are():
    world_size = min(torch.cuda.device_count(), 4)
    mp.spawn(run, args=(world_size,), nprocs=world_size, join=True)


def test_nobody():
    world_size = torch.cuda.device_count()
    mp.spawn(run, args=(world_size,), nprocs=world_size, join=True)


def test_all_sizes():
    spawn_for_all_world_sizes(run)


@skip_if_less_than_four_gpu
def test_four():
    mp.spawn(run, (4,), 4)


def test_host():
    mp.spawn(run_on_host, args=(2,), nprocs=2)


@pytest.mark.parametrize("world_size", [2, 4])
def test_sizes(world_size):
    if torch.cuda.device_count() < world_size:
        pytest.skip("not enough")
    mp.spawn(run, args=(world_size,), nprocs=world_size)


@pytest.mark.parametrize("world_size", get_world_sizes())
def test_ids_depend_on_the_host(world_size):
    mp.spawn(run, args=(world_size,), nprocs=world_size)


def test_falls_back():
    backend = "nccl" if torch.cuda.is_available() else "gloo"
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.ones(1).to(device)
