import pytest
import torch
from tests.helpers.runif import RunIf


@RunIf(min_cuda_gpus=1)
def test_one():
    pass


@RunIf(min_cuda_gpus=2, standalone=True)
def test_alone():
    pass


@RunIf(min_cuda_gpus=4)
@pytest.mark.parametrize("precision", ["16-mixed", 32])
def test_four(precision):
    pass


@RunIf(min_torch="2.1")
def test_version():
    pass


@RunIf(bf16_cuda=True)
def test_bf16():
    pass


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param(1, marks=RunIf(min_cuda_gpus=1)),
        pytest.param(2, marks=RunIf(min_cuda_gpus=2)),
        pytest.param([1, 3], marks=RunIf(min_cuda_gpus=4)),
    ],
)
def test_devices(devices):
    pass


def test_faked(cuda_count_2):
    assert torch.cuda.device_count() == 2


@RunIf(min_cuda_gpus=2)
class TestTogether:
    def test_a(self):
        pass

    @RunIf(min_cuda_gpus=3)
    def test_b(self):
        pass


@pytest.mark.parametrize(("accelerator", "devices"), [("cpu", 2), pytest.param("cuda", 2, marks=RunIf(min_cuda_gpus=2))])
def test_either(accelerator, devices):
    pass
