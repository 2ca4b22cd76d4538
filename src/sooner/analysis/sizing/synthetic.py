"""Pools whose truth is known: bursts, cron, days and weeks, others' jobs, machines that come and go. Seeded."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct, field

from sooner.analysis.sizing.events import Machines, Nodes, Task, play
from sooner.analysis.sizing.facts import DAY_S, HOUR_S, Flags, Indices, Node, Numbers, Queue, Steps
from sooner.analysis.sizing.fifo import starts

_MONDAY: Final = 1_767_571_200.0
"""2026-01-05, 00:00 UTC."""


class Recipe(Struct, frozen=True, kw_only=True):
    """What a pool is made of."""

    days: int = 42
    machines: int = 20
    load: float = 0.75
    """Share of all machine-hours that is asked for, by us and others together."""
    batch: float = 12.0
    """Mean jobs of a push, geometric: what makes the index of dispersion of 10 minutes 14-60."""
    median_s: float = 2400.0
    sigma: float = 0.6
    """Of the logarithm of durations."""
    night: float = 0.35
    """Rate of pushes at night, as a share of the rate at noon."""
    weekend: float = 0.4
    cron_every_h: float = 0.0
    cron_jobs: int = 0
    others: float = 0.0
    """Share of the load that belongs to others, and is not in the record."""
    day_machines: float = 0.0
    """How many more machines, as a share, there are between 8 and 20 o'clock."""
    drift: float = 0.0
    """How much the number of machines grows until the end, as a share."""
    delay_s: float = 15.0
    """Median of handing a job to a machine."""
    boot_s: float = 0.0
    """Above 0: machines are booted when needed and let go after ten idle minutes."""


