"""Ranks: in which order units should be offered to the devices.

Candidate orders are simulated under several *scenarios* of how long the units may really take, the best on average is
improved by local moves (a unit that ends last is moved ahead), and that is the order. Scenarios matter: an order that
is perfect for exact durations often leaves a long unit no slack, and real durations are 20 % off. Where nothing is
known, the scenarios are draws from a log-normal with sigma 1, which is what durations of test files look like
(PyTorch's distributed shards, 2026: sigma 0.9-1.3); they show that after the full-width units the many narrow ones
should start first, because the longest unit of all is probably one of them. The search is bounded by a count of
simulated starts, not by time, and its scenarios are fixed sequences: the same input gives the same order everywhere.
"""

from collections.abc import Callable, Mapping, Sequence
from math import exp, sqrt
from statistics import NormalDist, median
from typing import Final

import msgspec

from sooner.model.devices import Device
from sooner.model.units import UnitKey
from sooner.schedule.bounds import lower_bound
from sooner.schedule.simulate import Placement, makespan, simulate
from sooner.schedule.work import Policy, Work

_SEARCH_BUDGET: Final = 12_000
"""Simulated starts that a search may spend: about 0.1 s, within the 0.3 s that a first start may take."""
_SCENARIOS: Final = 8
_NOISE: Final = 0.25
"""Half-width of the error of a known duration."""
_SIGMA_UNKNOWN: Final = 1.0
_SEARCH_AGAIN_BUDGET: Final = 3_000
"""While a suite runs its units need the processors: about 20 ms, and at most a fifth of the time (engine)."""
_TOO_FEW: Final = 2
_TOO_MANY: Final = 90
"""Units beyond which noise averages out by itself, and the budget does not suffice for the first orders."""
_OVERDUE: Final = 0.1
_FIRST: Final = 1 << 40
_GOOD_ENOUGH: Final = 1.002
"""Stop searching this close to the lower bound: noise of real durations is a hundred times larger."""


def assumed_seconds(works: Sequence[Work]) -> dict[UnitKey, float]:
    """Seconds for every unit: the expected ones, and for unknown units the median of the known (1 s if none is)."""
    known = [work.seconds for work in works if work.seconds is not None]
    usual = median(known) if known else 1.0
    return {work.key: usual if work.seconds is None else work.seconds for work in works}


def ranks(
    works: Sequence[Work], devices: Sequence[Device], *, host_slots: int = 1, budget: int = _SEARCH_BUDGET
) -> list[int]:
    """The rank of each unit under the packed policy.

    An explicit priority comes first, then what failed in the last run, then the order that was found best with at most
    `budget` simulated starts.
    """
    seconds = assumed_seconds(works)
    keys = _sort_keys(works, seconds, len(devices))
    if any(work.seconds is None for work in works):
        keys.reverse()
    trials = budget // (_SCENARIOS * max(1, len(works)))
    if trials < len(keys):
        return _ranks_of(sorted(range(len(works)), key=keys[0]))
    orders = [sorted(range(len(works)), key=key) for key in keys]
    search = _Search(works, _scenarios(works, seconds), devices, host_slots=host_slots)
    for order in orders:
        search.consider(order)
    if any(work.seconds is not None for work in works):
        search.improve(trials - len(orders))  # else units of one width are alike: moving one is fitting to noise
    return _ranks_of(search.best_order)


def new_ranks(
    waiting: Sequence[Work],
    running: Sequence[tuple[Work, float]],
    devices: Sequence[Device],
    *,
    host_slots: int = 1,
) -> dict[UnitKey, int]:
    """Ranks for the units that still wait, now that it is known what has ended and how long the others run already.

    In simulation, with durations that are 20 % off, searching again while a suite runs cuts the p95 of wall over bound
    from 1.08 to 1.04: an order that was right for the estimates is mended before its end goes wrong.

    Args:
        waiting: Units that have not started.
        running: Units that run, and for how many seconds already.
        devices: The devices of the run.
        host_slots: As for `ranks`.

    Returns:
        A rank for each unit of `waiting`; empty where a search would be too large or nothing is known.
    """
    if len(waiting) < _TOO_FEW or len(waiting) + len(running) > _TOO_MANY or any(w.seconds is None for w in waiting):
        return {}
    names = {work.key for work in waiting}
    begun = [_rest_of(work, seconds) for work, seconds in running]
    free = [msgspec.structs.replace(w, after=tuple(key for key in w.after if key in names)) for w in waiting]
    found = ranks([*begun, *free], devices, host_slots=host_slots, budget=_SEARCH_AGAIN_BUDGET)
    return {work.key: rank for work, rank in zip(free, found[len(begun) :], strict=True)}


def _rest_of(work: Work, seconds: float) -> Work:
    """What is left of a unit that runs, as a unit that comes before all others; one that is overdue will end soon."""
    expected = work.seconds if work.seconds is not None else 2 * seconds
    left = max(expected - seconds, _OVERDUE * expected)
    return msgspec.structs.replace(work, seconds=left, after=(), priority=_FIRST)


