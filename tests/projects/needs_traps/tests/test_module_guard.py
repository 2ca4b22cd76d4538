import pytest
import torch

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 4, reason="four")


def test_four():
    pass


@pytest.mark.skipif(torch.cuda.device_count() < 8, reason="eight")
def test_eight():
    pass
