import os

ds_accelerator = None


def get_accelerator():
    global ds_accelerator
    if ds_accelerator is not None:
        return ds_accelerator
    name = os.environ.get("DS_ACCELERATOR")
    if name is None:
        from .detect import detect

        name = detect()
    ds_accelerator = name
    return ds_accelerator
