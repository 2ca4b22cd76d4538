import functools
import os

import pytest
import torch
from vllm.platforms import current_platform


def multi_gpu_marks(*, num_gpus):
    enough = pytest.mark.skipif(torch.cuda.device_count() < num_gpus, reason="Need more devices")
    return [pytest.mark.distributed(num_gpus=num_gpus), enough]


def multi_gpu_test(*, num_gpus):
    def wrapper(f):
        func = create_new_process_for_each_test(f)
        for mark in reversed(multi_gpu_marks(num_gpus=num_gpus)):
            func = mark(func)
        return func

    return wrapper


def create_new_process_for_each_test(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        pid = os.fork()
        if pid == 0:
            f(*args, **kwargs)

    return wrapper


def large_gpu_mark(min_gb):
    if current_platform.is_cpu():
        memory = 0
    else:
        memory = torch.cuda.get_device_properties(0).total_memory / 2**30
    return pytest.mark.skipif(memory < min_gb, reason="needs a large device")


class RemoteOpenAIServer:
    """A server of the tests' own: what it starts is the engine's, with the words that it is given."""

    def __init__(self, model, vllm_serve_args, *, env_dict=None):
        self.proc = start(["vllm", "serve", model, *vllm_serve_args], env_dict)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.terminate()
