"""Concurrency groups: jobs that a CI system holds back until an older run of their group has ended.

Such a job waits for no machine. Its wait begins when its group lets it go, as that of a job that needs others does.
"""

from collections.abc import Sequence
from math import isnan
from typing import Final

import numpy as np

from sooner.analysis.sizing.facts import Indices, Numbers

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
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(key, len(known)) for key in groups], dtype=np.int64)
    # Of jobs that came in one second nobody knows which was first: the order is that in which they began.
    begun = np.where(started < completed, started, np.where(np.isnan(completed), created, completed))
    order = np.lexsort((begun, codes))
    order = order[~np.isnan(created[order])]
    for members in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
        if len(members) > _FEWEST and groups[members[0]]:
            _, came, beside = _let_go(members[:_GLANCE].tolist(), created, started, completed, runs)
            if beside > came / 2:
                continue
            ready, came, beside = _let_go(members.tolist(), created, started, completed, runs)
            waited = ready > created[members]
            held = members[waited]
            if len(held) < _FEWEST or beside > _OVERLAPS * came:
                continue
            if not labels or _are_passed(held, ready[waited], created, started, labels):
                found[members] = ready
    return found


def _let_go(
    members: Sequence[int], created: Numbers, started: Numbers, completed: Numbers, runs: Sequence[str]
) -> tuple[Numbers, int, int]:
    """When each is let go, how many came while an older run was under way, and how many of these began beside it."""
    ready, came, beside = [], 0, 0
    older = latest = -np.inf
    current: object = None
    for index in members:
        run = runs[index] if runs else index
        if run != current:
            older, latest, current = max(older, latest), -np.inf, run
        at, begin, end = float(created[index]), float(started[index]), float(completed[index])
        ran, seen = begin < end, [time for time in (begin, end) if not isnan(time)]
        if older > at:
            came += 1
            beside += ran and begin < older - _CLOCKS_S
        ready.append(max(at, min(older, *seen)) if seen else at)
        latest = max(latest, end) if ran else latest
    return np.array(ready), came, beside


def _are_passed(held: Indices, until: Numbers, created: Numbers, started: Numbers, labels: Sequence[str]) -> bool:
    """Whether younger jobs of the same label began while these were held."""
    step = max(1, len(held) // _LOOKED_AT)
    by_age = np.argsort(created)
    ages = created[by_age]
    came = passed = 0
    for index, ready in zip(held[::step].tolist(), until[::step].tolist(), strict=True):
        first, last = np.searchsorted(ages, [created[index] + _CLOCKS_S, ready])
        younger = [other for other in by_age[first:last].tolist() if labels[other] == labels[index]]
        came += bool(younger)
        passed += any(started[other] < ready - _CLOCKS_S for other in younger)
    return passed >= _FEWEST and passed >= _PASSED * came
