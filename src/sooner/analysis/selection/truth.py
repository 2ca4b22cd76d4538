"""What counts as a breakage, in hindsight, and how a selection did against it. Pure.

A breakage is a commit on which at least one job began to be really broken. It is caught if one of these jobs was run on
that commit. Red that is inherited from a commit before is no new breakage, and a flake is none at all. What was real is
judged by `flakes.py` with everything that is known today; two readings without any model stand beside it, so that
nobody needs to believe in the model.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.calibrate import lower_bound
from sooner.analysis.selection.facts import (
    FLOOR_MIN,
    Cells,
    Flags,
    Indices,
    Numbers,
    Record,
    State,
    cells,
    mean_minutes,
)
from sooner.analysis.selection.flakes import REAL, Judged, judge

_BLOCK: Final = 25
"""Commits of a block of the bootstrap: breakages come in bursts, blocks keep them together."""
_RESAMPLES: Final = 1000
_TAIL: Final = 0.025
_HOUR: Final = 3600.0


class Score(Struct, frozen=True, kw_only=True):
    """How a selection did against one definition of breakages."""

    breakages: int
    caught: int
    recall: float
    low: float
    """Lower end of the one-sided interval of 95 % (Clopper and Pearson)."""


class Missed(Struct, frozen=True, kw_only=True):
    """A breakage that no selected job would have seen."""

    sha: str
    jobs: tuple[str, ...]
    probability: float
    """That it was real."""
    failure_line: str = ""
    detected_after_commits: int | None = None
    """Commits until a selected job saw it while it was still broken; None where none did."""
    red_hours: float | None = None
    """From the breaking commit to that one, or to the mending one."""


class Truth(Struct, frozen=True, kw_only=True):
    """Breakages under one definition."""

    commit: Indices
    """Of each job that broke."""
    job: Indices
    probability: Numbers

    def by_commit(self) -> dict[int, list[int]]:
        """Jobs that broke, by commit."""
        found: dict[int, list[int]] = {}
        for commit, job in zip(self.commit.tolist(), self.job.tolist(), strict=True):
            found.setdefault(commit, []).append(job)
        return found


def truths(facts: Record, known: Cells | None = None, judged: Judged | None = None) -> dict[str, Truth]:
    """Breakages under each definition: `judged`, `repeated`, `persisted`."""
    known = cells(facts) if known is None else known
    judged = judge(known, len(facts.jobs)) if judged is None else judged
    red = (known.passes == 0) & (known.failures > 0)
    before, after = _neighbours(known, red)
    flags = {
        "judged": judged.began >= REAL,
        "repeated": red & (known.failures > 1) & ~before,
        "persisted": red & after & ~before,
    }
    return {
        name: Truth(commit=known.commit[some], job=known.job[some], probability=judged.began[some])
        for name, some in flags.items()
    }


def lasting(known: Cells) -> Flags:
    """By cell: red that no repeat passed, or that the job's next commit has too, and that its last one had not.

    The crudest reading of a breakage: flakes that come twice are such red too.
    """
    red = known.passes == 0
    before, after = _neighbours(known, red)
    found: Flags = red & ((known.failures > 1) | after) & ~before
    return found


def _neighbours(known: Cells, red: Flags) -> tuple[Flags, Flags]:
    """Whether the job's cell before, and after, is red too."""
    order = known.by_job
    same = known.job[order][1:] == known.job[order][:-1]
    before, after = np.zeros(len(red), dtype=bool), np.zeros(len(red), dtype=bool)
    before[order[1:]] = red[order[:-1]] & same
    after[order[:-1]] = red[order[1:]] & same
    return before, after


def score(truth: Truth, selected: Mapping[int, frozenset[int]]) -> Score:
    """Breakages on the commits that were decided, and how many of them were caught."""
    broken = {commit: jobs for commit, jobs in truth.by_commit().items() if commit in selected}
    caught = sum(not selected[commit].isdisjoint(jobs) for commit, jobs in broken.items())
    count = len(broken)
    return Score(
        breakages=count, caught=caught, recall=caught / count if count else 1.0, low=lower_bound(caught, count)
    )


