"""Makes torch, CuPy and JAX say that so many devices are visible, in this process; standard library only.

The libraries are patched when the project imports them; nothing is imported for their sake.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType, SimpleNamespace
from typing import Any

_size = 0


def fake(size: int) -> None:
    """From now on so many devices are visible."""
    global _size  # noqa: PLW0603 - one number for the whole process, read by all that is patched
    _size = size
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name, patch in _PATCHES.items():
        if name in sys.modules:
            patch(sys.modules[name])


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself; what the others find is patched after it has been executed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in _PATCHES:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is not None and spec.loader is not None:
                _wrap(spec.loader, _PATCHES[name])
                return spec  # type: ignore[no-any-return]
        return None


def _wrap(loader: Any, patch: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        patch(module)

    loader.exec_module = exec_module


def _count(*_args: Any, **_kwargs: Any) -> int:
    return _size


def _any(*_args: Any, **_kwargs: Any) -> bool:
    return _size > 0


def _properties(*_args: Any, **_kwargs: Any) -> Any:
    if _size == 0:
        raise RuntimeError("No CUDA GPUs are available (sooner: a faked device count of 0)")
    return SimpleNamespace(
        name="faked", major=9, minor=0, total_memory=80 * 2**30, multi_processor_count=132, gcnArchName="", uuid="faked"
    )


def _capability(*_args: Any, **_kwargs: Any) -> tuple[int, int]:
    _properties()
    return 9, 0


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


def _patch_torch(module: ModuleType) -> None:
    for name in ("cuda", "accelerator"):
        part = getattr(module, name, None)
        if part is not None:
            _patch_devices(part)
    core = getattr(module, "_C", None)
    if core is not None and hasattr(core, "_cuda_getDeviceCount"):  # by it torch tells whether it was built for CUDA
        _set(core, "_cuda_getDeviceCount", _count)
    distributed = getattr(module, "distributed", None)
    for part in (distributed, getattr(distributed, "distributed_c10d", None)):
        if part is not None:
            _set(part, "is_nccl_available", lambda: True)  # a build for the host is asked about one for devices
    accelerator = getattr(module, "accelerator", None)
    if accelerator is not None and hasattr(accelerator, "current_accelerator"):
        device = getattr(module, "device")  # noqa: B009 - the module is not known to the type checker
        _set(accelerator, "current_accelerator", lambda *_args, **_kwargs: device("cuda") if _size else None)

    if _size:
        _compute_on_the_host(module)


def _compute_on_the_host(torch: Any) -> None:
    """Tensors that a module makes on a device while it is imported, or in a guard, are made on the host."""
    cudnn = getattr(getattr(torch, "backends", None), "cudnn", None)
    for name in ("is_available", "is_acceptable"):
        if hasattr(cudnn, name):
            _set(cudnn, name, _any)
    for name in ("init", "_lazy_init", "synchronize"):
        if hasattr(getattr(torch, "cuda", None), name):
            _set(torch.cuda, name, _nothing)
    mode = getattr(getattr(torch, "overrides", None), "TorchFunctionMode", None)
    if mode is None:
        return  # an old one, or a stand-in

    def on_host(value: Any) -> Any:
        is_device = isinstance(value, (str, torch.device)) and str(value).partition(":")[0] in ("cuda", "hip")
        return "cpu" if is_device else value

    class OnHost(mode):  # type: ignore[misc, valid-type]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = {name: on_host(each) for name, each in (kwargs or {}).items()}
            name = getattr(func, "__name__", "")
            if name == "cuda":
                return args[0]
            return func(*(map(on_host, args) if name == "to" else args), **given)

    OnHost().__enter__()  # for the rest of the process, which is thrown away


def _patch_devices(part: Any) -> None:
    fakes: dict[str, Callable[..., Any]] = {
        "device_count": _count,
        "is_available": _any,
        "_device_count_nvml": _count,
        "get_device_properties": _properties,
        "get_device_capability": _capability,
        "get_device_name": lambda *_args, **_kwargs: _properties().name,
        "is_bf16_supported": _any,
        "set_device": _nothing,
        "current_device": lambda: 0,
        "mem_get_info": lambda *_args: (80 * 2**30, 80 * 2**30),
    }
    for name, function in fakes.items():
        if hasattr(part, name):
            _set(part, name, function)


def _patch_cupy(module: ModuleType) -> None:
    runtime = getattr(getattr(module, "cuda", None), "runtime", None)
    if runtime is not None:
        _set(runtime, "getDeviceCount", _count)


def _patch_jax(module: ModuleType) -> None:
    def devices(*_args: Any, **_kwargs: Any) -> list[Any]:
        return [SimpleNamespace(id=i, platform="gpu" if _size else "cpu") for i in range(_size or 1)]

    for name in ("device_count", "local_device_count"):
        _set(module, name, lambda *_args, **_kwargs: _size or 1)
    for name in ("devices", "local_devices"):
        _set(module, name, devices)
    _set(module, "default_backend", lambda: "gpu" if _size else "cpu")


def _set(owner: Any, name: str, function: Callable[..., Any]) -> None:
    def own(*args: Any, **kwargs: Any) -> Any:  # each name has one of its own: torch's compiler tells them apart by it
        return function(*args, **kwargs)

    try:
        setattr(owner, name, own)
    except (AttributeError, TypeError):
        return


_PATCHES: dict[str, Callable[[ModuleType], None]] = {
    "torch": _patch_torch,
    "cupy": _patch_cupy,
    "jax": _patch_jax,
}
