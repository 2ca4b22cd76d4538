import unittest

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchrec_like.distributed.tests.multi_process import MultiProcessContext, MultiProcessTestBase


def shard(rank, world_size, backend):
    with MultiProcessContext(rank, world_size, backend) as ctx:
        torch.ones(3).to(ctx.device)


class ShardingTest(MultiProcessTestBase):
    @unittest.skipIf(torch.cuda.device_count() <= 1, "Not enough GPUs, this test requires at least two GPUs")
    @given(kind=st.sampled_from(["tw", "rw"]))
    @settings(deadline=None)
    def test_nccl(self, kind):
        self._run_multi_process_test(callable=shard, world_size=2, backend="nccl")

    @unittest.skipIf(torch.cuda.device_count() <= 3, "four")
    def test_hierarchical(self):
        self._run_multi_process_test(callable=shard, world_size=4, backend="nccl")

    @unittest.skipIf(not torch.cuda.is_available(), "needs a device")
    def test_two_ranks_with_a_loose_guard(self):
        self._run_multi_process_test(callable=shard, world_size=2, backend="nccl")

    def test_gloo(self):
        self._run_multi_process_test(callable=shard, world_size=2, backend="gloo")

    @unittest.skipIf(torch.cuda.device_count() < 1, "one")
    def test_local(self):
        torch.ones(2).cuda()

    def test_meta(self):
        torch.ones(2, device="meta")

    def test_plan_for_many(self):
        topology = {"world_size": 16, "compute_device": "cuda"}
        self.assertEqual(topology["world_size"], 16)


class Inferred(unittest.TestCase):
    @unittest.skipIf(torch.cuda.device_count() <= 2, "three")
    def test_three(self):
        torch.ones(1, device="cuda:2")
