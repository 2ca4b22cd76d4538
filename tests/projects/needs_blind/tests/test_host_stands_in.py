import os
import unittest

import jax

before = None


def setUpModule():
    global before
    before = os.getenv("XLA_FLAGS")
    flags = before or ""
    if "xla_force_host_platform_device_count" not in flags:
        os.environ["XLA_FLAGS"] = flags + " --xla_force_host_platform_device_count=8"


class HostStandsIn(unittest.TestCase):
    def test_five(self):
        if jax.device_count() < 5:
            self.skipTest("five devices")
        jax.device_put(1, jax.devices()[4])

    def test_two(self):
        if len(jax.devices()) < 2:
            raise unittest.SkipTest("two devices")
