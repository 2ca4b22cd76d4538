"""One signal over the commits of a question: what ran, what is under way, what was asked for. Pure."""

import math
import operator
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from sooner.analysis.trunk.facts import Commit, Event, Question, Signal, Status
from sooner.analysis.trunk.lessons import named_in, related
from sooner.analysis.trunk.outages import BURST_END_HAZARD, Array
from sooner.analysis.trunk.posterior import FLAKE_PRIOR, FLAKE_PRIOR_RUNS, Evidence, Posterior, posterior

DOCUMENTATION: Final = 0.005
"""How suspect a commit is that changes nothing but documentation, beside any other."""
BEFORE_WINDOW: Final = 4.0
"""How much more probable it is that the signal broke somewhere before the window than at one commit of it."""
SOUND_RUNS: Final = 25
"""Passes in a row, newest commits first, from which on nothing older can be what is broken now."""
MENDED_RUNS: Final = 4
"""Passes in a row after a break from which on it is mended: one that fails 80 % of its runs passes so in 1 of 600."""
BROKEN_RUNS: Final = 5
"""Failures in a row that are a break ..."""
BROKEN_COMMITS: Final = 3
"""... of so many commits."""
OUTAGE_BEFORE: Final = 0.03
"""Share of suspects that failed in an outage only, while a newer commit broke the signal ..."""
OUTAGE_ENDED: Final = 0.1
"""... the same where the suspect has not failed since an older commit passed again: an outage may end between any two
runs that are asked for at once ..."""
OUTAGE_SEEN: Final = 0.5
"""... and where an older commit failed meanwhile as well."""
PASSES_SINCE: Final = 2
"""Runs of older commits that must have passed since the suspect was seen to fail: in an outage one may pass by luck."""
AT_ONCE_H: Final = 0.5
"""Runs that start within half an hour may see the same outage."""
LOST_AFTER: Final = 4.0
"""Usual lengths of a run after which one that has no end is taken for lost, and is waited for no longer ..."""
LOST_AFTER_H: Final = 2.0
"""... but not before so many hours: queues."""
_SUCCESS, _FAILURE, _PENDING = Status.SUCCESS, Status.FAILURE, Status.PENDING
"""Millions of events are compared with these, and looking up a member of an enum costs more than the comparison."""
_START: Final = operator.attrgetter("started_at")
_DOCUMENTS: Final = (".md", ".rst", ".adoc")
_IN_DOCUMENTS: Final = (".txt", ".png", ".svg", ".jpg", ".gif")
"""Documentation among documentation; elsewhere a pinned version, requirements, or what a test compares with."""
_DOCUMENT_FOLDERS: Final = frozenset({"doc", "docs"})
_DOCUMENT_NAMES: Final = frozenset({"license", "notice", "codeowners", "authors", "readme", "citation.cff", ".mailmap"})
_NOT_DOCUMENTS: Final = frozenset({"requirements.txt", "constraints.txt", "cmakelists.txt"})


def is_documentation(path: str) -> bool:
    """Whether a path cannot change what a test sees; when in doubt it can."""
    *folders, name = path.lower().split("/")
    if name in _NOT_DOCUMENTS or name.startswith("requirements"):
        return False
    if name.endswith(_IN_DOCUMENTS) and not _DOCUMENT_FOLDERS.isdisjoint(folders):
        return True
    return name.endswith(_DOCUMENTS) or name.removesuffix(".txt") in _DOCUMENT_NAMES


def suspicion_of(commit: Commit) -> float:
    """How suspect a commit is before anything ran, beside any other.

    No files are files that nobody told: `git log` lists none for a merge, which brings in a whole branch.
    """
    if not commit.files:
        return 1.0
    return DOCUMENTATION if all(map(is_documentation, commit.files)) else 1.0


def suspect_of(found: Posterior) -> int:
    """The commit of the window that most probably broke it; 0 where there is none."""
    return int(found.broken[1:].argmax()) + 1 if len(found.broken) > 1 else 0


