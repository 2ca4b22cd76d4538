"""Guards and witnesses over what numpy and torch hold in a process.

Nothing here imports them: every guard looks into `sys.modules` when it captures, and does nothing while the suite has
not imported what it guards. What was imported *between* capture and restore has no state to compare with: guards then
leave everything as it is (documented defaults would be a guess: a library may have changed them while it was imported),
and witnesses count from nothing, because nothing can have been registered in a module that was not there.

Settings that a version of torch does not have are left out the first time torch is seen. Every restoration is read
back; what does not read as before raises, so that the process is discarded.

Order of restoration, and why: what the standard library holds; modes (everything after them calls torch, which must
not run through a mode that a test left); settings; names in modules; compiled code and its configuration; device and
streams; last all random generators, because anything before may draw from them.

Not seen: a list or dictionary in a configuration that was changed in place (torch's own hash does not see it either),
and every name in torch's modules that is no function, class or module.
"""
# ruff: noqa: SLF001 - most of this state has no public getter, and some public setters change more than they are given

import contextlib
import ctypes
import gc
import itertools
import re
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sooner.warm.guards import Guard, GuardSet, Witness, standard_guards, standard_witnesses

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
_CONFIGS: Final = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")
_SAMPLE: Final = (
    *("torch", "torch.autograd", "torch.cuda", "torch.distributed", "torch.linalg", "torch.nn", "torch.nn.functional"),
    *("torch.nn.init", "torch.utils.data", "torch:Tensor", "torch.nn:Module", "torch.optim:Optimizer"),
    *("torch.autograd:Function", "torch.distributions:Distribution"),
)
"""Modules, and classes as `module:class`, in which tests replace things: the whole of torch would take 6 ms."""
_VERSION_OFFSET: Final = 3 * ctypes.sizeof(ctypes.c_void_p)
_TWISTER_BYTES: Final = 624 * 4 + 4
"""Key and position of a Mersenne twister, as numpy keeps them."""


def _torch() -> Any:
    """The real torch if the suite imported it; None where it did not, or where a stand-in has its place."""
    core, torch = sys.modules.get("torch._C"), sys.modules.get("torch")
    return torch if core is not None and getattr(torch, "_C", None) is core else None


def _cuda() -> Any:
    """torch.cuda, where the device was initialised."""
    cuda = sys.modules.get("torch.cuda")
    return cuda if cuda is not None and cuda.is_initialized() else None


class Settings:
    """A guard over settings of a module that the suite may have imported or not.

    Args:
        name: What is guarded, for people.
        table: Gives the accessors of the settings, in the order in which they are restored.
        module: Gives the module, or None while it is not imported.
    """

    def __init__(
        self, name: str, table: Callable[[Any], Iterable[Accessors]], module: Callable[[], Any] = _torch
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


class Modes:
    """The stacks of function modes and dispatch modes, the default device among them, and levels of transformations."""

    name = "torch modes"

    def capture(self) -> tuple[Any, ...] | None:
        """What is on the stacks; None while torch is not imported."""
        if (torch := _torch()) is None:
            return None
        core, forward = torch._C, torch.autograd.forward_ad
        return (
            [core._get_function_stack_at(i) for i in range(core._len_torch_function_stack())],
            [core._get_dispatch_stack_at(i) for i in range(core._len_torch_dispatch_stack())],
            getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None),
            getattr(sys.modules.get("torch.utils._device"), "CURRENT_DEVICE", None),
            core._autograd._top_saved_tensors_default_hooks(True),
            forward._current_level,
            core._functorch.maybe_current_level(),
        )

    def restore(self, state: tuple[Any, ...] | None) -> bool:
        """Take off what is new.

        Raises:
            RuntimeError: The torch is another one, or a mode has its own way of ending, or something was taken away.
        """
        if state is None or (now := self.capture()) == state:
            return False
        if now is None:
            raise RuntimeError("torch was removed")
        torch = _torch()
        functions, dispatches, context, device, hooks, level, _ = state
        _end_dispatch_modes(torch, len(dispatches))
        _set_function_modes(torch, functions)
        torch._GLOBAL_DEVICE_CONTEXT.device_context = context
        if devices := sys.modules.get("torch.utils._device"):
            vars(devices)["CURRENT_DEVICE"] = device
        _lower_levels(torch, hooks, level)
        if self.capture() != state:
            raise RuntimeError("a mode stays, or is missing")
        return True


