import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("no device", allow_module_level=True)


@pytest.mark.parametrize("rows", range(8))
@pytest.mark.parametrize("columns", range(8))
@pytest.mark.parametrize("size", [1, 2, 4])
def test_many(size, columns, rows):
    if torch.cuda.device_count() < size:
        pytest.skip("more devices")
    torch.ones(rows, columns)
