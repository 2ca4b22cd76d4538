"""A pretended NVML: answers from the JSON file that FAKE_NVML_STATE names, read anew at every call.

It has the names of the real module (nvidia-ml-py) as far as `sooner` uses them, so that it can stand first on
the path of a subprocess. A handle is the UUID of a GPU or of a MIG instance.
"""
# ruff: noqa: N802, N816 - the names are NVML's

import json
import os
from pathlib import Path
from types import SimpleNamespace

NVML_ERROR_NOT_SUPPORTED = 3
NVML_ERROR_NOT_FOUND = 6
NVML_ERROR_TIMEOUT = 10
NVML_ERROR_FUNCTION_NOT_FOUND = 13
NVML_ERROR_GPU_IS_LOST = 15
NVML_ERROR_RESET_REQUIRED = 16
NVML_DEVICE_MIG_ENABLE = 1
NVML_NVLINK_MAX_LINKS = 4
NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 1
NVML_VOLATILE_ECC = 0
nvmlEventTypeXidCriticalError = 8
nvmlMemory_v2 = 2

_TEXTS = {12: "NVML Shared Library Not Found", 15: "GPU is lost", 18: "Driver/library version mismatch"}
_MIB = 1 << 20
_seen_events = 0


class NVMLError(Exception):
    def __init__(self, value):
        super().__init__(_TEXTS.get(value, f"error {value}"))
        self.value = value


def _state():
    return json.loads(Path(os.environ["FAKE_NVML_STATE"]).read_text())


def _owner(handle):
    """The GPU and the instance (or the GPU again) of a handle."""
    for gpu in _state()["gpus"]:
        for part in (gpu, *(gpu.get("mig") or ())):
            if part["uuid"] == handle:
                if gpu.get("lost"):
                    raise NVMLError(NVML_ERROR_GPU_IS_LOST)
                return gpu, part
    raise NVMLError(NVML_ERROR_NOT_FOUND)


def nvmlInit():
    if error := _state().get("init_error"):
        raise NVMLError(error)


def nvmlShutdown():
    pass


def nvmlDeviceGetCount():
    return len(_state()["gpus"])


def nvmlDeviceGetHandleByIndex(index):
    return nvmlDeviceGetHandleByUUID(_state()["gpus"][index]["uuid"])


def nvmlDeviceGetHandleByUUID(uuid):
    _owner(uuid)
    return uuid


def nvmlDeviceGetUUID(handle):
    return handle


def nvmlDeviceGetName(handle):
    return _owner(handle)[1].get("name", "Pretended GPU")


def nvmlDeviceGetMemoryInfo(handle, version=None):
    part = _owner(handle)[1]
    if version and _state().get("old_driver"):
        raise NVMLError(NVML_ERROR_FUNCTION_NOT_FOUND)
    return SimpleNamespace(total=part.get("total_mib", 81920) * _MIB, used=part.get("used_mib", 0) * _MIB)


def nvmlDeviceGetPciInfo(handle):
    return SimpleNamespace(busId=_owner(handle)[0]["bus"])


def nvmlDeviceGetMigMode(handle):
    gpu = _owner(handle)[0]
    if _state().get("old_driver"):
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return [int(gpu.get("mig") is not None)] * 2


def nvmlDeviceGetMaxMigDeviceCount(handle):
    _owner(handle)
    return 7


def nvmlDeviceGetMigDeviceHandleByIndex(handle, index):
    instances = _owner(handle)[0]["mig"]
    if index >= len(instances):
        raise NVMLError(NVML_ERROR_NOT_FOUND)
    return instances[index]["uuid"]


def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle):
    gpu, part = _owner(handle)
    if part is gpu:
        raise NVMLError(NVML_ERROR_NOT_FOUND)
    return gpu["uuid"]


def nvmlDeviceGetNvLinkState(handle, link):
    links = _owner(handle)[0].get("nvlinks")
    if links is None:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return int(link < len(links))


def nvmlDeviceGetNvLinkRemotePciInfo(handle, link):
    return SimpleNamespace(busId=_owner(handle)[0]["nvlinks"][link])


def nvmlDeviceGetComputeRunningProcesses(handle):
    return [SimpleNamespace(pid=pid, usedGpuMemory=None) for pid in _owner(handle)[1].get("pids", ())]


def nvmlSystemGetProcessName(pid):
    names = _state().get("process_names", {})
    if str(pid) not in names:
        raise NVMLError(NVML_ERROR_NOT_FOUND)
    return names[str(pid)]


def nvmlDeviceGetTotalEccErrors(handle, _kind, _counter):
    gpu = _owner(handle)[0]
    if "ecc" not in gpu:
        raise NVMLError(NVML_ERROR_NOT_SUPPORTED)
    return gpu["ecc"]


def nvmlEventSetCreate():
    return set()


def nvmlEventSetFree(_events):
    pass


def nvmlDeviceRegisterEvents(handle, _kinds, events):
    _owner(handle)
    events.add(handle)


def nvmlEventSetWait(events, _timeout_ms):
    global _seen_events  # noqa: PLW0603 - the driver's queue is as global
    queue = [event for event in _state().get("events", ()) if event["uuid"] in events]
    if _seen_events >= len(queue):
        raise NVMLError(NVML_ERROR_TIMEOUT)
    event = queue[_seen_events]
    _seen_events += 1
    return SimpleNamespace(device=event["uuid"], eventData=event["xid"])
