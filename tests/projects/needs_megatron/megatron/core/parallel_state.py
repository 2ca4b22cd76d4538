import torch


def initialize_model_parallel(tensor_model_parallel_size=1, pipeline_model_parallel_size=1, context_parallel_size=1):
    world_size = torch.distributed.get_world_size()
    model = tensor_model_parallel_size * pipeline_model_parallel_size * context_parallel_size
    if world_size % model != 0:
        raise RuntimeError("world size is not divisible")


def destroy_model_parallel():
    pass
