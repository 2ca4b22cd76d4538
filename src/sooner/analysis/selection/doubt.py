"""What red is worth that nobody ran again: a job is no flaky one for want of evidence. Pure.

The model of `flakes.py` believes what lasts and what many jobs see. A job that nobody runs again, and that fails by
itself for one commit at a time, looks the same whether it flakes or breaks. The model then finds what it assumed: that
breakages seldom come alone. So both are weighed once more, job by job, without that assumption: how many of the reds
that were run again stayed red, and whether the breakages that are beyond doubt last longer than these reds do.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from sooner.analysis.selection.facts import Cells, Flags, Indices, Numbers
from sooner.analysis.selection.flakes import COUNTED, REAL, Judged

_NOTHING_KNOWN: Final = 1.0
"""Reds, real ones and flakes each, that not knowing anything is worth."""
_ALL_JOBS: Final = 2.0
"""Repeated reds of one job that what is known of all of them is worth."""
_DURATION: Final = 0.5
"""Commits on which breakages end, and do not, before any is known."""
_MOST: Final = 3.0
"""Odds: unrepeated runs are short also because long ones are repeated sooner."""
_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class _Runs:
    """Consecutive cells of one job without a pass."""

    first: Indices
    """Index of the first cell."""
    job: Indices
    length: Indices
    real: Numbers
    """How surely the job broke anywhere in it."""
    repeated: Flags
    """Some cell of it was."""
    closed: Flags
    """A pass followed."""


def doubted(known: Cells, judged: Judged, jobs: int) -> Numbers:
    """By cell: how surely the job broke there (as `Judged.began`), where there is doubt with the benefit of it."""
    runs, began = _runs(known, judged.began), judged.began.copy()
    if not len(runs.first):
        return began
    shared = np.bincount(known.commit, began)[known.commit] - began >= REAL
    sure = (runs.real >= REAL) & (shared[runs.first] | runs.repeated)
    open_ = (runs.real < REAL) & ~runs.repeated
    # Repeats of what many jobs see tell nothing of red that is seen by one.
    again = (known.failures > 0) & (known.failures + known.passes > 1) & ~shared
    tried = np.bincount(known.job[again], minlength=jobs)
    broken = np.bincount(known.job[again], judged.broken[again], jobs).astype(np.float64)
    waiting = np.bincount(runs.job[open_], minlength=jobs)
    worth = _breaks(_odds(known, runs, sure, open_, jobs), tried, broken, waiting)[runs.job[open_]]
    at = runs.first[open_]
    began[at] = np.where(worth > COUNTED, np.maximum(began[at], worth), began[at])
    return began


def _odds(known: Cells, runs: _Runs, sure: Flags, open_: Flags, jobs: int) -> Numbers:
    """By job: how much likelier it is that its open runs end if they are breakages than if they are flakes.

    That some runs last is left out: it says nothing of the others.
    """
    from scipy.special import betaln

    ended = np.bincount(runs.job[open_], runs.closed[open_], jobs)
    ends, stays = runs.closed[sure].sum() + _DURATION, (runs.length[sure] - 1).sum() + _DURATION
    red = np.bincount(known.job[known.passes == 0], minlength=jobs) + 0.5
    rate = red / (np.bincount(known.job, minlength=jobs) + 1.0)
    found: Numbers = np.exp(betaln(ends + ended, stays) - betaln(ends, stays) - ended * np.log1p(-rate))
    return np.minimum(found, _MOST)


def _breaks(odds: Numbers, tried: Indices, broken: Numbers, waiting: Indices) -> Numbers:
    """By job: probability that its open runs are breakages. What the jobs have in common is found in rounds (EM).

    Args:
        odds: Of `_odds`.
        tried: Red cells that were repeated, and that no other job shared.
        broken: Of these, those that were real, as judged.
        waiting: Open runs.
    """
    usual, found = 0.5, odds
    for _ in range(_ROUNDS):
        prior = (broken + _ALL_JOBS * usual) / (tried + _ALL_JOBS)
        found = prior * odds / (prior * odds + 1.0 - prior)
        real = float(broken.sum() + (waiting * found).sum()) + _NOTHING_KNOWN
        usual = real / float(tried.sum() + waiting.sum() + 2 * _NOTHING_KNOWN)
    return found


def _runs(known: Cells, began: Numbers) -> _Runs:
    found = known.in_a_row
    cell, count = found.order[found.places], len(found.starts)
    return _Runs(
        first=found.order[found.starts],
        job=found.job[found.starts],
        length=np.bincount(found.run, minlength=count),
        real=np.bincount(found.run, began[cell], count).astype(np.float64),
        repeated=np.bincount(found.run, known.failures[cell] > 1, count) > 0,
        closed=found.closed,
    )
