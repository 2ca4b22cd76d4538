import subprocess
import sys
import unittest
from unittest import mock

import torch
from acme.test_utils import (
    DEFAULT_LAUNCH_COMMAND,
    device_count,
    get_launch_command,
    require_bnb_here,
    require_cpu,
    require_multi_device,
    require_non_cpu,
    require_single_device,
    require_up_to_2,
    require_xpu,
    run_first,
    slow_here,
    torch_device,
)
from parameterized import parameterized


class Launched(unittest.TestCase):
    script = "src/acme/scripts/on_devices.py"

    @run_first
    @require_multi_device
    def test_all_devices(self):
        subprocess.run(DEFAULT_LAUNCH_COMMAND + [self.script], check=True)

    @require_multi_device
    def test_two_of_them(self):
        subprocess.run(get_launch_command(num_processes=2) + [self.script], check=True)

    def test_torchrun_without_guard(self):
        subprocess.check_call(["torchrun", "--nproc_per_node", "4", self.script])

    def test_torchrun_on_host(self):
        subprocess.check_call(["torchrun", "--nproc_per_node=4", "src/acme/scripts/on_host.py"])

    def test_command_is_only_compared(self):
        self.assertEqual(get_launch_command(num_processes=8), ["accelerate", "launch", "--num_processes=8"])

    @require_multi_device
    @require_up_to_2
    def test_exactly_two(self):
        pass


class Kinds(unittest.TestCase):
    @require_cpu
    def test_host(self):
        pass

    @require_non_cpu
    def test_device(self):
        torch.ones(1).to(torch_device)

    @require_single_device
    def test_single(self):
        torch.ones(1, device=torch_device)

    @require_xpu
    def test_elsewhere(self):
        pass

    @slow_here
    @require_non_cpu
    def test_slow(self):
        pass

    @require_bnb_here
    @require_multi_device
    def test_package(self):
        pass

    def test_adapts(self):
        torch.ones(1).to(torch_device)

    @parameterized.expand([("fp16",), ("bf16",)])
    @require_non_cpu
    def test_types(self, kind):
        pass

    @parameterized.expand([(1, 2), (3, 4)])
    def test_numbers(self, a, b):
        pass

    @mock.patch("torch.cuda.device_count", return_value=8)
    def test_mocked(self, count):
        self.assertEqual(torch.cuda.device_count(), 8)

    def test_mocked_world(self):
        state = mock.Mock(world_size=8, num_processes=8)
        self.assertEqual(state.world_size, 8)


@require_multi_device
class Guarded(unittest.TestCase):
    def test_one(self):
        pass

    def test_two(self):
        pass


class GuardedInSetUp(unittest.TestCase):
    def setUp(self):
        if device_count < 4:
            self.skipTest("four")

    def test_four(self):
        pass


class GuardedForAll(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not torch.cuda.is_available():
            raise unittest.SkipTest("a device")

    def test_device(self):
        pass


class GuardedAgain(GuardedInSetUp):
    def test_inherits_set_up(self):
        pass
