"""JAX that takes N devices of the host for GPUs, and a record of those that each test puts something on or runs on.

Work is done by XLA for the host, once on each device, so meshes, shardings and collectives are real. Kernels that only
a GPU has fail, and say nothing.
"""

import contextlib
import functools
import importlib
import os
import re
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

from pretended_devices import ask_for_host, count, use, wake

_FLAG: Final = re.compile(r"--xla_force_host_platform_device_count=\d+")
_GPUS: Final = frozenset({"gpu", "cuda"})


def prepare() -> None:
    """Before JAX is imported: its host has as many devices as are pretended, whatever the suite asks for.

    Where none is, the host is left as it is.
    """
    os.environ["JAX_PLATFORMS"] = "cpu"
    if count():
        flags = _FLAG.sub("", os.environ.get("XLA_FLAGS", ""))
        os.environ["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count={count()}"


def install(_jax: Any) -> None:
    """After JAX is imported: its default platform says that it is a GPU's, and what runs is written down."""
    if not count():
        return
    prepare()
    _jax.config.update("jax_num_cpu_devices", -1)
    update = _jax.config.update
    _jax.config.update = lambda name, value: None if name == "jax_num_cpu_devices" else update(name, value)
    _jax.devices()  # from now on nobody changes how many there are
    from jax._src import xla_bridge
    from jax._src.interpreters import pxla
    from jax._src.lib import xla_client

    for name in ("get_backend", "devices", "local_devices", "device_count", "local_device_count"):
        _rename_platform(xla_bridge, name)
    xla_bridge.default_backend = lambda: "gpu"
    _jax.default_backend = xla_bridge.default_backend
    for name in ("devices", "local_devices", "device_count", "local_device_count"):
        setattr(_jax, name, getattr(xla_bridge, name))
    run = pxla.ExecuteReplicated.__call__

    @functools.wraps(run)
    def watched(self: Any, *args: Any) -> Any:
        _used(self._local_devices)
        return run(self, *args)

    pxla.ExecuteReplicated.__call__ = watched
    for module in (xla_client, pxla):
        _watch(module, "batched_device_put", 3)
    _watch(xla_client, "batched_copy_array_to_devices_with_sharding", 1)
    with contextlib.suppress(ImportError):
        test_util: Any = importlib.import_module("jax._src.test_util")
        test_util.device_under_test = lambda: "gpu"
        test_util.is_device_cuda = lambda: True
        test_util.request_cpu_devices = lambda _count: None


def _rename_platform(module: ModuleType, name: str) -> None:
    asked = getattr(module, name)

    @functools.wraps(asked)
    def renamed(*args: Any, **kwargs: Any) -> Any:
        if "cpu" in args or "cpu" in kwargs.values():
            ask_for_host()
        elif module.__name__ == "jax._src.xla_bridge" and name != "get_backend":
            wake()
        known = [_host_of(word) for word in args]
        return asked(*known, **{key: _host_of(word) for key, word in kwargs.items()})

    for attribute in ("cache_clear", "cache_info"):
        if hasattr(asked, attribute):
            setattr(renamed, attribute, getattr(asked, attribute))
    setattr(module, name, renamed)


def _host_of(platform: object) -> object:
    return "cpu" if isinstance(platform, str) and platform in _GPUS else platform


def _watch(module: ModuleType, name: str, place: int) -> None:
    put: Callable[..., Any] | None = getattr(module, name, None)
    if put is None:
        return

    def watched(*args: Any, **kwargs: Any) -> Any:
        given = args[place] if len(args) > place else kwargs.get("devices", ())
        _used(each for one in given for each in (one if isinstance(one, Iterable) else [one]))
        return put(*args, **kwargs)

    setattr(module, name, watched)


def _used(devices: Iterable[Any]) -> None:
    for device in devices:
        use(device.id)
