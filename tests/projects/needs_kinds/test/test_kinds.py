import unittest

import torch
from torch.testing._internal.common_device_type import (
    deviceCountAtLeast,
    dtypes,
    dtypesIfCUDA,
    instantiate_device_type_tests,
    onlyCUDA,
    skipCUDAIf,
)
from torch.testing._internal.common_distributed import MultiProcessTestCase, skip_if_lt_x_gpu
from torch.testing._internal.common_dtype import floating_types_and
from torch.testing._internal.common_utils import TestCase, instantiate_parametrized_tests, parametrize, subtest


class TestSums(TestCase):
    def test_everywhere(self, device):
        torch.ones(2, device=device).sum()

    @dtypes(torch.float, torch.long)
    @dtypesIfCUDA(torch.half)
    def test_types(self, device, dtype):
        torch.ones(2, device=device, dtype=dtype)

    @onlyCUDA
    def test_only_there(self, device):
        torch.ones(2, device=device)

    @deviceCountAtLeast(3)
    @onlyCUDA
    def test_between(self, devices):
        torch.ones(2, device=devices[0]).to(devices[2])

    @skipCUDAIf(True, "not on this one")
    @parametrize("flag", [True, None])
    def test_host(self, device, flag):
        torch.ones(2, device=device)

    @dtypes(*floating_types_and(torch.bfloat16))
    def test_of_a_family(self, device, dtype):
        torch.ones(2, dtype=dtype)


instantiate_device_type_tests(TestSums, globals())


class TestPairs(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    @skip_if_lt_x_gpu(2)
    def test_pair(self, device):
        torch.ones(2, device=f"cuda:{self.rank}")


instantiate_device_type_tests(TestPairs, globals(), only_for=("cuda", "hpu"))


class TestNames(TestCase):
    @parametrize("kind", [torch.nn.Linear, torch.nn.ReLU])
    @parametrize("shape, name", [subtest(((1,), "a"), name="small"), subtest(((2,), "b"), decorators=[unittest.skip("no")])])
    def test_names(self, kind, shape, name):
        assert shape


instantiate_parametrized_tests(TestNames)
