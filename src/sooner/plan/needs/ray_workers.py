"""Workers of Ray's that libraries on top of it start: a plugin, an estimator or a record says how many, and on what."""

from typing import TYPE_CHECKING, Any, Final

from sooner.plan.needs.values import Inst, Unknown, hard

if TYPE_CHECKING:
    from sooner.plan.needs.machine import Machine

_RAYS: Final = "Ray"
"""In names of what starts workers of Ray's (`HorovodRayPlugin`, `RayParams`); no array has it."""


def need_workers(machine: "Machine", name: str, kwargs: dict[str, Any]) -> None:
    """Devices of workers: one each with `use_gpu=True`, or as many as `gpus_per_actor` says.

    Raises:
        Raised: There are fewer.
    """
    if _RAYS not in name:
        return
    told = {each: hard(value) for each, value in kwargs.items()}
    count = told.get("num_workers", told.get("num_actors"))
    each = 1 if told.get("use_gpu") is True else told.get("gpus_per_actor", 0)
    if type(count) is int and type(each) is int and count * each > 0:
        machine.guesses += not machine.quiet
        machine.need(count * each, f"{name}(): workers that have devices")


def _has_rays(machine: "Machine", args: list[Any]) -> bool:
    """Whether there is something of Ray's among what is given: it chooses devices itself."""
    given = machine.items_of(args[0]) or [args[0]]
    return any(_RAYS in _name(hard(each)) for each in given)


def _name(value: Any) -> str:
    if isinstance(value, Inst):
        return value.cls.name
    return value.path.rpartition(".")[2] if isinstance(value, Unknown) else ""


RAY_WORDS: Final = {"has_rays": _has_rays}
