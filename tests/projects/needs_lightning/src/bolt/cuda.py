import torch


def num_cuda_devices():
    return torch.cuda.device_count()
