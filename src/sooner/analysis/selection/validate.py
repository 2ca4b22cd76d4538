"""Whether the flake model can be believed: repeats hidden from it, and commits that cannot break anything. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.facts import Cells, Indices, Numbers, Record, State, cells
from sooner.analysis.selection.flakes import REAL, judge, next_failure

_TAIL: Final = 0.025
_NAMED: Final = 8
_SOME: Final = 0.05


class HeldOut(Struct, frozen=True, kw_only=True):
    """How often the model foretold what a hidden repeat showed."""

    cells: int
    """Cells whose first attempt failed and that were run again; of these half was hidden, twice."""
    agreement: float
    """Share in which "more likely than not" was right."""
    brier: float
    """Mean squared error of the probability."""
    always_flake: float
    """What saying "flake" every time would have reached."""
    ceiling: float
    """What the model's own probabilities allow: mean of max(p, 1 - p). More is to be had only from what a first
    failure does not tell."""
    all_cells: int
    all_agreement: float
    """The same over all repeated cells, first passes too."""
    verdict_agreement: float
    """Share of all repeated cells in which "really broken", said after the first attempt alone, is what the hidden
    repeats show together: not one of them passed."""


class Control(Struct, frozen=True, kw_only=True):
    """Breakages for each hundred commits, on some commits and on all others."""

    commits: int
    rate: float
    """Expected number, all probabilities summed."""
    others: float
    certain: int
    """Of those on these commits, how many are more likely than not."""
    low: float
    """Interval of 95 % of their rate (Garwood 1936: exact Poisson)."""
    high: float
    jobs: tuple[tuple[str, float], ...]
    """Whose they are: jobs that do read these commits' files belong here, others do not."""


def held_out_repeats(facts: Record) -> HeldOut:
    """Hide all but the first attempt of half of the repeated cells, foretell the second, then the other half."""
    width = max(1, len(facts.jobs))
    counted = (facts.state == State.PASSED) | (facts.state == State.FAILED)
    keys = np.where(counted, facts.commit * width + facts.job, -1)
    order = np.flatnonzero(counted)
    order = order[np.argsort(keys[order], kind="stable")]
    unique, first, counts = np.unique(keys[order], return_index=True, return_counts=True)
    repeated = np.flatnonzero(counts > 1)
    if not len(repeated):
        return HeldOut(
            cells=0, agreement=1.0, brier=0.0, always_flake=1.0, ceiling=1.0, all_cells=0, all_agreement=1.0,
            verdict_agreement=1.0,
        )  # fmt: skip
    started = facts.state[order[first[repeated]]] == State.FAILED
    second = facts.state[order[first[repeated] + 1]] == State.FAILED
    passed = np.add.reduceat((facts.state[order] == State.PASSED).astype(np.int64), first)[repeated]
    stayed = passed - ~started == 0
    said, broken = np.zeros(len(repeated)), np.zeros(len(repeated))
    half = np.random.default_rng(0).random(len(repeated)) < 0.5  # noqa: PLR2004 - halves
    for hidden in (half, ~half):
        cut = set(unique[repeated[hidden]].tolist())
        later = np.ones(len(order), dtype=bool)
        later[first] = False
        gone = order[later & np.isin(keys[order], list(cut))]
        kept = np.setdiff1d(np.arange(len(facts.commit)), gone)
        said[hidden], broken[hidden] = _foretold(facts, kept, unique[repeated[hidden]], width)
    right = (said >= 0.5) == second  # noqa: PLR2004 - more likely than not
    red = started
    return HeldOut(
        cells=int(red.sum()),
        agreement=float(right[red].mean()) if red.any() else 1.0,
        brier=float(((said - second)[red] ** 2).mean()) if red.any() else 0.0,
        always_flake=float((~second[red]).mean()) if red.any() else 1.0,
        ceiling=float(np.maximum(said, 1 - said)[red].mean()) if red.any() else 1.0,
        all_cells=len(repeated),
        all_agreement=float(right.mean()),
        verdict_agreement=float(((broken >= REAL) == stayed).mean()),
    )


def _foretold(facts: Record, kept: Indices, wanted: Indices, width: int) -> tuple[Numbers, Numbers]:
    """Probability that one more attempt fails, and that the job was really broken."""
    names = ("commit", "job", "state", "known", "minutes", "wait_min")
    seen = replace(facts, **{name: getattr(facts, name)[kept] for name in names})
    known: Cells = cells(seen)
    judged = judge(known, len(facts.jobs))
    place = np.searchsorted(known.commit * width + known.job, wanted)
    return next_failure(known, judged)[place], judged.broken[place]


def on_commits(facts: Record, some: Sequence[int], exempt: Sequence[str] = ()) -> Control:
    """Breakages on commits that should have none (documentation only), against all others.

    Args:
        facts: The record.
        some: These commits.
        exempt: Jobs that do read what these commits touch (a licence check reads documentation).
    """
    from scipy.special import gammaincinv

    known = cells(facts)
    counted = np.array([job not in exempt for job in facts.jobs], dtype=bool)[known.job]
    began = np.where(counted, judge(known, len(facts.jobs)).began, 0.0)
    chosen = np.zeros(len(facts.commits), dtype=bool)
    chosen[list(some)] = True
    by_commit = np.bincount(known.commit, began, len(facts.commits))
    here = chosen[known.commit]
    by_job = np.bincount(known.job[here], began[here], len(facts.jobs))
    certain, count = int((began[here] >= REAL).sum()), max(int(chosen.sum()), 1)
    return Control(
        commits=int(chosen.sum()),
        rate=100 * float(by_commit[chosen].mean()) if chosen.any() else 0.0,
        others=100 * float(by_commit[~chosen].mean()) if (~chosen).any() else 0.0,
        certain=certain,
        low=100 * float(gammaincinv(certain, _TAIL)) / count if certain else 0.0,
        high=100 * float(gammaincinv(certain + 1, 1 - _TAIL)) / count,
        jobs=tuple(
            (facts.jobs[job], float(by_job[job])) for job in np.argsort(-by_job)[:_NAMED] if by_job[job] > _SOME
        ),
    )