def _end_dispatch_modes(torch: Any, count: int) -> None:
    core, plain = torch._C, torch.utils._python_dispatch.TorchDispatchMode.__exit__
    while (top := core._len_torch_dispatch_stack()) > count:
        mode = core._get_dispatch_stack_at(top - 1)
        _refuse_own_end(mode, plain)
        mode.__exit__(None, None, None)


def _set_function_modes(torch: Any, before: list[Any]) -> None:
    """Build the stack anew: entering a device puts it at the bottom, which nothing but this takes back exactly."""
    core, devices = torch._C, sys.modules.get("torch.utils._device")
    plain = (
        torch.overrides.TorchFunctionMode.__exit__,
        getattr(getattr(devices, "DeviceContext", None), "__exit__", 0),
    )
    while core._len_torch_function_stack():
        mode = core._pop_torch_function_stack()
        if not any(mode is one for one in before):
            _refuse_own_end(mode, *plain)
    for mode in before:
        core._push_on_torch_function_stack(mode)


def _refuse_own_end(mode: Any, *plain: Any) -> None:
    """Raise for a mode that does more than end when it is left: how much, only its owner knows."""
    if type(mode).__exit__ not in plain:
        raise RuntimeError(f"{type(mode).__name__} was left entered")


def _lower_levels(torch: Any, hooks: Any, level: int) -> None:
    forward, core = torch.autograd.forward_ad, torch._C._autograd
    while forward._current_level > level:
        forward.exit_dual_level(level=forward._current_level)
    while (top := core._top_saved_tensors_default_hooks(True)) is not None and top != hooks:
        core._pop_saved_tensors_default_hooks()


class Registries:
    """Hooks on all modules and optimizers, and what files may hold: registered once, they apply to everything."""

    name = "torch registries"

    def __init__(self) -> None:
        self._places: list[tuple[dict[str, Any], str]] = []

    def capture(self) -> tuple[int, list[dict[Any, Any] | None]] | None:
        """The number of imported modules, and a copy of each registry that is not empty; None without torch."""
        if (torch := _torch()) is None:
            return None
        self._places = self._places or list(_registries(torch))
        return len(sys.modules), [_entries(names[name]) if names[name] else None for names, name in self._places]

    def restore(self, state: tuple[int, list[dict[Any, Any] | None]] | None) -> bool:
        """Remove what is new, unless the import of its module registered it, and bring back what is missing."""
        if state is None:
            return False
        count, copies = state
        changed = False
        for (names, name), before in zip(self._places, copies, strict=True):
            if names[name] or before:
                changed |= _bring_back(names[name], before or {}, count)
        return changed


def _bring_back(registry: Any, before: Mapping[Any, Any], count: int) -> bool:
    now = _entries(registry)
    if now == before:
        return False
    new = _imported_since(count)
    wanted = {**before, **{key: value for key, value in now.items() if _came_with(value, new)}}
    if wanted == now:
        return False
    registry.clear()
    registry.update(wanted)
    return True


