import operator
import os

import pytest
import torch
from bolt.cuda import num_cuda_devices
from packaging.version import Version


class RunIf:
    def __new__(cls, *args, min_cuda_gpus=0, min_torch=None, bf16_cuda=False, standalone=False, tpu=False, **kwargs):
        conditions, reasons = [], []
        if min_cuda_gpus:
            conditions.append(num_cuda_devices() < min_cuda_gpus)
            reasons.append(f"GPUs>={min_cuda_gpus}")
        if min_torch:
            conditions.append(Version(torch.__version__) < Version(min_torch))
            reasons.append(f"torch>={min_torch}")
        if bf16_cuda:
            conditions.append(not (torch.cuda.is_available() and torch.cuda.is_bf16_supported()))
            reasons.append("bf16")
        if standalone:
            conditions.append(os.getenv("BOLT_RUN_STANDALONE_TESTS", "0") != "1")
            reasons.append("standalone")
        reasons = [rs for cond, rs in zip(conditions, reasons) if cond]
        return pytest.mark.skipif(condition=any(conditions), reason=f"Requires: [{' + '.join(reasons)}]", **kwargs)
