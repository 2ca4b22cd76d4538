import os

import pytest
import torch

from tests.utils import create_new_process_for_each_test, multi_gpu_marks, multi_gpu_test
from vllm.platforms import current_platform


@multi_gpu_test(num_gpus=2)
def test_two():
    pass


@multi_gpu_test(num_gpus=4)
@pytest.mark.parametrize("kind", ["ring", "tree"])
def test_four(kind):
    pass


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="two")
def test_old_way():
    pass


@pytest.mark.skipif("torch.cuda.device_count() < 4")
def test_condition_as_text():
    pass


@pytest.mark.parametrize("tp_size", [1, 2, 4])
def test_engine(vllm_runner, tp_size, num_gpus_available):
    if num_gpus_available < tp_size:
        pytest.skip(f"Not enough devices for tensor parallelism {tp_size}")
    with vllm_runner("tiny", tensor_parallel_size=tp_size) as runner:
        runner.engine.generate("hello")


@pytest.mark.parametrize(
    "tp_size, pp_size",
    [(1, 2), (2, 2), pytest.param(4, 2, id="wide"), pytest.param(1, 1, marks=pytest.mark.skip(reason="too small"))],
)
@create_new_process_for_each_test
def test_pipeline(tp_size, pp_size):
    if torch.cuda.device_count() < tp_size * pp_size:
        pytest.skip("not enough")


@pytest.mark.parametrize("tp", [1, pytest.param(2, marks=multi_gpu_marks(num_gpus=2))])
def test_marks_of_params(tp, vllm_runner):
    with vllm_runner("tiny", tensor_parallel_size=tp):
        pass


def test_engine_without_guard(vllm_runner):
    vllm_runner("tiny", tensor_parallel_size=2)


def test_engine_of_one(vllm_runner):
    with vllm_runner("tiny"):
        pass


@pytest.mark.skipif(not current_platform.is_cuda(), reason="CUDA only")
def test_cuda_only():
    pass


@pytest.mark.skipif(current_platform.is_cuda_alike(), reason="host only")
def test_host_only():
    pass


def test_options_are_only_words():
    words = ["--tensor-parallel-size", "8"]
    assert len(words) == 2


@pytest.mark.skipif(os.getenv("TARGET_TEST_SUITE", "L4") != "A100", reason="another machine")
@multi_gpu_test(num_gpus=2)
def test_elsewhere():
    pass


@multi_gpu_test(num_gpus=2)
class TestGroup:
    def test_in_class(self):
        pass

    @pytest.mark.skipif(torch.cuda.device_count() < 4, reason="four")
    def test_stricter(self):
        pass


class TestKernels:
    @pytest.mark.parametrize("device", [f"cuda:{i}" for i in range(1 if torch.cuda.device_count() == 1 else 2)])
    def test_on_each(self, device):
        torch.ones(4, device=device)

    @pytest.mark.parametrize("size", [16, 32])
    def test_default_device(self, size):
        torch.set_default_device("cuda")
        torch.ones(size)
