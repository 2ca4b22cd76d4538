import pytest
import torch
import torch.multiprocessing as mp

skip_if_no_cuda = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.device_count() < 1, reason="CUDA required")
skip_if_single_gpu = pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="several")
skip_if_less_than_four_gpu = pytest.mark.skipif(torch.cuda.device_count() < 4, reason="four")


def get_world_sizes():
    limit = torch.cuda.device_count()
    return [x for x in [1, 2, 4, 8] if x <= limit]


def spawn_for_all_world_sizes(test_func, world_sizes=get_world_sizes(), args=[], deterministic=False):
    for world_size in world_sizes:
        mp.spawn(test_func, args=(world_size, *args), nprocs=world_size, join=True)
