"""Pools as they are declared: machines that are booted when needed, and nodes that several labels share.

Their waits come from the general replay (`events.py`) of all jobs that the machines serve, whatever their label.
"""

import functools
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final

import numpy as np
from msgspec import Struct, structs

from sooner.analysis.sizing.candidates import WINDOW_S, height_of
from sooner.analysis.sizing.events import Machines, Nodes, Task, play
from sooner.analysis.sizing.facts import Flags, Indices, Numbers, Queue

_MOST_NODES: Final = 4096
_MOST_FITTED: Final = 20_000
"""Jobs that a replay may have by which the number of nodes is fitted: a quarter of a second."""


class Crowd(Struct, frozen=True, kw_only=True):
    """All jobs that some machines serve."""

    labels: tuple[str, ...]
    queue: Queue
    label: Indices
    """Position in `labels` of each job's; jobs of one label stand in the order of its own queue."""
    pool: Machines | Nodes
    node: Indices | None = None
    """Position of the node that each job took, as far as its kind of machines tell it; -1 where it took none."""

    def position(self, label: str) -> Indices:
        """Where the jobs of a label are, in the order of its own queue."""
        found: Indices = np.flatnonzero(self.label == self.labels.index(label))
        return found

    def only_told(self) -> "Crowd":
        """Without the jobs whose starts are asked for."""
        kept = ~self.queue.to_predict
        node = None if self.node is None else self.node[kept]
        return structs.replace(self, queue=some_of(self.queue, kept), label=self.label[kept], node=node)


def some_of(queue: Queue, kept: Flags | Indices) -> Queue:
    """Some of a queue's jobs."""
    return Queue(
        created=queue.created[kept],
        started=queue.started[kept],
        completed=queue.completed[kept],
        seconds=queue.seconds[kept],
        to_predict=queue.to_predict[kept],
        priority=None if queue.priority is None else queue.priority[kept],
    )


def split_of(queue: Queue, train: float) -> float:
    """Where the judged part of a record begins: what is asked for, else what comes after a share of its time."""
    if queue.to_predict.any():
        return float(queue.created[queue.to_predict][0])
    begin, end = float(queue.created[0]), float(queue.created[-1]) + 1.0
    return begin + train * (end - begin)


def crowd_of(queues: Mapping[str, Queue], pool: Machines | Nodes) -> Crowd:
    """The jobs of several labels as one queue.

    Args:
        queues: By label.
        pool: What serves them.
    """
    labels = tuple(queues)
    several = list(queues.values())
    created = np.concatenate([one.created for one in several])
    order = np.argsort(created, kind="stable")
    has_priorities = any(one.priority is not None for one in several)
    priorities = [np.zeros(len(one)) if one.priority is None else one.priority for one in several]
    crowd = Crowd(
        labels=labels,
        queue=Queue(
            created=created[order],
            started=np.concatenate([one.started for one in several])[order],
            completed=np.concatenate([one.completed for one in several])[order],
            seconds=_known(np.concatenate([one.seconds for one in several])[order]),
            to_predict=np.concatenate([one.to_predict for one in several])[order],
            priority=np.concatenate(priorities)[order] if has_priorities else None,
        ),
        label=np.concatenate([np.full(len(one), index) for index, one in enumerate(several)])[order],
        pool=pool,
    )
    return _placed(crowd)


def _known(seconds: Numbers) -> Numbers:
    unknown = np.isnan(seconds)
    usual = float(np.median(seconds[~unknown])) if not unknown.all() else 0.0
    return np.where(unknown, usual, seconds)


def begun(crowd: Crowd, since: float, until: float) -> Numbers:
    """When each job of a crowd starts that waits at a time or comes until another one; NaN for all others.

    Which jobs wait and run at `since` is known, nothing of later but arrivals and durations.
    """
    queue = crowd.queue
    first, end = np.searchsorted(queue.created, [since, until])
    before = int(np.searchsorted(queue.created, since - WINDOW_S))
    early = slice(before, first)
    ended = (queue.started[early] <= since) | (queue.completed[early] <= since)
    waits = ~ended & ~np.isnan(queue.started[early] + queue.completed[early])
    jobs = np.concatenate([before + np.flatnonzero(waits), np.arange(first, end)])
    there = at_work(crowd, since)
    tasks = tasks_of(crowd, jobs, np.maximum(queue.created[jobs], since))
    played = play([*there, *tasks], machines(crowd, since))
    found = np.full(len(queue), np.nan)
    found[jobs] = np.nan_to_num(np.array(played.started[len(there) :]), nan=inf)
    return found


def tasks_of(crowd: Crowd, jobs: Indices, created: Numbers) -> list[Task]:
    """Some jobs, as they will come; those that were given up in the record are given up then."""
    queue = crowd.queue
    never = np.isnan(queue.started[jobs]) & ~queue.to_predict[jobs]
    priority = np.zeros(len(jobs)) if queue.priority is None else queue.priority[jobs]
    return [
        Task(label=crowd.labels[label], created=at, seconds=seconds, priority=first, patience=patience)
        for label, at, seconds, first, patience in zip(
            crowd.label[jobs].tolist(),
            created.tolist(),
            queue.seconds[jobs].tolist(),
            priority.tolist(),
            np.where(never, queue.completed[jobs], inf).tolist(),
            strict=True,
        )
    ]


