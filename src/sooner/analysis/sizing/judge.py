"""Predicts a pool's waits day by day, each day from what was known before it, and says whether the pool is understood.

Every day each candidate (`candidates.py`) predicts; the one whose predictions of the days before were closest to what
happened is believed. Arrivals and durations of the day are taken as recorded, as a replay of other options does too;
starts are not: they are what is judged.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, field, structs

from sooner.analysis.sizing.candidates import (
    BLIND,
    CANDIDATES,
    IN_ORDER,
    SOFT_S,
    WINDOW_S,
    Draw,
    Past,
    calibrate,
    past_of,
    replay,
)
from sooner.analysis.sizing.declared import Crowd, begun, handover_s, may_overtake, some_of, split_of
from sooner.analysis.sizing.facts import DAY_S, HOUR_S, Indices, Numbers, Percentiles, PoolSpec, Queue, Steps
from sooner.analysis.sizing.hours import Levels
from sooner.analysis.sizing.seen import delays, disorder_of, load_of, look, undelayed

HORIZON_S: Final = 6 * HOUR_S
"""How far ahead is predicted, by default, before what happened meanwhile is looked at."""
TOLERANCE: Final = 0.2
"""A pool is understood where the predicted p90 is within this share of the observed one."""
TRAIN: Final = 0.7
"""Share of the time before the part that is judged, by default."""
_TOLERANCE_P50: Final = 0.35
_SLACK_S: Final = 15.0
"""Differences below this do not matter where jobs take minutes."""
_FEW: Final = 50
"""Judged jobs below which a p90 says nothing: its interval of 95 % is then wider than a factor of two."""
_MEMORY_S: Final = 60 * DAY_S
_MARKS: Final = 80
"""Waits of a block by which candidates are compared."""
_CALIBRATE_S: Final = 3 * DAY_S
"""How often the number of machines is calibrated anew."""
_LEVELS: Final = (0.25, 0.5, 0.75, 0.9, 0.9, 0.95)
"""Levels of waits by which candidates are compared; what is asked for in the end counts twice."""
_SHARPNESS: Final = 2.0
"""How fast belief falls with distance: a candidate twice as far off as the closest one counts a seventh."""
_NOISE: Final = 0.02
"""Distances that differ by less than this are the same."""
_CLOSE: Final = 0.1
"""Distance up to which what is declared is believed alone: somebody says so, and others come close by chance."""
_BLIND_COST: Final = 1.25
"""By how much a candidate that knows of no machines must be closer: it cannot answer what an option does."""
_LEAST_SHARE: Final = 0.05
_WARM_UP: Final = 0.5
"""Share of the first part after which candidates begin to predict, to be compared."""
_OVERTAKEN_S: Final = 2 * DAY_S
_FEWEST_BLOCKS: Final = 12
_TRIES: Final = 8
_CALIBRATION_JOBS: Final = 1_500_000
"""Jobs that calibrations of one pool may replay in all: about a second."""


class Judged(Struct, frozen=True, kw_only=True):
    """A pool, predicted and observed."""

    label: str
    jobs: int
    judged_jobs: int
    since: float | None
    """The judged part of the record."""
    until: float | None
    observed: Percentiles
    predicted: Percentiles
    fits: bool
    reason: str
    """Why it fits, or why not."""
    model: str
    """The candidate that was believed most of the time."""
    errors: dict[str, float]
    """Relative error of p90 of every candidate over the judged part."""
    capacity: float | None
    """Machines for our jobs in the judged part, mean, where the model has a number."""
    delay_s: float
    """What it takes to hand over a machine, median."""
    disorder: float = 0.0
    """Mean place, among those who wait, of who is taken next: 0 the oldest, 0.5 anybody, 1 the newest."""
    steps: Steps | None = field(default=None, name="machines")
    """Machines for our jobs over the judged part, as the model predicted them."""

    @property
    def can_rank(self) -> bool:
        """Whether options that change the load of this pool can be told apart."""
        return self.fits and self.model not in BLIND


def judge(
    queue: Queue,
    spec: PoolSpec,
    *,
    train: float = TRAIN,
    horizon_s: float = HORIZON_S,
    seed: int = 1,
    most_jobs: int = 4_000_000,
    crowd: Crowd | None = None,
) -> Judged:
    """Fit on the first part of a pool's record, predict the rest, compare.

    Args:
        queue: The pool's jobs.
        spec: What is declared of it.
        train: Share of the time of the record before the judged part.
        horizon_s: How far ahead is predicted from what is known.
        seed: Of the draws of delays.
        most_jobs: Simulated jobs that may be spent.
        crowd: All jobs of the declared machines, where these are shared, or booted when needed.
    """
    if not len(queue):
        return _nothing(spec, "no jobs")
    known = int((~np.isnan(queue.started)).sum())
    too_few = f"only {known} job{'s'[: known != 1]} that started"
    if not known:
        return _nothing(spec, too_few, jobs=len(queue))
    found = _Judge(queue, spec, train=train, horizon_s=horizon_s, seed=seed, most_jobs=most_jobs, crowd=crowd).judged()
    if known < _FEW:
        return structs.replace(found, fits=False, reason=too_few)
    if not queue.to_predict.any():
        return found
    # What is asked for cannot be compared: whether the pool is understood is judged on what was told.
    told = _Judge(
        some_of(queue, ~queue.to_predict), spec, train=train, horizon_s=horizon_s, seed=seed, most_jobs=most_jobs,
        crowd=None if crowd is None else crowd.only_told(), at_once=True,
    )  # fmt: skip
    before = told.judged()
    return structs.replace(found, fits=before.fits, reason=f"before the part that is asked for: {before.reason}")


def _nothing(spec: PoolSpec, reason: str, jobs: int = 0) -> Judged:
    none = Percentiles(p50=None, p90=None)
    return Judged(
        label=spec.label, jobs=jobs, judged_jobs=0, since=None, until=None, observed=none, predicted=none, fits=False,
        reason=reason, model="", errors={}, capacity=None, delay_s=0.0,
    )  # fmt: skip


class _Block(NamedTuple):
    """A stretch of time that is predicted at once."""

    since: float
    until: float
    jobs: Indices
    """Those whose waits are predicted."""
    place: Indices
    """Where those are among the arrivals."""
    created: list[float]
    """Arrivals: first those that wait already when it begins."""
    seconds: list[float]
    busy: list[float]
    patience: list[float] | None
    priority: list[float] | None


class _Belief(NamedTuple):
    """What was said of one block."""

    model: str
    waits: Numbers
    machines: Steps | None


class _Judge:
    """One pass over a record."""

    def __init__(
        self,
        queue: Queue,
        spec: PoolSpec,
        *,
        train: float,
        horizon_s: float,
        seed: int,
        most_jobs: int,
        crowd: Crowd | None = None,
        at_once: bool = False,
    ) -> None:
        self._queue, self._spec = queue, spec
        self._told = queue.waits
        self._random = np.random.default_rng(seed)
        self._begin, self._end = float(queue.created[0]), float(queue.created[-1]) + 1.0
        self._split = split_of(queue, train)
        self._at_once = at_once or bool(queue.to_predict.any())
        self._crowd = crowd
        self._load = load_of(queue)
        found = delays(queue, self._load, since=-np.inf, until=self._split)
        self._delay_s = float(np.median(found))
        self._threshold_s = undelayed(found)
        self._seen = look(queue, self._threshold_s)
        self._length = min(horizon_s, (self._end - self._begin) / (2 * _FEWEST_BLOCKS))
        self._coarse = len(queue) * len(CANDIDATES) > most_jobs
        self._blocks = self._days()
        self._calibration: Levels | None = None
        self._disorder = 0.0
        self._calibrated_at = -np.inf
        self._predicted: dict[str, list[Numbers]] = {name: [] for name in CANDIDATES}
        self._observed: list[Numbers] = []
        self._marks: list[_Marks] = []
        self._predicted_marks: dict[str, list[_Marks]] = {name: [] for name in CANDIDATES}
        self._believed: list[_Belief] = []

    def _days(self) -> list[tuple[float, float]]:
        """Blocks from the warm-up to the end; one of them begins at the split."""
        length = self._length
        warm = self._begin + (0.75 if self._coarse else _WARM_UP) * (self._split - self._begin)
        before = self._split - length * np.arange(int((self._split - warm) // length), -1, -1)
        after = [] if self._at_once else np.arange(self._split + length, self._end, length).tolist()
        return list(itertools.pairwise([*before.tolist(), *after, self._end]))

    def judged(self) -> Judged:
        """Predict all blocks, and sum up those behind the split."""
        judged: list[int] = []
        for number, (since, until) in enumerate(self._blocks):
            past = self._past(since)
            block = self._block(since, until)
            shares = self._shares()
            sizes: dict[str, Steps] = {}
            for name, candidate in CANDIDATES.items():
                if name == "declared" and self._crowd is not None:
                    self._predicted[name].append(self._waits_as_declared(self._crowd, past, block))
                    continue
                draws = candidate(past, until + self._after_s) if self._is_worth(name, shares) else []
                self._predicted[name].append(_mixed([self._waits(block, draw) for draw in draws]))
                if draws and draws[0].capacity is not None:
                    sizes[name] = draws[0].capacity
            if since >= self._split:
                self._believed.append(self._belief(shares, sizes))
            self._observed.append(self._told[block.jobs])
            self._remember()
            if since >= self._split:
                judged.append(number)
        return self._sum_up(judged)

    def _past(self, now: float) -> Past:
        past = structs.replace(
            past_of(self._queue, self._seen, self._load, self._spec, now), draws=1 if self._coarse else 3
        )
        every = _CALIBRATE_S if self._coarse else max(self._length, min(_CALIBRATE_S, 3 * self._length))
        if now - self._calibrated_at >= every - 1:
            most = _CALIBRATION_JOBS // (_TRIES * max(1, int((self._end - self._begin) // _CALIBRATE_S)))
            self._disorder = disorder_of(self._queue, since=past.since, until=now, threshold_s=self._threshold_s)
            past = structs.replace(past, calibration=self._calibration, disorder=self._disorder)
            self._calibration = calibrate(past, most)
            self._calibrated_at = now
        return structs.replace(past, calibration=self._calibration)

    def _block(self, since: float, until: float) -> "_Block":
        """What is known of a block when it begins, and what comes in it."""
        queue = self._queue
        first, last, end = np.searchsorted(queue.created, [since, until, until + self._after_s])
        before = max(0, int(np.searchsorted(queue.created, since - WINDOW_S)))
        early = slice(before, first)
        ended = (queue.started[early] <= since) | (queue.completed[early] <= since)
        waiting = before + np.flatnonzero(~ended & ~np.isnan(queue.started[early] + queue.completed[early]))
        running = (queue.started[early] <= since) & (queue.completed[early] > since)
        jobs = np.concatenate([waiting, np.arange(first, end)])
        told = ~np.isnan(queue.started[first:last]) | queue.to_predict[first:last]
        never = np.isnan(queue.started[jobs]) & ~queue.to_predict[jobs]
        return _Block(
            since=since,
            until=until,
            jobs=np.arange(first, last)[told],
            place=len(waiting) + np.flatnonzero(told),
            created=np.maximum(queue.created[jobs], since).tolist(),
            seconds=self._seconds(jobs, since).tolist(),
            busy=queue.completed[early][running].tolist(),
            patience=np.where(never, queue.completed[jobs], np.inf).tolist() if never.any() else None,
            priority=None if queue.priority is None else queue.priority[jobs].tolist(),
        )

    @property
    def _after_s(self) -> float:
        """How long after a block arrivals still matter to it: where who came first is not first, others overtake."""
        return _OVERTAKEN_S if self._disorder >= IN_ORDER else 0.0

    def _seconds(self, jobs: Indices, now: float) -> Numbers:
        """How long jobs run: as recorded, else as others before, of whom some were given up and ran for no time."""
        seconds = self._queue.seconds[jobs]
        unknown = np.isnan(seconds)
        if not unknown.any():
            return seconds
        before = self._queue.completed <= now
        usual = np.where(np.isnan(self._queue.started[before]), 0.0, self._queue.seconds[before])
        usual = np.sort(usual[~np.isnan(usual)])
        return np.where(unknown, self._drawn(usual if len(usual) else np.zeros(1), len(seconds)), seconds)

    def _waits(self, block: "_Block", draw: Draw) -> Numbers:
        """Waits of the jobs of a block, in one way it may be."""
        added = self._drawn(draw.delays, len(block.jobs))
        if draw.capacity is None or not len(block.jobs):
            return added
        found = replay(
            block.created, block.seconds, draw.capacity, self._disorder, busy=block.busy, patience=block.patience,
            priority=block.priority,
        )  # fmt: skip
        begun = np.minimum(np.array(found)[block.place], block.until + 30 * DAY_S)
        waits: Numbers = begun - self._queue.created[block.jobs] + added
        return waits

    def _waits_as_declared(self, crowd: Crowd, past: Past, block: "_Block") -> Numbers:
        """Waits of the jobs of a block where all jobs of the declared machines are replayed."""
        if not len(block.jobs):
            return np.zeros(0)
        after = _OVERTAKEN_S if may_overtake(crowd.pool) else self._after_s
        found = begun(crowd, block.since, block.until + after)[crowd.position(self._spec.label)[block.jobs]]
        beyond = np.maximum(0.0, self._drawn(past.delays, len(block.jobs)) - handover_s(crowd.pool))
        waits: Numbers = np.minimum(found, block.until + 30 * DAY_S) - self._queue.created[block.jobs] + beyond
        return np.maximum(0.0, waits)

    def _drawn(self, sample: Numbers, count: int) -> Numbers:
        """Values of an ascending sample, each part of it as often as it is there, in an order of chance."""
        if not count:
            return np.zeros(0)
        levels = (np.arange(count) + 0.5) / count * len(sample)
        drawn: Numbers = sample[self._random.permutation(levels.astype(np.int64))]
        return drawn

    def _is_worth(self, name: str, shares: Mapping[str, float]) -> bool:
        """Whether to replay for a candidate: in large records those that were far off are left out after a while."""
        return not self._coarse or len(self._observed) < _FEWEST_BLOCKS or shares[name] >= _LEAST_SHARE / 2

    def _shares(self) -> dict[str, float]:
        """How much each candidate is believed: those that were closest, by how close they were."""
        distances = {name: self._distance(name) * (_BLIND_COST if name in BLIND else 1.0) for name in CANDIDATES}
        if distances["declared"] <= _CLOSE:
            return {name: float(name == "declared") for name in CANDIDATES}
        least = min(distances.values())
        return {
            name: float(np.exp(-_SHARPNESS * (apart - least) / (least + _NOISE))) for name, apart in distances.items()
        }

    def _belief(self, shares: Mapping[str, float], sizes: Mapping[str, Steps]) -> "_Belief":
        """What is said of the block that was predicted last: the mixture of candidates."""
        latest = {name: blocks[-1] for name, blocks in self._predicted.items()}
        able = {
            name: share for name, share in shares.items() if share >= _LEAST_SHARE and not np.isnan(latest[name]).any()
        } or {"unlimited": 1.0}
        model = max(able, key=lambda name: able[name])
        return _Belief(model, mixture([latest[name] for name in able], list(able.values())), sizes.get(model))

    def _remember(self) -> None:
        """Keep of the last block what candidates are compared by: waits at equal steps, with what each stands for."""
        self._marks.append(_marks(self._observed[-1]))
        for name, blocks in self._predicted.items():
            self._predicted_marks[name].append(_marks(blocks[-1]))

    def _distance(self, name: str) -> float:
        """How far a candidate's waits were off until now, mean difference of logarithms; endless where it has none."""
        blocks = max(1, round(_MEMORY_S / self._length))
        both = [
            (predicted, observed)
            for predicted, observed in zip(self._predicted_marks[name][-blocks:], self._marks[-blocks:], strict=True)
            if len(observed[0])
        ]
        if not both:
            return 0.0 if name == "declared" and (self._spec.capacity or self._crowd) else 1.0
        able = [one for one in both if len(one[0][0])]
        if len(able) < len(both) / 2:
            return np.inf
        return _distance([one for one, _ in able], [one for _, one in able])

    def _sum_up(self, judged: Sequence[int]) -> Judged:
        observed = np.concatenate([self._observed[number] for number in judged])
        observed = observed[~np.isnan(observed)]
        predicted = _pooled([belief.waits for belief in self._believed])
        names = [belief.model for belief in self._believed]
        seen, told = Percentiles.of(predicted), Percentiles.of(observed)
        fits, reason = verdict(told, seen, len(observed))
        machines = self._machines(judged)
        return Judged(
            label=self._spec.label,
            jobs=len(self._queue),
            judged_jobs=len(observed) or len(predicted),
            since=self._split,
            until=self._end,
            observed=told,
            predicted=seen,
            fits=fits,
            reason=reason,
            model=max(set(names), key=names.count),
            errors=self._errors(judged, told),
            capacity=None if machines is None else float(np.mean(machines.counts)),
            delay_s=self._delay_s,
            disorder=self._disorder,
            steps=machines,
        )

    def _machines(self, judged: Sequence[int]) -> Steps | None:
        """What the believed models said of machines, block after block; in steps of ten minutes or longer."""
        times: list[float] = []
        counts: list[float] = []
        for number, belief in zip(judged, self._believed, strict=True):
            if belief.machines is None:
                continue
            since, until = self._blocks[number]
            steps = belief.machines.since(since)
            inside = sum(at < until for at in steps.times)
            times += steps.times[:inside]
            counts += steps.counts[:inside]
        return Steps(tuple(times), tuple(counts)) if times else None

    def _errors(self, judged: Sequence[int], told: Percentiles) -> dict[str, float]:
        errors = {}
        for name, blocks in self._predicted.items():
            waits = _pooled([blocks[number] for number in judged])
            if len(waits) and told.p90 and not np.isnan(waits).any():
                errors[name] = float(np.quantile(waits, 0.9)) / told.p90 - 1
        return errors


