import unittest

import cupy
import numpy
from cupy import testing


class TestBoth(unittest.TestCase):
    @testing.for_all_dtypes()
    @testing.numpy_cupy_array_equal()
    def test_compared(self, xp, dtype):
        return xp.arange(3, dtype=dtype)

    @testing.numpy_cupy_equal(name="lib")
    def test_compared_under_another_name(self, lib):
        return lib.array([1, 2]).shape

    @testing.with_requires("numpy>=1.19")
    @testing.for_dtypes_combination(["f", "d"], names=("a", "b"))
    @testing.numpy_cupy_allclose(atol=1e-5)
    def test_combined(self, xp, a, b):
        x = testing.shaped_random((3,), xp, a)
        return x.astype(b)

    @testing.for_int_dtypes()
    def test_numpy_alone(self, dtype):
        assert numpy.ones(3, dtype=dtype).sum() == 3

    @testing.numpy_cupy_array_equal(type_check=False)
    @testing.multi_gpu(2)
    def test_compared_on_two(self, xp):
        with cupy.cuda.Device(1):
            return xp.zeros(2)


@testing.parameterize(*testing.product({"shape": [(2,), (2, 3)], "axis": [0, None]}))
class TestProduct:
    def test_array(self):
        assert testing.shaped_arange(self.shape, cupy).ndim == len(self.shape)

    def test_shape(self):
        assert self.axis is None or self.axis < len(self.shape)
