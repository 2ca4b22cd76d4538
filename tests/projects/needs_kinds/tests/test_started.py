import os
import subprocess
import sys

import pytest
import ray
import torch
import torch.multiprocessing as mp

from engine.start import launch
from engine.testing_marks import only_with


def _work(rank, world_size):
    launch(rank, world_size, backend="nccl")
    torch.ones(1).cuda()


def test_ranks_of_the_library():
    mp.spawn(_work, args=(3,), nprocs=3)


@only_with("SLOW_TESTS")
def test_switched_on():
    torch.ones(1).cuda()


def test_each_has_its_own():
    for task in range(2):
        env = os.environ.copy()
        env["CUDA_VISIBLE_DEVICES"] = str(task + 2)
        subprocess.Popen([sys.executable, "-c", "import torch; torch.ones(1).cuda()"], env=env)


def test_hidden_from_it():
    subprocess.run([sys.executable, "check.py"], env={**os.environ, "CUDA_VISIBLE_DEVICES": ""})


@ray.remote
class _Actor:
    def count(self):
        return torch.cuda.device_count()


def test_actor():
    actor = _Actor.options(num_gpus=2).remote()
    assert ray.get(actor.count.remote()) == 2


@pytest.fixture(autouse=True)
def _clean():
    before = torch.get_default_device()
    yield
    torch.set_default_device(before)
    torch.cuda.synchronize()


def test_host():
    assert torch.ones(1).sum() == 1
