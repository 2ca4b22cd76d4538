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

import sys
import warnings
from collections.abc import Mapping
from typing import Any, Final

from sooner.warm.guards import Guard, GuardSet, standard_guards, standard_witnesses
from sooner.warm.torch_loaded import initialised_cuda, loaded_torch
from sooner.warm.torch_names import Names, Registries
from sooner.warm.torch_random import random_guards
from sooner.warm.torch_settings import settings
from sooner.warm.torch_witnesses import torch_witnesses

_CONFIGS: Final = ("torch._dynamo.config", "torch._inductor.config", "torch._functorch.config")


class Modes:
    """The stacks of function modes and dispatch modes, the default device among them, and levels of transformations."""

    name = "torch modes"

    def capture(self) -> tuple[Any, ...] | None:
        """What is on the stacks; None while torch is not imported."""
        if (torch := loaded_torch()) is None:
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
        torch = loaded_torch()
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


class Compiler:
    """Configuration of dynamo, inductor and functorch, the code that dynamo compiled, and inductor's idle helpers."""

    name = "torch.compile"

    def __init__(self) -> None:
        self._copies: dict[str, tuple[bytes, dict[str, Any]]] = {}

    def capture(self) -> tuple[dict[str, tuple[bytes, dict[str, Any]]], int, tuple[bool, bool]]:
        """A hash and a copy of each configuration that is imported, the number of compiled frames, and the helpers.

        A copy takes 100 us or more, the hash one: copies are kept until somebody sets something.
        """
        found = {}
        for name in _CONFIGS:
            if config := sys.modules.get(name):
                if _is_dirty(config) or name not in self._copies or self._copies[name][0] != config.get_hash():
                    self._copies[name] = config.get_hash(), config.get_config_copy()
                found[name] = self._copies[name]
        return found, _compiled_frames(), _helpers()

    def restore(self, state: tuple[dict[str, tuple[bytes, dict[str, Any]]], int, tuple[bool, bool]]) -> bool:
        """Set changed keys back, forget compiled code if there is new one or it was made under other keys, end helpers.

        Without the last step every test that compiles would leave threads and processes, and so cost its worker.
        """
        copies, frames, helpers = state
        compiled, changed = _compiled_frames() != frames, False
        for name, (digest, copy) in copies.items():
            config: Any = sys.modules.get(name)
            # Compiling asks for the hash, which then forgets that a key outside of it was set.
            if compiled or _is_dirty(config) or config.get_hash() != digest:
                changed |= _set_back(config, copy)
        if (compiled or changed) and (dynamo := sys.modules.get("torch._dynamo")):
            dynamo.reset()
        return _end_helpers(helpers) or compiled or changed


def _helpers() -> tuple[bool, bool]:
    """Whether inductor keeps threads, and whether it keeps processes, for what it compiles next."""
    pools = getattr(sys.modules.get("torch._inductor.async_compile"), "AsyncCompile", None)
    return (False, False) if pools is None else (_is_made(pools.pool), _is_made(pools.process_pool))


def _is_made(pool: Any) -> bool:
    return bool(pool.cache_info().currsize)


def _end_helpers(before: tuple[bool, bool]) -> bool:
    if (now := _helpers()) == before:
        return False
    module: Any = sys.modules["torch._inductor.async_compile"]
    if now[1] and not before[1]:
        module.shutdown_compile_workers()
    if now[0] and not before[0]:
        module.AsyncCompile.pool().shutdown()
        module.AsyncCompile.pool.cache_clear()
    return True


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
        if (cuda := initialised_cuda()) is None:
            return None
        return cuda.current_device(), [cuda.current_stream(i) for i in range(cuda.device_count())]

    def restore(self, state: tuple[int, list[Any]] | None) -> bool:
        """Select them again."""
        if state is None or self.capture() == state:
            return False
        device, streams = state
        for stream in streams:
            initialised_cuda().set_stream(stream)
        initialised_cuda().set_device(device)
        return True


def torch_guards() -> list[Guard]:
    """Guards over numpy and torch, in the order of their restoration."""
    return [Modes(), *settings(), Registries(), Names(), Compiler(), CudaPlace(), *random_guards()]


def everything(*, memory_limit_mib: float = float("inf")) -> GuardSet:
    """All guards and witnesses there are, in the order that this module's docstring explains."""
    guards = [*standard_guards(), *torch_guards()]
    guards.sort(key=lambda guard: "random" in guard.name)
    return GuardSet(guards, [*standard_witnesses(memory_limit_mib=memory_limit_mib), *torch_witnesses()])
