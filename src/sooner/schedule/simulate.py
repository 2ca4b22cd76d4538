"""Runs a scheduler against known durations, without running anything: predictions, searches and proofs."""

import heapq
from collections.abc import Mapping, Sequence

from msgspec import Struct

from sooner.model.devices import Device
from sooner.model.outcomes import Outcome
from sooner.model.units import UnitKey
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.work import Begin, Command, Ended, Policy, Start, Work


class Placement(Struct, frozen=True, kw_only=True, gc=False):
    """When and where a unit runs in a simulation."""

    key: UnitKey
    devices: tuple[int, ...]
    start_s: float
    end_s: float


def simulate(
    works: Sequence[Work],
    seconds: Mapping[UnitKey, float],
    devices: Sequence[Device],
    *,
    ranks: Sequence[int] | None = None,
    policy: Policy = Policy.PACKED,
    host_slots: int = 1,
) -> list[Placement]:
    """Place every unit that can run, in order of their starts; the last `end_s` is the makespan.

    The scheduler decides with the durations in `works`; `seconds` is how long the units then really take.
    """
    scheduler = Scheduler(works, devices, ranks=ranks, policy=policy, host_slots=host_slots)
    placements: list[Placement] = []
    ends: list[tuple[float, int, UnitKey]] = []

    def carry_out(commands: Sequence[Command], now: float) -> None:
        for command in commands:
            if isinstance(command, Start):
                end = now + seconds[command.key]
                heapq.heappush(ends, (end, len(placements), command.key))
                placements.append(Placement(key=command.key, devices=command.devices, start_s=now, end_s=end))

    carry_out(scheduler.handle(Begin(0.0)), 0.0)
    while ends:
        now, _, key = heapq.heappop(ends)
        carry_out(scheduler.handle(Ended(now, key, Outcome.PASSED)), now)
    return placements


def makespan(placements: Sequence[Placement]) -> float:
    """Seconds from the first start to the last end."""
    return max((placement.end_s for placement in placements), default=0.0)