def _scenarios(works: Sequence[Work], seconds: Mapping[UnitKey, float]) -> list[dict[UnitKey, float]]:
    """Several ways the durations may come out; two additive recurrences spread them evenly, without randomness."""
    normal = NormalDist()
    scenarios = []
    for k in range(_SCENARIOS):
        scenario = {}
        for i, work in enumerate(works):
            spread = (0.5 + (i + 1) * (sqrt(5) - 1) / 2 + (k + 1) * (i + 1) * sqrt(2)) % 1.0
            if work.seconds is None:
                factor = exp(_SIGMA_UNKNOWN * normal.inv_cdf(min(max(spread, 1e-6), 1 - 1e-6)))
            else:
                factor = 1 + _NOISE * (2 * spread - 1)
            scenario[work.key] = seconds[work.key] * factor
        scenarios.append(scenario)
    return scenarios


def _ranks_of(order: Sequence[int]) -> list[int]:
    ranks = [0] * len(order)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return ranks


def _sort_keys(
    works: Sequence[Work], seconds: Mapping[UnitKey, float], fleet: int
) -> list[Callable[[int], tuple[float, ...]]]:
    """The orders to begin with. Where nothing can be simulated the first is taken, or the last if durations miss."""
    tails = _tails(works, seconds)

    def tier(i: int) -> tuple[float, float]:
        return (-works[i].priority, not works[i].failed_before)

    def wide_first(i: int) -> tuple[float, ...]:
        return (*tier(i), -works[i].devices, -tails[i], i)

    def area_first(i: int) -> tuple[float, ...]:
        return (*tier(i), -works[i].devices * tails[i], i)

    def long_first(i: int) -> tuple[float, ...]:
        return (*tier(i), works[i].devices < fleet, -tails[i], i)

    def full_then_narrow_first(i: int) -> tuple[float, ...]:
        return (*tier(i), works[i].devices < fleet, works[i].devices, -tails[i], i)

    return [wide_first, area_first, long_first, full_then_narrow_first]


def _tails(works: Sequence[Work], seconds: Mapping[UnitKey, float]) -> list[float]:
    """Seconds from the start of each unit to the end of the longest chain that waits for it."""
    if not any(work.after for work in works):
        return [seconds[work.key] for work in works]
    index = {work.key: i for i, work in enumerate(works)}
    followers: list[list[int]] = [[] for _ in works]
    missing = [0] * len(works)
    for i, work in enumerate(works):
        for name in set(work.after):
            followers[index[name]].append(i)
            missing[index[name]] += 1
    tails = [seconds[work.key] for work in works]
    done = [i for i, count in enumerate(missing) if not count]
    while done:
        i = done.pop()
        for name in set(works[i].after):
            before = index[name]
            tails[before] = max(tails[before], seconds[name] + tails[i])
            missing[before] -= 1
            if not missing[before]:
                done.append(before)
    return tails


class _Search:
    """Local search over orders; deterministic."""

    def __init__(
        self,
        works: Sequence[Work],
        scenarios: Sequence[Mapping[UnitKey, float]],
        devices: Sequence[Device],
        *,
        host_slots: int,
    ) -> None:
        self._works = works
        self._scenarios = scenarios
        self._devices = devices
        self._host_slots = host_slots
        self._index = {work.key: i for i, work in enumerate(works)}
        self._tier = [(-work.priority, not work.failed_before) for work in works]
        bounds = [lower_bound(works, seconds, devices) for seconds in scenarios]
        self._goal = sum(bounds) * _GOOD_ENOUGH
        self.best_order: list[int] = []
        self._best = float("inf")
        """Sum of the makespans of the best order over all scenarios."""
        self._ends_last: list[int] = []

    def consider(self, order: list[int]) -> bool:
        """Simulate an order and keep it if it is the best so far."""
        total = 0.0
        runs = []
        for seconds in self._scenarios:
            placements = self._simulate(order, seconds)
            total += makespan(placements)
            if total >= self._best:
                return False
            runs.append(placements)
        self.best_order, self._best = order, total
        self._ends_last = self._latest(runs)
        return True

    def _simulate(self, order: list[int], seconds: Mapping[UnitKey, float]) -> list[Placement]:
        return simulate(
            self._works,
            seconds,
            self._devices,
            ranks=_ranks_of(order),
            policy=Policy.PACKED,
            host_slots=self._host_slots,
        )

    def _latest(self, runs: Sequence[Sequence[Placement]]) -> list[int]:
        """The two units that end last in each scenario, each once."""
        latest: dict[int, None] = {}
        for placements in runs:
            for placement in sorted(placements, key=lambda placement: -placement.end_s)[:2]:
                latest[self._index[placement.key]] = None
        return list(latest)

    def improve(self, trials: int) -> None:
        """Move one of the units that end last ahead while that helps."""
        while trials > 0 and self._best > self._goal:
            found = False
            for order in self._neighbours():
                trials -= 1
                found = self.consider(order)
                if found or trials <= 0:
                    break
            if not found:
                return

    def _neighbours(self) -> list[list[int]]:
        order = self.best_order
        found: list[list[int]] = []
        for index in self._ends_last:
            place = order.index(index)
            targets = {0, place // 2, place * 3 // 4, place - 4, place - 2, place - 1}
            found.extend(
                [*order[:target], index, *order[target:place], *order[place + 1 :]]
                for target in sorted(targets)
                if 0 <= target < place and self._tier[order[target]] == self._tier[index]
            )
        return found