def mixture(waits: Sequence[Numbers], shares: Sequence[float]) -> Numbers:
    """As many waits as each candidate gives, of all of them, each as often as its share says.

    Candidates that disagree are ways the time may be, each as likely as it was close before: the 90th percentile over
    many such times is that of all of them together. A median of candidates forgets the long waits of the others.

    Args:
        waits: Of each candidate; all of one length.
        shares: How much each is believed.
    """
    if len(waits) == 1 or not len(waits[0]):
        return waits[0]
    every = np.concatenate(waits)
    order = np.argsort(every, kind="stable")
    reached = np.cumsum(np.repeat(shares, len(waits[0]))[order])
    places = np.searchsorted(reached, (np.arange(len(waits[0])) + 0.5) / len(waits[0]) * reached[-1])
    found: Numbers = every[order][places]
    return found


def _mixed(draws: Sequence[Numbers]) -> Numbers:
    """As many waits as there are jobs, of several ways the day may be, in the order of their sizes."""
    if not draws:
        return np.full(1, np.nan)
    if len(draws) == 1:
        return draws[0]
    mixed: Numbers = np.sort(np.concatenate(draws))[len(draws) // 2 :: len(draws)]
    return mixed


def _pooled(blocks: Sequence[Numbers]) -> Numbers:
    """Waits of several blocks."""
    return np.concatenate(blocks) if blocks else np.zeros(0)


_Marks: TypeAlias = tuple[Numbers, Numbers]
"""Some waits, ascending, and how many each stands for."""


def _marks(waits: Numbers) -> _Marks:
    if np.isnan(waits).any() or not len(waits):
        return np.zeros(0), np.zeros(0)
    count = min(len(waits), _MARKS)
    marks = np.sort(waits)[((np.arange(count) + 0.5) / count * len(waits)).astype(np.int64)]
    return marks, np.full(count, len(waits) / count)


def _distance(predicted: Sequence[_Marks], observed: Sequence[_Marks]) -> float:
    """How far levels of waits are apart, mean of the logarithms' differences."""
    apart = np.log(_levels(predicted) + SOFT_S) - np.log(_levels(observed) + SOFT_S)
    return float(np.abs(apart).mean())


def _levels(marks: Sequence[_Marks]) -> Numbers:
    waits = np.concatenate([some for some, _ in marks])
    order = np.argsort(waits)
    reached = np.cumsum(np.concatenate([weights for _, weights in marks])[order])
    levels: Numbers = np.interp(np.array(_LEVELS) * reached[-1], reached, waits[order])
    return levels


def verdict(observed: Percentiles, predicted: Percentiles, jobs: int) -> tuple[bool, str]:
    """Whether a pool is understood, and why."""
    if observed.p90 is None or observed.p50 is None or predicted.p90 is None or predicted.p50 is None:
        return False, "nothing was observed to compare with"
    if jobs < _FEW:
        return False, f"only {jobs} jobs to compare with"
    apart90, apart50 = abs(predicted.p90 - observed.p90), abs(predicted.p50 - observed.p50)
    if apart90 > max(TOLERANCE * observed.p90, _SLACK_S):
        return False, f"p90 is {apart90 / max(observed.p90, 1.0):.0%} off"
    if apart50 > max(_TOLERANCE_P50 * observed.p50, 0.1 * observed.p90, _SLACK_S):
        return False, f"p50 is {apart50 / max(observed.p50, 1.0):.0%} off"
    return True, f"p90 within {TOLERANCE:.0%} on {jobs} jobs that it had not seen"