def pushes(recipe: Recipe, jobs_per_day: float, random: np.random.Generator) -> Numbers:
    """When jobs are created: pushes by day and week, each with a burst of jobs; and cron."""
    hours = np.arange(recipe.days * 24)
    rate = np.where((hours % 24 >= 8) & (hours % 24 < 20), 1.0, recipe.night)  # noqa: PLR2004 - a working day
    rate = rate * np.where((hours // 24) % 7 >= 5, recipe.weekend, 1.0)  # noqa: PLR2004 - Saturday
    cron_a_day = recipe.cron_jobs * 24 / recipe.cron_every_h if recipe.cron_every_h else 0.0
    per_hour = rate / rate.mean() * max(1.0, jobs_per_day - cron_a_day) / 24 / recipe.batch
    counts = random.poisson(per_hour)
    at = np.repeat(hours, counts) * HOUR_S + random.random(counts.sum()) * HOUR_S
    sizes = random.geometric(1.0 / recipe.batch, len(at))
    created = np.repeat(at, sizes) + random.random(sizes.sum()) * 20.0
    if recipe.cron_every_h:
        ticks = np.arange(0, recipe.days * DAY_S, recipe.cron_every_h * HOUR_S)
        created = np.concatenate(
            [created, np.repeat(ticks, recipe.cron_jobs) + random.random(len(ticks) * recipe.cron_jobs)]
        )
    return _MONDAY + np.sort(created)


def capacity_of(recipe: Recipe) -> Steps:
    """Machines over time."""
    if not recipe.day_machines and not recipe.drift:
        return Steps((_MONDAY,), (float(recipe.machines),))
    times = _MONDAY + HOUR_S * np.arange(recipe.days * 24)
    hour = np.arange(recipe.days * 24) % 24
    more = np.where((hour >= 8) & (hour < 20), recipe.day_machines, 0.0)  # noqa: PLR2004 - a working day
    grown = recipe.drift * np.arange(len(times)) / len(times)
    return Steps(tuple(times.tolist()), tuple(np.round(recipe.machines * (1 + more + grown)).tolist()))


class World(Struct, frozen=True, kw_only=True):
    """All jobs of a pool, ours and others', and its true machines."""

    recipe: Recipe
    created: Numbers
    seconds: Numbers
    delays: Numbers
    ours: Flags
    """Jobs that are in the record."""
    bursts: Indices
    """Which push each job came with."""
    capacity: Steps


def world(recipe: Recipe, seed: int) -> World:
    """A pool with everything that loads it."""
    random = np.random.default_rng(seed)
    capacity = capacity_of(recipe)
    mean_s = recipe.median_s * np.exp(recipe.sigma**2 / 2)
    jobs_per_day = recipe.load * float(np.mean(capacity.counts)) * DAY_S / mean_s
    created = pushes(recipe, jobs_per_day, random)
    seconds = recipe.median_s * np.exp(random.normal(0, recipe.sigma, len(created)))
    delays = recipe.delay_s * np.exp(random.normal(0, 0.4, len(created)))
    # Others push on their own: each burst is ours or theirs as a whole.
    bursts = np.cumsum(np.concatenate([[True], np.diff(created) > 1.0]))
    ours = (random.random(int(bursts[-1]) + 1) >= recipe.others)[bursts]
    return World(
        recipe=recipe, created=created, seconds=seconds, delays=delays, ours=ours, bursts=bursts, capacity=capacity
    )


def true_starts(one: World) -> Numbers:
    """When each job of a world starts."""
    created, seconds = one.created.tolist(), one.seconds.tolist()
    if not one.recipe.boot_s:
        held = (one.seconds + one.delays).tolist()
        return np.array(starts(created, held, one.capacity)) + one.delays
    pool = Machines(capacity=one.capacity, boot_s=one.recipe.boot_s, idle_s=600.0)
    tasks = [Task(label="p", created=at, seconds=s) for at, s in zip(created, seconds, strict=True)]
    return np.array(play(tasks, {"p": pool}).started) + one.delays


def made(recipe: Recipe, seed: int) -> tuple[Queue, Steps]:
    """The visible record of a pool, and its true machines over time."""
    one = world(recipe, seed)
    started, ours = true_starts(one), one.ours
    return queue_of(one.created[ours], started[ours], started[ours] + one.seconds[ours]), one.capacity


def queue_of(created: Numbers, started: Numbers, completed: Numbers) -> Queue:
    """A record in which everything is known."""
    return Queue(
        created=created,
        started=started,
        completed=completed,
        seconds=completed - started,
        to_predict=np.zeros(len(created), dtype=np.bool_),
    )


def dispersion(created: Numbers, bin_s: float = 600.0) -> float:
    """Index of dispersion of arrivals: variance over mean of their count in bins; 1 for a Poisson process."""
    counts = np.bincount(((created - created[0]) // bin_s).astype(int))
    return float(counts.var() / counts.mean())


class SharedRecipe(Struct, frozen=True, kw_only=True):
    """Nodes that split, and what loads them."""

    days: int = 28
    nodes: int = 8
    devices: int = 8
    shares: dict[str, tuple[int, float]] = field(
        default_factory=lambda: {"gpu.1": (1, 0.2), "gpu.2": (2, 0.3), "gpu.4": (4, 0.5)}
    )
    """By label: devices of a job, share of the load."""
    load: float = 0.75
    batch: float = 6.0
    median_s: float = 2400.0
    sigma: float = 0.6
    handover_s: float = 20.0
    reserves: bool = True

    @property
    def pool(self) -> Nodes:
        """The nodes."""
        widths = {label: width for label, (width, _) in self.shares.items()}
        node = Node(count=self.nodes, devices=self.devices, widths=widths)
        return Nodes(nodes=(node,), handover_s=self.handover_s, reserves=self.reserves)


def shared_tasks(recipe: SharedRecipe, seed: int) -> list[Task]:
    """All jobs of nodes that split, label after label."""
    random = np.random.default_rng(seed)
    mean_s = recipe.median_s * np.exp(recipe.sigma**2 / 2)
    tasks: list[Task] = []
    for label, (width, share) in recipe.shares.items():
        per_day = recipe.load * share * recipe.nodes * recipe.devices * DAY_S / (width * mean_s)
        created = pushes(Recipe(days=recipe.days, batch=recipe.batch), per_day, random)
        seconds = recipe.median_s * np.exp(random.normal(0, recipe.sigma, len(created)))
        tasks += [
            Task(label=label, created=a, seconds=b) for a, b in zip(created.tolist(), seconds.tolist(), strict=True)
        ]
    return tasks


def shared_queues(recipe: SharedRecipe, tasks: Sequence[Task], seed: int) -> dict[str, Queue]:
    """The record of nodes that split, by label."""
    random = np.random.default_rng(seed)
    started = np.array(play(tasks, dict.fromkeys(recipe.shares, recipe.pool)).started)
    created = np.array([task.created for task in tasks])
    begun = started + random.exponential(5.0, len(tasks))
    ended = started + np.array([task.seconds for task in tasks])
    found = {}
    for label in recipe.shares:
        rows = np.array([task.label == label for task in tasks])
        found[label] = queue_of(created[rows], begun[rows], np.maximum(ended, begun + 1.0)[rows])
    return found
