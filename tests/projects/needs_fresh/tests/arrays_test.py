import unittest

import jax
import jax.numpy as jnp
from jax._src import test_util as jtu
from jax.sharding import Mesh


class ArrayTest(jtu.JaxTestCase):
    def test_mesh(self):
        mesh = jtu.create_mesh((2, 2), ("x", "y"))

    @jtu.run_on_devices("gpu")
    def test_gpu(self):
        x = jnp.ones((8,))

    def test_many(self):
        n = 8
        if jax.device_count() < n:
            raise unittest.SkipTest(f"requires {n} devices")