def start_of_doubt(failures: Sequence[float], passes: Sequence[float]) -> tuple[int, bool]:
    """The first commit, oldest first, that may have broken what is broken now; and whether an older break was mended.

    That is where `SOUND_RUNS` passes in a row begin, or `MENDED_RUNS` between a break and newer failures.
    """
    in_a_row, has_failed = 0.0, False
    for i in range(len(failures) - 1, -1, -1):
        if failures[i]:
            if has_failed and in_a_row >= MENDED_RUNS and broken_until(failures, passes, i):
                return i + 1, True
            in_a_row, has_failed = 0.0, True
        else:
            in_a_row += passes[i]
        if in_a_row >= SOUND_RUNS:
            return i, False
    return 0, False


def broken_until(failures: Sequence[float] | Array, passes: Sequence[float] | Array, last: int) -> list[int]:
    """The commits of a break that ended with this one: failures alone, on several; empty where it was none."""
    found, i = [], last
    while i >= 0 and not passes[i]:
        if failures[i]:
            found.append(i)
        i -= 1
    is_break = len(found) >= BROKEN_COMMITS and sum(failures[i] for i in found) >= BROKEN_RUNS
    return found if is_break else []


Run = tuple[int, float, float]
"""Place of the commit, hour of the start, 1 for failed."""


class Window(NamedTuple):
    """The commits of a question, as all of its signals see them."""

    commits: tuple[Commit, ...]
    """Oldest first."""
    places: dict[str, int]
    suspicion: Array
    names: dict[str, set[int]]
    """Commits by the names of the files that they change, and of the folders that hold these."""

    @classmethod
    def of(cls, commits: Sequence[Commit]) -> "Window":
        """Turn them around."""
        oldest_first = tuple(commits[::-1])
        places = {commit.sha: i for i, commit in enumerate(oldest_first)}
        names: dict[str, set[int]] = {}
        for i, commit in enumerate(oldest_first):
            for path in commit.files or ():
                for name in path.split("/")[-2:]:
                    names.setdefault(name, set()).add(i)
        return cls(oldest_first, places, np.array([suspicion_of(commit) for commit in oldest_first]), names)

    def related_to(self, signal: str) -> Iterator[tuple[int, float]]:
        """Commits that change what the key of a signal names, and how much more suspect that makes them."""
        file = named_in(signal) if self.names else ""
        near = set().union(*(self.names.get(name, ()) for name in file.split("/")[-2:]))
        for i in near:
            yield i, related(file, self.commits[i].files)


