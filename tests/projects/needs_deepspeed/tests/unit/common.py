"""A run loop for tests of several ranks, in the idiom of DeepSpeed's tests (in few words)."""

from abc import ABC

import pytest
import torch.multiprocessing as mp
from deepspeed.accelerator import get_accelerator


class DistributedExec(ABC):
    world_size = 2
    backend = get_accelerator().communication_backend_name()
    requires_cuda_env = True
    init_distributed = True

    def __call__(self, request):
        if self.requires_cuda_env and not get_accelerator().is_available():
            pytest.skip("only in accelerator environments")
        sizes = [self.world_size] if isinstance(self.world_size, int) else self.world_size
        for size in sizes:
            self._launch(size)

    def _launch(self, size):
        if get_accelerator().is_available() and get_accelerator().device_count() < size:
            pytest.skip("not enough devices")
        with mp.Pool(processes=size) as pool:
            pool.starmap(self._run, [(rank, size) for rank in range(size)])


class DistributedFixture(DistributedExec):
    is_dist_fixture = True


class DistributedTest(DistributedExec):
    is_dist_test = True
