import unittest

import jax
import numpy as np
from absl.testing import parameterized
from jax._src import test_util as jtu


def setUpModule():
    pass


jtu.request_cpu_devices(8)


class Sharded(jtu.JaxTestCase):
    def test_host_stands_in(self):
        if jax.device_count() < 2:
            self.skipTest("needs two devices")

    def test_four(self):
        if jax.device_count() < 4:
            raise unittest.SkipTest("needs four")

    @jtu.run_on_devices("gpu")
    def test_gpu_only(self):
        if len(jax.devices()) < 2:
            self.skipTest("two")

    @jtu.skip_on_devices("gpu")
    def test_not_on_gpu(self):
        pass

    @parameterized.parameters(1, 2)
    def test_sizes(self, n):
        if jax.local_device_count() < n:
            self.skipTest("more")

    @parameterized.named_parameters(("small", 2), ("large", 8))
    def test_named(self, n):
        if n > jax.device_count():
            self.skipTest("more")


class Guarded(jtu.JaxTestCase):
    def setUp(self):
        super().setUp()
        if jax.device_count() < 2:
            self.skipTest("two")

    def test_two(self):
        pass
