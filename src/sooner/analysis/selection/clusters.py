"""Groups of jobs that fail together: the way of 2019, and by distance in phi. Pure; needs scipy."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sooner.analysis.selection.facts import Indices, Numbers, Record, State

_CUT_2019: Final = 0.1
"""Of the largest distance, "PyTorch CI deduplication" (2019), appendix."""
CUT: Final = 0.5
"""Distance (1 - phi) up to which jobs belong together."""


class Merge(Struct, frozen=True, kw_only=True):
    """A join of the cluster tree: leaves are 0 to n - 1, the i-th join is n + i."""

    left: int
    right: int
    distance: float
    size: int


class Grouping(Struct, frozen=True, kw_only=True):
    """Jobs in the order of the heat map, with their clusters."""

    order: tuple[int, ...]
    cluster: tuple[int, ...]
    """By job, numbered from 1."""
    tree: tuple[Merge, ...]


def matrix_2019(facts: Record, names: Sequence[str]) -> tuple[Numbers, list[str]]:
    """Commit x folded job as the script of 2019 makes it: 1 for success, 0 for anything else, NaN for not there.

    A folded job is the product of its parts. Of repeats the last one counts, whatever it is; only jobs of the latest
    commit are kept. All of that is wrong (cancelled is no failure, a flake no outcome): that is this method.

    Args:
        facts: The attempts.
        names: Folded name of each job.
    """
    last = {cell: i for i, cell in enumerate(zip(facts.commit.tolist(), facts.job.tolist(), strict=True))}
    columns = sorted({names[job] for job in facts.job[facts.commit == len(facts.commits) - 1].tolist()})
    place = {name: i for i, name in enumerate(columns)}
    table = np.full((len(facts.commits), len(columns)), np.nan)
    for (commit, job), i in last.items():
        if (column := place.get(names[job])) is not None:
            good = 1.0 if facts.state[i] == State.PASSED else 0.0
            before = table[commit, column]
            table[commit, column] = good if np.isnan(before) else before * good
    return table, columns


def correlation_2019(table: Numbers) -> Numbers:
    """Pearson's correlation of all pairs over the rows that both have, as `pandas.DataFrame.corr` gives it.

    Where a column is constant on these rows it is NaN there, and the script fails on it; here NaN becomes 0 (nothing
    is known) and 1 on the diagonal.
    """
    here = ~np.isnan(table)
    ran, value = here.astype(np.float64), np.where(here, table, 0.0)
    n, x, both = ran.T @ ran, value.T @ ran, value.T @ value
    square = (value * value).T @ ran
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((n * square - x * x) * (n * square.T - x.T * x.T))
        found: Numbers = np.where(spread > 0, (n * both - x * x.T) / spread, 0.0)
    found = np.clip(found, -1.0, 1.0)
    np.fill_diagonal(found, 1.0)
    return found


def group_2019(correlation: Numbers) -> Grouping:
    """Complete linkage of the Euclidean distances of the rows, cut at 0.1 of the largest distance."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    if len(correlation) < 2:  # noqa: PLR2004 - nothing to compare
        return _alone(len(correlation))
    distance = pdist(correlation)
    tree = linkage(distance, method="complete")
    cluster = fcluster(tree, _CUT_2019 * distance.max(), "distance")
    return _grouping(np.argsort(cluster), cluster, tree)


def group(alike: NDArray[Any], cut: float = CUT) -> Grouping:
    """Average linkage of 1 - phi; unknown is far."""
    from scipy.cluster.hierarchy import fcluster, leaves_list, linkage
    from scipy.spatial.distance import squareform

    if len(alike) < 2:  # noqa: PLR2004 - nothing to compare
        return _alone(len(alike))
    distance = np.clip(1.0 - np.nan_to_num(alike.astype(np.float64)), 0.0, 2.0)
    distance = (distance + distance.T) / 2
    np.fill_diagonal(distance, 0.0)
    tree = linkage(squareform(distance, checks=False), method="average")
    return _grouping(leaves_list(tree), fcluster(tree, cut, "distance"), tree)


def _alone(count: int) -> Grouping:
    return Grouping(order=tuple(range(count)), cluster=tuple(range(1, count + 1)), tree=())


def _grouping(order: Indices, cluster: Indices, tree: Numbers) -> Grouping:
    return Grouping(
        order=tuple(int(i) for i in order),
        cluster=tuple(int(i) for i in cluster),
        tree=tuple(Merge(left=int(a), right=int(b), distance=float(d), size=int(n)) for a, b, d, n in tree),
    )


def representatives(grouping: Grouping, worth: Numbers) -> list[int]:
    """One job of each cluster, the most worthwhile: what the document does by hand."""
    best: dict[int, int] = {}
    for job, cluster in enumerate(grouping.cluster):
        if cluster not in best or worth[job] > worth[best[cluster]]:
            best[cluster] = job
    return sorted(best.values())
