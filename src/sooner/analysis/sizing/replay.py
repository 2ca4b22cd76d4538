"""What an option does to queues: the record's arrivals with the job's own ones taken out and the option's put in."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.sizing.candidates import replay
from sooner.analysis.sizing.decide import Waiting
from sooner.analysis.sizing.facts import HOUR_S, Numbers, Queue, Steps
from sooner.analysis.sizing.fifo import whole
from sooner.analysis.sizing.placement import Lane, Option

_FEW: Final = 5


class Pool(Struct, frozen=True, kw_only=True):
    """An understood pool, and which of its jobs are those that the options replace."""

    label: str
    queue: Queue
    capacity: Steps
    """Machines for our jobs over the window; whole numbers or not."""
    delay_s: float
    disorder: float = 0.0
    ours: Numbers
    """1 for jobs that options replace."""
    since: float
    until: float


def waiting(option: Option, pools: Mapping[str, Pool], pushes: Sequence[float]) -> Waiting | str:
    """Queues and signals of an option, or why nothing can be said.

    Args:
        option: Its lanes.
        pools: By label.
        pushes: When each commit's tests could have started: when the jobs that are replaced were created.
    """
    if len(pushes) < _FEW:
        return f"only {len(pushes)} runs of the job are known"
    ends = np.zeros(len(pushes))
    queued: list[Numbers] = []
    missing = sorted({one.runner.label for one in option.lanes if one.runner.devices} - set(pools))
    if missing:
        return f"the pool {missing[0]} is not known or not understood"
    for label in {one.runner.label for one in option.lanes}:
        lanes = [one for one in option.lanes if one.runner.label == label]
        waits = _waits(lanes, pools.get(label), pushes)
        for one, per_shard in zip(lanes, waits, strict=True):
            if one.every_h is None:
                queued.append(per_shard.ravel())
                ends = np.maximum(ends, (per_shard + np.array(one.walls_s)).max(axis=1))
    if not queued:
        return "nothing of it runs at a commit"
    queue = np.concatenate(queued)
    q50, q90 = np.quantile(queue, [0.5, 0.9])
    s50, s90 = np.quantile(ends, [0.5, 0.9])
    return Waiting(queue_p50=float(q50), queue_p90=float(q90), signal_p50=float(s50), signal_p90=float(s90))


def _waits(lanes: Sequence[Lane], pool: Pool | None, pushes: Sequence[float]) -> list[Numbers]:
    """For each lane, waits by run and shard (periodic lanes: none are asked for, but they load the pool)."""
    if pool is None:
        return [np.zeros((len(pushes) if one.every_h is None else 0, len(one.walls_s))) for one in lanes]
    queue = pool.queue
    kept = (pool.ours == 0) & (queue.created >= pool.since) & (queue.created < pool.until) & ~np.isnan(queue.seconds)
    created, seconds, whose = [queue.created[kept]], [queue.seconds[kept]], [np.full(int(kept.sum()), -1)]
    shapes = []
    for index, one in enumerate(lanes):
        at = np.asarray(pushes) if one.every_h is None else _ticks(pool, one.every_h)
        shapes.append((len(at), len(one.walls_s)))
        created.append(np.repeat(at, len(one.walls_s)))
        seconds.append(np.tile(np.array(one.walls_s), len(at)))
        whose.append(np.full(len(at) * len(one.walls_s), index))
    at, took, owner = np.concatenate(created), np.concatenate(seconds), np.concatenate(whose)
    order = np.argsort(at, kind="stable")
    running = (queue.started < pool.since) & (queue.completed > pool.since)
    capacity = whole(pool.capacity.since(pool.since))
    begun = np.empty(len(at))
    busy = queue.completed[running].tolist()
    begun[order] = replay(at[order].tolist(), took[order].tolist(), capacity, pool.disorder, busy=busy)
    waits = begun - at + pool.delay_s
    return [waits[owner == index].reshape(shape) for index, shape in enumerate(shapes)]


def _ticks(pool: Pool, every_h: float) -> Numbers:
    step = every_h * HOUR_S
    ticks: Numbers = np.arange(np.ceil(pool.since / step) * step, pool.until, step)
    return ticks
