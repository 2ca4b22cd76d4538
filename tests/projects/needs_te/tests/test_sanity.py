import pytest
import torch
import transformer_engine.pytorch as te

device = "cuda"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_linear(dtype):
    layer = te.Linear(16, 16, params_dtype=dtype)
    layer(torch.ones(16, 16, dtype=dtype, device=device))


def test_copy():
    x = torch.ones(2).cuda()
    y = x.to("cpu")


@pytest.fixture
def memory():
    torch.cuda.reset_max_memory_allocated()
    yield
    torch.cuda.empty_cache()


def test_with_fixture(memory):
    pass


def test_shapes():
    assert (2, 3) == tuple([2, 3])


@pytest.mark.parametrize("ranks", [1, 2])
def test_context(ranks):
    if ranks > torch.cuda.device_count():
        pytest.skip(f"Test requires {ranks} GPUs")
    torch.ones(1, device="cuda")
