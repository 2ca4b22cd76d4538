"""`torch.cuda`, `torch.accelerator`, data parallelism and groups of ranks for devices that are not there.

Nothing here computes: work is done on the host, groups of ranks are gloo's, and what a device would answer is what an
idle H100 answers. `install` is called once a process, when torch has been imported.
"""

import sys
import types
from collections import defaultdict
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any, Final, Self

from pretended_devices import choose, count, current, index_of, is_pretended, use
from pretended_tensors import pretend_tensors, put

_MEMORY: Final = 80 << 30
_H100: Final = SimpleNamespace(
    name="NVIDIA H100 (pretended)",
    major=9,
    minor=0,
    total_memory=_MEMORY,
    multi_processor_count=132,
    is_integrated=0,
    is_multi_gpu_board=0,
    warp_size=32,
    L2_cache_size=50 << 20,
    gcnArchName="",
    max_threads_per_multi_processor=2048,
    regs_per_multiprocessor=65536,
    shared_memory_per_block=48 << 10,
    shared_memory_per_block_optin=227 << 10,
)


def install(torch: ModuleType) -> None:
    """Change a torch that has just been imported; nothing where the process's mask hides all devices."""
    if count() == 0:
        return
    pretend_tensors(torch)
    _pretend_cuda(torch)
    _pretend_loading(torch)
    _pretend_data_parallel(torch)
    if torch.distributed.is_available():
        _pretend_ranks(torch)


def _set(module: Any, values: dict[str, Any]) -> None:
    """Give a module its new members: each a function of its own, for dynamo keeps a table of functions."""
    for name, value in values.items():
        setattr(module, name, _another(value) if isinstance(value, types.FunctionType) else value)


def _another(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*args, **kwargs)


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    """Do nothing."""


def _zero(*_args: Any, **_kwargs: Any) -> int:
    return 0


def _yes(*_args: Any, **_kwargs: Any) -> bool:
    return True


def _no(*_args: Any, **_kwargs: Any) -> bool:
    return False


def _set_device(device: Any) -> None:
    index = index_of(device)
    use(index)
    choose(index)


class _Device:
    """`with torch.cuda.device(...)`."""

    def __init__(self, device: Any) -> None:
        is_host = device is None or getattr(device, "type", "cuda") != "cuda"
        self.index = -1 if is_host or device == -1 else index_of(device)
        self._before = 0

    def __enter__(self) -> Self:
        self._before = choose(self.index)
        return self

    def __exit__(self, *_raised: object) -> None:
        choose(self._before)


class _DeviceOf(_Device):
    """`with torch.cuda.device_of(tensor)`."""

    def __init__(self, tensor: Any) -> None:
        super().__init__(tensor.get_device() if tensor.is_cuda else -1)


