import os
import unittest
from functools import partial

import torch

from ..imports import is_bnb_available, is_cuda_available, is_xpu_available


def get_backend():
    if is_cuda_available():
        return "cuda", torch.cuda.device_count(), torch.cuda.memory_allocated
    if is_xpu_available():
        return "xpu", torch.xpu.device_count(), None
    return "cpu", 1, 0


torch_device, device_count, memory_allocated_func = get_backend()


def flag(key, default=False):
    try:
        value = os.environ[key]
    except KeyError:
        return default
    return value.lower() in ("1", "yes", "true")


_run_slow_tests = flag("RUN_SLOW", default=False)


def slow_here(test_case):
    return unittest.skipUnless(_run_slow_tests, "slow")(test_case)


def require_cpu(test_case):
    return unittest.skipUnless(torch_device == "cpu", "host only")(test_case)


def require_non_cpu(test_case):
    return unittest.skipUnless(torch_device != "cpu", "an accelerator")(test_case)


def require_xpu(test_case):
    return unittest.skipUnless(is_xpu_available(), "an XPU")(test_case)


def require_single_device(test_case):
    return unittest.skipUnless(torch_device != "cpu" and device_count == 1, "one device")(test_case)


def require_multi_device(test_case):
    return unittest.skipUnless(device_count > 1, "several devices")(test_case)


def require_up_to_2(test_case):
    return unittest.skipUnless(device_count < 3, "at most two")(test_case)


def require_bnb_here(test_case):
    return unittest.skipUnless(is_bnb_available(), "a package")(test_case)


def get_launch_command(**kwargs):
    command = ["accelerate", "launch"]
    for k, v in kwargs.items():
        if isinstance(v, bool) and v:
            command.append(f"--{k}")
        elif v is not None:
            command.append(f"--{k}={v}")
    return command


DEFAULT_LAUNCH_COMMAND = get_launch_command(num_processes=device_count)


def run_first(test_case):
    import pytest

    return pytest.mark.order(1)(test_case)
