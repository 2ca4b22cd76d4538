"""What the scheduler knows of a unit, and what it is told and what it commands.

What there are a hundred thousand of is not tracked by the garbage collector (`gc=False`): it holds no cycles.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from msgspec import Struct

from sooner.model.outcomes import Outcome
from sooner.model.units import Plan, UnitKey


class Policy(StrEnum):
    """How units are placed."""

    PACKED = "packed"
    """List scheduling with reservation and backfill: start whatever fits, never starve what is wide."""
    WAVES = "waves"
    """Fill all devices in plan order, wait for all of them, repeat (Transformer Engine's PR 2824), for comparison."""
    SEQUENTIAL = "sequential"
    """One unit at a time, in plan order."""


class Work(Struct, frozen=True, kw_only=True, gc=False):
    """One unit as the scheduler sees it."""

    key: UnitKey
    devices: int = 1
    seconds: float | None = None
    """Expected duration; None where nothing is known."""
    memory_mib: int = 0
    shared: bool = False
    after: tuple[UnitKey, ...] = ()
    priority: int = 0
    failed_before: bool = False
    attempts_before: int = 0
    """Attempts in the run that is resumed: further ones are counted on from there."""


class Begin(Struct, frozen=True):
    """The run starts."""

    at: float


class Ended(Struct, frozen=True, gc=False):
    """An attempt ended. Devices in `held_back` are not free yet: `Returned` or `PutAside` follows for each."""

    at: float
    key: UnitKey
    outcome: Outcome
    held_back: tuple[int, ...] = ()


class Away(Struct, frozen=True):
    """A free device cannot be used for now: another run holds it."""

    at: float
    device: int


class Returned(Struct, frozen=True):
    """A device that was away or held back is free."""

    at: float
    device: int


class PutAside(Struct, frozen=True):
    """Devices must not be used any more in this run."""

    at: float
    devices: tuple[int, ...]


class Reorder(Struct, frozen=True):
    """Units that wait have new ranks, after a look at how long the others really took; lower starts first."""

    at: float
    ranks: Mapping[UnitKey, int]


class Stop(Struct, frozen=True):
    """Start nothing more."""

    at: float


Input = Begin | Ended | Away | Returned | PutAside | Reorder | Stop


class Start(Struct, frozen=True, gc=False):
    """Start this unit on these devices (positions in the device list)."""

    key: UnitKey
    devices: tuple[int, ...]
    attempt: int


class Conclude(Struct, frozen=True, gc=False):
    """This unit has its verdict: it ended for good, or it can never start."""

    key: UnitKey
    outcome: Outcome
    cause: str = ""


Command = Start | Conclude


def works_of(
    plan: Plan,
    *,
    seconds: Mapping[UnitKey, float],
    failed: Collection[UnitKey] = (),
    settled: Collection[UnitKey] = (),
    attempts: Mapping[UnitKey, int] | None = None,
) -> list[Work]:
    """The units of a plan that are still to run, as the scheduler sees them.

    Args:
        plan: What is planned.
        seconds: Expected durations; units that are not in it are unknown.
        failed: Units that failed in the last run.
        settled: Units that have their verdict: they are left out, and nothing waits for them any more.
        attempts: How many attempts units had already, in a run that is resumed.
    """
    waiting = {unit.key for unit in plan.units}.difference(settled)
    return [
        Work(
            key=unit.key,
            devices=unit.need.devices,
            seconds=seconds.get(unit.key),
            memory_mib=unit.need.memory_mib,
            shared=unit.need.shared,
            after=tuple(key for key in unit.after if key in waiting),
            priority=unit.priority,
            failed_before=unit.key in failed,
            attempts_before=(attempts or {}).get(unit.key, 0),
        )
        for unit in plan.units
        if unit.key not in settled
    ]
