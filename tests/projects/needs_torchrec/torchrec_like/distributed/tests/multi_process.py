import multiprocessing
import os
import unittest

import torch
import torch.distributed as dist


class MultiProcessContext:
    def __init__(self, rank, world_size, backend="gloo"):
        self.rank = rank
        self.world_size = world_size
        self.backend = backend
        if torch.cuda.is_available():
            self.device = torch.device(f"cuda:{rank}")
            torch.cuda.set_device(self.device)
        else:
            self.device = torch.device("cpu")

    def __enter__(self):
        dist.init_process_group(rank=self.rank, world_size=self.world_size, backend=self.backend)
        return self

    def __exit__(self, *exc):
        dist.destroy_process_group()


class MultiProcessTestBase(unittest.TestCase):
    def setUp(self):
        os.environ["MASTER_ADDR"] = "localhost"

    def _run_multi_process_test(self, callable, world_size=2, **kwargs):
        processes = []
        ctx = multiprocessing.get_context("spawn")
        for rank in range(world_size):
            p = ctx.Process(target=callable, args=(rank, world_size), kwargs=kwargs)
            p.start()
            processes.append(p)
        for p in processes:
            p.join()
            self.assertEqual(0, p.exitcode)
