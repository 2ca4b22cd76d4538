import torch

assert torch.cuda.device_count() >= 2, "this file needs two devices"


def test_pair():
    pass
