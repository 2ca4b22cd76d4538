import pytest

from sooner.devices.proof import device_out_of_memory, fault_in_log


@pytest.mark.parametrize(
    "line",
    [
        "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python, GPU has fallen off the bus.",
        "kernel: NVRM: Xid (PCI:0000:9a:00): 48, pid='<unknown>', DBE (double bit error)",
        "nvidia-smi reports Xid 95 on GPU 3",
        "DCGM: XID error 119 was seen",
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "cuInit failed: CUDA_ERROR_ECC_UNCORRECTABLE",
        "cudaErrorECCUncorrectable: device memory is bad",
        "RuntimeError: HIP error: hipErrorECCNotCorrectable",
        "uncorrectable NVLink error detected during the execution",
        "Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system",
        "pynvml.NVMLError_GpuIsLost: GPU is lost",
    ],
)
def test_a_fault_of_the_device_is_found_in_a_log_and_quoted(line):
    assert fault_in_log(f"collected 1 item\n\x1b[31m{line}\x1b[0m\n1 failed\n") == " ".join(line.split())


@pytest.mark.parametrize(
    "line",
    [
        "",
        "NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=python, MMU Fault: ENGINE GRAPHICS",
        "NVRM: Xid (PCI:0000:3b:00): 13, Graphics SM Warp Exception",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "RuntimeError: CUDA error: device-side assert triggered",
        "CUDA error: unspecified launch failure",
        "torch.OutOfMemoryError: CUDA out of memory.",
        "tests/test_health.py::test_xid_79_is_reported PASSED",
        '    with pytest.raises(RuntimeError, match="uncorrectable ECC error"):',
        "corrected ECC errors: 3",
        "hipErrorIllegalAddress",
    ],
)
def test_ordinary_bugs_are_no_fault_of_the_device(line):
    assert fault_in_log(f"before\n{line}\nafter") == ""


@pytest.mark.parametrize(
    "line",
    [
        "E   torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total",
        "torch.cuda.OutOfMemoryError: Allocation on device",
        "RuntimeError: HIP out of memory. Tried to allocate 2.00 MiB",
        "RuntimeError: CUDA error: out of memory",
        "cuda runtime error (2) : out of memory at THCStorage.cu:58",
        "HIP error: out of memory",
        "ncclUnhandledCudaError: Call to CUDA function failed. Last error: Cuda failure 2 'out of memory'",
        "NCCL WARN Cuda failure 'out of memory'",
        "hipErrorOutOfMemory",
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "error code cudaErrorMemoryAllocation",
        "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8 bytes",
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.",
        "RESOURCE_EXHAUSTED: Failed to allocate request for 2.0GiB on device ordinal 0",
        "ResourceExhaustedError: OOM when allocating tensor with shape[9] on /job:localhost/device:GPU:0 by",
        "CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)",
        "##[error]CUDA out of memory",
    ],
)
def test_a_device_whose_memory_ran_out_is_told_by_its_library(line):
    assert device_out_of_memory(f"collected 1 item\n{line}\n1 failed\n")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "MemoryError",
        "std::bad_alloc",
        "Out of memory: Killed process 4242 (python) total-vm:9kB",
        "RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 262144",
        "tests/test_memory.py::test_cuda_out_of_memory_is_caught PASSED",
        "    with pytest.raises(torch.OutOfMemoryError):",
        "    except torch.cuda.OutOfMemoryError as error:",
        'E   Failed: DID NOT RAISE <class "torch.OutOfMemoryError">',
        "    # CUDA out of memory is expected here",
        'E   assert "CUDA out of memory" in ""',
        "grpc: RESOURCE_EXHAUSTED: Received message larger than max",
        "OOM when allocating tensor with shape[9] on /job:localhost/task:0/device:CPU:0 by allocator cpu",
        "CUDA error: an illegal memory access was encountered",
    ],
)
def test_other_shortages_are_not_the_devices_memory(line):
    assert not device_out_of_memory(f"before\n{line}\nafter")


def test_a_report_counts_beside_lines_that_expect_it():
    text = "    with pytest.raises(torch.OutOfMemoryError):\nE   torch.OutOfMemoryError: CUDA out of memory.\n"
    assert device_out_of_memory(text)
