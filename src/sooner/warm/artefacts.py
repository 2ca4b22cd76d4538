"""What tests compute with, made once: compiled functions and model weights.

A compiled function is compiled ahead of time for given inputs, so that `torch._dynamo.reset()` between tests does not
throw it away. Weights are handed out as copies that are compared and restored when they come back.
"""

import hashlib
import importlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from sooner.warm.pool import Kind


def _import(name: str) -> Any:
    return importlib.import_module(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputSpec:
    """A tensor that a compiled function is called with."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    device: str = "cpu"
    requires_grad: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileConfig:
    """Everything that decides what a compiled function is."""

    function: str
    """As `module:qualname`."""
    inputs: tuple[InputSpec, ...]
    backend: str = "inductor"
    mode: str | None = None
    dynamic: bool | None = None
    options: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled function: call it as the original. It refuses inputs that it was not compiled for (RuntimeError)."""

    call: Callable[..., Any]
    circumstances: str
    """Digest of what it was compiled under, besides its configuration."""

    def __call__(self, *args: Any) -> Any:
        """Run it."""
        return self.call(*args)


class CompiledFunctions(Kind[CompileConfig, Compiled]):
    """Functions that torch.compile compiled as one graph."""

    def make(self, config: CompileConfig) -> Compiled:
        """Compile; seconds. Raises what the compiler raises."""
        torch = _import("torch")
        function = _function(config.function)
        how = {"mode": config.mode} if config.mode else {"options": dict(config.options) or None}
        compiled = torch.compile(function, fullgraph=True, backend=config.backend, dynamic=config.dynamic, **how)
        circumstances = _circumstances(function)
        inputs = tuple(_tensor(torch, spec) for spec in config.inputs)
        return Compiled(compiled.aot_compile((inputs, {})), circumstances)

    def fingerprint(self, thing: Compiled, config: CompileConfig) -> Hashable:
        """The configuration, if the function and the compiler's settings are still what they were."""
        return config if thing.circumstances == _circumstances(_function(config.function)) else thing.circumstances


def _function(reference: str) -> Any:
    module, _, qualname = reference.partition(":")
    found = _import(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _tensor(torch: Any, spec: InputSpec) -> Any:
    dtype = getattr(torch, spec.dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(spec.shape, dtype=dtype, device=spec.device).requires_grad_(spec.requires_grad)
    return torch.ones(spec.shape, dtype=dtype, device=spec.device)


def _circumstances(function: Any) -> str:
    """A digest of the function's code, the version of torch, and the settings of its compilers."""
    torch = _import("torch")
    configs = (_import("torch._dynamo.config"), _import("torch._inductor.config"), _import("torch._functorch.config"))
    code = function.__code__
    parts = [torch.__version__, code.co_code, code.co_consts, code.co_names, *(one.get_hash() for one in configs)]
    parts += [torch.get_default_dtype(), torch.get_float32_matmul_precision(), torch.is_grad_enabled()]
    parts.append(torch.are_deterministic_algorithms_enabled())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


class Weights(Kind[Hashable, dict[str, Any]]):
    """State dicts that are loaded once; what a test did to its copy is undone when it comes back.

    Args:
        load: Gives the state dict of a configuration; may take its time. It is not asked again.
    """

    def __init__(self, load: Callable[[Any], Mapping[str, Any]]) -> None:
        self._load = load
        self._pristine: dict[int, tuple[dict[str, Any], tuple[int, ...]]] = {}
        """By identity of what was handed out: the originals, and their checksums."""

    def make(self, config: Hashable) -> dict[str, Any]:
        """Load the weights; the thing is a copy, in which tensors that share memory share it again."""
        pristine = _copy(self._load(config))
        thing = _copy(pristine)
        self._pristine[id(thing)] = (pristine, tuple(map(_checksum, pristine.values())))
        return thing

    def reset(self, thing: dict[str, Any]) -> None:
        """Put back what differs.

        Raises:
            ValueError: A tensor was taken away, added or replaced by one of another kind.
        """
        pristine, _ = self._pristine[id(thing)]
        if thing.keys() != pristine.keys():
            raise ValueError(f"other names than before: {sorted(thing.keys() ^ pristine.keys())[:3]}")
        with _import("torch").no_grad():
            for name, before in pristine.items():
                _restore(name, thing[name], before)

    def healthy(self, thing: dict[str, Any]) -> bool:
        """Whether the originals are what was loaded."""
        pristine, checksums = self._pristine[id(thing)]
        return tuple(map(_checksum, pristine.values())) == checksums

    def destroy(self, thing: dict[str, Any]) -> None:
        """Forget the originals."""
        self._pristine.pop(id(thing), None)


def _copy(tensors: Mapping[str, Any]) -> dict[str, Any]:
    copies: dict[Hashable, Any] = {}
    found = {}
    for name, tensor in tensors.items():
        place = (tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype)
        key = place if tensor.numel() else name
        if key not in copies:
            copies[key] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        found[name] = copies[key]
    return found


def _restore(name: str, now: Any, before: Any) -> None:
    same = (now.shape, now.dtype, now.device, now.stride()) == (
        before.shape,
        before.dtype,
        before.device,
        before.stride(),
    )
    if not same:
        raise ValueError(f"{name} is {tuple(now.shape)} {now.dtype} on {now.device} now")
    now.requires_grad_(before.requires_grad)
    now.grad = None
    if not _import("torch").equal(_bytes(now), _bytes(before)):
        now.copy_(before)


def _bytes(tensor: Any) -> Any:
    """The memory of a tensor as bytes: not-a-numbers equal themselves there, and -0.0 is not 0.0."""
    return tensor.detach().contiguous().reshape(-1).view(_import("torch").uint8)


def _checksum(tensor: Any) -> int:
    """A number that changes with any one of a tensor's bytes: CRC-32 on the CPU, a weighted sum on devices."""
    data = _bytes(tensor)
    if data.device.type == "cpu":
        return int(_import("zlib").crc32(data.numpy()))
    torch = _import("torch")
    weights = torch.arange(data.numel(), device=data.device) % 65_521 + 1  # the prime of Adler-32
    return int((data.long() * weights).sum().item())
