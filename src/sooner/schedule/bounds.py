"""Lower bounds: no schedule, however clever, ends sooner.

The bound is the largest of several relaxations, each exact for what it looks at:

- *full-width units* run alone, so their times add up; everything else runs beside none of them;
- of the rest, *area*: device-seconds over devices;
- of the rest, *width classes*: at most floor(N / w) units at least w wide run at once, over all nodes;
- of the rest, the *longest* unit; over all, the longest *chain* of units that run after each other.

For eight devices and widths 1, 2, 4, 8 this is: time of 8-wide + max(area / 8, longest, half the time of 4-wide, ...).
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from sooner.model.devices import Device
from sooner.model.units import UnitKey
from sooner.schedule.work import Work


def lower_bound(works: Sequence[Work], seconds: Mapping[UnitKey, float], devices: Sequence[Device]) -> float:
    """Seconds below which no schedule of these units on these devices can end.

    Units wider than any node, which never run, and units that need no device are left out of the area. A shared unit
    counts with the share of the largest device's memory that it takes.
    """
    count = len(devices)
    nodes = Counter(device.node for device in devices).values()
    runnable = [work for work in works if 0 < work.devices <= max(nodes, default=0)]
    full = sum(seconds[work.key] for work in runnable if work.devices == count and not work.shared)
    rest = [work for work in runnable if work.devices < count or work.shared]
    return max(full + _bound_of_rest(rest, seconds, devices, nodes), _longest_chain(works, seconds))


def _bound_of_rest(
    rest: Sequence[Work], seconds: Mapping[UnitKey, float], devices: Sequence[Device], nodes: Collection[int]
) -> float:
    if not rest:
        return 0.0
    count = len(devices)
    memory = max((device.memory_mib for device in devices), default=0)
    area = sum(seconds[work.key] * work.devices * _share(work, memory) for work in rest) / count
    longest = max(seconds[work.key] for work in rest)
    exclusive = [work for work in rest if not work.shared]
    classes = (
        sum(seconds[work.key] for work in exclusive if work.devices >= width) / sum(size // width for size in nodes)
        for width in {work.devices for work in exclusive}
    )
    return max(area, longest, *classes)


def _share(work: Work, memory: int) -> float:
    return min(1.0, work.memory_mib / memory) if work.shared and memory else 1.0


def _longest_chain(works: Sequence[Work], seconds: Mapping[UnitKey, float]) -> float:
    """Longest sum of seconds along `after`; the plan has no cycles."""
    return max(chain_ends(works, seconds).values(), default=0.0)


def chain_ends(works: Sequence[Work], seconds: Mapping[UnitKey, float]) -> dict[UnitKey, float]:
    """The earliest end of each unit if devices were endless."""
    after = {work.key: work.after for work in works}
    ends: dict[UnitKey, float] = {}
    for key in after:
        stack = [key]
        while stack:
            top = stack[-1]
            missing = [name for name in after[top] if name not in ends]
            if not missing:
                stack.pop()
                ends.setdefault(top, seconds[top] + max((ends[name] for name in after[top]), default=0.0))
            else:
                stack.extend(missing)
    return ends
