"""The state to which a rank is put back after each task.

Two guards look at some ten thousand names, and in a fresh fork each look copies a page: 40 ms for four ranks on two
cores. So the fork server captures those before ranks are born (`capture_for_births`), and they inherit the capture.
"""

import os
import sys
from dataclasses import dataclass
from typing import Any, Final

from sooner.warm.guards import Cleaned, GuardSet, Value, standard_guards, standard_witnesses
from sooner.warm.torch_guards import torch_guards
from sooner.warm.torch_loaded import loaded_torch
from sooner.warm.torch_witnesses import torch_witnesses

_OWN: Final = ("process groups", "collective works")
"""Witnesses of what a rank looks after itself: it can close groups."""
_HEAVY: Final = ("names in torch", "torch.compile", "logging", "modules")
"""What is captured before birth: nothing that a rank changes while it is born."""

State = tuple[Any, ...]
_inherited: list[tuple[int, GuardSet, State]] = []
"""How many modules there were when the heavy state was captured, its guards and the state; at most one."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Guards, and what they captured."""

    parts: tuple[tuple[GuardSet, State], ...]

    @classmethod
    def now(cls) -> "Baseline":
        """The state of this process; the heavy part as it was before birth, if nothing was imported since."""
        light = _guards(heavy=False)
        if _inherited and _inherited[0][0] == len(sys.modules):
            _, heavy, state = _inherited[0]
            return cls(((heavy, state), (light, light.capture())))
        heavy = _guards(heavy=True)
        return cls(((heavy, heavy.capture()), (light, light.capture())))

    def clean(self) -> Cleaned:
        """Put everything back; says what was restored, and why this process must not go on if that is so."""
        restored: list[str] = []
        for guards, state in self.parts:
            cleaned = guards.clean(state)
            restored += cleaned.restored
            if cleaned.discard:
                return Cleaned(tuple(restored), cleaned.discard)
        return Cleaned(tuple(restored))


def capture_for_births() -> None:
    """In the fork server: capture what all that are born from now on inherit."""
    compile_in_process()
    heavy = _guards(heavy=True)
    _inherited[:] = [(len(sys.modules), heavy, heavy.capture())]


def _guards(*, heavy: bool) -> GuardSet:
    """Guards over what a rank does not look after itself; it seeds all random generators before each task."""
    level = Value("debug level of torch.distributed", _debug_level, _set_debug_level)
    guards = [one for one in (level, *torch_guards(), *standard_guards()) if "random" not in one.name]
    witnesses = [one for one in (*torch_witnesses(), *standard_witnesses()) if one.name not in _OWN]
    return GuardSet(
        [one for one in guards if (one.name in _HEAVY) is heavy],
        [one for one in witnesses if (one.name in _HEAVY) is heavy],
    )


def _debug_level() -> Any:
    """What TORCH_DISTRIBUTED_DEBUG said when it was last read; torch's decorator for tests does not put it back."""
    c10d: Any = sys.modules.get("torch._C._distributed_c10d")
    return c10d.get_debug_level() if c10d is not None else None


def _set_debug_level(level: Any) -> None:
    if level is not None:
        sys.modules["torch._C._distributed_c10d"].set_debug_level(level)


def compile_in_process() -> None:
    """Let inductor compile in the process that asks for it.

    Its workers are processes: a rank that starts them leaves children behind, and four ranks start four sets of them.
    """
    inductor: Any = sys.modules.get("torch._inductor.config")
    if inductor is None:
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    else:
        inductor.compile_threads = 1


def share_cores(threads: int) -> None:
    """Give this rank its share of the cores, unless the user did (torchrun gives one thread)."""
    torch = loaded_torch()
    if torch is not None and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(threads)
