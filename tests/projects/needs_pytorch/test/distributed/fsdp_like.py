"""A base class in a file of its own."""

import torch
from torch.testing._internal.common_fsdp import FSDPTest


class WideBase(FSDPTest):
    @property
    def world_size(self):
        return min(torch.cuda.device_count(), 8)


class FixedBase(FSDPTest):
    @property
    def world_size(self):
        return 4
