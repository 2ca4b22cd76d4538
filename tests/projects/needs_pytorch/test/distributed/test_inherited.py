"""Needs that are inherited across files, local decorators, tensor-parallel bases."""

import functools
import sys

import torch
import torch.distributed as dist
from fsdp_like import FixedBase, WideBase
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.common_distributed import TEST_SKIPS, MultiProcessTestCase, skip_if_lt_x_gpu
from torch.testing._internal.common_fsdp import FSDPTest
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms


def with_comms_here(func=None, backend="nccl"):
    if func is None:
        return functools.partial(with_comms_here, backend=backend)

    @functools.wraps(func)
    def wrapper(self, *args, **kwargs):
        if backend == "nccl" and torch.cuda.device_count() < self.world_size:
            sys.exit(TEST_SKIPS[f"multi-gpu-{self.world_size}"].exit_code)
        dist.init_process_group(backend, rank=self.rank, world_size=self.world_size)
        func(self, *args, **kwargs)
        dist.destroy_process_group()

    return wrapper


class Wide(WideBase):
    @skip_if_lt_x_gpu(2)
    def test_as_wide_as_the_host(self):
        torch.ones(1, device="cuda")


class Fixed(FixedBase):
    def test_four_or_skip(self):
        pass


class Plain(FSDPTest):
    @skip_if_lt_x_gpu(2)
    def test_plain(self):
        torch.ones(1).cuda()

    @skip_if_lt_x_gpu(4)
    def test_four(self):
        mesh = init_device_mesh("cuda", (2, self.world_size // 2))


class Tensors(DTensorTestBase):
    @with_comms
    def test_falls_back_to_the_host(self):
        mesh = init_device_mesh(self.device_type, (self.world_size,))

    @skip_if_lt_x_gpu(4)
    @with_comms
    def test_four(self):
        pass


class EightTensors(DTensorTestBase):
    @property
    def world_size(self):
        return 8

    @with_comms
    def test_on_host_below_eight(self):
        pass


class Local(MultiProcessTestCase):
    @property
    def world_size(self):
        return 4

    @with_comms_here
    def test_devices(self):
        torch.cuda.set_device(self.rank)

    @with_comms_here(backend="gloo")
    def test_host(self):
        pass
