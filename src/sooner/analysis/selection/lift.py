"""Which folders predict which jobs: a layer that only ever adds jobs, where a permutation test supports it. Pure.

For a folder and a job the question is whether the job's breakages fall on commits that touch the folder more often than
if they were dealt out at random among all commits on which the job ran. The distribution of that number over all
permutations is known (hypergeometric), so nothing is drawn; false discoveries over all pairs are held at 5 % (Benjamini
and Hochberg 1995). On Apache Ozone nothing passes: there, file names predict no breakage.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.facts import Flags, Indices, Numbers

_FEWEST: Final = 3
"""Breakages of a job on commits of a folder: fewer are an anecdote."""
_DISCOVERIES: Final = 0.05
_LEAST_LIFT: Final = 2.0
_DEPTHS: Final = (1, 2, 3)
_NO_FOLDER: Final = ("", ".")


class Lift(Struct, frozen=True, kw_only=True):
    """A folder whose changes break a job more often than others do."""

    folder: str
    job: str
    lift: float
    """Rate of breakages on its commits over the rate on all, of those on which the job ran."""
    breakages: int
    p: float


def folders(path: str) -> list[str]:
    """The folders of a path, down to three levels."""
    parts = [part for part in path.split("/")[:-1] if part not in _NO_FOLDER]
    return ["/".join(parts[:depth]) for depth in _DEPTHS if depth <= len(parts)]


def lifts(
    files: Mapping[int, Sequence[str]], jobs: Sequence[str], commit: Indices, job: Indices, broken: Flags
) -> list[Lift]:
    """Supported pairs of folder and job.

    Args:
        files: By commit; only commits whose files are known.
        jobs: Names.
        commit: Of each cell, a job that came to a verdict on a commit.
        job: Of each cell.
        broken: Whether it really broke there.
    """
    from scipy.sparse import csr_array
    from scipy.stats import hypergeom

    told = np.isin(commit, list(files))
    commit, job, broken = commit[told], job[told], broken[told]
    names, touches = touching(files)
    shape = (touches.shape[1], len(jobs))
    touched = (touches @ csr_array((np.ones_like(job), (commit, job)), shape)).toarray()
    both = (touches @ csr_array((broken.astype(np.int64), (commit, job)), shape)).toarray()
    runs, breakages = np.bincount(job, minlength=len(jobs)), np.bincount(job[broken], minlength=len(jobs))
    b, a = np.nonzero(both.T >= _FEWEST)
    many, some = both[a, b], touched[a, b]
    chances = hypergeom.sf(many - 1, runs[b], breakages[b], some)
    rates = many / some / (breakages[b] / runs[b])
    tried = int(((touched >= _FEWEST) & (breakages >= _FEWEST)).sum())
    kept = np.flatnonzero(discoveries(chances, tried=tried) & (rates >= _LEAST_LIFT))
    return [
        Lift(folder=names[a[i]], job=jobs[b[i]], lift=float(rates[i]), breakages=int(many[i]), p=float(chances[i]))
        for i in kept.tolist()
    ]


def touching(files: Mapping[int, Sequence[str]]) -> tuple[list[str], Any]:
    """Folders, and [folder, commit], sparse: ones where the commit touches the folder."""
    from scipy.sparse import csr_array

    place: dict[str, int] = {}
    above: dict[str, list[str]] = {}  # by folder of a file, however deep: most files share theirs
    rows, columns = list[int](), list[int]()
    for commit, paths in files.items():
        own = {path.rpartition("/")[0] for path in paths}
        named = {folder for one in own for folder in above.setdefault(one, folders(f"{one}/."))}
        rows += [place.setdefault(folder, len(place)) for folder in sorted(named)]
        columns += [commit] * len(named)
    shape = (len(place), max(files, default=-1) + 1)
    return list(place), csr_array((np.ones(len(rows), dtype=np.int64), (rows, columns)), shape)


def discoveries(p: Numbers, share: float = _DISCOVERIES, *, tried: int = 0) -> Flags:
    """Which p-values may be called discoveries, at most this share of them false (Benjamini and Hochberg 1995).

    Args:
        p: The p-values.
        share: See above.
        tried: How many there would be, had not only those been computed that looked promising: chance had all of them.
    """
    if not p.size:
        return np.zeros(0, dtype=bool)
    ordered = np.sort(p, axis=None)
    passing = np.flatnonzero(ordered <= share * np.arange(1, p.size + 1) / max(p.size, tried))
    found: Flags = p <= (ordered[passing[-1]] if len(passing) else -1.0)
    return found
