"""Settings of torch and numpy that have a getter and a setter."""
# ruff: noqa: SLF001 - most of this state has no public getter, and some public setters change more than they are given

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Final

from sooner.warm.guards import Guard
from sooner.warm.torch_loaded import loaded_torch

Accessors = tuple[Callable[[], Any], Callable[[Any], object]]
"""How one setting is read and how it is set."""

_TINY: Final = sys.float_info.min
_AUTOCAST_DEVICES: Final = ("cpu", "cuda")
_ATTENTION: Final = ("flash", "fa3", "mem_efficient", "math", "overrideable", "cudnn")
_FLAGS: Final = (
    *("cudnn_enabled", "cudnn_benchmark", "cudnn_deterministic", "miopen_immediate", "nnpack_enabled", "qengine"),
    *("mkldnn_enabled", "mkldnn_deterministic", "linalg_preferred_backend", "blas_preferred_backend"),
    *("cublas_allow_fp16_reduced_precision_reduction", "cublas_allow_bf16_reduced_precision_reduction"),
    *("cublas_allow_fp16_accumulation", "math_sdp_allow_fp16_bf16_reduction"),
)
_CONTRADICTORY: Final = ("cudnn_allow_tf32", "cublas_allow_tf32", "onednn_allow_tf32", "float32_matmul_precision")
"""Old switches, whose getters raise while newer ones contradict them: that is a state too."""
_PRECISIONS: Final = (
    ("generic", "all"),
    *((backend, "all") for backend in ("cuda", "mkldnn")),
    *((backend, operation) for backend in ("cuda", "mkldnn") for operation in ("matmul", "conv", "rnn")),
)
"""The tree of float32 precisions, parents first: a child that was never set reads as its parent."""


class Settings:
    """A guard over settings of a module that the suite may have imported or not.

    Args:
        name: What is guarded, for people.
        table: Gives the accessors of the settings, in the order in which they are restored.
        module: Gives the module, or None while it is not imported.
    """

    def __init__(
        self, name: str, table: Callable[[Any], Iterable[Accessors]], module: Callable[[], Any] = loaded_torch
    ) -> None:
        self.name = name
        self._table = table
        self._module = module
        self._seen: Any = None
        self._accessors: tuple[Accessors, ...] = ()
        self._getters: tuple[Callable[[], Any], ...] = ()

    def capture(self) -> list[Any] | None:
        """All values; None while the module is not imported."""
        module = self._module()
        if module is None:
            return None
        if module is not self._seen:
            self._accessors = tuple(filter(_works, self._table(module)))
            self._getters = tuple(get for get, _ in self._accessors)
            self._seen = module
        return [get() for get in self._getters]

    def restore(self, state: list[Any] | None) -> bool:
        """Set what differs and read everything back.

        Raises:
            RuntimeError: The module is another one now, or a value does not go back.
        """
        if state is None:
            return False
        if self._module() is not self._seen:
            raise RuntimeError("the module was removed, or imported anew")
        if [get() for get in self._getters] == state:
            return False
        for (get, put), before in zip(self._accessors, state, strict=True):
            if get() != before:
                put(before)
        if (now := [get() for get in self._getters]) != state:
            raise RuntimeError(f"{now} instead of {state}")
        return True


def _works(accessors: Accessors) -> bool:
    """Whether this version of the module has the setting."""
    try:
        accessors[0]()
    except Exception:  # noqa: BLE001 - whatever a getter that is not meant for this build raises
        return False
    return True


def _named(core: Any, getter: str, setter: str) -> Iterator[Accessors]:
    """The accessors of these names, where there are such."""
    get, put = getattr(core, getter, None), getattr(core, setter, None)
    if get and put:
        yield get, lambda value: put(*value) if isinstance(value, tuple) else put(value)


def _read_only(get: Callable[[], Any], what: str) -> Accessors:
    def refuse(_value: Any) -> None:
        raise RuntimeError(f"{what} cannot be set back")

    return get, refuse


def _defaults(torch: Any) -> Iterator[Accessors]:
    yield torch.get_default_dtype, torch.set_default_dtype
    yield torch.get_num_threads, torch.set_num_threads
    yield torch.is_warn_always_enabled, torch.set_warn_always
    # torch has no getter for this switch of the processor, but Python's own numbers obey it too.
    yield lambda: _TINY / 2 == 0.0, torch.set_flush_denormal
    yield lambda: torch.hub._hub_dir, lambda path: setattr(torch.hub, "_hub_dir", path)


