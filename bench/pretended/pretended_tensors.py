"""Tensors of pretended devices: they stay on the host, and say that they are elsewhere.

A tensor carries the index of its device as an attribute. Every function of PyTorch passes here: a device that is asked
for is used (and replaced by the host), and what is made of tensors of a device is on that device.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Final

from pretended_devices import index_of, is_pretended, use

_PLACE: Final = "_pretended_place"
_DEEPEST: Final = 2


def place_of(value: Any) -> int | None:
    """The index of the device that a tensor is said to be on; None for the host."""
    return getattr(value, "__dict__", {}).get(_PLACE)


def put(value: Any, index: int | None) -> Any:
    """Say that a tensor, or each of several, is on a device; None is the host."""
    if isinstance(value, tuple | list):
        for one in value:
            put(one, index)
    elif hasattr(value, "grad_fn"):
        if index is None:
            value.__dict__.pop(_PLACE, None)
        else:
            value.__dict__[_PLACE] = index
    return value


def _place_among(values: Iterable[Any], depth: int = 0) -> int | None:
    for one in values:
        found = place_of(one)
        if found is None and depth < _DEEPEST and isinstance(one, tuple | list | dict):
            found = _place_among(one.values() if isinstance(one, dict) else one, depth + 1)
        if found is not None:
            return found
    return None


def pretend_tensors(torch: ModuleType) -> None:
    """Let functions of tensors pass here, in this thread and in those that it starts."""
    mode = _mode(torch)
    make, run = torch.Tensor._make_subclass, threading.Thread.run
    go_back = torch.autograd.graph._engine_run_backward

    def _make_subclass(cls: type, data: Any, requires_grad: bool = False, **kwargs: Any) -> Any:
        return put(make(cls, data, requires_grad, **kwargs), place_of(data))

    def run_pretending(thread: threading.Thread) -> None:
        with mode():
            run(thread)

    def go_back_pretending(*args: Any, **kwargs: Any) -> Any:
        with mode():  # `loss.backward()` has passed here, and what it calls does not by itself
            return go_back(*args, **kwargs)

    for module in (torch.autograd, torch.autograd.graph):
        module._engine_run_backward = go_back_pretending
    torch.Tensor.record_stream = lambda _tensor, _stream: None
    torch.Tensor._make_subclass = staticmethod(_make_subclass)
    threading.Thread.run = run_pretending  # type: ignore[method-assign]
    mode().__enter__()


def _mode(torch: ModuleType) -> Callable[[], Any]:
    """The mode in which functions of tensors pass here."""
    tensor, host = torch.Tensor, torch.device("cpu")

    def moved(value: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target, asked, replaced = None, False, list(args)
        for position, one in enumerate(args[1:], 1):
            if isinstance(one, tensor):
                target, asked = place_of(one), True
            elif isinstance(one, torch.device | str | int) and not isinstance(one, bool):
                asked = True
                if is_pretended(one):
                    target, replaced[position] = index_of(one), host
        if "device" in kwargs and kwargs["device"] is not None:
            asked = True
            if is_pretended(kwargs["device"]):
                target, kwargs["device"] = index_of(kwargs["device"]), host
        if isinstance(kwargs.get("other"), tensor):
            target, asked = place_of(kwargs["other"]), True
        if target is not None:
            use(target)
        result = function(*replaced, **kwargs)
        if not asked:
            return put(result, place_of(value))
        if target == place_of(value):
            return result
        return put(result.clone() if result is value else result, target)

    def made(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target, asked = None, kwargs.get("device") is not None
        kwargs.pop("pin_memory", None)
        if asked and is_pretended(kwargs["device"]):
            target, kwargs["device"] = index_of(kwargs["device"]), host
        elif any(isinstance(one, torch.device) and is_pretended(one) for one in args):
            asked = True
            target = next(index_of(one) for one in args if isinstance(one, torch.device) and is_pretended(one))
            args = tuple(host if isinstance(one, torch.device) and is_pretended(one) else one for one in args)
        if target is not None:
            use(target)
        result = function(*args, **kwargs)
        if not asked:
            target = _place_among((*args, *kwargs.values()))
        return result if target is None else put(result, target)

    def said(value: Any, function: Any) -> Any:
        """What a tensor of a device says of itself; `said` where it is not about its place."""
        place = place_of(value)
        if place is None:
            return said
        if function == tensor.device.__get__:  # each look gives another object
            return torch.device("cuda", place)
        if function in (tensor.is_cuda.__get__, tensor.is_cpu.__get__):
            return function == tensor.is_cuda.__get__
        return place if function is tensor.get_device else said

    class Pretending(torch.overrides.TorchFunctionMode):  # type: ignore[misc, name-defined]
        """What every function of PyTorch passes."""

        def __torch_function__(
            self, func: Any, _types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
        ) -> Any:
            options = dict(kwargs or {})
            first = args[0] if args else None
            answer = said(first, func)
            if answer is not said:
                return answer
            if func is tensor.pin_memory:
                return first
            if func is tensor.cuda:
                where = args[1] if len(args) > 1 else options.get("device")
                return moved(first, tensor.to, (first, torch.device("cuda", index_of(where))), {})
            if func is tensor.cpu:
                return moved(first, tensor.to, (first, host), {})
            if func is tensor.to:
                return moved(first, func, args, options)
            if getattr(func, "__name__", "") == "__set__":  # `parameter.data = ...`
                result = func(*args, **options)
                put(first, place_of(args[1]) if isinstance(args[1], tensor) else place_of(first))
                return result
            if func in (tensor.numpy, tensor.tolist):
                return func(*args, **options)
            if func is torch.device and isinstance(first, int | torch.device):  # a name of a place is no use of it
                return torch.device("cuda", first) if isinstance(first, int) else first
            if func is torch._C._nn._parse_to:  # what a module is asked for, before its tensors are
                numbered = [torch.device("cuda", one) if type(one) is int else one for one in args]
                return func(*numbered, **options)
            return made(func, args, options)

    return Pretending
