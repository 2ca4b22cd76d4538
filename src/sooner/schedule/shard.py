"""Shards: which units the I-th of N machines runs, so that all take about the same time."""

from collections.abc import Mapping, Sequence
from heapq import heapreplace

from sooner.model.units import UnitKey
from sooner.schedule.work import Work


def shard(works: Sequence[Work], seconds: Mapping[UnitKey, float], *, index: int, count: int) -> list[UnitKey]:
    """The units of shard `index` (1-based) of `count`, in plan order."""
    return shards(works, seconds, count)[index - 1]


def shards(works: Sequence[Work], seconds: Mapping[UnitKey, float], count: int) -> list[list[UnitKey]]:
    """The units of each of `count` shards, in plan order.

    Longest device-seconds first onto the shard that has least (LPT: Graham, "Bounds on multiprocessing timing
    anomalies", 1969; at most 4/3 of the best split). Units tied by `after` stay together. Every machine that computes
    this from the same plan and durations gets the same answer, and the shards are a partition of the plan.
    """
    weighed = [
        (sum(seconds[work.key] * max(1, work.devices) for work in group), group[0].key, group)
        for group in _groups(works)
    ]
    loads = [(0.0, place) for place in range(count)]  # a heap: the one that has least, then the first, is on top
    places: dict[UnitKey, int] = {}
    for weight, _, group in sorted(weighed, key=lambda one: (-one[0], one[1])):
        load, place = loads[0]
        heapreplace(loads, (load + weight, place))
        places |= dict.fromkeys((work.key for work in group), place)
    found: list[list[UnitKey]] = [[] for _ in range(count)]
    for work in works:
        found[places[work.key]].append(work.key)
    return found


def _groups(works: Sequence[Work]) -> list[list[Work]]:
    """Units that are tied by `after`, directly or through others (union-find)."""
    parent = {work.key: work.key for work in works}

    def root(key: UnitKey) -> UnitKey:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    for work in works:
        for name in work.after:
            parent[root(work.key)] = root(name)
    groups: dict[UnitKey, list[Work]] = {}
    for work in works:
        groups.setdefault(root(work.key), []).append(work)
    return list(groups.values())
