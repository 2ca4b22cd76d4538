import functools
import os

import pytest
import torch

MAX_DEVICES = int(os.environ.get("TEST_MAX_DEVICES", "2"))


def needs(n):
    def decorate(func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            have = torch.cuda.device_count()
            if have < n:
                pytest.skip(f"{n} devices, {have} here")
            return func(*args, **kwargs)

        return wrapper

    return decorate


def at_least(n):
    return pytest.mark.skipif(count() < n, reason="devices")


def count():
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


needs_pair = at_least(2)


class Sized:
    size = 2

    @property
    def world_size(self):
        return self.size * self.factor

    factor = 1

    def setup_method(self, method):
        if torch.cuda.device_count() < self.world_size:
            pytest.skip("world size")
