"""Devices that a process does not see for its environment: `CUDA_VISIBLE_DEVICES=""` when it starts.

A process reads the mask when it first asks for a device. So what has set one matters to processes that are started
later, and to the tests of a file that sets it while it is imported; in the middle of a test it may come too late.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import hard
from sooner.plan.needs.facts import SIZES

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_MASK: Final = "CUDA_VISIBLE_DEVICES"
"""Whose meaning NVIDIA's and AMD's runtimes share."""
MASKS: Final = (_MASK, "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")


@contextmanager
def only_seen(machine: "Machine") -> Iterator[bool]:
    """Evaluate something as a process with the environment at hand; gives whether that hides devices.

    Args:
        machine: Has as many devices as the process sees, within.
    """
    before = machine.size, machine.count
    most = _first_devices(machine.environment.get(_MASK))
    hides = most is not None and machine.size > most
    if most is not None and hides:
        machine.trace.ask(most)  # with more devices it sees as many
        machine.size = machine.count = most
    try:
        yield hides
    finally:
        machine.size, machine.count = before


@contextmanager
def as_program(machine: "Machine", environment: Any) -> Iterator[Any]:
    """Evaluate what a program does that is started with the environment at hand, or some of it changed.

    Args:
        machine: Has as many devices as the program sees, within, if a mask of the first ones is not its own.
        environment: What the program is given, as far as it is known; None where it inherits all.

    Yields:
        The same; with the mask at hand, where that names others than the first devices.
    """
    given, mask = hard(environment), hard(machine.environment.get(_MASK))
    if is_masked(environment) or not isinstance(mask, str) or not isinstance(given, dict | None):
        yield environment
    elif _first_devices(mask) is None:
        yield {**(given or {}), _MASK: mask}
    else:
        with only_seen(machine):
            yield environment


def is_masked(environment: Any) -> bool:
    """Whether a program is given a mask of its own."""
    given = hard(environment)
    return isinstance(given, dict) and any(name in given for name in MASKS)


def _first_devices(mask: Any) -> int | None:
    """How many devices a mask lets through, if it is known and these are the first ones; else None.

    It ends where it names a device that no machine has (`-1`).
    """
    mask = hard(mask)
    if not isinstance(mask, str):
        return None
    count = 0
    for each in mask.split(","):
        name = each.strip()
        if name == str(count):
            count += 1
        elif name == "" or name.startswith("-") or (name.isdigit() and int(name) >= max(SIZES)):
            break
        else:
            return None
    return count
