"""Which paths break which signals, learned from breakages whose culprits are known; and what names alone suggest. Pure.

Counted is how often a culprit changed something below a folder, beside how often that is to be expected if breaks had
nothing to do with paths. Few counts are drawn towards what is known more generally: a folder towards the folder above
it, a signal towards the others of its job, those towards all signals (gamma-Poisson shrinkage, as in DuMouchel,
"Bayesian data mining in large frequency tables", 1999). What was learned from the older half of the culprits must do
better than nothing on the newer half, or it is not used: on many projects paths tell nothing.
"""

import itertools
import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sooner.analysis.trunk.breakages import Breakage
from sooner.analysis.trunk.facts import Commit

DRAWN: Final = 3.0
"""So many expected breaks weigh as much as what is known more generally."""
DEEPEST: Final = 4
"""Folders deeper than this count as the one above."""
SURE: Final = 0.7
"""Breakages whose culprit is less probable than this teach nothing."""
FEWEST: Final = 8
"""With fewer culprits nothing is learned."""
SURER: Final = 2.0
"""Standard errors by which newer culprits must score above the average."""
LEAST: Final = 0.25
MOST: Final = 4.0
"""Bounds of what paths say of a commit; a revert needs a thousand times more."""
SAME_FILE: Final = 3.0
"""A commit that changes the very file of a test, beside others."""
SAME_FOLDER: Final = 1.5
_PATH: Final = re.compile(
    r"(?<![\w.+-])"  # where a name begins: whatever begins within it is part of that
    r"[\w.+-]+(?:/[\w.+-]+)*\.(?:py|cc|cpp|cu|cuh|c|h|hpp|go|rs|java|kt|js|ts|rb|sh)\b"
)
_LONGEST: Final = 1000
"""Characters of a key that are read: time grows with the square of what looks like a path, as parameters may do."""

_Lifts = Mapping[str, float]


class Lessons(Struct, frozen=True, kw_only=True):
    """How much more often than others commits break a signal that change something below a folder."""

    everywhere: dict[str, float] = {}
    areas: dict[str, dict[str, float]] = {}
    """The same for the signals of one job or workflow."""
    signals: dict[str, dict[str, float]] = {}
    usual: float = 1.0
    """What a commit scores on average."""
    culprits: int = 0
    """From so many it was learned."""
    gain: float = 0.0
    """By how much, in logarithms, newer culprits scored above the average."""

    def factor(self, signal: str, files: Sequence[str] | None) -> float:
        """How much more than others a commit is suspect that changes these files; 1 where nothing is known."""
        if not files or not self.everywhere:
            return 1.0
        lifts = self.signals.get(signal) or self.areas.get(area_of(signal)) or self.everywhere
        return min(MOST, max(LEAST, _score(lifts, files) / self.usual))


def area_of(signal: str) -> str:
    """The job of a test's signal, the workflow of a job's."""
    job, separator, _ = signal.partition(" :: ")
    return job if separator else signal.partition(" / ")[0]


