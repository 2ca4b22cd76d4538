"""The stand-in's groups: their ranks know their numbers, and nothing is sent."""

import os
import torch

_GROUP = {}

def is_available():
    return True
def is_nccl_available():
    return True
def is_gloo_available():
    return True
def is_initialized():
    return bool(_GROUP)
def init_process_group(backend="gloo", init_method=None, rank=-1, world_size=-1, **more):
    if backend == "nccl" and not torch.N:
        raise RuntimeError("ProcessGroupNCCL is only supported with GPUs, no GPUs found!")
    _GROUP["rank"] = rank if rank >= 0 else int(os.environ["RANK"])
    _GROUP["size"] = world_size if world_size >= 0 else int(os.environ["WORLD_SIZE"])
def destroy_process_group(group=None):
    _GROUP.clear()
def get_rank(group=None):
    return _GROUP["rank"]
def get_world_size(group=None):
    return _GROUP["size"]
def all_reduce(tensor, op=None, group=None):
    pass
def barrier(group=None):
    pass
