"""Samples in groups: percentiles with intervals, weeks, changes of level, and what moved them. Pure; needs numpy."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct

from sooner.analysis.metrics.changes import Change, Moved, changes_of_runs, changes_of_totals, part_that_moved
from sooner.analysis.metrics.facts import Numbers, Samples, Texts, grouped
from sooner.analysis.metrics.statistics import Estimate, percentile

WEEK_S: Final = 7 * 86_400
_MONDAY: Final = 4 * 86_400
"""1970-01-05 was a Monday."""
_AROUND: Final = 60
"""Runs on each side of a change that its parts are told from."""
_FEW: Final = 40
_APART_S: Final = 3 * 86_400
"""Fewer values, of which neighbours are mostly so far apart, are taken for totals, such as one value a week."""
_MOST_JOBS: Final = 5


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


T = TypeVar("T", float, Numbers)


def week_of(at: T) -> T:
    """The Monday, 00:00 UTC, before a time."""
    return (at - _MONDAY) // WEEK_S * WEEK_S + _MONDAY


def parts_of(samples: Samples) -> dict[str, Numbers]:
    """Seconds of each part: the queue, steps where they are known, and what is left; NaN where there is none."""
    rest, has_steps = samples.seconds - samples.queue_s, np.zeros(len(samples), dtype=bool)
    for seconds in samples.steps.values():
        rest, has_steps = rest - np.nan_to_num(seconds), has_steps | ~np.isnan(seconds)
    rest = np.maximum(rest, 0.0)
    left = {"other": np.where(has_steps, rest, np.nan), "run": np.where(has_steps, np.nan, rest)}
    return {"queue": samples.queue_s, **samples.steps, **left}


def group_by(samples: Samples, key: Texts) -> Iterator[tuple[str, Samples]]:
    """Samples that have the same key, each group in the order of time; groups as they begin."""
    order = np.argsort(samples.at, kind="stable")
    codes = key.codes[order]
    group, first = grouped(codes)
    rows = order[np.argsort(group, kind="stable")]
    for one, some in zip(first, np.split(rows, np.cumsum(np.bincount(group))[:-1]), strict=True):
        yield key.names[codes[one]], samples.take(some)


def key_of(samples: Samples, by: By) -> Texts:
    """What samples are grouped by; weeks by the number of their Monday."""
    match by:
        case By.JOB:
            return samples.job
        case By.WORKFLOW:
            return samples.workflow
        case By.LABEL:
            return samples.label
        case By.WEEK:
            weeks, codes = np.unique(week_of(samples.at), return_inverse=True)
            return Texts(codes, [str(int(week)) for week in weeks])


def summarise(samples: Samples, by: By) -> list[Group]:
    """Every group, the largest median first; weeks in their order, each with the changes of the whole that are its."""
    if not len(samples):
        return []
    groups = group_by(samples, key_of(samples, by))
    if by is By.WEEK:
        found = shifts(samples.take(np.argsort(samples.at, kind="stable")))
        weeks = [_group(key, some, [one for one in found if week_of(one.at) == float(key)]) for key, some in groups]
        return sorted(weeks, key=lambda week: float(week.key))
    return sorted((_group(key, some, shifts(some)) for key, some in groups), key=lambda group: -group.p50.value)


def _group(key: str, samples: Samples, changes: Sequence[Shift]) -> Group:
    means = {part: float(np.nansum(seconds)) / len(samples) for part, seconds in _present(parts_of(samples)).items()}
    return Group(
        key=key,
        n=len(samples),
        p50=percentile(samples.seconds, 0.5),
        p90=percentile(samples.seconds, 0.9),
        parts=means,
        weeks=tuple(_medians(samples)),
        changes=tuple(changes),
    )


def _present(parts: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Without the parts that nobody has."""
    return {part: seconds for part, seconds in parts.items() if not np.isnan(seconds).all()}


def _medians(samples: Samples) -> Iterator[tuple[float, float]]:
    weeks = week_of(samples.at)
    for week in np.unique(weeks):
        yield float(week), float(np.quantile(samples.seconds[weeks == week], 0.5))


def shifts(samples: Samples) -> list[Shift]:
    """Changes of level in samples that are in the order of time."""
    are_totals = 1 < len(samples) < _FEW and np.median(np.diff(samples.at)) >= _APART_S
    changes = changes_of_totals(samples.seconds) if are_totals else changes_of_runs(samples.seconds)
    bounds = [0, *(change.index for change in changes), len(samples)]
    return [_shift(samples, change, bounds[i], bounds[i + 2]) for i, change in enumerate(changes)]


def _shift(samples: Samples, change: Change, begin: int, end: int) -> Shift:
    before = samples.take(slice(max(begin, change.index - _AROUND), change.index))
    after = samples.take(slice(change.index, min(end, change.index + _AROUND)))
    parts = part_that_moved(_columns(before), _columns(after))
    return Shift(
        at=float(samples.at[change.index]),
        before_s=change.before,
        after_s=change.after,
        part=parts[0].part,
        parts=tuple(parts),
        jobs=tuple(_jobs_that_moved(before, after)),
    )


def _columns(samples: Samples) -> dict[str, Numbers]:
    return {part: seconds[~np.isnan(seconds)] for part, seconds in _present(parts_of(samples)).items()}


def _jobs_that_moved(before: Samples, after: Samples) -> list[Moved]:
    """The jobs of a group whose own times moved most."""
    first, second = ({job: one.seconds for job, one in group_by(some, some.job)} for some in (before, after))
    both = sorted(first.keys() & second.keys())
    moved = part_that_moved({job: first[job] for job in both}, {job: second[job] for job in both})
    return moved[:_MOST_JOBS]
