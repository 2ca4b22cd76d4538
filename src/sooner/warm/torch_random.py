"""Random generators of numpy, torch and CUDA."""
# ruff: noqa: SLF001 - most of this state has no public getter, and some public setters change more than they are given

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from sooner.warm.guards import Guard
from sooner.warm.torch_loaded import initialised_cuda, loaded_torch

_TWISTER_BYTES: Final = 624 * 4 + 4
"""Key and position of a Mersenne twister, as numpy keeps them."""


@dataclass(frozen=True, slots=True)
class Generators:
    """A guard over torch's random generators, where there are such."""

    name: str
    find: Callable[[], Iterable[Any] | None]

    def capture(self) -> list[tuple[bytes, Any]] | None:
        """Their states, each with its bytes: comparing those takes a fifth of comparing tensors."""
        if (generators := self.find()) is None:
            return None
        with _outside_modes(loaded_torch()):
            tensors = [generator.get_state() for generator in generators]
            return [(ctypes.string_at(tensor.data_ptr(), tensor.nbytes), tensor) for tensor in tensors]

    def restore(self, state: list[tuple[bytes, Any]] | None) -> bool:
        """Set them back."""
        if state is None or (now := self.capture()) is None:
            return False
        changed = False
        with _outside_modes(loaded_torch()):
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


def random_guards() -> list[Guard]:
    """All of them."""
    return [
        NumpyRandom(),
        Generators("torch random", lambda: [torch.default_generator] if (torch := loaded_torch()) else None),
        Generators("CUDA random", lambda: cuda.default_generators if (cuda := initialised_cuda()) else None),
    ]