def interval(truth: Truth, selected: Mapping[int, frozenset[int]], seed: int = 1) -> tuple[float, float]:
    """Block bootstrap interval of 95 % of the recall, at least as wide as the exact one of so many breakages.

    Of few blocks, or where all are alike, the bootstrap knows nothing: of four out of four it makes 100 to 100 %.
    """
    blocks: dict[int, list[int]] = {}
    for commit, jobs in truth.by_commit().items():
        if commit in selected:
            blocks.setdefault(commit // _BLOCK, []).append(int(not selected[commit].isdisjoint(jobs)))
    if not blocks:
        return 0.0, 1.0
    hits = np.array([sum(found) for found in blocks.values()], dtype=np.float64)
    counts = np.array([len(found) for found in blocks.values()], dtype=np.float64)
    draws = np.random.default_rng(seed).integers(len(hits), size=(_RESAMPLES, len(hits)))
    shares = hits[draws].sum(axis=1) / counts[draws].sum(axis=1)
    some, count = float(hits.sum()), float(counts.sum())
    low = lower_bound(some, count, tail=_TAIL)
    high = 1.0 - lower_bound(count - some, count, tail=_TAIL)
    return min(float(np.quantile(shares, _TAIL)), low), max(float(np.quantile(shares, 1 - _TAIL)), high)


def cost_share(facts: Record, selected: Mapping[int, frozenset[int]], price: Numbers | None = None) -> float:
    """Cost of the selected jobs that exist on their commits over that of all jobs there, at each job's mean minutes."""
    weight = np.maximum(mean_minutes(facts), FLOOR_MIN) * (1.0 if price is None else price)
    ran = (facts.state == State.PASSED) | (facts.state == State.FAILED)
    keys = np.unique(facts.commit[ran] * max(1, len(facts.jobs)) + facts.job[ran])
    spent = total = 0.0
    for commit, job in zip((keys // max(1, len(facts.jobs))).tolist(), (keys % len(facts.jobs)).tolist(), strict=True):
        if commit in selected:
            total += weight[job]
            spent += weight[job] if job in selected[commit] else 0.0
    return float(spent / total) if total else 0.0


def misses(facts: Record, truth: Truth, selected: Mapping[int, frozenset[int]]) -> list[Missed]:
    """Every breakage that was not caught, and when a later selection (or a full run) would have seen it."""
    known = cells(facts)
    red = {(c, j) for c, j in zip(known.commit[known.passes == 0], known.job[known.passes == 0], strict=True)}
    ran: dict[int, list[int]] = {}
    for commit, job in zip(known.commit.tolist(), known.job.tolist(), strict=True):
        ran.setdefault(job, []).append(commit)
    chance = {(c, j): p for c, j, p in zip(truth.commit.tolist(), truth.job.tolist(), truth.probability, strict=True)}
    found = []
    for commit, jobs in sorted(truth.by_commit().items()):
        if commit not in selected or not selected[commit].isdisjoint(jobs):
            continue
        ends = [_seen(job, commit, ran[job], red, selected) for job in jobs]
        seen = min((end for end, caught in ends if caught), default=None)
        last = seen if seen is not None else max(end for end, _ in ends)
        found.append(
            Missed(
                sha=facts.commits[commit],
                jobs=tuple(facts.jobs[job] for job in jobs),
                probability=float(max(chance[commit, job] for job in jobs)),
                failure_line=next(
                    (facts.failure_lines[commit, j] for j in jobs if (commit, j) in facts.failure_lines), ""
                ),
                detected_after_commits=None if seen is None else seen - commit,
                red_hours=float(facts.decided[last] - facts.decided[commit]) / _HOUR,
            )
        )
    return found


def _seen(
    job: int, commit: int, ran: Sequence[int], red: set[tuple[int, int]], selected: Mapping[int, frozenset[int]]
) -> tuple[int, bool]:
    """The commit on which a breakage was seen, or else mended."""
    for later in ran[int(np.searchsorted(ran, commit)) + 1 :]:
        if (later, job) not in red:
            return later, False
        if job in selected.get(later, frozenset()):
            return later, True
    return ran[-1], False