def at_work(crowd: Crowd, since: float) -> list[Task]:
    """What the machines do at a time: jobs that run, the widest first, and machines that idle, as jobs of no length."""
    queue, handover = crowd.queue, handover_s(crowd.pool)
    begin = since - handover
    running = np.flatnonzero((queue.started <= since) & (queue.completed > since))
    widths = widths_of(crowd.pool)
    running = running[np.argsort([-widths.get(crowd.labels[i], 1) for i in crowd.label[running]], kind="stable")]
    nodes = np.full(len(queue), -1) if crowd.node is None else crowd.node
    tasks = [
        Task(label=crowd.labels[label], created=begin, seconds=left, priority=inf, node=node)
        for label, left, node in zip(
            crowd.label[running].tolist(),
            (queue.completed[running] - since).tolist(),
            nodes[running].tolist(),
            strict=True,
        )
    ]
    if isinstance(crowd.pool, Machines) and crowd.pool.idle_s is not None:
        recent = since - crowd.pool.idle_s
        left_behind = int(((queue.completed > recent) & (queue.completed <= since)).sum())
        taken = int(((queue.started > recent) & (queue.started <= since)).sum())
        idle = max(0, left_behind - taken)
        tasks += [Task(label=crowd.labels[0], created=begin, seconds=0.0, priority=inf)] * idle
    return tasks


def machines(crowd: Crowd, since: float, labels: Sequence[str] = ()) -> dict[str, Machines | Nodes]:
    """The machines from a time on, for every label of the crowd, and for more labels that they serve."""
    pool = crowd.pool
    if isinstance(pool, Machines):
        pool = structs.replace(pool, capacity=pool.capacity.since(since - handover_s(pool)))
    return dict.fromkeys([*crowd.labels, *labels], pool)


def handover_s(pool: Machines | Nodes) -> float:
    """What it takes to hand over a machine of its own accord: to boot one, or to make a piece of a node ready."""
    return pool.handover_s if isinstance(pool, Nodes) else pool.boot_s


def may_overtake(pool: Machines | Nodes) -> bool:
    """Whether jobs that come later are served before others that wait: narrow ones, where nodes are not reserved."""
    return isinstance(pool, Nodes) and not pool.reserves


def widths_of(pool: Machines | Nodes) -> dict[str, int]:
    """Devices that a job of each label takes of a node."""
    if isinstance(pool, Machines):
        return {}
    return {label: width for node in pool.nodes for label, width in node.widths.items()}


def fitted(crowd: Crowd, until: float) -> Crowd:
    """The same with a number of nodes, where none is declared: the one whose replay shows the waits until a time.

    Levels of waits are compared in logarithms. Only one kind of node may be without a number.
    """
    if isinstance(crowd.pool, Machines) or all(node.count for node in crowd.pool.nodes):
        return crowd
    queue = crowd.queue
    end = int(np.searchsorted(queue.created, until))
    inside = np.arange(max(0, end - _MOST_FITTED), end)
    inside = inside[~np.isnan(queue.started[inside])]
    if not len(inside):
        return _with_nodes(crowd, 1)
    widths = widths_of(crowd.pool)
    width = np.array([widths[label] for label in crowd.labels], dtype=np.float64)[crowd.label]
    least = _least(queue, width, end, max(node.devices for node in crowd.pool.nodes if not node.count))
    since = float(queue.created[inside[0]])
    wanted = height_of(queue.waits[inside])

    @functools.cache
    def height(count: int) -> float:
        found = begun(_with_nodes(crowd, count), since, until)[inside] - queue.created[inside]
        return height_of(np.maximum(0.0, np.nan_to_num(found, posinf=WINDOW_S)))

    low, high = least, least
    while height(high) > wanted and high < _MOST_NODES:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if height(middle) > wanted else (low, middle)
    return _placed(_with_nodes(crowd, min((high, low), key=lambda count: abs(height(count) - wanted))))


def _least(queue: Queue, width: Numbers, end: int, devices: int) -> int:
    """Nodes that hold what was seen to run at once."""
    ran = np.flatnonzero(~np.isnan(queue.started[:end] + queue.completed[:end]))
    times = np.concatenate([queue.completed[ran], queue.started[ran]])
    change = np.concatenate([-width[ran], width[ran]])
    top = float(np.cumsum(change[np.argsort(times, kind="stable")]).max(initial=0.0))
    return max(1, int(np.ceil(top / devices)))


def _placed(crowd: Crowd) -> Crowd:
    """The same with the node that each job took: the fullest on which it fitted, as jobs began and ended in the record.

    Which node a job ran on is not recorded, and a free half of two nodes is no free node: where wide jobs wait hangs
    on it. What fits nowhere, since the clocks differ by seconds, takes the emptiest node.
    """
    if isinstance(crowd.pool, Machines) or not all(node.count for node in crowd.pool.nodes):
        return crowd
    queue, widths = crowd.queue, widths_of(crowd.pool)
    width = np.array([widths[label] for label in crowd.labels])[crowd.label]
    taken = queue.started - handover_s(crowd.pool)
    ran = np.flatnonzero(queue.completed > taken)  # what ended the moment it began held nothing
    times = np.concatenate([queue.completed[ran], taken[ran]])
    free = np.array([node.devices for node in crowd.pool.nodes for _ in range(node.count)])
    nodes = np.full(len(queue), -1)
    for event in np.argsort(times, kind="stable").tolist():  # at one moment devices become free before they are taken
        job = int(ran[event % len(ran)])
        if event < len(ran):
            free[nodes[job]] += width[job]
            continue
        room = np.where(free >= width[job], free, np.iinfo(free.dtype).max)
        nodes[job] = room.argmin() if (free >= width[job]).any() else free.argmax()
        free[nodes[job]] -= width[job]
    return structs.replace(crowd, node=nodes)


def _with_nodes(crowd: Crowd, count: int) -> Crowd:
    if isinstance(crowd.pool, Machines):
        return crowd
    nodes = tuple(node if node.count else structs.replace(node, count=count) for node in crowd.pool.nodes)
    return structs.replace(crowd, pool=structs.replace(crowd.pool, nodes=nodes))
