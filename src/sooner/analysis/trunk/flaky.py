"""Flaky tests and jobs, by the signal that they cost. Pure; needs numpy and scipy.

The evidence is both outcomes on one commit: the code was sound (it passed) and the run failed all the same. A commit on
which every run failed proves nothing, so it is left out of the rate; where its neighbours passed it is counted as
*suspected*. Which definition and why: docs/reference/quarantine.md.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from sooner.analysis.metrics.statistics import Estimate, rate
from sooner.analysis.trunk.facts import Kind

LONGEST_RED_S: Final = 86_400.0
"""A failure costs no more waiting than this: nobody waits longer for a pass, they look."""
_MOST_EVIDENCE: Final = 5
_BROKEN_NOW: Final = 2
"""Newest commits in a row on which nothing but failures came: then it is broken, whatever it was before."""


class Subject(NamedTuple):
    """What is flaky: a test or unit by its id and variant, or a job by its name."""

    kind: Kind
    id: str
    variant: str = ""


class Run(Struct, frozen=True, kw_only=True, gc=False):
    """One attempt that passed or failed; other ends say nothing about the code."""

    subject: Subject
    where: str = ""
    """The job of a test: only runs of one job on one commit are on the same code."""
    code: str
    """The commit; where there is none, the run."""
    failed: bool
    started: float | None = None
    """Epoch seconds."""
    seconds: float | None = None

    @property
    def ended(self) -> float | None:
        """Epoch seconds; its start where its duration is not known."""
        return None if self.started is None else self.started + (self.seconds or 0.0)


class Flaky(Struct, frozen=True, kw_only=True):
    """One row of the ranking."""

    kind: Kind
    id: str
    variant: str
    failures: int
    """On commits where it also passed."""
    runs: int
    """On commits where it passed at least once."""
    rate: Estimate
    commits: int
    """With both outcomes."""
    suspected: int
    """Commits with failures alone, between ones with passes alone."""
    red_s: float
    """Seconds from those failures to the next pass: what people waited."""
    rerun_s: float
    """Seconds of the runs after a failure on the same commit: what machines repeated."""
    cost_s: float
    """What its flakes cost: waiting and repeating."""
    last: float | None
    """Start of the last flake."""
    evidence: tuple[str, ...]
    """Newest commits with both outcomes."""
    broken_now: bool
    """Its newest commits saw failures alone: that is no flake."""
    has_cases: bool = False
    """A unit whose tests are known one by one: their rows say more."""


class _Cell(Struct, kw_only=True):
    """All runs of one subject in one job on one commit."""

    code: str
    runs: list[Run]

    @property
    def first(self) -> float:
        return min((run.started for run in self.runs if run.started is not None), default=0.0)

    @property
    def failures(self) -> int:
        return sum(run.failed for run in self.runs)

    @property
    def passes(self) -> int:
        return len(self.runs) - self.failures

    @property
    def is_mixed(self) -> bool:
        return 0 < self.failures < len(self.runs)


def ranking(runs: Iterable[Run], *, with_cases: Collection[tuple[str, str]] = ()) -> list[Flaky]:
    """Everything that ever had both outcomes on one commit, what costs most first.

    Args:
        runs: Attempts, in any order.
        with_cases: Units (name, variant) whose tests are known one by one.
    """
    rows = [_row(subject, own, with_cases) for subject, own in by_subject(runs).items()]
    found = [row for row in rows if row is not None]
    return sorted(found, key=lambda row: (-row.cost_s, -row.failures, row.kind, row.id, row.variant))


def by_subject(runs: Iterable[Run]) -> dict[Subject, list[Run]]:
    """Runs of each test or job, in the order of time."""
    groups: dict[Subject, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.started or 0.0):
        groups.setdefault(run.subject, []).append(run)
    return groups


def _row(subject: Subject, runs: Sequence[Run], with_cases: Collection[tuple[str, str]]) -> Flaky | None:
    places = _cells(runs)
    mixed = [cell for cells in places.values() for cell in cells if cell.is_mixed]
    if not mixed:
        return None
    mixed.sort(key=lambda cell: cell.first, reverse=True)
    sound = [cell for cells in places.values() for cell in cells if cell.passes]
    failures, total = sum(cell.failures for cell in mixed), sum(len(cell.runs) for cell in sound)
    costs = [
        _cost(cell, passes)
        for cells in places.values()
        if (passes := _passes(cells))
        for cell in cells
        if cell.is_mixed
    ]
    flakes = [run.started for cell in mixed for run in cell.runs if run.failed and run.started is not None]
    return Flaky(
        kind=subject.kind,
        id=subject.id,
        variant=subject.variant,
        failures=failures,
        runs=total,
        rate=rate(failures, total),
        commits=len(mixed),
        suspected=sum(_suspected(cells) for cells in places.values()),
        red_s=sum(red for red, _ in costs),
        cost_s=sum(red + again for red, again in costs),
        rerun_s=sum(rerun for _, rerun in costs),
        last=max(flakes, default=None),
        evidence=tuple(dict.fromkeys(cell.code for cell in mixed))[:_MOST_EVIDENCE],
        broken_now=any(_is_broken_now(cells) for cells in places.values()),
        has_cases=subject.kind is Kind.TEST and (subject.id, subject.variant) in with_cases,
    )


def _cells(runs: Sequence[Run]) -> Mapping[str, list[_Cell]]:
    """The commits of each job, in the order in which they were first run."""
    found: dict[tuple[str, str], _Cell] = {}
    for run in runs:
        found.setdefault((run.where, run.code), _Cell(code=run.code, runs=[])).runs.append(run)
    places: dict[str, list[_Cell]] = {}
    for (where, _), cell in found.items():
        places.setdefault(where, []).append(cell)
    for cells in places.values():
        cells.sort(key=lambda cell: cell.first)
    return places


def _passes(cells: Sequence[_Cell]) -> list[float]:
    """Ends of all passes, in order."""
    return sorted(run.ended for cell in cells for run in cell.runs if not run.failed and run.ended is not None)


def _cost(cell: _Cell, passes: Sequence[float]) -> tuple[float, float]:
    """Seconds of waiting and of repeating that the failures of a commit cost; 0 where no times are known."""
    failed = [run.ended for run in cell.runs if run.failed and run.ended is not None]
    if not failed:
        return 0.0, 0.0
    begin = min(failed)
    repeated = sum(run.seconds or 0.0 for run in cell.runs if run.started is not None and run.started >= begin)
    own = [run.ended for run in cell.runs if not run.failed and run.ended is not None and run.ended >= begin]
    place = bisect_left(passes, begin)
    later = min(own) if own else passes[place] if place < len(passes) else None
    red = LONGEST_RED_S if later is None else min(later - begin, LONGEST_RED_S)
    return red, repeated


def _suspected(cells: Sequence[_Cell]) -> int:
    return sum(
        cell.passes == 0 and not before.failures and not after.failures
        for before, cell, after in zip(cells, cells[1:], cells[2:], strict=False)
    )


def _is_broken_now(cells: Sequence[_Cell]) -> bool:
    return len(cells) >= _BROKEN_NOW and all(cell.passes == 0 for cell in cells[-_BROKEN_NOW:])
