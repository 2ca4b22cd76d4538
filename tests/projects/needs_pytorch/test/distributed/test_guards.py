"""Guards on multi-process tests, in the idiom of PyTorch's distributed tests."""

import os
import sys
import unittest

import torch
import torch.distributed as dist
from torch.testing._internal.common_cuda import TEST_MULTIGPU
from torch.testing._internal.common_distributed import (
    TEST_SKIPS,
    DistributedTestBase,
    MultiProcContinuousTest,
    MultiProcessTestCase,
    MultiThreadedTestCase,
    requires_gloo,
    requires_nccl,
    requires_world_size,
    skip_if_lt_x_gpu,
)
from torch.testing._internal.common_utils import (
    TestCase,
    instantiate_parametrized_tests,
    parametrize,
    run_tests,
    skip_but_pass_in_sandcastle_if,
    subtest,
)


class GlooRing(MultiProcessTestCase):
    def setUp(self):
        super().setUp()
        self._spawn_processes()

    @property
    def world_size(self):
        return 4

    def _open(self):
        store = dist.FileStore(self.file_name, self.world_size)
        dist.init_process_group("gloo", store=store, rank=self.rank, world_size=self.world_size)

    @requires_gloo()
    def test_on_the_host(self):
        self._open()
        dist.all_reduce(torch.ones(3))

    @requires_gloo()
    @skip_if_lt_x_gpu(2)
    def test_two_devices_are_enough_for_four_ranks(self):
        self._open()
        device = torch.device("cuda", self.rank % 2)
        dist.all_reduce(torch.ones(3).to(device))

    @skip_if_lt_x_gpu(1)
    def test_one_device_for_all(self):
        self._open()
        torch.ones(3, device="cuda:0")

    def test_unguarded_devices_of_ranks(self):
        self._open()
        torch.ones(3).cuda(self.rank)

    def test_dead_guard(self):
        if False:
            needs_eight = torch.cuda.device_count() >= 8
            assert needs_eight
        self._open()


class NcclPair(MultiProcessTestCase):
    world_size = 2

    def setUp(self):
        super().setUp()
        self._spawn_processes()

    def _pg(self):
        dist.init_process_group("nccl", rank=self.rank, world_size=self.world_size)
        torch.cuda.set_device(self.rank)

    @requires_nccl()
    @skip_if_lt_x_gpu(2)
    def test_pair(self):
        self._pg()

    @requires_nccl()
    @skip_if_lt_x_gpu(4)
    def test_guard_asks_for_more_than_ranks(self):
        self._pg()

    @requires_nccl()
    @skip_if_lt_x_gpu(8)
    def test_eight(self):
        self._pg()

    @requires_nccl()
    @skip_if_lt_x_gpu(3)
    def test_three(self):
        self._pg()

    @requires_nccl()
    def test_fails_instead_of_skipping(self):
        self._pg()

    @skip_but_pass_in_sandcastle_if(not TEST_MULTIGPU, "needs two devices")
    def test_by_constant(self):
        self._pg()

    @unittest.skip("broken since the summer")
    @skip_if_lt_x_gpu(2)
    def test_never(self):
        self._pg()


class AllDevices(MultiProcessTestCase):
    @property
    def world_size(self):
        return torch.cuda.device_count()

    @property
    def device(self):
        return torch.device(f"cuda:{self.rank}")

    def test_nobody_comes(self):
        dist.init_process_group("nccl", rank=self.rank, world_size=self.world_size)
        torch.zeros(2, device=self.device)

    @skip_if_lt_x_gpu(2)
    def test_guard_is_inside_the_workers(self):
        torch.zeros(2, device=self.device)


class AtMostFour(MultiProcessTestCase):
    @property
    def world_size(self):
        return min(4, max(2, torch.cuda.device_count()))

    @skip_if_lt_x_gpu(2)
    def test_capped(self):
        torch.zeros(2, device=f"cuda:{self.rank}")

    @skip_if_lt_x_gpu(2)
    def test_even_only(self):
        if torch.cuda.device_count() % 2 != 0:
            sys.exit(TEST_SKIPS["odd_worldsize"].exit_code)
        torch.zeros(2, device=f"cuda:{self.rank}")


class Threads(MultiThreadedTestCase):
    @property
    def world_size(self):
        return 4

    def setUp(self):
        super().setUp()
        self._spawn_threads()

    def test_threads_need_no_device(self):
        dist.all_reduce(torch.ones(2))

    @unittest.skipIf(not torch.cuda.is_available(), "needs a device")
    def test_threads_on_one_device(self):
        torch.ones(2, device="cuda")


class Kept(MultiProcContinuousTest):
    world_size = 2

    @classmethod
    def backend_str(cls):
        return "nccl"

    @skip_but_pass_in_sandcastle_if(not TEST_MULTIGPU, "needs two devices")
    def test_in_the_pool(self):
        torch.ones(2, device=f"cuda:{self.rank}")


class KeptOnHost(MultiProcContinuousTest):
    world_size = 4

    @classmethod
    def backend_str(cls):
        return "gloo"

    def test_in_the_pool(self):
        dist.barrier()


class Wanted(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    @requires_world_size(3)
    def test_three(self):
        pass


class Base(DistributedTestBase):
    @property
    def world_size(self):
        return 2

    @skip_if_lt_x_gpu(2)
    def test_group(self):
        self.create_pg("cuda")

    def test_group_on_host(self):
        self.create_pg("cpu")


@instantiate_parametrized_tests
class Multiplied(MultiProcessTestCase):
    @property
    def world_size(self):
        return 2

    @skip_if_lt_x_gpu(2)
    @parametrize("flat", [True, False])
    @parametrize("kind", ["ring", subtest("tree", name="as_a_tree")])
    def test_kinds(self, kind, flat):
        torch.ones(1, device=f"cuda:{self.rank}")

    @parametrize("ranks", [1, 2, 4])
    def test_sizes(self, ranks):
        if torch.cuda.device_count() < ranks:
            self.skipTest("not enough devices")


class Single(TestCase):
    def test_host(self):
        self.assertEqual(torch.device("cuda:3").index, 3)
        self.assertEqual(os.environ.get("SOME_DEVICES", "0,3,6,8"), "0,3,6,8")

    @unittest.skipUnless(torch.cuda.device_count() >= 2, "two devices")
    def test_peer(self):
        torch.ones(2, device="cuda:0").to("cuda:1")

    def test_peer_without_guard(self):
        torch.ones(2, device="cuda:1")


if __name__ == "__main__":
    run_tests()
