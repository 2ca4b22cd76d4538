"""A stand-in for torch: so many devices as STAND_IN_DEVICES says, and tensors that are on one of them."""
import os
N = int(os.environ["STAND_IN_DEVICES"])
indices = set()
current = 0
class device:
    def __init__(self, kind, index=None):
        kind, _, number = (f"cuda:{kind}" if isinstance(kind, int) else kind).partition(":")
        self.type, self.index = kind, int(number) if number else index
def used(where):
    if isinstance(where, (int, str)):
        where = device(where)
    if where is None or where.type != "cuda":
        return
    index = current if where.index is None else where.index
    if index >= N:
        raise RuntimeError("CUDA error: invalid device ordinal")
    indices.add(index)
    if "KEPT_USES" in os.environ:  # of whatever process of the test
        with open(os.environ["KEPT_USES"], "a") as file:
            file.write(f"{index}\n")
class Tensor:
    def cuda(self, index=None):
        used("cuda" if index is None else index)
        return self
    def to(self, where):
        used(where)
        return self
def ones(*shape, device=None):
    used(device)
    return Tensor()
from . import cuda, distributed, multiprocessing
