"""How many devices a guard wants that nobody can read: as it is told (`@require_devices(4)`), or by its name."""

import re
from typing import Final

from sooner.plan.needs.evaluator.values import Args, Kwargs, hard
from sooner.plan.needs.facts import SIZES

_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_DEVICES: Final = frozenset(
    ("gpu", "gpus", "ngpu", "ngpus", "device", "devices", "cuda", "accelerator", "accelerators")
)
_COUNTS: Final = frozenset(("n", "num", "number", "count", "min", "at", "least", "of"))
_OTHER: Final = frozenset(
    (
        "max", "most", "up", "more", "single", "exactly", "memory", "mem", "gb", "mb", "timeout", "time", "seconds",
        "index", "idx", "id", "ids", "order", "seed", "name", "type", "capability", "version", "retry", "retries",
    )
)  # fmt: skip
"""What else a number may be."""
_WANTING: Final = frozenset(("require", "requires", "required", "need", "needs", "needed"))
_LACKING: Final = frozenset(("no", "unless", "without"))
_SEVERAL: Final = frozenset(("multi", "multiple", "several", "multigpu"))
_NOT: Final = frozenset(("no", "non", "not", "cpu", "host", "any", "or"))
_FEWER: Final = frozenset(("lt", "less", "fewer", "below", "without", "unless"))


def devices_told(name: str, args: Args, kwargs: Kwargs) -> int | None:
    """The least number of devices that a guard is told, going by the words of its name and of its arguments.

    Args:
        name: The last part of its dotted name.
        args: What it is called with, positions.
        kwargs: And names.

    Returns:
        None where it is told none, or what the number is for is in doubt.
    """
    words = _words(name)
    if words & _OTHER or ("skip" in words and not words & _FEWER):
        return None
    is_of_devices = bool(words & _DEVICES) or any(
        _words(each) & _DEVICES for each in map(hard, args) if isinstance(each, str)
    )
    told = [hard(each) for each in args] if is_of_devices else []
    for argument, value in kwargs.items():
        of_what = _words(argument)
        if (of_what & _DEVICES or (is_of_devices and of_what <= _COUNTS)) and not of_what & _OTHER:
            told.append(hard(value))
    numbers = [each for each in told if type(each) is int and 1 <= each <= max(SIZES)]
    return numbers[0] if len(numbers) == 1 else None


def devices_named(name: str) -> int | None:
    """The least number of devices that a guard wants by its name: two for several (`requires_multi_accelerators`).

    None where it wants none, or does not say that it wants what it names (`skip_on_cuda`).
    """
    words = _words(name)
    if not words & (_DEVICES | {"multigpu"}) or words & _OTHER:
        return None
    is_wanted = words & _LACKING if "skip" in words else words & _WANTING and not words & _NOT
    return (2 if words & _SEVERAL else 1) if is_wanted else None


def is_told_of_devices(kwargs: Kwargs) -> bool:
    """Whether a guard's arguments speak of devices (`cuda=True`): it may skip for lack of them."""
    return any(_words(each) & _DEVICES for each in kwargs)


def _words(text: str) -> set[str]:
    return {each.lower() for each in _WORDS.findall(text)}
