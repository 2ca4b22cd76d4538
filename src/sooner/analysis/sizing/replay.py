"""What an option does to queues: the record's arrivals with the job's own ones taken out and the option's put in."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.sizing.candidates import replay
from sooner.analysis.sizing.decide import Waiting
from sooner.analysis.sizing.declared import Crowd, at_work, handover_s, machines, tasks_of
from sooner.analysis.sizing.events import Task, play
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
    crowd: Crowd | None = None
    """Everybody's jobs, where the machines are shared with other labels, or booted when needed."""

    @property
    def our_priority(self) -> float:
        """Of the jobs that options replace, what most of them had; their new ones come with it."""
        if self.queue.priority is None or not self.ours.any():
            return 0.0
        return float(np.median(self.queue.priority[self.ours > 0]))


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
        ours = ", ".join(sorted(label for label, pool in pools.items() if pool.ours.any()))
        known = f"; what is replaced ran on {ours}" if ours else ""
        return f"the pool {missing[0]} is not known or not understood{known}"
    for lanes in _together(option.lanes, pools):
        pool = pools.get(lanes[0].runner.label)
        if pool is not None and pool.crowd is not None:
            waits = _waits_in_crowd(lanes, pools, pool.crowd, pushes)
        else:
            waits = _waits(lanes, pool, pushes)
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


def _together(lanes: Sequence[Lane], pools: Mapping[str, Pool]) -> list[list[Lane]]:
    """Lanes by the machines that they run on."""
    found: dict[object, list[Lane]] = {}
    for one in lanes:
        pool = pools.get(one.runner.label)
        shared = None if pool is None or pool.crowd is None else id(pool.crowd)
        found.setdefault(shared or one.runner.label, []).append(one)
    return list(found.values())


def _waits_in_crowd(
    lanes: Sequence[Lane], pools: Mapping[str, Pool], crowd: Crowd, pushes: Sequence[float]
) -> list[Numbers]:
    """The same for lanes of all labels that share machines."""
    members = [pool for pool in pools.values() if pool.crowd is crowd]
    since, until = max(pool.since for pool in members), min(pool.until for pool in members)
    queue = crowd.queue
    stays = np.ones(len(queue), dtype=np.bool_)
    for pool in members:
        if pool.label in crowd.labels:
            stays[crowd.position(pool.label)] = pool.ours == 0
    stays &= (queue.created >= since) & (queue.created < until)
    tasks = [*at_work(crowd, since), *tasks_of(crowd, np.flatnonzero(stays), queue.created[stays])]
    first = len(tasks)
    for one in lanes:
        begins = list(pushes) if one.every_h is None else _ticks(since, until, one.every_h).tolist()
        label, priority = one.runner.label, _priority_of(members)
        tasks += [Task(label=label, created=at, seconds=s, priority=priority) for at in begins for s in one.walls_s]
    shared = machines(crowd, since, labels=[one.runner.label for one in lanes])
    started = np.array(play(tasks, shared).started)[first:]
    waits = started - np.array([task.created for task in tasks[first:]])
    found = []
    for one in lanes:
        count = len(pushes) if one.every_h is None else len(_ticks(since, until, one.every_h))
        here, waits = waits[: count * len(one.walls_s)], waits[count * len(one.walls_s) :]
        beyond = max(0.0, pools[one.runner.label].delay_s - handover_s(crowd.pool))
        found.append(here.reshape(count, len(one.walls_s)) + beyond)
    return found


def _priority_of(members: Sequence[Pool]) -> float:
    """What the replaced jobs had, wherever on the shared machines they ran."""
    return max((pool.our_priority for pool in members if pool.ours.any()), default=0.0)


def _waits(lanes: Sequence[Lane], pool: Pool | None, pushes: Sequence[float]) -> list[Numbers]:
    """For each lane, waits by run and shard (periodic lanes: none are asked for, but they load the pool)."""
    if pool is None:
        return [np.zeros((len(pushes) if one.every_h is None else 0, len(one.walls_s))) for one in lanes]
    queue = pool.queue
    kept = (pool.ours == 0) & (queue.created >= pool.since) & (queue.created < pool.until) & ~np.isnan(queue.seconds)
    created, seconds, whose = [queue.created[kept]], [queue.seconds[kept]], [np.full(int(kept.sum()), -1)]
    priority = None if queue.priority is None else [queue.priority[kept]]
    shapes = []
    for index, one in enumerate(lanes):
        at = np.asarray(pushes) if one.every_h is None else _ticks(pool.since, pool.until, one.every_h)
        shapes.append((len(at), len(one.walls_s)))
        created.append(np.repeat(at, len(one.walls_s)))
        seconds.append(np.tile(np.array(one.walls_s), len(at)))
        whose.append(np.full(len(at) * len(one.walls_s), index))
        if priority is not None:
            priority.append(np.full(len(at) * len(one.walls_s), pool.our_priority))
    at, took, owner = np.concatenate(created), np.concatenate(seconds), np.concatenate(whose)
    order = np.argsort(at, kind="stable")
    running = (queue.started < pool.since) & (queue.completed > pool.since)
    capacity = whole(pool.capacity.since(pool.since))
    begun = np.empty(len(at))
    busy = queue.completed[running].tolist()
    first = None if priority is None else np.concatenate(priority)[order].tolist()
    begun[order] = replay(at[order].tolist(), took[order].tolist(), capacity, pool.disorder, busy=busy, priority=first)
    waits = begun - at + pool.delay_s
    return [waits[owner == index].reshape(shape) for index, shape in enumerate(shapes)]


def _ticks(since: float, until: float, every_h: float) -> Numbers:
    step = every_h * HOUR_S
    ticks: Numbers = np.arange(np.ceil(since / step) * step, until, step)
    return ticks