def _gradients(torch: Any) -> Iterator[Accessors]:
    # These two last as long as an object that only its owner has.
    yield _read_only(torch.is_inference_mode_enabled, "inference mode")
    yield _read_only(torch._C._is_torch_function_enabled, "the switch of torch functions")
    yield torch.is_grad_enabled, torch.set_grad_enabled
    yield (
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda value: torch.autograd.set_detect_anomaly(*value),
    )
    for switch in ("multithreading", "view_replay", "fwd_grad"):
        yield from _named(torch._C, f"_is_{switch}_enabled", f"_set_{switch}_enabled")


def _autocast(torch: Any) -> Iterator[Accessors]:
    def read(device: str) -> tuple[Any, Any]:
        return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)

    def put(device: str, value: tuple[Any, Any]) -> None:
        torch.set_autocast_enabled(device, value[0])
        torch.set_autocast_dtype(device, value[1])

    def nesting() -> Any:
        torch.autocast_increment_nesting()
        return torch.autocast_decrement_nesting()

    def set_nesting(depth: int) -> None:
        while nesting() > depth:
            torch.autocast_decrement_nesting()
        torch.clear_autocast_cache()  # holds casts of weights, made in modes that the test left entered

    for device in _AUTOCAST_DEVICES:
        yield partial(read, device), partial(put, device)
    yield torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled
    yield nesting, set_nesting


def _determinism(torch: Any) -> Iterator[Accessors]:
    core, fill = torch._C, "deterministic_fill_uninitialized_memory"
    yield (
        lambda: (core._get_deterministic_algorithms(), core._get_deterministic_algorithms_warn_only()),
        # The public setter changes inductor's configuration too.
        lambda value: core._set_deterministic_algorithms(value[0], warn_only=value[1]),
    )
    yield from _named(core, f"_get_{fill}", f"_set_{fill}")


def _backends(torch: Any) -> Iterator[Accessors]:
    core = torch._C
    for flag in _FLAGS:
        yield from _named(core, f"_get_{flag}", f"_set_{flag}")
    for flag in _CONTRADICTORY:
        for get, put in _named(core, f"_get_{flag}", f"_set_{flag}"):
            yield partial(_or_contradictory, get), put
    for kernel in _ATTENTION:
        yield from _named(core, f"_get_{kernel}_sdp_enabled", f"_set_sdp_use_{kernel}")
    yield from _named(core, "_get_sdp_priority_order", "_set_sdp_priority_order")
    if hasattr(core, "_get_fp32_precision_getter"):
        for place in _PRECISIONS:
            yield partial(core._get_fp32_precision_getter, *place), partial(core._set_fp32_precision_setter, *place)


def _or_contradictory(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except RuntimeError:
        return "contradictory"


def _printing(torch: Any) -> Iterator[Accessors]:
    options = vars(torch._tensor_str.PRINT_OPTS)  # set_printoptions cannot take back all that it set
    yield lambda: dict(options), options.update


def _processes(torch: Any) -> Iterator[Accessors]:
    module = torch.multiprocessing
    yield module.get_sharing_strategy, module.set_sharing_strategy
    yield partial(module.get_start_method, allow_none=True), partial(module.set_start_method, force=True)


def _numpy_settings(numpy: Any) -> Iterator[Accessors]:
    yield numpy.get_printoptions, lambda options: numpy.set_printoptions(**options)
    yield numpy.geterr, lambda errors: numpy.seterr(**errors)
    yield numpy.geterrcall, numpy.seterrcall


def settings() -> list[Guard]:
    """All of them, in the order of their restoration."""
    return [
        Settings("torch gradients", _gradients),
        Settings("torch autocast", _autocast),
        Settings("torch defaults", _defaults),
        Settings("torch determinism", _determinism),
        Settings("torch backends", _backends),
        Settings("torch print options", _printing),
        Settings("torch processes", _processes),
        Settings("numpy settings", _numpy_settings, lambda: sys.modules.get("numpy")),
    ]
