"""Placements: which tests run on which runner, when, in how many shards; and what that costs and loses. Pure.

A *lane* is a set of tests on one size of runner with one trigger: every commit, or a clock. An *option* is a set of
lanes for what is one job of a workflow now.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Final

from msgspec import Struct

from sooner.analysis.sizing.needs import Fate, TestNeed, fate, number
from sooner.model.devices import Device, DeviceId, DeviceKind
from sooner.model.units import UnitKey
from sooner.schedule.shard import shards as split
from sooner.schedule.simulate import makespan, simulate
from sooner.schedule.work import Work

CURRENT: Final = "current"
"""The option that is what there is now."""
_MOST_SHARDS: Final = 64
_ORDER: Final = (Fate.FULL, Fate.FEWER_RANKS, Fate.FALLS_BACK, Fate.FAILS, Fate.SKIPPED, Fate.UNKNOWN)
"""From what is best for a test to what is worst; unknown is worse than a skip that one knows of."""
_TELLS: Final = frozenset({Fate.FULL, Fate.FEWER_RANKS, Fate.FALLS_BACK, Fate.UNKNOWN})
"""What a run of a test may tell something by."""


class Test(Struct, frozen=True, kw_only=True):
    """A test, or a file of tests that stay together."""

    __test__ = False  # pytest, this is not one of yours

    need: TestNeed
    seconds: float
    members: tuple["Test", ...] = ()
    """Of a file: its tests, each of which is counted for itself."""

    @property
    def name(self) -> str:
        """Its node id."""
        return self.need.nodeid

    @property
    def each(self) -> tuple["Test", ...]:
        """The tests of a file, or the test itself."""
        return self.members or (self,)


class Runner(Struct, frozen=True, kw_only=True):
    """A size of runner."""

    devices: int
    label: str


class Lane(Struct, frozen=True, kw_only=True):
    """Some tests on one size of runner."""

    runner: Runner
    every_h: float | None = None
    """Hours between periodic runs; None: at every commit."""
    tests: tuple[str, ...]
    """All that are started there, those that skip included."""
    shards: tuple[tuple[str, ...], ...]
    walls_s: tuple[float, ...]
    """How long each shard takes, set-up included."""

    @property
    def longest_s(self) -> float:
        """The slowest shard."""
        return max(self.walls_s, default=0.0)


class Option(Struct, frozen=True, kw_only=True):
    """One way to place the tests of a job."""

    name: str
    lanes: tuple[Lane, ...]


class Terms(Struct, frozen=True, kw_only=True):
    """What options are computed with."""

    runners: tuple[Runner, ...]
    commits_per_day: float
    target_s: float
    """How long a shard should take at most, set-up included."""
    setup_s: float = 0.0
    """From the start of a shard's job until its first test runs: check-out, download of the build."""
    packed: bool = False
    """Tests of a shard run beside each other on its devices (`sooner run`), not one after the other."""


class Price(Struct, frozen=True, kw_only=True):
    """What an option costs, and what it loses."""

    device_minutes_per_commit: float
    device_minutes_per_day: float
    longest_s: float
    """The slowest shard of a commit's lanes."""
    at_commit: dict[str, int]
    """Tests by what becomes of them at every commit; `absent`: not started."""
    anywhere: dict[str, int]
    """Tests by the best that becomes of them in any lane."""
    lost: tuple[str, ...]
    """Tests whose full need is met in no lane."""
    moved: int
    """Tests whose full need, or as much of it as is met anywhere, is met in periodic lanes only."""
    delay_mean_h: float
    """For moved tests: from the push until the result of the next periodic run, its own queue not counted."""
    delay_worst_h: float


def lane(
    tests: Sequence[Test], runner: Runner, terms: Terms, *, every_h: float | None = None, shards: int | None = None
) -> Lane:
    """Tests in shards that take about the same time.

    Args:
        tests: All that are started there.
        runner: Where.
        terms: How.
        every_h: The clock, None for every commit.
        shards: How many; by default as few as keep each within the terms' target.
    """
    works = [
        Work(
            key=UnitKey(test.name),
            devices=_width(test.need, runner.devices) if terms.packed else 1,
            seconds=_seconds_on(test, runner.devices),
        )
        for test in tests
    ]
    seconds = {work.key: work.seconds or 0.0 for work in works}
    count = shards or _count(works, seconds, runner, terms)
    parts = split(works, seconds, count)
    by_key = {work.key: work for work in works}
    walls = [terms.setup_s + _wall([by_key[key] for key in part], seconds, runner, terms) for part in parts]
    return Lane(
        runner=runner,
        every_h=every_h,
        tests=tuple(test.name for test in tests),
        shards=tuple(tuple(map(str, part)) for part in parts),
        walls_s=tuple(walls),
    )