class Case:
    """One signal over the commits of a question, oldest first.

    What lies before `SOUND_RUNS` passes in a row is of no other use than to tell the flake rate: of a break that fails
    half of its runs one in thirty million would pass so often.
    """

    def __init__(self, question: Question, signal: Signal, window: Window) -> None:
        self.signal = signal
        self.commits, place = window.commits, window.places
        self.limits = question.limits
        failures, passes = [0.0] * len(place), [0.0] * len(place)
        for event in signal.events:
            i = place.get(event.sha)
            if i is None:
                continue
            status = event.status
            if status is _SUCCESS:
                passes[i] += 1
            elif status is _FAILURE:
                failures[i] += 1
        self.failing = [i for i, count in enumerate(failures) if count]
        """Places on which it failed."""
        self.start, self._was_mended = start_of_doubt(failures, passes) if self.failing else (0, False)
        """The first commit that may have broken what is broken now; whether something older was, and was mended."""
        self.is_sound = not self.failing or self.failing[-1] < self.start
        """Nothing failed since `SOUND_RUNS` passes in a row."""
        self.burst_factor = self.beside_factor = 1.0
        self.runs: list[tuple[float, float, int]] = []
        self.done: list[Run] = []
        """Runs as (place, hour of the start, 1 for failed)."""
        self.pending: list[tuple[int, float]] = []
        self._lost: list[int] = []
        """Places of runs that nobody waits for any longer."""
        self._failed_at: list[tuple[int, float]] = []
        """Failures as (place, hour when it was known)."""
        self._passed_at: list[tuple[int, float]] = []
        self._old_runs = 0
        self._known: list[Event] = []
        self.failures, self.passes = np.array(failures), np.array(passes)
        if not self.is_sound:
            self._look_closer(question, window)

    def _look_closer(self, question: Question, window: Window) -> None:
        place = window.places
        self._known = sorted((event for event in self.signal.events if event.sha in place), key=_START)
        for event in self._known:
            i, hour, status = place[event.sha], event.started_at / 3600, event.status
            if self._was_mended and i < self.start:
                continue
            if status is _PENDING:
                self.pending.append((i, hour))
                continue
            has_failed = float(status is _FAILURE)
            known_at = self._failed_at if has_failed else self._passed_at
            known_at.append((i, hour if event.ended_at is None else event.ended_at / 3600))
            self.runs.append((hour, has_failed, i))
            self.done.append((i, hour, has_failed))
        self.now = question.now / 3600
        self._lost = [i for i, hour in self.pending if self._is_lost(hour)]
        self.pending = [(i, hour) for i, hour in self.pending if not self._is_lost(hour)]
        self.priors = window.suspicion.copy()
        for i, factor in window.related_to(self.signal.key):
            self.priors[i] *= factor
        for sha, factor in self.signal.priors.items():
            if sha in place:
                self.priors[place[sha]] *= factor
        if len(self.priors):
            self.priors[0] = max(self.priors[0], 1.0) * BEFORE_WINDOW
        if self.start:
            first = min((hour for i, hour, _ in self.done if i >= self.start), default=float("inf"))
            self._old_runs = bisect_left([hour for hour, _, _ in self.runs], first)

    @property
    def flake_prior(self) -> tuple[float, float]:
        """Failures and runs that tell the flake rate and nothing else."""
        failures, runs = self.signal.flake_prior or (0.0, 0.0)
        share = min(1.0, FLAKE_PRIOR_RUNS / runs) if runs else 0.0
        old = float(self.failures[: self.start].sum())
        if self._was_mended:
            old -= float(sum(sum(self.failures[i] for i in stretch) for stretch in self._broken_before()))
        return failures * share + old, runs * share + old + float(self.passes[: self.start].sum())

    def _broken_before(self) -> Iterator[list[int]]:
        """Stretches of commits that were broken, and are mended: what failed there were no flakes."""
        i = self.start - 1
        while i >= 0:
            stretch = broken_until(self.failures, self.passes, i) if self.failures[i] else []
            if stretch:
                yield stretch
            i = min([*stretch, i]) - 1

    def weigh(self, extra: Sequence[Run] = ()) -> Posterior:
        """Probabilities of the explanations, with further runs."""
        return self.weighed(posterior(self.evidence(extra)), extra)

    def weighed(self, found: Posterior, extra: Sequence[Run] = ()) -> Posterior:
        """What `evidence` gave, for all commits."""
        return self._apart_in_time(found.after(self.start), [*self.done, *extra])

    def evidence(self, extra: Sequence[Run] = ()) -> Evidence:
        """What is known, and further runs."""
        start = self.start
        failures, passes = self.failures[start:].copy(), self.passes[start:].copy()
        for i, _, failed in extra:
            if i >= start:
                (failures if failed else passes)[i - start] += 1
        known = ((hour, failed, i - start) for hour, failed, i in self.runs[self._old_runs :])
        runs = sorted([*known, *((hour, failed, i - start) for i, hour, failed in extra)])
        return Evidence(
            failures,
            passes,
            np.array(runs, float).reshape(-1, 3),
            flake_prior=self.flake_prior,
            priors=self.priors[start:],
            burst_factor=self.burst_factor,
            beside_factor=self.beside_factor,
        )

    def _apart_in_time(self, found: Posterior, runs: Sequence[Run]) -> Posterior:
        """Let an outage over the suspect, and a break by a newer commit, be an explanation too.

        What the suspect failed after an older commit had passed again, no outage explains; flakes may. The less time
        lies between its last failure and that pass, the less probable it is that an outage ended just then.
        """
        place = suspect_of(found)
        first = min((hour for i, hour, failed in runs if failed and i >= place), default=None)
        if not place or first is None:
            return found
        out = max((hour for i, hour, failed in runs if failed and i < place and hour > first - AT_ONCE_H), default=None)
        since = first if out is None else max(first, out)
        again = min((hour for i, hour, failed in runs if not failed and i < place and hour > since), default=None)
        if again is None:
            return found
        own = [hour for i, hour, failed in runs if failed and i == place]
        after = sum(hour >= again for hour in own)
        if after:
            share = (OUTAGE_BEFORE if out is None else OUTAGE_SEEN) * self._flakes_before(first) ** after
        else:
            ended = -math.expm1((again - max(own, default=first)) * math.log1p(-BURST_END_HAZARD))
            share = (OUTAGE_ENDED if out is None else OUTAGE_SEEN) * ended
        return found.doubted(place, share)

    def has_passed_since(self, place: int, extra: Sequence[Run] = ()) -> bool:
        """Whether older commits have passed, or will, in `PASSES_SINCE` runs that ended after this one's first failure.

        Outages fail not only what starts meanwhile, but often all that runs, whenever it started.
        """
        failed = min((end for i, end in self._failed_at if i >= place), default=math.inf)
        passes = sum(i < place and end >= failed for i, end in self._passed_at)
        return passes + sum(i < place and not has_failed for i, _, has_failed in extra) >= PASSES_SINCE

    def flakes_before_failing(self, place: int) -> float:
        """The flake rate as it was known before this commit or a newer one failed."""
        first = min((hour for i, hour, failed in self.done if failed and i >= place), default=self.now)
        return self._flakes_before(first)

    def _flakes_before(self, hour: float) -> float:
        """The flake rate as it was known before something failed."""
        failures, runs = self.flake_prior
        before = [failed for start, failed, _ in self.runs[self._old_runs :] if start < hour]
        total = runs + len(before) + sum(FLAKE_PRIOR)
        return (failures + sum(before) + FLAKE_PRIOR[0]) / total

    def expected(self, culprit: int) -> list[Run]:
        """The runs that are under way, as they end if this commit is the culprit."""
        return [(i, hour, float(i >= culprit)) for i, hour in self.pending]

    def tells_soon(self, place: int) -> float:
        """How long until the next run of this commit or a newer one ends, in usual lengths of a run; or infinite.

        Runs that were asked for tell as well as those of newer commits.
        """
        ends = [hour + self.usual_h - self.now for i, hour in self.pending if i >= place]
        return max(0.05, min(ends) / self.usual_h) if ends else math.inf

    def runs_for_h(self, place: int) -> float:
        """How long a commit has been running, in hours; infinite if it does not run."""
        return max((self.now - hour for i, hour in self.pending if i == place), default=math.inf)

    def _is_lost(self, start: float) -> bool:
        """Whether a run that began at this hour has been under way for so long that nobody should wait for it."""
        return self.now - start > max(LOST_AFTER * self.usual_h, LOST_AFTER_H)

    @property
    def usual_h(self) -> float:
        """How long a run usually takes; an hour where that is not known."""
        lengths = sorted(e.ended_at - e.started_at for e in self._known if e.ended_at is not None)
        return max(lengths[len(lengths) // 2] / 3600, 0.01) if lengths else 1.0

    def has_ended(self, place: int) -> bool:
        """Whether a run of a commit told something."""
        return bool(self.failures[place] + self.passes[place])

    def ended_about(self, place: int) -> int:
        """Runs of a commit and its parent that ended."""
        return int(sum(self.failures[i] + self.passes[i] for i in {max(place - 1, 0), place}))

    def under_way(self, place: int) -> int:
        """Runs of a commit that have not ended."""
        return sum(i == place for i, _ in self.pending)

    def runs_about(self, place: int) -> int:
        """Runs of a commit and its parent, those under way too."""
        return self.ended_about(place) + sum(map(self.under_way, {max(place - 1, 0), place}))

    def runs_again(self, place: int) -> bool:
        """Whether a run that was asked for is under way: what it tells comes before any other is asked for.

        A commit's first run was asked for if it started after a failure of that commit or of a newer one was known.
        """
        under_way = [hour for i, hour in self.pending if i == place]
        if not under_way:
            return False
        if len(under_way) + self.failures[place] + self.passes[place] > 1:
            return True
        return any(i >= place and end <= under_way[0] for i, end in self._failed_at)

    def may_run(self, place: int) -> bool:
        """Whether limits allow one more run of a commit."""
        return self.limits.max_reruns_per_decision > 0 and self.runs_left(place) > 0

    def runs_left(self, place: int) -> int:
        """How often a commit may run again; what was lost had its run."""
        done = int(self.failures[place] + self.passes[place]) + self.under_way(place) + self._lost.count(place)
        return max(0, self.limits.max_reruns_per_commit + (1 if done else 0) - done)
