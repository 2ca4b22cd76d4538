import unittest

import cupy
import pytest
from cupy import cuda, testing


class TestDevice(unittest.TestCase):
    def test_array(self):
        cupy.arange(3)

    @testing.multi_gpu(2)
    def test_two(self):
        with cuda.Device(1):
            cupy.zeros(2)

    @testing.multi_gpu(4)
    def test_four(self):
        pass

    def test_only_python(self):
        self.assertEqual(2 + 2, 4)


@testing.parameterize({"n": 1}, {"n": 2})
class TestParam(unittest.TestCase):
    @testing.multi_gpu(2)
    def test_param(self):
        pass


class TestChosen:
    @pytest.fixture(autouse=True)
    def chosen(self):
        with cupy.cuda.Device(1):
            yield

    def test_second(self):
        pass


@pytest.mark.multi_gpu
@testing.multi_gpu(2)
def test_peer_access():
    cuda.runtime.deviceCanAccessPeer(0, 1)
