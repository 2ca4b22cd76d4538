"""What `correlate` answers: who fails with whom, who could stand in for whom, which failures to believe. Pure."""

import re
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sooner.analysis.selection.clusters import (
    Grouping,
    Merge,
    correlation_2019,
    group,
    group_2019,
    matrix_2019,
)
from sooner.analysis.selection.correlation import matrices, pairs, phi, stands, tables
from sooner.analysis.selection.facts import Cells, Indices, Record, State, cells
from sooner.analysis.selection.flakes import REAL, Judged, Rates, judge
from sooner.analysis.selection.load import folded
from sooner.analysis.selection.request import members
from sooner.analysis.selection.settings import JobSettings

_BUILDS: Final = re.compile(r"build|compile|binary|wheel|docker", re.IGNORECASE)


_FEWEST_REPEATS: Final = 20
"""Failed cells that were run again; with fewer, nothing tells a flake from a breakage, and all red counts."""


class Related(Struct, frozen=True, kw_only=True):
    """One job with another."""

    a: str
    b: str
    phi: float
    jaccard: float
    both_ran: int
    both_red: int
    p: float


class StandIn(Struct, frozen=True, kw_only=True):
    """What is missed if one job is kept instead of another."""

    kept: str
    dropped: str
    breakages: int
    missed: int
    rate: float
    low: float
    high: float


class JobFigures(Struct, frozen=True, kw_only=True):
    """What is known of a job's failures."""

    job: str
    cells: int
    red: int
    """Cells in which every attempt failed."""
    flaky: int
    """Cells with both outcomes."""
    breakages: float
    """Expected number of real ones."""
    flake_rate: float
    """Of attempts on healthy commits."""
    states: dict[str, int]
    """Attempts by state: what was skipped, blocked, cancelled or infrastructure's is neither red nor green."""


class Correlation(Struct, frozen=True, kw_only=True):
    """The whole answer."""

    method: str
    kind: str
    jobs: tuple[str, ...]
    """In the order of the heat map."""
    cluster: tuple[int, ...]
    """By job in this order."""
    clusters: tuple[tuple[str, ...], ...]
    tree: tuple[Merge, ...]
    """Leaves are numbered in the order of `leaves`."""
    leaves: tuple[str, ...]
    matrix: tuple[tuple[float | None, ...], ...]
    """Row by row in the order of `jobs`; null where nothing is known."""
    pairs: tuple[Related, ...] = ()
    stand_ins: tuple[StandIn, ...] = ()
    figures: tuple[JobFigures, ...] = ()
    rates: dict[str, float] = {}
    flakes_removed: bool = False
    """False where hardly any failure was repeated: then all red counts."""


def by_2019(facts: Record, suffixes: Sequence[str], kind: str = "all") -> Correlation:
    """The document's matrix and clusters."""
    chosen = _of_kind(facts.jobs, kind)
    names = [folded(job, suffixes) if keep else "" for job, keep in zip(facts.jobs, chosen, strict=True)]
    table, columns = matrix_2019(facts, names)
    some = [i for i, column in enumerate(columns) if column]
    columns = [columns[i] for i in some]
    alike = correlation_2019(table[:, some])
    return _answer("2019", kind, columns, alike, group_2019(alike))


def by_phi(facts: Record, settings: JobSettings, kind: str = "all", *, cut: float) -> Correlation:
    """Phi of real breakages, stand-ins of real breakages, and what is known of each job."""
    known = cells(facts)
    judged = judge(known, len(facts.jobs))
    keep = np.flatnonzero(_of_kind(facts.jobs, kind) & (np.bincount(known.job, minlength=len(facts.jobs)) > 0))
    names = [facts.jobs[job] for job in keep.tolist()]
    repeated = int(((known.failures > 0) & (known.failures + known.passes > 1)).sum())
    told_apart = repeated >= _FEWEST_REPEATS
    ran, red = matrices(known, len(facts.jobs), len(facts.commits), judged.began >= REAL if told_apart else None)
    counts = tables(np.ascontiguousarray(ran[:, keep]), np.ascontiguousarray(red[:, keep]))
    alike = phi(counts)
    found = [
        Related(
            a=names[one.a], b=names[one.b], phi=one.phi, jaccard=one.jaccard, both_ran=one.both_ran,
            both_red=one.both_red, p=one.p,
        )
        for one in pairs(counts)
    ]  # fmt: skip
    answer = _answer("phi", kind, names, alike, group(alike, cut))
    return Correlation(
        **{name: getattr(answer, name) for name in ("method", "kind", "jobs", "cluster", "clusters", "tree")},
        leaves=answer.leaves,
        matrix=answer.matrix,
        pairs=tuple(found),
        stand_ins=tuple(_stand_ins(known, judged, keep, names, settings)),
        figures=tuple(_figures(facts, known, judged, keep)),
        rates=_rates(judged.rates),
        flakes_removed=told_apart,
    )


