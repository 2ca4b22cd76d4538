import pytest
from cupy import cuda


@pytest.mark.skipif(cuda.runtime.getDeviceCount() < 3, reason="three")
class TestThree:
    def test_three(self):
        pass
