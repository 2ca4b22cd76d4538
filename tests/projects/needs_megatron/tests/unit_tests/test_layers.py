import pytest
import torch
from tests.unit_tests.test_utilities import Utils


class TestLayers:
    def setup_method(self, method):
        Utils.initialize_model_parallel(1, 1)

    def test_forward(self):
        torch.ones(2).cuda()


@pytest.mark.parametrize("tp,pp", [(1, 1), (2, 1), (2, 2), (4, 2)])
def test_sizes(tp, pp):
    Utils.initialize_model_parallel(tp, pp)


class TestTwo:
    def setup_method(self, method):
        Utils.initialize_model_parallel(tensor_model_parallel_size=2)

    @pytest.mark.skipif(torch.cuda.device_count() < 4, reason="four")
    def test_stricter(self):
        pass

    def test_two(self):
        pass


def test_config_only():
    sizes = {"tensor_model_parallel_size": 8, "pipeline_model_parallel_size": 2}
    assert sizes["tensor_model_parallel_size"] == 8


@pytest.mark.skipif(not torch.cuda.is_available(), reason="CUDA")
def test_cuda():
    torch.zeros(1, device="cuda")
