"""Samples in groups: percentiles with intervals, weeks, changes of level, and what moved them. Pure; needs numpy."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from sooner.analysis.metrics.changes import Change, Moved, changes_of_runs, changes_of_totals, part_that_moved
from sooner.analysis.metrics.facts import Sample
from sooner.analysis.metrics.statistics import Estimate, percentile

WEEK_S: Final = 7 * 86_400
_MONDAY: Final = 4 * 86_400
"""1970-01-05 was a Monday."""
_AROUND: Final = 60
"""Runs on each side of a change that its parts are told from."""
_FEW: Final = 40
"""Values below which a series is taken for one of totals, such as one value a week."""
_MOST_JOBS: Final = 5

Key: TypeAlias = Callable[[Sample], str]


class By(StrEnum):
    """What groups are made of."""

    JOB = "job"
    WORKFLOW = "workflow"
    LABEL = "label"
    WEEK = "week"


class Shift(Struct, frozen=True, kw_only=True):
    """A change of level of a group, with what moved it."""

    at: float
    """Of the first run on the new level, epoch seconds."""
    before_s: float
    after_s: float
    part: str
    """Which part of the time moved most."""
    parts: tuple[Moved, ...]
    jobs: tuple[Moved, ...] = ()
    """The jobs of the group that moved most."""


class Group(Struct, frozen=True, kw_only=True):
    """One row of the answer."""

    key: str
    n: int
    p50: Estimate
    p90: Estimate
    parts: Mapping[str, float]
    """Mean seconds of each part."""
    weeks: tuple[tuple[float, float], ...]
    """Monday (epoch seconds, UTC) and median of each week with samples."""
    changes: tuple[Shift, ...]


def week_of(at: float) -> float:
    """The Monday, 00:00 UTC, before a time."""
    return (at - _MONDAY) // WEEK_S * WEEK_S + _MONDAY


def parts_of(sample: Sample) -> dict[str, float]:
    """The parts of a time: the queue, its steps where they are known, and what is left."""
    steps = dict(sample.steps)
    rest = sample.seconds - sample.queue_s - sum(steps.values())
    return {"queue": sample.queue_s, **steps, "other" if steps else "run": max(0.0, rest)}


def group_by(samples: Iterable[Sample], key: Key) -> dict[str, list[Sample]]:
    """Samples by what `key` says of them, each group in the order of time."""
    groups: dict[str, list[Sample]] = {}
    for sample in sorted(samples, key=lambda sample: sample.at):
        groups.setdefault(key(sample), []).append(sample)
    return groups


def key_of(by: By) -> Key:
    """What a sample is grouped by; weeks by the number of their Monday."""
    match by:
        case By.JOB:
            return lambda sample: sample.job
        case By.WORKFLOW:
            return lambda sample: sample.workflow
        case By.LABEL:
            return lambda sample: sample.label
        case By.WEEK:
            return lambda sample: str(int(week_of(sample.at)))


def summarise(samples: Iterable[Sample], by: By) -> list[Group]:
    """Every group, the largest median first; weeks in their order."""
    groups = [_group(key, of_group) for key, of_group in group_by(samples, key_of(by)).items()]
    if by is By.WEEK:
        return sorted(groups, key=lambda group: float(group.key))
    return sorted(groups, key=lambda group: -group.p50.value)


def _group(key: str, samples: Sequence[Sample]) -> Group:
    seconds = [sample.seconds for sample in samples]
    return Group(
        key=key,
        n=len(samples),
        p50=percentile(seconds, 0.5),
        p90=percentile(seconds, 0.9),
        parts=_means(samples),
        weeks=tuple(_medians(samples).items()),
        changes=tuple(shifts(samples)),
    )


def _means(samples: Sequence[Sample]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for sample in samples:
        for part, seconds in parts_of(sample).items():
            sums[part] = sums.get(part, 0.0) + seconds
    return {part: total / len(samples) for part, total in sums.items()}


def _medians(samples: Sequence[Sample]) -> dict[float, float]:
    weeks: dict[float, list[float]] = {}
    for sample in samples:
        weeks.setdefault(week_of(sample.at), []).append(sample.seconds)
    return {week: percentile(seconds, 0.5).value for week, seconds in weeks.items()}


def shifts(samples: Sequence[Sample]) -> list[Shift]:
    """Changes of level in samples that are in the order of time."""
    seconds = [sample.seconds for sample in samples]
    changes = changes_of_runs(seconds) if len(seconds) >= _FEW else changes_of_totals(seconds)
    bounds = [0, *(change.index for change in changes), len(samples)]
    return [_shift(samples, change, bounds[i], bounds[i + 2]) for i, change in enumerate(changes)]


def _shift(samples: Sequence[Sample], change: Change, begin: int, end: int) -> Shift:
    before = samples[max(begin, change.index - _AROUND) : change.index]
    after = samples[change.index : min(end, change.index + _AROUND)]
    parts = part_that_moved(_columns(before), _columns(after))
    return Shift(
        at=samples[change.index].at,
        before_s=change.before,
        after_s=change.after,
        part=parts[0].part,
        parts=tuple(parts),
        jobs=tuple(_jobs_that_moved(before, after)),
    )


def _columns(samples: Sequence[Sample]) -> dict[str, Sequence[float]]:
    columns: dict[str, list[float]] = {}
    for sample in samples:
        for part, seconds in parts_of(sample).items():
            columns.setdefault(part, []).append(seconds)
    return dict(columns)


def _jobs_that_moved(before: Sequence[Sample], after: Sequence[Sample]) -> list[Moved]:
    """The jobs of a group whose own times moved most."""

    def by_job(samples: Sequence[Sample]) -> dict[str, Sequence[float]]:
        return {job: [one.seconds for one in some] for job, some in group_by(samples, lambda one: one.job).items()}

    first, second = by_job(before), by_job(after)
    both = first.keys() & second.keys()
    moved = part_that_moved({job: first[job] for job in both}, {job: second[job] for job in both})
    return moved[:_MOST_JOBS]
