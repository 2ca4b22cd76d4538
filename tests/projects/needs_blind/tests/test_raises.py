import cupy
import pytest
import torch
from cupy import testing
from elsewhere import has_more

if has_more():
    KINDS = (ValueError, KeyError)
else:
    KINDS = (ValueError,)


@testing.numpy_cupy_equal()
def test_both_libraries_give_the_same(xp):
    return xp.arange(3).sum()


def test_a_device_that_is_nowhere():
    device = cupy.cuda.Device(100)
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        device.use()


def test_another_error_is_expected():
    with pytest.raises(ValueError):
        torch.ones(1, device="cuda").reshape(2)


def test_the_error_of_a_missing_device_is_expected():
    with pytest.raises(RuntimeError):
        torch.ones(1, device="cuda:100")


def test_what_is_caught_is_not_known():
    try:
        torch.ones(1).cuda()
    except KINDS:
        pass
