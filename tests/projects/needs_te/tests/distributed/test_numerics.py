import os
import subprocess
from pathlib import Path

import pytest
import torch
import transformer_engine.pytorch as te
from transformer_engine.pytorch.quantization import FP8GlobalStateManager

if torch.cuda.device_count() < 2:
    pytest.skip("Distributed training needs at least 2 GPUs.", allow_module_level=True)

fp8_available, reason_for_no_fp8 = FP8GlobalStateManager.is_fp8_available()
TEST_ROOT = Path(__file__).parent.resolve()
NUM_PROCS = min(4, torch.cuda.device_count())
LAUNCH_CMD = ["torchrun", f"--nproc_per_node={NUM_PROCS}"]


def _run_test(quantization):
    test_path = TEST_ROOT / "run_numerics.py"
    test_cmd = LAUNCH_CMD + [str(test_path)]
    result = subprocess.run(test_cmd, env=os.environ, check=False)
    assert result.returncode == 0


@pytest.mark.parametrize("quantization", [None, "fp8"])
def test_distributed(quantization):
    if quantization == "fp8" and not fp8_available:
        pytest.skip(reason_for_no_fp8)
    _run_test(quantization)


def test_even():
    if torch.cuda.device_count() % 2 != 0:
        pytest.skip("an even number of devices")
    _run_test(None)
