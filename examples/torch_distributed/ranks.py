"""What functions that run on ranks share."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh


def device() -> torch.device:
    """The device of this rank: its own with nccl, the CPU with gloo."""
    return torch.device("cuda", dist.get_rank()) if dist.get_backend() == "nccl" else torch.device("cpu")


def mesh() -> DeviceMesh:
    """All ranks in a row."""
    return init_device_mesh(device().type, (dist.get_world_size(),))