def _seconds_on(test: Test, devices: int) -> float:
    """A test that is skipped takes no time; others are taken to take as long on every size."""
    return sum(one.seconds for one in test.each if fate(one.need, devices) is not Fate.SKIPPED)


def _width(need: TestNeed, devices: int) -> int:
    full = number(need.full)
    return max(1, min(devices, devices if full is None else full))


def _count(works: Sequence[Work], seconds: Mapping[UnitKey, float], runner: Runner, terms: Terms) -> int:
    room = max(terms.target_s - terms.setup_s, 1.0)
    area = sum(seconds[work.key] * work.devices for work in works)
    width = max(1, runner.devices) if terms.packed else 1
    count = max(1, min(_MOST_SHARDS, len(works), ceil(area / width / room - 1e-9)))
    room = max(room, *seconds.values(), 0.0)  # no number of shards makes one test take less
    while count < _MOST_SHARDS and len(works) > count:
        parts = split(works, seconds, count)
        by_key = {work.key: work for work in works}
        if max(_wall([by_key[k] for k in part], seconds, runner, terms) for part in parts) <= room * 1.02:
            break
        count += 1
    return count


def _wall(works: Sequence[Work], seconds: Mapping[UnitKey, float], runner: Runner, terms: Terms) -> float:
    if not terms.packed or runner.devices <= 1:
        return sum(seconds[work.key] for work in works)
    devices = [
        Device(id=DeviceId(str(i)), index=i, kind=DeviceKind.VIRTUAL, visible=str(i)) for i in range(runner.devices)
    ]
    busy = [work for work in works if seconds[work.key] > 0]
    order = sorted(range(len(busy)), key=lambda i: -seconds[busy[i].key] * busy[i].devices)
    ranks = [0] * len(busy)
    for rank, index in enumerate(order):
        ranks[index] = rank
    return makespan(simulate(busy, seconds, devices, ranks=ranks)) if busy else 0.0


def price(option: Option, tests: Sequence[Test], terms: Terms) -> Price:
    """What an option costs and loses."""
    commit = [one for one in option.lanes if one.every_h is None]
    clock = [one for one in option.lanes if one.every_h is not None]
    per_commit = sum(map(device_minutes, commit))
    per_day = per_commit * terms.commits_per_day
    per_day += sum(device_minutes(one) * 24.0 / (one.every_h or 24.0) for one in clock)
    at_commit = best_fates(tests, commit)
    anywhere = best_fates(tests, option.lanes)
    needed = {one.name: test.name for test in tests for one in test.each if not one.need.never_runs}
    lost = [name for name in needed if anywhere.get(name) is not Fate.FULL]
    moved = [n for n in needed if anywhere.get(n) in _TELLS and at_commit.get(n) is not anywhere[n]]
    delays = [_delay(needed[name], clock) for name in moved]
    return Price(
        device_minutes_per_commit=per_commit,
        device_minutes_per_day=per_day,
        longest_s=max((one.longest_s for one in commit), default=0.0),
        at_commit=_counted(tests, at_commit),
        anywhere=_counted(tests, anywhere),
        lost=tuple(sorted(lost)),
        moved=len(moved),
        delay_mean_h=sum(mean for mean, _ in delays) / len(delays) if delays else 0.0,
        delay_worst_h=max((worst for _, worst in delays), default=0.0),
    )


def device_minutes(one: Lane) -> float:
    """What one run of a lane takes of devices; a runner without devices takes none."""
    return sum(one.walls_s) * one.runner.devices / 60.0


def best_fates(tests: Sequence[Test], lanes: Sequence[Lane]) -> dict[str, Fate]:
    """For each test that is started in one of the lanes, the best that becomes of it."""
    sizes: dict[str, set[int]] = {}
    for one in lanes:
        for name in one.tests:
            sizes.setdefault(name, set()).add(one.runner.devices)
    return {
        one.name: min((fate(one.need, size) for size in sizes[test.name]), key=_ORDER.index)
        for test in tests
        if test.name in sizes
        for one in test.each
    }


def _counted(tests: Sequence[Test], fates: Mapping[str, Fate]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for test in (one for each in tests for one in each.each):
        word = "never_runs" if test.need.never_runs else str(fates.get(test.name, "absent"))
        counts[word] = counts.get(word, 0) + 1
    return counts


def _delay(name: str, clock: Sequence[Lane]) -> tuple[float, float]:
    """Mean and worst hours until the next periodic run that starts a test tells its result."""
    found = [
        ((one.every_h or 0.0) / 2 + wall / 3600.0, (one.every_h or 0.0) + wall / 3600.0)
        for one in clock
        for part, wall in zip(one.shards, one.walls_s, strict=True)
        if name in part
    ]
    return min(found, default=(0.0, 0.0))
