import deepspeed
import torch
from torch.multiprocessing import Process


def started(count):
    def decorator(test):
        def work(rank, size):
            deepspeed.init_distributed(dist_backend="nccl")
            if torch.cuda.is_available():
                torch.cuda.set_device(rank)
            test()

        def run():
            workers = [Process(target=work, args=(rank, count)) for rank in range(count)]
            for each in workers:
                each.start()
            for each in workers:
                each.join()
                assert each.exitcode == 0

        return run

    return decorator


@started(3)
def test_three():
    assert deepspeed.comm.get_world_size() == 3


@started(1)
def test_one():
    assert deepspeed.comm.get_world_size() == 1