def _registries(torch: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The namespaces and names of all registries."""
    safe = getattr(sys.modules.get("torch._weights_only_unpickler"), "__dict__", {})
    if "_marked_safe_globals_set" in safe:
        yield safe, "_marked_safe_globals_set"
    for module in (torch.nn.modules.module, sys.modules.get("torch.optim.optimizer", torch)):
        names = vars(module)
        yield from ((names, name) for name in names if name.startswith("_global_") and isinstance(names[name], dict))


def _entries(registry: Any) -> dict[Any, Any]:
    return dict(registry) if isinstance(registry, dict) else {one: one for one in registry}


def _came_with(value: Any, new: set[str]) -> bool:
    """Whether something came with the import of the new modules; what is torch's own then came with its lazy parts."""
    return bool(new) and _is_of(_home(value[0] if isinstance(value, tuple) else value), new)


class Names:
    """Functions and classes that a test replaced in a sample of torch's modules, or put there."""

    name = "names in torch"

    def __init__(self) -> None:
        self._modules = 0
        self._owners: list[tuple[Any, Callable[[], object]]] = []
        self._versions: list[object] = []
        self._copies: list[dict[str, Any]] = []

    def capture(self) -> tuple[Any, ...] | None:
        """The number of imported modules, the sample, its versions and copies; None while torch is not imported.

        Copies are kept until a version changes; they would take 50 us a test.
        """
        if _torch() is None:
            return None
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            self._owners = [(owner, _versions(owner)) for owner in map(_of_sample, _SAMPLE) if owner is not None]
            self._versions = []
        versions = [version() for _, version in self._owners]
        if versions != self._versions:
            self._versions, self._copies = versions, [dict(vars(owner)) for owner, _ in self._owners]
        return self._modules, self._owners, self._versions, self._copies

    def restore(self, state: tuple[Any, ...] | None) -> bool:
        """Put back what was rebound or deleted, remove what a test added.

        What a module that the test imported did stays: it does so once in a process, and counts on it.
        """
        if state is None:
            return False
        count, owners, versions, copies = state
        if [version() for _, version in owners] == versions:
            return False
        new, changed = _imported_since(count), False
        for (owner, _), before in zip(owners, copies, strict=True):
            changed |= _put_back(owner, before, dict(vars(owner)), new)
        return changed


def _of_sample(place: str) -> Any:
    module, _, name = place.partition(":")
    found = sys.modules.get(module)
    return getattr(found, name, None) if name else found


def _versions(owner: Any) -> Callable[[], object]:
    """A function whose value changes whenever a name of a module or class is set or deleted.

    CPython 3.11 and 3.12 count all changes of dictionaries, in the fourth word of each (PEP 509, withdrawn by PEP 699).
    Elsewhere every call gives another value.
    """
    if not _HAS_VERSIONS:
        return object
    names = vars(owner)
    if isinstance(names, types.MappingProxyType):
        (names,) = gc.get_referents(names)
    word = ctypes.c_uint64.from_address(id(names) + _VERSION_OFFSET)
    return lambda: word.value


def _has_versions() -> bool:
    """Whether this interpreter counts as expected."""
    if sys.implementation.name != "cpython" or sys.version_info >= (3, 13):
        return False
    names: dict[str, int] = {}
    word = ctypes.c_uint64.from_address(id(names) + _VERSION_OFFSET)
    seen = set()
    for value in range(2):
        names["name"] = value
        seen |= {word.value, word.value}
    return len(seen) == len(range(2))


_HAS_VERSIONS: Final = _has_versions()


def _put_back(owner: Any, before: Mapping[str, Any], now: Mapping[str, Any], new: set[str]) -> bool:
    changed = False
    for name, value in before.items():
        if now.get(name) is not value and _is_definition(value) and not _came_with(now.get(name), new):
            setattr(owner, name, value)
            changed = True
    for name in now.keys() - before.keys():
        value = now[name]
        if _is_definition(value) and not isinstance(value, types.ModuleType) and not _is_of(_home(value), new):
            delattr(owner, name)
            changed = True
    return changed


def _is_definition(value: Any) -> bool:
    """What a test replaces and torch does not: torch keeps numbers, flags and caches in its modules too."""
    return callable(value) or isinstance(value, types.ModuleType | property | classmethod | staticmethod)


def _home(value: Any) -> str:
    """The module whose code defined a value: `__module__` of a wrapped function is that of its original."""
    place = getattr(getattr(value, "__func__", value), "__globals__", None)
    return str(place.get("__name__", "") if place else getattr(value, "__module__", ""))


def _is_of(module: str, imported: set[str]) -> bool:
    """Whether a module is torch's own or among those that a test imported."""
    return module in imported or module.partition(".")[0] == "torch"


def _imported_since(count: int) -> set[str]:
    """Modules imported since there were `count`: the dictionary of modules keeps their order."""
    return set(itertools.islice(reversed(sys.modules), max(0, len(sys.modules) - count)))


class Compiler:
    """Configuration of dynamo, inductor and functorch, and the code that dynamo compiled."""

    name = "torch.compile"

    def __init__(self) -> None:
        self._copies: dict[str, tuple[bytes, dict[str, Any]]] = {}

    def capture(self) -> tuple[dict[str, tuple[bytes, dict[str, Any]]], int]:
        """A hash and a copy of each configuration that is imported, and how many frames were compiled.

        A copy takes 100 us or more, the hash one: copies are kept until somebody sets something.
        """
        found = {}
        for name in _CONFIGS:
            if config := sys.modules.get(name):
                if _is_dirty(config) or name not in self._copies or self._copies[name][0] != config.get_hash():
                    self._copies[name] = config.get_hash(), config.get_config_copy()
                found[name] = self._copies[name]
        return found, _compiled_frames()

    def restore(self, state: tuple[dict[str, tuple[bytes, dict[str, Any]]], int]) -> bool:
        """Set changed keys back, then forget compiled code if there is new one or it was made under other keys."""
        copies, frames = state
        compiled, changed = _compiled_frames() != frames, False
        for name, (digest, copy) in copies.items():
            config: Any = sys.modules.get(name)
            # Compiling asks for the hash, which then forgets that a key outside of it was set.
            if compiled or _is_dirty(config) or config.get_hash() != digest:
                changed |= _set_back(config, copy)
        if (compiled or changed) and (dynamo := sys.modules.get("torch._dynamo")):
            dynamo.reset()
        return compiled or changed


def _is_dirty(config: Any) -> bool:
    """Whether something was set since the hash was last asked for; keys that are not hashed count too."""
    variable = getattr(config, "_hash_dirty_var", None)
    return bool(variable.get() if variable is not None else getattr(config, "_is_dirty", True))


def _set_back(config: Any, copy: Mapping[str, Any]) -> bool:
    now = config.get_config_copy()
    changed = {key: value for key, value in copy.items() if now.get(key, copy) != value}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it was the test that set a deprecated key
        for key, value in changed.items():
            setattr(config, key, value)
    config.get_hash()
    return bool(changed)


def _compiled_frames() -> int:
    """How many frames dynamo has looked at since its last reset; 0 while it is not imported: it cannot have any."""
    return int(getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COUNTER", 0))


class CudaPlace:
    """The current CUDA device, and the current stream of each."""

    name = "CUDA device and streams"

    def capture(self) -> tuple[int, list[Any]] | None:
        """None while the device is not initialised."""
        if (cuda := _cuda()) is None:
            return None
        return cuda.current_device(), [cuda.current_stream(i) for i in range(cuda.device_count())]

    def restore(self, state: tuple[int, list[Any]] | None) -> bool:
        """Select them again."""
        if state is None or self.capture() == state:
            return False
        device, streams = state
        for stream in streams:
            _cuda().set_stream(stream)
        _cuda().set_device(device)
        return True


@dataclass(frozen=True, slots=True)
class Generators:
    """A guard over torch's random generators, where there are such."""

    name: str
    find: Callable[[], Iterable[Any] | None]

    def capture(self) -> list[tuple[bytes, Any]] | None:
        """Their states, each with its bytes: comparing those takes a fifth of comparing tensors."""
        if (generators := self.find()) is None:
            return None
        with _outside_modes(_torch()):
            tensors = [generator.get_state() for generator in generators]
            return [(ctypes.string_at(tensor.data_ptr(), tensor.nbytes), tensor) for tensor in tensors]

    def restore(self, state: list[tuple[bytes, Any]] | None) -> bool:
        """Set them back."""
        if state is None or (now := self.capture()) is None:
            return False
        changed = False
        with _outside_modes(_torch()):
            for generator, (before, tensor), (after, _) in zip(self.find() or (), state, now, strict=True):
                if after != before:
                    generator.set_state(tensor)
                    changed = True
        return changed


_NOTHING: Final = contextlib.nullcontext()


def _outside_modes(torch: Any) -> contextlib.AbstractContextManager[Any]:
    """States of generators are tensors: they are made and set outside of modes that span tests."""
    core = torch._C
    if not core._len_torch_dispatch_stack() and not core._len_torch_function_stack():
        return _NOTHING
    stack = contextlib.ExitStack()
    stack.enter_context(core.DisableTorchFunction())
    stack.enter_context(core._DisableTorchDispatch())
    return stack


class NumpyRandom:
    """numpy's global generator.

    Its full state takes 30 us to read, the memory behind it less than one: it is read in full only after a change. A
    second number that the generator keeps for the next normal deviate is in the full state only.
    """

    name = "numpy random"

    def __init__(self) -> None:
        self._known: tuple[bytes, Any] = b"", None

    def capture(self) -> tuple[bytes, Any] | None:
        """Its memory and its state; None while numpy.random is not imported."""
        if (random := sys.modules.get("numpy.random")) is None:
            return None
        memory = _memory(random)
        if not memory or self._known[0] != memory:
            self._known = memory, random.get_state(legacy=False)
        return self._known

    def restore(self, state: tuple[bytes, Any] | None) -> bool:
        """Set it back; raises where another kind of generator took its place."""
        if state is None:
            return False
        random: Any = sys.modules["numpy.random"]
        before, full = state
        if (before and _memory(random) == before) or _plain(random.get_state(legacy=False)) == _plain(full):
            return False
        random.set_state(full)
        return True


def _memory(random: Any) -> bytes:
    """The words of the Mersenne twister; empty where another generator took its place."""
    generator = random.mtrand._rand._bit_generator
    if type(generator).__name__ != "MT19937":
        return b""
    return ctypes.string_at(generator.ctypes.state_address, _TWISTER_BYTES)


def _plain(state: Mapping[str, Any]) -> Any:
    """The same state without arrays, which have no truth."""
    return {
        key: _plain(value) if isinstance(value, dict) else value.tobytes() if hasattr(value, "tobytes") else value
        for key, value in state.items()
    }


@dataclass(frozen=True, slots=True)
class Watch:
    """A witness that compares what it reads before and after a test."""

    name: str
    read: Callable[[], Any]
    judge: Callable[[Any, Any], str]
    """Gets both, says why the process must not run another test."""

    def capture(self) -> Any:
        """What is read now."""
        return self.read()

    def doubt(self, state: Any) -> str:
        """What the judge says."""
        return self.judge(state, self.read())


def _cuda_error() -> str:
    """What waiting for the device raises. Devices without a context are not touched: that would make one."""
    if (cuda := _cuda()) is None:
        return ""
    has_context = getattr(sys.modules.get("torch._C"), "_cuda_hasPrimaryContext", lambda _device: True)
    try:
        for device in filter(has_context, range(cuda.device_count())):
            cuda.synchronize(device)
    except Exception as error:  # noqa: BLE001 - whatever a driver raises
        return f"a CUDA device is in error: {str(error).partition(chr(10))[0]}"
    return ""


def _process_groups() -> frozenset[int]:
    world = getattr(sys.modules.get("torch.distributed.distributed_c10d"), "_world", None)
    return frozenset(map(id, world.pg_map)) if world is not None else frozenset()


def _works_left() -> int:
    size = getattr(sys.modules.get("torch._C._distributed_c10d"), "_get_work_registry_size", None)
    return int(size()) if size else 0


def _set_once() -> tuple[int, str] | None:
    """Threads between operations, and the name of the private backend."""
    torch = _torch()
    return None if torch is None else (torch.get_num_interop_threads(), torch._C._get_privateuse1_backend_name())


def _judge_set_once(before: tuple[int, str] | None, now: tuple[int, str] | None) -> str:
    if before in (None, now) or now is None:
        return ""
    return f"inter-op threads and private backend are {now}, were {before}"


def _tree_nodes() -> tuple[int, frozenset[type]]:
    """The number of imported modules, and the classes registered as nodes of pytrees."""
    return len(sys.modules), frozenset(getattr(sys.modules.get("torch.utils._pytree"), "SUPPORTED_NODES", ()))


def _judge_tree_nodes(before: tuple[int, frozenset[type]], now: tuple[int, frozenset[type]]) -> str:
    if before[1] >= now[1]:
        return ""
    imported = _imported_since(before[0])
    if not before[1]:
        imported |= sys.stdlib_module_names  # importing torch registers its own, and the containers of the library
    left = sorted(cls.__name__ for cls in now[1] - before[1] if not _is_of(cls.__module__, imported))
    return f"registered {len(left)} pytree nodes: {', '.join(left[:3])}" if left else ""


class Operators:
    """Operators, and implementations of operators, that a test registered: all belong to some torch.library.Library.

    Each library has a finaliser. Finalisers are numbered, so those of a test are the ones with a higher number.
    """

    name = "torch operators"

    def capture(self) -> tuple[int, int]:
        """The number of imported modules, and the number of the last finaliser."""
        return len(sys.modules), next((info.index for info in _finalisers()), -1)

    def doubt(self, state: tuple[int, int]) -> str:
        """Libraries that are new, are not garbage, and were not made by the import of a module."""
        if not self._left(state):
            return ""
        gc.collect()
        left = self._left(state)
        return f"left {len(left)} torch libraries: {', '.join(sorted(left)[:3])}" if left else ""

    @staticmethod
    def _left(state: tuple[int, int]) -> list[str]:
        count, last = state
        delete = getattr(sys.modules.get("torch.library"), "_del_library", None)
        infos = itertools.takewhile(lambda info: info.index > last, _finalisers())
        if not (new := [info.args for info in infos if info.func is delete]):
            return []
        imported = _imported_since(count)
        files = {getattr(sys.modules.get(name), "__file__", None) for name in imported}
        libraries = [[*sorted(definitions), *sorted(rest)] for _, rest, _, definitions, *_ in new]
        left = [names[0] for names in libraries if names and not _came(names[0], imported, files)]
        if not imported:  # where a library without operators was made is written nowhere
            left += ["one without operators" for names in libraries if not names]
        return left


def _finalisers() -> Iterator[Any]:
    """All finalisers that are alive, the last made first; there is no other list of them."""
    return reversed(weakref.finalize._registry.values())  # type: ignore[attr-defined]


def _came(operator: str, imported: set[str], files: set[str | None]) -> bool:
    """Whether an operator (`space::name`, or `space/name/key` for an implementation) came with an import."""
    torch = _torch()
    # A schema may hold line breaks.
    space, name, key = (*"".join(operator.split()).replace("::", "/", 1).split("/", 2), "debug")[:3]
    made = getattr(sys.modules.get("torch._library.custom_ops"), "OPDEFS", {}).get(f"{space}::{name}")
    if made is not None:
        return _is_of(str(made._init_fn.__module__), imported)
    try:
        dump: str = torch._C._dispatch_dump(f"{space}::{name}")  # says in which file what was registered
    except RuntimeError:
        return False
    places = re.findall(rf"^{re.escape(key)}\b.*?: registered at (.*):\d+", dump, re.MULTILINE)
    return bool(places) and (
        places[0] in files or places[0].startswith(str(torch.__file__).removesuffix("__init__.py"))
    )


def torch_guards() -> list[Guard]:
    """Guards over numpy and torch, in the order of their restoration."""
    return [
        Modes(),
        Settings("torch gradients", _gradients),
        Settings("torch autocast", _autocast),
        Settings("torch defaults", _defaults),
        Settings("torch determinism", _determinism),
        Settings("torch backends", _backends),
        Settings("torch print options", _printing),
        Settings("torch processes", _processes),
        Registries(),
        Settings("numpy settings", _numpy_settings, lambda: sys.modules.get("numpy")),
        Names(),
        Compiler(),
        CudaPlace(),
        NumpyRandom(),
        Generators("torch random", lambda: [torch.default_generator] if (torch := _torch()) else None),
        Generators("CUDA random", lambda: cuda.default_generators if (cuda := _cuda()) else None),
    ]


def torch_witnesses() -> list[Witness]:
    """Witnesses of what cannot be put back in torch."""
    return [
        Watch("CUDA errors", lambda: None, lambda _before, _now: _cuda_error()),
        Watch("process groups", _process_groups, lambda before, now: _count(now - before, "process groups")),
        Watch("collective works", _works_left, lambda before, now: _count(range(before, now), "collective works")),
        Watch("torch settings made once", _set_once, _judge_set_once),
        Watch("pytree nodes", _tree_nodes, _judge_tree_nodes),
        Operators(),
    ]


def _count(new: frozenset[int] | range, what: str) -> str:
    return f"left {len(new)} {what}" if new else ""


def everything(*, memory_limit_mib: float = float("inf")) -> GuardSet:
    """All guards and witnesses there are, in the order that this module's docstring explains."""
    guards = [*standard_guards(), *torch_guards()]
    guards.sort(key=lambda guard: "random" in guard.name)
    return GuardSet(guards, [*standard_witnesses(memory_limit_mib=memory_limit_mib), *torch_witnesses()])
