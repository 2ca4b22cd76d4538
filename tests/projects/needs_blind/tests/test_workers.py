import deepspeed
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from deepspeed.accelerator import get_accelerator
from megatron.core import parallel_state
from torch.testing._internal.common_fsdp import FSDPTest

BACKEND = dist.Backend.NCCL if torch.cuda.is_available() else dist.Backend.GLOO


def work(rank, size):
    dist.init_process_group(BACKEND, rank=rank, world_size=size)


def test_backend_by_its_constant():
    size = 4
    if torch.cuda.is_available():
        size = min(size, torch.cuda.device_count())
    mp.spawn(work, args=(size,), nprocs=size)


def test_backend_of_the_accelerator():
    name = get_accelerator().communication_backend_name()
    deepspeed.comm.init_distributed(name, rank=0, world_size=1)


def test_an_encoder_has_ranks_of_its_own():
    parallel_state.initialize_model_parallel(
        tensor_model_parallel_size=5, encoder_tensor_model_parallel_size=3, encoder_pipeline_model_parallel_size=1
    )


class AllDevices(FSDPTest):
    def test_without_a_guard(self):
        torch.ones(1).cuda()
