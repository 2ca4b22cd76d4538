"""How much a change resembles earlier ones, by the folders that they touch. Pure; needs scipy.

A commit is the set of its folders, each weighted by how seldom commits touch it (inverse document frequency); two
commits are as much alike as the cosine of their angle (Salton, Wong and Yang 1975). What counts is how much more alike
they are than commits usually are: everything resembles a change of the folder that all of them touch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from sooner.analysis.selection.facts import Numbers
from sooner.analysis.selection.lift import folders, touching

_FLOOR: Final = 0.02
"""Added to both: of a folder that hardly any commit touches, one that does is no proof."""
_TINY: Final = 1e-12


class Resemblance:
    """Knows the folders of all commits, and of what it has learned from how seldom each is touched."""

    def __init__(self, files: Mapping[int, Sequence[str]], commits: int) -> None:
        names, touches = touching(files)
        touches.resize((len(names), commits))
        self._place = {name: i for i, name in enumerate(names)}
        self._touches = touches.T.tocsr().astype(np.float64)
        self._is_known = np.asarray(self._touches.sum(axis=1)).ravel() > 0
        self._seldom = np.zeros(len(names))
        self._unseen = 0.0
        self._learned: Any = self._touches[:0]

    def learn(self, commit: int) -> None:
        """Look at the commits before this one."""
        before = self._touches[:commit]
        often = np.asarray(before.sum(axis=0)).ravel()
        self._unseen = float(np.log(self._is_known[:commit].sum() + 1.0))
        self._seldom = self._unseen - np.log(often + 1.0) + _TINY
        weighted = before.multiply(self._seldom[None, :]).tocsr()
        length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        self._learned = weighted.multiply(1.0 / np.maximum(length, _TINY)[:, None]).tocsr()

    def to(self, commit: int, files: Sequence[str] = ()) -> Numbers:
        """By commit: how many times as much as usual it resembles this one; 1 where nothing is known.

        Args:
            commit: Its number.
            files: What it touches, if it is a change that is none of the commits.
        """
        found = np.ones(len(self._is_known))
        own, length = self._own(commit, files)
        told = np.flatnonzero(self._is_known[: self._learned.shape[0]])
        if not len(told) or length <= _TINY:
            return found
        alike = (self._learned @ (own / length))[told]
        found[told] = (alike + _FLOOR) / (alike.mean() + _FLOOR)
        return found

    def _own(self, commit: int, files: Sequence[str]) -> tuple[Numbers, float]:
        """The folders of a commit, weighted, and their length; folders that nobody has touched yet count in it."""
        fresh = 0
        if commit < len(self._is_known):
            touched = self._touches[[commit]].indices
        else:
            named = {one for path in files for one in folders(path)}
            touched = sorted(self._place[one] for one in named if one in self._place)
            fresh = len(named) - len(touched)
        own = np.zeros(len(self._seldom))
        own[touched] = self._seldom[touched]
        return own, float(np.sqrt((own**2).sum() + fresh * self._unseen**2))
