import importlib.util

import torch


def is_cuda_available():
    return torch.cuda.is_available()


def is_xpu_available(check_device=False):
    return hasattr(torch, "xpu") and torch.xpu.is_available()


def is_bnb_available():
    return importlib.util.find_spec("bitsandbytes") is not None
