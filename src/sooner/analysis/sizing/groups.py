"""Concurrency groups: jobs that a CI system holds back until an older run of their group has ended.

Such a job waits for no machine. Its wait begins when its group lets it go, as that of a job that needs others does.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from sooner.analysis.sizing.facts import Flags, Indices, Numbers

_CLOCKS_S: Final = 2.0
"""By how much clocks of two machines, and whole seconds, may put an end behind the start that it allowed."""
_FEWEST: Final = 10
"""Jobs that must have been held back for a key to be taken for a group."""
_OVERLAPS: Final = 0.05
"""Share of jobs that may run beside an older run of their group: more, and it holds nobody back."""
_GLANCE: Final = 200
"""Jobs by which a key is seen that is plainly no group, without looking at all of a million."""
_LOOKED_AT: Final = 200
_PASSED: Final = 0.5


def released(
    created: Numbers,
    started: Numbers,
    completed: Numbers,
    groups: Sequence[str],
    *,
    runs: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Numbers:
    """When each job's group let it go: `created`, or the end of the older runs of its group.

    A key is a group only where its runs do not overlap. With `labels` it is only supposed to be one (a workflow on a
    branch): then younger jobs of the same label must have passed those that it held, else they waited for machines.

    Args:
        created: When each job came; epoch seconds, as are the next two, NaN for what never was.
        started: When it began.
        completed: When it ended.
        groups: The key of each job; empty for none.
        runs: Jobs of one run do not wait for each other; without it every job is a run.
        labels: Of the runners.
    """
    found = created.copy()
    known: dict[str, int] = {"": 0}
    codes = np.array([known.setdefault(key, len(known)) for key in groups], dtype=np.int64)
    # Of jobs that came in one second nobody knows which was first: the order is that in which they began.
    begun = np.where(started < completed, started, np.where(np.isnan(completed), created, completed))
    order = np.lexsort((begun, codes))
    order = order[(codes[order] > 0) & ~np.isnan(created[order])]
    if not len(order):
        return found
    firsts = np.diff(codes[order], prepend=0) > 0
    group = np.cumsum(firsts) - 1
    came, begin, end = created[order], started[order], completed[order]
    older = _older(begin, end, group, firsts | _differ(runs, order))
    ready = np.fmax(came, np.fmin(older, np.fmin(begin, end)))
    ready = np.where(np.isnan(begin) & np.isnan(end), came, ready)
    size = int(group[-1]) + 1
    busy = older > came
    beside = busy & (begin < end) & (begin < older - _CLOCKS_S)
    first = np.flatnonzero(firsts)
    glance = np.arange(len(order)) - first[group] < _GLANCE
    early, early_beside = (np.bincount(group[which & glance], minlength=size) for which in (busy, beside))
    all_busy, all_beside = (np.bincount(group[which], minlength=size) for which in (busy, beside))
    last = np.append(first[1:], len(order))
    held = np.bincount(group[ready > came], minlength=size)
    is_group = (last - first > _FEWEST) & (early_beside <= early / 2)
    is_group &= (held >= _FEWEST) & (all_beside <= _OVERLAPS * all_busy)
    others = _Others(started, labels, by_age := np.argsort(created), created[by_age]) if labels else None
    for number in np.flatnonzero(is_group).tolist():
        mine = slice(first[number], last[number])
        waited = ready[mine] > came[mine]
        held_jobs, until = order[mine][waited], ready[mine][waited]
        if others is None or _are_passed(held_jobs, until, created[held_jobs], others):
            found[order[mine]] = ready[mine]
    return found


def _differ(runs: Sequence[str], order: Indices) -> Flags:
    """Whether each job is of another run than the one before it."""
    if not runs:
        return np.ones(len(order), dtype=np.bool_)
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(run, len(known)) for run in runs], dtype=np.int64)[order]
    found: Flags = np.diff(codes, prepend=-1) != 0
    return found


def _older(begin: Numbers, end: Numbers, group: Indices, first_of_run: Flags) -> Numbers:
    """The latest end of the older runs of each job's group, as far as they ran; minus infinity for none."""
    ends = np.where(begin < end, end, -np.inf)
    run = np.cumsum(first_of_run) - 1
    latest = np.maximum.reduceat(ends, np.flatnonzero(first_of_run))
    # A running maximum within each group: places in the order of all values are exact, sums of times would not be.
    values, places = np.unique(np.append(latest, -np.inf), return_inverse=True)
    of_group = group[first_of_run]
    highest = np.maximum.accumulate(places[:-1] + of_group * len(values)) - of_group * len(values)
    before = np.concatenate([[0], highest[:-1]])
    before[np.diff(of_group, prepend=-1) > 0] = 0
    found: Numbers = values[before][run]
    return found


class _Others(NamedTuple):
    """All jobs, by which it is told whether younger ones passed."""

    started: Numbers
    labels: Sequence[str]
    by_age: Indices
    ages: Numbers
    """When they came, in order."""


def _are_passed(held: Indices, until: Numbers, since: Numbers, others: _Others) -> bool:
    """Whether younger jobs of the same label began while these were held."""
    step = max(1, len(held) // _LOOKED_AT)
    came = passed = 0
    for index, at, ready in zip(held[::step].tolist(), since[::step].tolist(), until[::step].tolist(), strict=True):
        first, last = np.searchsorted(others.ages, [at + _CLOCKS_S, ready])
        labels = others.labels
        younger = [other for other in others.by_age[first:last].tolist() if labels[other] == labels[index]]
        came += bool(younger)
        passed += any(others.started[other] < ready - _CLOCKS_S for other in younger)
    return passed >= _FEWEST and passed >= _PASSED * came