class _Event:
    """All has happened already."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self.record = self.wait = self.synchronize = _nothing
        self.query = _yes

    def elapsed_time(self, _other: Any) -> float:
        return 1.0


class _Stream:
    """Work is done when it is asked for."""

    def __init__(self, *_args: Any, device: Any = None, **_kwargs: Any) -> None:
        self.device_index = index_of(device)
        self.device_type, self.cuda_stream, self.stream_id = 1, 0, 0
        self.wait_stream = self.wait_event = self.synchronize = _nothing
        self.query, self.is_capturing = _yes, _no

    def record_event(self, event: Any = None) -> Any:
        return event or _Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        """Nothing to leave."""


class _StreamContext:
    def __init__(self, _stream: Any) -> None:
        pass

    def __enter__(self) -> None:
        """Nothing to enter."""

    def __exit__(self, *_raised: object) -> None:
        """Nothing to leave."""


def _statistics(*_args: Any, **_kwargs: Any) -> dict[str, int]:
    return defaultdict(int)


def _pretend_cuda(torch: ModuleType) -> None:
    silent = (
        "init _lazy_init synchronize empty_cache ipc_collect reset_peak_memory_stats reset_max_memory_allocated seed"
        " reset_max_memory_cached reset_accumulated_memory_stats set_per_process_memory_fraction manual_seed _sleep"
        " manual_seed_all seed_all set_rng_state set_rng_state_all set_stream"
    )
    zeros = (
        "memory_allocated max_memory_allocated memory_reserved max_memory_reserved utilization temperature initial_seed"
        " current_blas_handle"
    )
    shared = {
        "is_available": lambda: count() > 0, "device_count": lambda: count(), "memory_stats": _statistics,
        "current_stream": lambda *_a, **_k: _Stream(),
    }  # fmt: skip
    host_state = torch.get_rng_state
    _set(
        torch.cuda,
        dict.fromkeys(silent.split(), _nothing)
        | dict.fromkeys(zeros.split(), _zero)
        | dict.fromkeys(("is_initialized", "is_bf16_supported", "is_tf32_supported", "can_device_access_peer"), _yes)
        | dict.fromkeys(("is_current_stream_capturing", "_is_in_bad_fork"), _no)
        | shared
        | {
            "current_device": lambda: current(), "set_device": _set_device,
            "_exchange_device": lambda index: choose(index),
            "_maybe_exchange_device": lambda index: choose(index), "device": _Device, "device_of": _DeviceOf,
            "_DeviceGuard": _Device, "get_device_name": lambda *_a: _H100.name, "get_arch_list": lambda: ["sm_90"],
            "get_device_capability": lambda *_a: (_H100.major, _H100.minor), "get_device_properties": lambda *_a: _H100,
            "mem_get_info": lambda *_a: (_MEMORY - (1 << 30), _MEMORY), "memory_summary": lambda *_a, **_k: "",
            "memory_snapshot": lambda *_a, **_k: [], "get_rng_state": lambda *_a: host_state(),
            "get_rng_state_all": lambda: [host_state()] * count(), "default_stream": lambda *_a: _Stream(),
            "Stream": _Stream, "Event": _Event, "stream": _StreamContext, "StreamContext": _StreamContext,
        },
    )  # fmt: skip
    torch.cuda.default_generators = (torch.default_generator,) * count()
    _set(torch.cuda.nccl, {"version": lambda: (2, 27, 3), "is_available": _yes})
    torch.version.cuda = "12.8"
    torch.backends.cuda.is_built = _another(_yes)
    torch.backends.cudnn.is_available = _another(_yes)
    torch.backends.cudnn.version = lambda: 90100
    _set(
        torch._C,
        {
            "_cuda_getDeviceCount": lambda: count(), "_cuda_getDevice": lambda: current(),
            "_cuda_setDevice": _set_device, "_cuda_getCurrentRawStream": _zero, "_cuda_getArchFlags": lambda: "sm_90",
            "_get_accelerator": lambda *_a: torch.device("cuda"), "_set_cached_tensors_enabled": _nothing,
            "_cuda_CUDAAllocator_AllocatorState": object,
        },
    )  # fmt: skip
    if hasattr(torch, "accelerator"):
        _set(
            torch.accelerator,
            dict.fromkeys(("synchronize", "set_stream", "empty_cache", "reset_peak_memory_stats"), _nothing)
            | dict.fromkeys(("memory_allocated", "max_memory_allocated"), _zero)
            | dict.fromkeys(("memory_reserved", "max_memory_reserved"), _zero)
            | shared
            | {
                "current_accelerator": lambda *_a, **_k: torch.device("cuda"), "device_index": _Device,
                "current_device_index": lambda: current(), "current_device_idx": lambda: current(),
                "set_device_index": _set_device, "set_device_idx": _set_device,
            },
        )  # fmt: skip


def _pretend_loading(torch: ModuleType) -> None:
    generator, load = torch.Generator, torch.load

    class Generator(generator):  # type: ignore[misc, valid-type]
        """A generator of the host, wherever it is said to be."""

        def __new__(cls, device: Any = "cpu") -> Any:
            if is_pretended(device):
                use(index_of(device))
                device = "cpu"
            return generator.__new__(cls, device)

    def loaded(file: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(map_location, str | torch.device) and is_pretended(map_location):
            use(index_of(map_location))
            map_location = "cpu"
        return load(file, None if isinstance(map_location, dict) else map_location, *args, **kwargs)

    torch.Generator = Generator
    torch.load = torch.serialization.load = loaded


def _pretend_data_parallel(torch: ModuleType) -> None:
    from torch.nn.parallel import comm

    def sent(tensor: Any, index: int) -> Any:
        use(index)
        return put(tensor.clone(), index)

    def added(inputs: Sequence[Any], destination: Any = None) -> Any:
        return sent(sum(inputs[1:], inputs[0]), index_of(destination))

    def scattered(tensor: Any, devices: Sequence[Any], chunk_sizes: Any = None, dim: int = 0, *_streams: Any) -> Any:
        parts = tensor.split(chunk_sizes, dim) if chunk_sizes else tensor.chunk(len(devices), dim)
        return tuple(sent(part, index_of(device)) for part, device in zip(parts, devices, strict=False))

    def gathered(tensors: Sequence[Any], dim: int = 0, destination: Any = None) -> Any:
        whole = torch.cat([one.reshape(1) if one.dim() == 0 else one for one in tensors], dim)
        return sent(whole, index_of(destination)) if is_pretended(destination) else whole

    _set(
        comm,
        {
            "broadcast": lambda tensor, devices: tuple(sent(tensor, index_of(one)) for one in devices),
            "broadcast_coalesced": lambda tensors, devices, *_size: [
                [sent(tensor, index_of(one)) for tensor in tensors] for one in devices
            ],
            "reduce_add": added,
            "reduce_add_coalesced": lambda inputs, destination=None, *_size: tuple(
                added(group, destination) for group in zip(*inputs, strict=True)
            ),
            "scatter": scattered,
            "gather": gathered,
        },
    )


def _pretend_ranks(torch: ModuleType) -> None:
    import torch.distributed.distributed_c10d as c10d

    begin, divide, ask, wait = c10d.init_process_group, c10d.new_group, c10d.get_backend, c10d.barrier
    asked: list[str] = []

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        device = kwargs.pop("device_id", None)
        if device is not None and is_pretended(device):
            use(index_of(device))
        kwargs.pop("pg_options", None)
        asked[:] = [str(backend or "nccl").lower()]
        return begin(_on_the_host(backend), *args, **kwargs)

    def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any) -> Any:
        kwargs.pop("device_id", None)
        kwargs.pop("pg_options", None)
        return divide(ranks, timeout, _on_the_host(backend) if backend else None, *args, **kwargs)

    def get_backend(*args: Any, **kwargs: Any) -> Any:
        found = ask(*args, **kwargs)
        return asked[0] if found == "gloo" and asked and "nccl" in asked[0] else found

    def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, **kwargs: Any) -> Any:
        for each in device_ids or ():
            use(index_of(each))
        found, torch._C._get_accelerator = torch._C._get_accelerator, lambda *_a: torch.device("cpu")
        try:
            return wait(group, async_op, **kwargs)
        finally:
            torch._C._get_accelerator = found

    for name, of_the_host in {
        "barrier": barrier,
        "init_process_group": init_process_group,
        "new_group": new_group,
        "get_backend": get_backend,
        "is_nccl_available": _another(_yes),
    }.items():
        _replace(getattr(c10d, name), of_the_host)


def _replace(function: Any, other: Any) -> None:
    """In every module of PyTorch's that has taken a function, another takes its place."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "torch":
            for attribute in [key for key, value in list(vars(module).items()) if value is function]:
                setattr(module, attribute, other)


def _on_the_host(backend: Any) -> Any:
    return "gloo" if backend is None or "nccl" in str(backend).lower() else backend
