"""A test library that is not in the tree spawns ranks; a decorator hides the test's parameters but for their signature."""

import inspect

import colossalai
import pytest
import torch
from colossalai.testing import parameterize, rerun_if_address_is_in_use, spawn


def again(test):
    def until_it_passes(*args, **kwargs):
        return test(*args, **kwargs)

    until_it_passes.__signature__ = inspect.signature(test)
    return until_it_passes


def check(rank, world_size, port, backend="nccl"):
    colossalai.launch(rank=rank, world_size=world_size, host="localhost", port=port, backend=backend)
    torch.ones(1)


def check_on_device(rank, world_size, port):
    colossalai.launch(rank=rank, world_size=world_size, host="localhost", port=port)
    torch.ones(1).cuda()


@pytest.mark.dist
@rerun_if_address_is_in_use()
def test_four():
    spawn(check_on_device, 4)


@pytest.mark.parametrize("world_size", [2, 8])
@again
def test_sizes(world_size):
    spawn(check_on_device, world_size)


def test_on_the_host():
    spawn(check, 4, backend="gloo")


@parameterize("size", [2])
def test_by_argument(size):
    spawn(check_on_device, nprocs=size)
