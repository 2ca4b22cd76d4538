"""Which folders predict which jobs: a layer that only ever adds jobs, where a permutation test supports it. Pure.

For a folder and a job the question is whether the job's breakages fall on commits that touch the folder more often than
if they were dealt out among all commits at random. The distribution of that number over all permutations is known
(hypergeometric), so nothing is drawn; false discoveries over all pairs are held at 5 % (Benjamini and Hochberg 1995).
On Apache Ozone nothing passes: there, file names predict no breakage.
"""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

import numpy as np
from msgspec import Struct

from sooner.analysis.selection.facts import Flags, Numbers

_FEWEST: Final = 3
"""Breakages of a job on commits of a folder: fewer are an anecdote."""
_DISCOVERIES: Final = 0.05
_LEAST_LIFT: Final = 2.0
_DEPTHS: Final = (1, 2, 3)


class Lift(Struct, frozen=True, kw_only=True):
    """A folder whose changes break a job more often than others do."""

    folder: str
    job: str
    lift: float
    """Rate of breakages on its commits over the rate on all."""
    breakages: int
    p: float


def folders(path: str) -> list[str]:
    """The folders of a path, down to three levels."""
    parts = PurePosixPath(path).parts[:-1]
    return ["/".join(parts[:depth]) for depth in _DEPTHS if depth <= len(parts)]


def lifts(files: Mapping[int, Sequence[str]], broken: Mapping[str, frozenset[int]]) -> list[Lift]:
    """Supported pairs of folder and job.

    Args:
        files: By commit; only commits whose files are known.
        broken: By job: commits on which it really broke.
    """
    from scipy.stats import hypergeom

    touching: dict[str, set[int]] = {}
    for commit, paths in files.items():
        for folder in {folder for path in paths for folder in folders(path)}:
            touching.setdefault(folder, set()).add(commit)
    commits, found, chances, tried = len(files), [], [], 0
    often = sum(len(some) >= _FEWEST for some in touching.values())
    for job, breakages in broken.items():
        known = breakages & files.keys()
        tried += often if len(known) >= _FEWEST else 0
        for folder, some in touching.items():
            both = len(known & some)
            if both < _FEWEST:
                continue
            chances.append(float(hypergeom.sf(both - 1, commits, len(known), len(some))))
            lift = both / len(some) / (len(known) / commits)
            found.append(Lift(folder=folder, job=job, lift=lift, breakages=both, p=chances[-1]))
    kept = discoveries(np.array(chances), tried=tried)
    return [one for one, keep in zip(found, kept, strict=True) if keep and one.lift >= _LEAST_LIFT]


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