def _of_kind(jobs: Sequence[str], kind: str) -> NDArray[np.bool_]:
    builds = np.array([bool(_BUILDS.search(job)) and not re.search("test", job, re.IGNORECASE) for job in jobs], bool)
    return {"build": builds, "test": ~builds}.get(kind, np.ones(len(jobs), dtype=bool))


def _answer(method: str, kind: str, names: Sequence[str], alike: NDArray[Any], grouping: Grouping) -> Correlation:
    order = list(grouping.order)
    number = [grouping.cluster[i] for i in order]
    groups: dict[int, list[str]] = {}
    for i, cluster in zip(order, number, strict=True):
        groups.setdefault(cluster, []).append(names[i])
    rows = np.asarray(alike, dtype=np.float64)[np.ix_(order, order)]
    return Correlation(
        method=method,
        kind=kind,
        jobs=tuple(names[i] for i in order),
        cluster=tuple(number),
        clusters=tuple(tuple(some) for some in groups.values()),
        tree=grouping.tree,
        leaves=tuple(names),
        matrix=tuple(map(_row, rows)),
    )


def _row(values: NDArray[np.float64]) -> tuple[float | None, ...]:
    """Numbers with four digits; there may be millions of rows' cells, and NaN is none."""
    numbers = np.round(values, 4).tolist()
    for i in np.flatnonzero(np.isnan(values)).tolist():
        numbers[i] = None
    return tuple(numbers)


def _stand_ins(
    known: Cells, judged: Judged, keep: Indices, names: Sequence[str], settings: JobSettings
) -> list[StandIn]:
    real = judged.began >= REAL
    place = np.full(int(max(keep.max(initial=0), known.job.max(initial=0))) + 1, -1, dtype=np.int64)
    place[keep] = np.arange(len(keep))
    commits = np.unique(known.commit[real & (place[known.job] >= 0)])
    if not len(commits):
        return []
    here = (place[known.job] >= 0) & np.isin(known.commit, commits)
    row, column = np.searchsorted(commits, known.commit[here]), place[known.job[here]]
    ran, broken = np.zeros((2, len(commits), len(keep)), dtype=bool)
    ran[row, column], broken[row, column] = True, judged.broken[here] >= REAL
    facet = np.zeros(len(keep), dtype=np.int64)
    for number, glob in enumerate(settings.facets.values(), 1):
        facet[list(members(names, glob))] = number
    return [
        StandIn(
            kept=names[one.stands], dropped=names[one.dropped], breakages=one.breakages, missed=one.missed,
            rate=one.rate, low=one.low, high=one.high,
        )
        for one in stands(broken, ran, facet)
    ]  # fmt: skip


def _figures(facts: Record, known: Cells, judged: Judged, keep: Indices) -> list[JobFigures]:
    count = len(facts.jobs)
    red = np.bincount(known.job[known.passes == 0], minlength=count)
    flaky = np.bincount(known.job[(known.passes > 0) & (known.failures > 0)], minlength=count)
    judgements, began = np.bincount(known.job, minlength=count), np.bincount(known.job, judged.began, count)
    states = np.zeros((count, len(State)), dtype=np.int64)
    np.add.at(states, (facts.job, facts.state.astype(np.int64)), 1)
    return [
        JobFigures(
            job=facts.jobs[job],
            cells=int(judgements[job]),
            red=int(red[job]),
            flaky=int(flaky[job]),
            breakages=round(float(began[job]), 2),
            flake_rate=round(float(judged.rates.flakes[job]), 5),
            states={state.name.lower(): int(states[job, state]) for state in State if states[job, state]},
        )
        for job in keep.tolist()
    ]


def _rates(rates: Rates) -> dict[str, float]:
    return {"mends_per_commit": rates.mends, "concentration": rates.concentration, "frailty": rates.frailty}
