import sys
import unittest
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.common_cuda import PLATFORM_SUPPORTS_SYMM_MEM, TEST_MULTIGPU
from torch.testing._internal.common_distributed import (
    MultiProcContinuousTest,
    MultiProcessTestCase,
    init_multigpu_helper,
    requires_accelerator_dist_backend,
    requires_nccl,
    skip_if_lt_x_gpu,
)
from torch.testing._internal.common_fsdp import FSDPTest, get_devtype
from torch.testing._internal.common_utils import (
    TEST_WITH_DEV_DBG_ASAN,
    instantiate_parametrized_tests,
    parametrize,
    run_tests,
    skip_but_pass_in_sandcastle_if,
    skipIfRocm,
)
from torch.testing._internal.distributed._shard.sharded_tensor import ShardedTensorTestBase
from torch.testing._internal.distributed._shard.sharded_tensor import with_comms as with_sharded_comms
from torch.testing._internal.distributed._tensor.common_dtensor import DTensorTestBase, with_comms

if not dist.is_available():
    print("no distributed", file=sys.stderr)
    sys.exit(0)

if TEST_WITH_DEV_DBG_ASAN:
    print("not with asan", file=sys.stderr)
    sys.exit(0)

device_type = acc.type if (acc := torch.accelerator.current_accelerator()) else "cpu"
backend = dist.get_default_backend_for_device(device_type)
d_hid = 512


class Helper(MultiProcessTestCase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()

    @property
    def world_size(self):
        return 2

    @property
    def rank_to_GPU(self):
        return init_multigpu_helper(self.world_size, "nccl")

    @requires_nccl()
    @skip_but_pass_in_sandcastle_if(not TEST_MULTIGPU, "two")
    def test_mapped(self):
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("nccl", store=store, rank=self.rank, world_size=self.world_size)
        local = self.rank_to_GPU[self.rank][0]
        torch.zeros(1).cuda(local)

    @requires_nccl()
    @skip_if_lt_x_gpu(2)
    @parametrize("a", [1])
    def test_not_instantiated(self):
        pass


class Pipeline(MultiProcContinuousTest):
    world_size = 4

    @classmethod
    def backend_str(cls):
        return backend

    @property
    def device(self):
        return torch.device(device_type, self.rank)

    @requires_accelerator_dist_backend(["nccl", "xccl"])
    @skip_but_pass_in_sandcastle_if(
        not torch.accelerator.device_count() >= 4, f"{backend} test requires 4+ GPUs"
    )
    def test_schedule(self):
        torch.randn(d_hid, device=self.device)

    @skip_if_lt_x_gpu(4, allow_cpu=True)
    def test_schedule_or_host(self):
        torch.randn(d_hid, device=self.device)


@instantiate_parametrized_tests
class Symmetric(MultiProcContinuousTest):
    @property
    def device(self):
        return torch.device("cuda", self.rank)

    @skipIfRocm
    @unittest.skipIf(not PLATFORM_SUPPORTS_SYMM_MEM, "no")
    @skip_if_lt_x_gpu(2)
    def test_all_of_them(self):
        torch.empty(4, device=self.device)

    @skip_if_lt_x_gpu(4)
    @parametrize("offset", [0, 16])
    def test_offsets(self, offset):
        torch.empty(4, device=self.device)


class Sharded(FSDPTest):
    @property
    def world_size(self):
        return min(4, torch.get_device_module(device_type).device_count())

    @skip_if_lt_x_gpu(2)
    def test_subtests(self):
        self.run_subtests({"reshard": [True, False]}, self._test_subtests)

    def _test_subtests(self, reshard):
        mesh = init_device_mesh(device_type, (self.world_size,))
        model = torch.nn.Linear(4, 4, device=device_type)
        loss = model(torch.randn(2, 4, device=device_type)).sum()


class ShardedTwo(FSDPTest):
    @property
    def world_size(self):
        return 2

    def test_two(self):
        torch.ones(1, device=get_devtype())


class Mesh2D(DTensorTestBase):
    @with_comms
    @skip_if_lt_x_gpu(4)
    def test_2d(self):
        mesh = init_device_mesh(self.device_type, (2, self.world_size // 2), mesh_dim_names=("dp", "tp"))

    @property
    def backend(self):
        return "cpu:gloo,cuda:nccl"

    @skip_if_lt_x_gpu(2)
    @with_comms
    def test_both_backends(self):
        pass


class Checkpoint(ShardedTensorTestBase):
    @property
    def world_size(self):
        return 2

    @with_sharded_comms(init_rpc=False)
    @skip_if_lt_x_gpu(2)
    @requires_nccl()
    def test_save(self):
        pass

    @with_sharded_comms(init_rpc=False, backend="gloo")
    def test_host(self):
        pass


@dataclass(frozen=True)
class Setup:
    tp: int
    pp: int = 1


class Matrix(unittest.TestCase):
    def _run(self, setup):
        needed = setup.tp * setup.pp
        if torch.cuda.device_count() < needed:
            raise unittest.SkipTest(f"{needed} devices")

    def test_small(self):
        self._run(Setup(tp=2))

    def test_large(self):
        for setup in (Setup(tp=2), Setup(tp=2, pp=2)):
            with self.subTest(setup=setup):
                self._run(setup)


if __name__ == "__main__":
    run_tests()
