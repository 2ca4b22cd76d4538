import pathlib
import subprocess
import sys

import pytest
import torch

sizes = [1]
if torch.cuda.device_count() > 1:
    sizes.append(torch.cuda.device_count())


@pytest.mark.parametrize("world_size", sizes)
def test_launch(world_size):
    python = pathlib.Path(sys.executable).resolve()
    here = pathlib.Path(__file__).resolve()
    command = [python, "-m", "torch.distributed.run", f"--nproc_per_node={world_size}", here, "--parallel"]
    subprocess.run(command, check=True)


@torch.no_grad()
def make(shape, device="cuda"):
    return torch.rand(shape, device=device)


@torch.inference_mode()
def test_no_grad():
    make((2, 3))


def test_on_host():
    make((2, 3), device="cpu")
