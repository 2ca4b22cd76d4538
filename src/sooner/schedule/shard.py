"""Shards: which units the I-th of N machines runs, so that all take about the same time."""

from collections.abc import Mapping, Sequence

from sooner.model.units import UnitKey
from sooner.schedule.work import Work


def shard(works: Sequence[Work], seconds: Mapping[UnitKey, float], *, index: int, count: int) -> list[UnitKey]:
    """The units of shard `index` (1-based) of `count`, in plan order.

    Longest device-seconds first onto the shard that has least (LPT: Graham, "Bounds on multiprocessing timing
    anomalies", 1969; at most 4/3 of the best split). Units tied by `after` stay together. Every machine that computes
    this from the same plan and durations gets the same answer, and the shards are a partition of the plan.
    """
    groups = _groups(works)
    loads = [0.0] * count
    chosen: set[UnitKey] = set()

    def weight(group: Sequence[Work]) -> float:
        return sum(seconds[work.key] * max(1, work.devices) for work in group)

    for group in sorted(groups, key=lambda group: (-weight(group), group[0].key)):
        target = min(range(count), key=lambda i: (loads[i], i))
        loads[target] += weight(group)
        if target == index - 1:
            chosen.update(work.key for work in group)
    return [work.key for work in works if work.key in chosen]


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
