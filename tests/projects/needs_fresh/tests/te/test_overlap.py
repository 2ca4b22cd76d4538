import os
import pathlib
import subprocess
import sys

import pytest
import torch
import transformer_engine.pytorch as te

if torch.cuda.device_count() < 2:
    pytest.skip("Overlap requires at least 2 GPUs.")

fp8_available, reason = te.is_fp8_available(return_reason=True)
quantization_list = [None]
if fp8_available:
    quantization_list.append("fp8")
ROOT = pathlib.Path(__file__).parent.resolve()
COMMAND = ["mpirun", "-np", str(min(torch.cuda.device_count(), 4)), "--quiet", "python3"]


@pytest.mark.parametrize("quantization", quantization_list)
def test_overlap(quantization):
    result = subprocess.run(COMMAND + [str(ROOT / "run_parallel.py")], env=os.environ, check=False)
    if result.returncode != 0:
        raise AssertionError(result.stderr.decode())