def learn(commits: Sequence[Commit], breakages: Iterable[Breakage]) -> Lessons:
    """Learn from the past; nothing where it is too little, or where it does not carry over.

    Args:
        commits: Oldest first; those whose files are not known are passed over.
        breakages: Places count from the first of these commits.
    """
    sure = [
        one for one in breakages if one.probability >= SURE and one.culprit > 0 and commits[one.culprit].files
    ]  # place 0: broken since before anything was seen
    culprits = sorted({one.culprit for one in sure})
    if len(culprits) < FEWEST:
        return Lessons(culprits=len(culprits))
    middle = culprits[len(culprits) // 2]
    early = _learn(commits[:middle], [one for one in sure if one.culprit < middle])
    gain, error = _carried_over(early, commits, [one for one in sure if one.culprit >= middle], middle)
    if gain <= SURER * error:
        return Lessons(culprits=len(culprits), gain=gain)
    return replace(_learn(commits, sure), culprits=len(culprits), gain=gain)


def _carried_over(
    early: Lessons, commits: Sequence[Commit], newer: Sequence[Breakage], middle: int
) -> tuple[float, float]:
    """By how much, in logarithms, newer culprits score above newer commits, and the standard error of that."""
    gains: dict[int, list[float]] = defaultdict(list)
    usual: dict[str, tuple[float, float]] = {}
    for signal in {one.signal for one in newer}:
        scores = [math.log(early.factor(signal, commit.files)) for commit in commits[middle:] if commit.files]
        usual[signal] = statistics.fmean(scores), statistics.pstdev(scores)
    for one in newer:
        mean = usual[one.signal][0]
        gains[one.culprit].append(math.log(early.factor(one.signal, commits[one.culprit].files)) - mean)
    spread = statistics.fmean(usual[one.signal][1] for one in newer)
    return statistics.fmean(map(statistics.fmean, gains.values())), spread / math.sqrt(len(gains))


def _learn(commits: Sequence[Commit], sure: Sequence[Breakage]) -> Lessons:
    touched = [_folders(commit.files) if commit.files else frozenset[str]() for commit in commits]
    known = sum(map(bool, touched))
    counts = Counter(itertools.chain.from_iterable(touched))
    groups: dict[str, set[int]] = defaultdict(set)
    areas: dict[str, set[int]] = defaultdict(set)
    for one in sure:  # a commit that breaks fifty signals is one culprit of them all
        groups[one.signal].add(one.culprit)
        areas[area_of(one.signal)].add(one.culprit)
    everywhere = _lifts({one.culprit for one in sure}, touched, counts, known, {})
    by_area = {area: _lifts(found, touched, counts, known, everywhere) for area, found in areas.items()}
    by_signal = {
        signal: _lifts(found, touched, counts, known, by_area[area_of(signal)]) for signal, found in groups.items()
    }
    scores = [_score(everywhere, commit.files) for commit in commits if commit.files]
    usual = math.exp(sum(map(math.log, scores)) / len(scores)) if scores else 1.0
    return Lessons(everywhere=everywhere, areas=by_area, signals=by_signal, usual=usual, culprits=len(sure))


def _lifts(
    culprits: set[int], touched: Sequence[frozenset[str]], counts: Mapping[str, int], known: int, general: _Lifts
) -> dict[str, float]:
    """Of each folder: breaks that were seen over those that are to be expected, drawn to what is known in general."""
    seen = Counter(itertools.chain.from_iterable(touched[place] for place in culprits))
    rate = len(culprits) / max(1, known)
    lifts: dict[str, float] = {"": 1.0}
    for folder in sorted(counts):  # a folder after the one above it
        above = lifts[folder.rpartition("/")[0]] if folder else 1.0
        lifts[folder] = (seen[folder] + DRAWN * general.get(folder, above)) / (counts[folder] * rate + DRAWN)
    return lifts


def _score(lifts: _Lifts, files: Iterable[str]) -> float:
    """Of a commit: that of the most suspicious of its files."""
    return max(_of_file(lifts, path) for path in files)


def _of_file(lifts: _Lifts, path: str) -> float:
    return next((lifts[folder] for folder in _above(path) if folder in lifts), 1.0)


def _folders(files: Iterable[str]) -> frozenset[str]:
    return frozenset(folder for path in files for folder in _above(path))


def _above(path: str) -> Iterator[str]:
    """The folders that hold a file, the deepest first."""
    parts = path.split("/")[:-1][:DEEPEST]
    for size in range(len(parts), -1, -1):
        yield "/".join(parts[:size])


def named_in(signal: str) -> str:
    """The file that a signal's key names; empty where it names none."""
    found = _PATH.findall(signal[:_LONGEST])
    return found[-1] if found else ""


def related(file: str, changed: Sequence[str] | None) -> float:
    """What names alone suggest: the test's own file was changed, or something beside it."""
    if not file or not changed:
        return 1.0
    if any(path == file or path.endswith("/" + file) or file.endswith("/" + path) for path in changed):
        return SAME_FILE
    folder = file.rpartition("/")[0]
    if folder and any(f"/{path}".rpartition("/")[0].endswith(f"/{folder}") for path in changed):
        return SAME_FOLDER
    return 1.0
