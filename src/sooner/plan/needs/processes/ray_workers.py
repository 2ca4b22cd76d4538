"""Workers of Ray's that libraries on top of it start: a plugin, an estimator or a record says how many, and on what."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.evaluator.values import Inst, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.evaluator.machine import Machine

_RAYS: Final = "Ray"
"""In names of what starts workers of Ray's (`HorovodRayPlugin`, `RayParams`); no array has it."""


def need_told(machine: "Machine", name: str, kwargs: dict[str, Any]) -> None:
    """What is made outside of the tree is told of workers: they have devices.

    Raises:
        Raised: There are fewer.
    """
    if _RAYS in name:
        _need(machine, _told(kwargs), name)


def need_given(machine: "Machine", name: str, values: Iterable[Any]) -> None:
    """A function of the library, or a trainer, is given something that was told of workers: these have devices.

    Raises:
        Raised: There are fewer.
    """
    _need(machine, max(map(_workers_of, values), default=0), name)


def _need(machine: "Machine", count: int, name: str) -> None:
    if count and not machine.quiet:
        machine.guesses += 1
        machine.need(count, f"{name}(): workers that have devices")


def _told(kwargs: dict[str, Any]) -> int:
    """Devices of workers: one each with `use_gpu=True`, or as many as `gpus_per_actor` says."""
    told = {each: hard(value) for each, value in kwargs.items()}
    count = told.get("num_workers", told.get("num_actors"))
    if type(count) is float and count.is_integer():  # Ray says of devices how many there are as it does of parts of one
        count = int(count)
    each = 1 if told.get("use_gpu") is True else told.get("gpus_per_actor", 0)
    return count * each if type(count) is int and type(each) is int and count * each > 0 else 0


def _workers_of(value: Any) -> int:
    made = hard(value)
    if not isinstance(made, Inst) or _RAYS not in made.cls.name:
        return 0
    return _told(made.attrs | (made.given[1] if made.given is not None else {}))


def _has_rays(machine: "Machine", args: list[Any]) -> bool:
    """Whether there is something of Ray's among what is given: it chooses devices itself."""
    given = machine.items_of(args[0]) or [args[0]]
    return any(_RAYS in _name(hard(each)) for each in given)


def _name(value: Any) -> str:
    if isinstance(value, Inst):
        return value.cls.name
    return value.path.rpartition(".")[2] if isinstance(value, Unknown) else ""


def _need_rays(machine: "Machine", args: list[Any]) -> None:
    need_given(machine, "Trainer", machine.items_of(args[0]) or [args[0]])


RAY_WORDS: Final = {"has_rays": _has_rays, "need_rays": _need_rays}
