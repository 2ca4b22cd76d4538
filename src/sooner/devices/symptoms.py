"""What the text that a test left behind says about its device: a fault, or memory that ran out.

Pure. An ordinary bug of the test (illegal memory access, device-side assert, Xid 31) is neither, and a line
of source that merely names an error (`pytest.raises(...)`) says nothing.
"""

import re
from collections.abc import Iterator
from typing import Final

from sooner.devices.nvidia import DEVICE_XIDS
from sooner.model.text import one_line

_XID: Final = re.compile(r"\bX(?:id|ID)(?: error)?(?: \([^)\n]*\))?[:, ]+(\d+)\b")
_FAULT: Final = re.compile(
    r"fallen off the bus"
    r"|GPU is lost"
    r"|uncorrectable (?:ECC|NVLink|hardware) error"
    r"|\b(?:CUDA_ERROR_ECC_UNCORRECTABLE|cudaErrorECCUncorrectable|hipErrorECCNotCorrectable)\b"
    r"|\b(?:CUDA_ERROR_NVLINK_UNCORRECTABLE|cudaErrorNvlinkUncorrectable)\b"
    r"|NVML_ERROR_GPU_IS_LOST|NVML_ERROR_RESET_REQUIRED",
    re.IGNORECASE,
)
"""Sources: CUDA's cudaError_t, HIP's hipError_t, NVML's nvmlReturn_t, the kernel's NVRM messages."""

_MEMORY: Final = re.compile(
    r"\b(?:CUDA|HIP|XPU) out of memory\b"  # PyTorch's caching allocator
    r"|\b(?:CUDA|HIP)(?: runtime)?(?: error| failure)(?: \(?\d+\)?)? ?:? ?'?out of memory"  # CUDA, NCCL
    r"|\btorch\.(?:cuda\.)?OutOfMemoryError\b"
    r"|\b(?:CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory|hipErrorMemoryAllocation)\b"
    r"|\b(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|HIPBLAS)_STATUS_ALLOC_FAILED\b"
    r"|RESOURCE_EXHAUSTED: (?:Out of memory|Failed to allocate|Error allocating device buffer)"  # XLA
    r"|\bOOM when allocating tensor\b[^\n]*\bGPU:\d"  # TensorFlow; on a CPU it names CPU:0
    r"|\bcupy\.cuda\.memory\.OutOfMemoryError\b",
    re.IGNORECASE,
)
_FAULT_WORDS: Final = ("xid", "off the bus", "is lost", "is_lost", "correctable", "reset_required")
_MEMORY_WORDS: Final = (
    *("out of memory", "out_of_memory", "outofmemory", "memoryallocation"),
    *("alloc_failed", "resource_exhausted", "oom when"),
)
"""In lower case, one is in whatever the patterns match: most logs are dismissed without a pattern."""
_LONGEST: Final = 300
"""Characters of a line that are quoted."""
_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")
_EXPECTED: Final = re.compile(
    r"\braises\(|\bassertRaises|\bDID NOT RAISE\b|\bmatch=|\bmark\.xfail"
    r"|^[E>]?\s*(?:AssertionError: )?(?:#\s|assert\b|except\b)"
)
"""A line of a traceback that expects the error, rather than reports it."""


def fault_in_log(text: str) -> str:
    """The line that reports a fault of the device itself, made printable; empty where none does."""
    if not _has_any(_FAULT_WORDS, text):
        return ""
    for line, match in _reports(_XID, text):
        if int(match[1]) in DEVICE_XIDS:
            return one_line(line)[:_LONGEST]
    return next((one_line(line)[:_LONGEST] for line, _ in _reports(_FAULT, text)), "")


def device_out_of_memory(text: str) -> bool:
    """Whether a library reports that the device's memory ran out; the host's is another thing."""
    return _has_any(_MEMORY_WORDS, text) and next(_reports(_MEMORY, text), None) is not None


def _has_any(words: tuple[str, ...], text: str) -> bool:
    lowered = text.lower()
    return any(word in lowered for word in words)


def _reports(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, re.Match[str]]]:
    """Matches with the lines that they are in, without the lines that only expect the error."""
    text = _COLOUR.sub("", text)  # `\x1b[31mCUDA` has no word boundary before the C
    for match in pattern.finditer(text):
        start, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        line = text[start : end if end >= 0 else len(text)]
        if not _EXPECTED.search(line):
            yield line, match
