import pytest
import torch


class Runner:
    def __init__(self, model, tensor_parallel_size=1, **kwargs):
        from vllm import LLM

        self.engine = LLM(model=model, tensor_parallel_size=tensor_parallel_size, **kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        del self.engine


@pytest.fixture(scope="session")
def vllm_runner():
    return Runner


@pytest.fixture
def num_gpus_available():
    return torch.cuda.device_count()
