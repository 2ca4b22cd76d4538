def cpu_offload(model, execution_device=None):
    return model.to(execution_device)


def empty(size, device=None):
    return [0] * size
