"""Which jobs see each other's breakages: what makes one job do for another. Pure.

A past breakage that several jobs saw is covered by any of them (`decide.py`). Most future breakages are no past ones,
though; for those it counts how many breakages one job sees alone, and how often the other job saw one of this job's
others. With few breakages a job, both are known only together with what is known elsewhere: the former of all jobs, the
latter of jobs that share a word of their names (a platform, a component, a compiler), where each pair is shrunk towards
the best word that both have, each word towards all pairs.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from sooner.analysis.selection.facts import Cells, Flags, Indices, Numbers
from sooner.analysis.selection.flakes import COUNTED, REAL

_WORDS: Final = re.compile(r"[a-z]+(?: ?[0-9.]+)?|[0-9.]+")
"""`cuda 12`, `py3.11`, `linux`: words with the number behind them, or numbers alone."""
_PAIR: Final = 1.0
"""Breakages that the words are worth for a pair: 1 to 3 are alike on made projects, 8 is worse."""
_WORD: Final = 5.0
"""Breakages that all pairs are worth for a word."""
_USUAL: Final = 0.02
"""Share of a job's breakages that a job of other words sees, before anything is known."""
_MOST: Final = 0.98
_SEES: Final = 10.0
"""A job sees a breakage as far as its own cell is real, ten times over: any real red is seen."""
_OTHERS: Final = 3.0
"""How quickly a breakage counts as not alone, with what other jobs saw of it."""


@dataclass(frozen=True, kw_only=True)
class Together:
    """What jobs see of each other's breakages."""

    sees: Numbers
    """[job, other]: of the breakages of the job that anybody else sees, the share that the other one sees."""
    unheard: Numbers
    """[other, job]: 1 - `sees`, turned over."""
    alone: float
    """Share of the jobs' breakages that nobody else sees; no number of other jobs covers these."""
    seen: Numbers
    """[past breakage, job]: how surely the job broke."""
    commit: Indices
    """[past breakage]."""

    @cached_property
    def sure(self) -> Flags:
        """[past breakage, job]: the job broke for sure."""
        found: Flags = self.seen >= REAL
        return found

    @cached_property
    def sure_counts(self) -> Indices:
        """By job: past breakages in which it broke for sure."""
        found: Indices = self.sure.sum(axis=0)
        return found

    @cached_property
    def weight(self) -> Numbers:
        """By job: its past breakages."""
        found: Numbers = self.seen.sum(axis=0)
        return found

    @cached_property
    def seen_by(self) -> list[Indices]:
        """By job: the past breakages that it saw. Every order of jobs goes through them, so they are looked up once."""
        event, job = np.nonzero(self.seen > 0.0)
        order = np.argsort(job, kind="stable")
        ends = np.cumsum(np.bincount(job, minlength=self.seen.shape[1]))[:-1]
        return np.split(event[order], ends)


def word_groups(names: Sequence[str]) -> list[Indices]:
    """Jobs that share a word of their names, for each word that some but not all have; the same jobs only once."""
    members: dict[str, list[int]] = {}
    for job, name in enumerate(names):
        for word in set(_WORDS.findall(name.lower())):
            members.setdefault(word, []).append(job)
    groups = {tuple(some) for some in members.values() if 1 < len(some) < len(names)}
    return [np.array(some, dtype=np.int64) for some in sorted(groups)]


def together(known: Cells, began: Numbers, jobs: int, groups: Sequence[Indices]) -> Together:
    """What is known by now.

    Args:
        known: Cells whose outcome is known.
        began: By cell: how surely the job broke on this very commit.
        jobs: How many jobs there are.
        groups: Of `word_groups`.
    """
    some = began > COUNTED
    commits, event = np.unique(known.commit[some], return_inverse=True)
    job, real = known.job[some], began[some]
    seen = np.zeros((len(commits), jobs))
    seen[event, job] = real
    broke: Numbers = np.bincount(job, real, jobs).astype(np.float64)
    both = _both(event, job, real, seen.shape)
    pairs = max(int((np.bincount(known.job, minlength=jobs) > 0).sum()) - 1, 1)
    usual = (both.sum() + _USUAL * _WORD * pairs) / ((broke.sum() + _WORD) * pairs)
    expected = np.full((jobs, jobs), usual)
    for group in groups:
        inside = np.ix_(group, group)
        rate = both[inside].sum() / (len(group) - 1) + _WORD * usual
        expected[inside] = np.maximum(expected[inside], rate / (broke[group].sum() + _WORD))
    sees = (both + _PAIR * expected) / (broke[:, None] + _PAIR)
    np.fill_diagonal(sees, 0.0)
    alone = _alone(event, real)
    sees = np.minimum(sees / max(1.0 - alone, 1.0 - _MOST), _MOST)
    return Together(sees=sees, unheard=np.ascontiguousarray(1.0 - sees.T), alone=alone, seen=seen, commit=commits)


def _both(event: Indices, job: Indices, real: Numbers, shape: tuple[int, int]) -> Any:
    """[job, other]: breakages of the job that the other one saw. Most jobs broke on hardly any commit: sparse."""
    from scipy.sparse import csr_matrix

    broke = csr_matrix((real, (event, job)), shape=shape)
    saw = csr_matrix((np.minimum(_SEES * real, 1.0), (event, job)), shape=shape)
    found: Numbers = np.asarray((broke.T @ saw).toarray())
    np.fill_diagonal(found, 0.0)
    return found


def _alone(event: Indices, real: Numbers) -> float:
    """Of all jobs: few jobs break so often that their own share would be known."""
    others = np.bincount(event, real)[event] - real if len(event) else real
    return float(((real * np.exp(-_OTHERS * others)).sum() + 1.0) / (real.sum() + 2.0))
