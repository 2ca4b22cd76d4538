"""The best option by a stated objective, and the frontier. Pure: options with their prices in, a proposal out."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from sooner.analysis.sizing.needs import Fate
from sooner.analysis.sizing.placement import CURRENT, Option, Price


class Objective(StrEnum):
    """What is made small."""

    DEVICE_MINUTES = "device-minutes"
    SIGNAL = "time-to-signal"
    """p90 from the push to the last shard's end, queues included; needs pools that are understood."""
    RUN_TIME = "run-time"
    """The slowest shard of a commit, queues not counted."""
    BALANCED = "balanced"
    """Device-minutes times run time: half the devices for twice the time is as good."""


class Waiting(Struct, frozen=True, kw_only=True):
    """What an option does to queues and signals, predicted by replaying the pools; seconds."""

    queue_p50: float
    queue_p90: float
    signal_p50: float
    signal_p90: float


class Priced(Struct, frozen=True, kw_only=True):
    """An option with all that is known about it."""

    option: Option
    price: Price
    waiting: Waiting | None = None
    refused: str = ""
    """Why nothing is said about queues."""


class Limits(Struct, frozen=True, kw_only=True):
    """What an option must keep to, to be proposed."""

    lost: int = 0
    """Tests whose full need may be met nowhere, beyond those that no runner satisfies."""
    delay_h: float = 24.0
    """Longest time until a moved test tells."""
    moved: int | None = None
    """Most tests that may have their full need at no commit; None: any."""


class Proposal(Struct, frozen=True, kw_only=True):
    """What is proposed."""

    best: Priced | None
    reason: str
    frontier: tuple[str, ...]
    """Options that no other one beats in everything: device-minutes, time, delay, losses."""


_MEASURES: Final[dict[Objective, Callable[[Priced], float | None]]] = {
    Objective.DEVICE_MINUTES: lambda one: one.price.device_minutes_per_day,
    Objective.SIGNAL: lambda one: one.waiting.signal_p90 if one.waiting else None,
    Objective.RUN_TIME: lambda one: one.price.longest_s,
    Objective.BALANCED: lambda one: one.price.device_minutes_per_day * _time(one),
}


def _failing(one: Priced) -> int:
    """Tests that fail at every commit, for too few devices: it would never be green."""
    return one.price.at_commit.get(Fate.FAILS, 0)


def _is_current(one: Priced) -> bool:
    return one.option.name == CURRENT


def _time(one: Priced) -> float:
    return one.waiting.signal_p90 if one.waiting else one.price.longest_s


def decide(priced: Sequence[Priced], objective: Objective, limits: Limits) -> Proposal:
    """The best option within limits.

    None is proposed in which more tests fail at a commit than do now. Where the objective needs queues, options on
    pools that are not understood are not ranked; the reason says so.
    """
    least_lost = min((len(one.price.lost) for one in priced), default=0)
    most_failing = max(min(map(_failing, priced), default=0), *(_failing(one) for one in priced if _is_current(one)), 0)
    allowed = [
        one
        for one in priced
        if len(one.price.lost) <= least_lost + limits.lost
        and _failing(one) <= most_failing
        and one.price.delay_worst_h <= limits.delay_h
        and (limits.moved is None or one.price.moved <= limits.moved)
    ]
    front = frontier(priced)
    if not allowed:
        reason = f"every option loses tests or tells later than {limits.delay_h:g} h"
        if limits.moved is not None:
            reason += f" or moves more than {limits.moved} tests"
        if any(_failing(one) > most_failing for one in priced):
            reason += " or has tests fail at every commit"
        return Proposal(best=None, reason=reason, frontier=front)
    measure = _MEASURES[objective]
    known = [(value, one) for one in allowed if (value := measure(one)) is not None]
    refused = next((one.refused or "queues are not known" for one in allowed if measure(one) is None), "")
    if not known:
        reason = f"options cannot be ranked by {objective.value}: {refused}"
        return Proposal(best=None, reason=reason, frontier=front)
    _, best = min(known, key=lambda pair: (pair[0], pair[1].price.delay_worst_h, pair[1].price.longest_s))
    reason = f"least {objective.value} of {len(known)} options within the limits"
    if refused:
        reason += f"; {len(allowed) - len(known)} more cannot be ranked by it: {refused}"
    return Proposal(best=best, reason=reason, frontier=front)


def frontier(priced: Sequence[Priced]) -> tuple[str, ...]:
    """Names of options that no other one beats: as good in everything, and better in something.

    Times are compared as run times unless the queues of all options are known.
    """
    queues = all(one.waiting is not None for one in priced)
    points = {
        one.option.name: (
            round(one.price.device_minutes_per_day, 6),
            round(_time(one) if queues else one.price.longest_s, 6),
            round(one.price.delay_worst_h, 6),
            len(one.price.lost),
        )
        for one in priced
    }
    return tuple(
        name
        for name, point in points.items()
        if not any(
            other != point and all(o <= p for o, p in zip(other, point, strict=True)) for other in points.values()
        )
    )
