"""A time of trunk: what landed, broke, was reverted and landed again, is flaky, and how soon one knew.

Pure: facts and times come in. The times of a breakage: it is *found* when the first run that failed because of it had
ended, and *red* from then until the first run that passed on a commit from its fix on had ended.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Final

from msgspec import Struct

from sooner.analysis.metrics.facts import Samples
from sooner.analysis.metrics.statistics import Estimate, percentile
from sooner.analysis.trunk.breakages import Breakage
from sooner.analysis.trunk.facts import Commit, Signal, Status
from sooner.analysis.trunk.flaky import Flaky
from sooner.analysis.trunk.titles import plain, unwrapped

CERTAIN: Final = 0.9
"""A stretch of failures is listed as a breakage from this probability on that it is one."""
_FEWEST_FAILURES: Final = 2
ROOT: Final = "(top folder)"
UNKNOWN: Final = "(files not known)"
_SHA: Final = re.compile(r"This reverts commit ([0-9a-f]{7,64})", re.IGNORECASE)
_BEHALF: Final = re.compile(
    r"on behalf of (?P<who>.{1,80}?)(?: due to (?P<why>.{1,200}?))?(?: \(\[|\.?$)", re.MULTILINE
)
_REASON: Final = re.compile(r"^(?:Reason(?: for (?:the )?revert)?|Evidence): *(?P<why>\S.{0,199})", re.MULTILINE)
"""Gerrit's line, and that of `sooner trunk revert`."""


class Landed(Struct, frozen=True, kw_only=True):
    """One commit that came to the branch."""

    sha: str
    time: float
    author: str = ""
    message: str = ""
    files: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The first line of its message."""
        return self.message.strip().partition("\n")[0].strip()


class Area(Struct, frozen=True, kw_only=True):
    """One part of the repository."""

    name: str
    commits: int
    """That touch it; a commit may touch several areas."""
    shas: tuple[str, ...]


class Broke(Struct, frozen=True, kw_only=True):
    """One commit that broke signals, with all that it broke."""

    culprit: str
    """Empty where the signals were red when the record began: what broke them is older, and nobody is named."""
    title: str
    author: str
    probability: float
    """That it is this commit, for the signal that is surest."""
    signals: tuple[str, ...]
    found_by: str
    """The signal whose failure had ended first."""
    found_at: float
    """Epoch seconds."""
    red_s: float
    """Seconds until all of its signals passed again; until the end of the time where one has not."""
    is_red: bool
    """Not mended within the time."""
    commits: tuple[str, str]
    """The first and last commit in which the culprit lies."""


class What(StrEnum):
    """What was done about an earlier commit."""

    REVERT = "revert"
    RELAND = "reland"


class Undone(Struct, frozen=True, kw_only=True):
    """A revert, or a commit that lands again."""

    what: What
    sha: str
    title: str
    """Of the earlier commit."""
    of: str
    """Its id; empty where it is not known."""
    at: float
    after_s: float | None
    """Since the earlier commit landed (for what lands again: since it was reverted, where that is known)."""
    by: str
    why: str = ""


class SignalTime(Struct, frozen=True, kw_only=True):
    """One metric within the time and in the week before it."""

    metric: str
    n: int
    p50: Estimate | None
    p90: Estimate | None
    n_before: int
    p50_before: Estimate | None
    p90_before: Estimate | None


class Digest(Struct, frozen=True, kw_only=True):
    """Everything about a time."""

    since: float
    until: float
    branch: str
    commits: int
    authors: int
    areas: tuple[Area, ...]
    broke: tuple[Broke, ...]
    undone: tuple[Undone, ...]
    flaky: tuple[Flaky, ...]
    signal_times: tuple[SignalTime, ...]


def area_of(path: str, areas: Mapping[str, Sequence[str]]) -> str:
    """The area of a file: the first one with a pattern that fits (a folder, a path, or a glob), else its top folder."""
    for name, patterns in areas.items():
        for pattern in patterns:
            if path == pattern or path.startswith(pattern.rstrip("/") + "/") or fnmatchcase(path, pattern):
                return name
    top, slash, _ = path.partition("/")
    return top if slash else ROOT


def areas_of(commits: Sequence[Landed], areas: Mapping[str, Sequence[str]]) -> list[Area]:
    """What landed by area, the busiest first."""
    found: dict[str, list[str]] = {}
    for commit in commits:
        for name in {area_of(path, areas) for path in commit.files} or {UNKNOWN}:
            found.setdefault(name, []).append(commit.sha)
    rows = [Area(name=name, commits=len(shas), shas=tuple(shas)) for name, shas in found.items()]
    return sorted(rows, key=lambda row: (-row.commits, row.name))


def undone_in(commits: Sequence[Landed], since: float) -> list[Undone]:
    """Reverts, and what landed again, from `since` on.

    Args:
        commits: Oldest first; earlier ones are what is reverted.
        since: Epoch seconds.
    """
    titles: dict[str, Landed] = {}
    reverted: dict[str, float] = {}
    found: list[Undone] = []
    for commit in commits:
        named = dict.fromkeys(_SHA.findall(commit.message)) or [""]
        told = [one for sha in named if (one := _undone(commit, sha.lower(), titles, commits, reverted))]
        undone = {one.of: one for one in told}.values()
        found += undone if commit.time >= since else ()
        gone = [plain(one.title) for one in undone if one.what is What.REVERT]
        reverted |= dict.fromkeys(gone, commit.time)
        if not gone:
            titles[plain(commit.title)] = commit
            reverted.pop(plain(commit.title), None)
    return found


def _undone(
    commit: Landed, named: str, titles: Mapping[str, Landed], commits: Sequence[Landed], reverted: Mapping[str, float]
) -> Undone | None:
    """What a commit says about an earlier one, whose id it names or not."""
    title, reverts, relands = unwrapped(commit.title)
    earlier = None
    if named:
        earlier = next((one for one in commits if one.sha.startswith(named) and one.time <= commit.time), None)
    if earlier is None and not reverts and not relands:  # a squashed request tells what it took back of its own
        named = ""
    says_nothing = not reverts and not relands and not named
    if says_nothing and plain(title) not in reverted:  # most that land again keep their title
        return None
    # What a revert of what landed again undoes is that; a revert of a revert lands again.
    what = What.REVERT if reverts % 2 == 1 or (named and not reverts and not relands) else What.RELAND
    if earlier is None or what is What.RELAND:
        earlier = titles.get(plain(title), earlier)
    since = earlier.time if earlier is not None else None
    if what is What.RELAND:
        since = reverted.get(plain(title), since)
    behalf = _BEHALF.search(commit.message)
    told = behalf if behalf and behalf["why"] else _REASON.search(commit.message)
    return Undone(
        what=what,
        sha=commit.sha,
        title=earlier.title if earlier is not None and what is What.REVERT else title,
        of=earlier.sha if earlier is not None else named,
        at=commit.time,
        after_s=None if since is None else commit.time - since,
        by=behalf["who"] if behalf else commit.author,
        why=told["why"].strip() if told else "",
    )


def broke_in(
    breakages: Iterable[Breakage],
    commits: Sequence[Commit],
    signals: Mapping[str, Signal],
    told: Mapping[str, Landed],
    *,
    since: float,
    until: float,
) -> list[Broke]:
    """Breakages that were red within the time, by culprit, the longest red first.

    Args:
        breakages: All that are known.
        commits: Oldest first: what the places of breakages count.
        signals: By key.
        told: Commits by id, for their titles and authors.
        since: Epoch seconds.
        until: Epoch seconds.
    """
    places = {commit.sha: i for i, commit in enumerate(commits)}
    groups: dict[tuple[int, bool], list[tuple[Breakage, float, float | None]]] = {}
    for breakage in breakages:
        if breakage.is_certain < CERTAIN or breakage.failures < _FEWEST_FAILURES:
            continue
        found, mended = _times(breakage, signals[breakage.signal], places)
        if found is not None and found < until and (mended is None or mended >= since):
            groups.setdefault((breakage.culprit, breakage.is_older), []).append((breakage, found, mended))
    rows = [_broke(commits, group, told, until) for group in groups.values()]
    return sorted(rows, key=lambda row: (-row.red_s, row.found_at))


def _times(breakage: Breakage, signal: Signal, places: Mapping[str, int]) -> tuple[float | None, float | None]:
    """When a breakage was found and when it was mended, as far as runs tell."""
    failures, passes = [], []
    for event in signal.events:
        place = places.get(event.sha)
        if place is None or event.status is Status.PENDING:
            continue
        ended = event.ended_at if event.ended_at is not None else event.started_at
        is_in = breakage.culprit <= place and (breakage.fixed is None or place < breakage.fixed)
        if event.status is Status.FAILURE and is_in:
            failures.append(ended)
        elif event.status is Status.SUCCESS and breakage.fixed is not None and place >= breakage.fixed:
            passes.append(ended)
    found = min(failures, default=None)
    mended = min((at for at in passes if found is None or at >= found), default=None)
    return found, mended


def _broke(
    commits: Sequence[Commit],
    group: Sequence[tuple[Breakage, float, float | None]],
    told: Mapping[str, Landed],
    until: float,
) -> Broke:
    first, found_at, _ = min(group, key=lambda one: one[1])
    surest = max((one for one, _, _ in group), key=lambda one: one.probability)
    sha = "" if first.is_older else commits[first.culprit].sha
    ends = [mended for _, _, mended in group]
    is_red = any(mended is None or mended > until for mended in ends)
    last = until if is_red else max(mended for mended in ends if mended is not None)
    about = told.get(sha)
    return Broke(
        culprit=sha,
        title=about.title if about else "",
        author=about.author if about else "",
        probability=surest.probability,
        signals=tuple(sorted({one.signal for one, _, _ in group})),
        found_by=first.signal,
        found_at=found_at,
        red_s=last - found_at,
        is_red=is_red,
        commits=("", "") if first.is_older else (commits[surest.first].sha, commits[surest.last].sha),
    )


def signal_time(metric: str, samples: Samples, since: float, until: float, before_s: float) -> SignalTime:
    """A metric within the time and in the `before_s` seconds before it."""
    now = samples.seconds[(since <= samples.at) & (samples.at < until)]
    before = samples.seconds[(since - before_s <= samples.at) & (samples.at < since)]
    return SignalTime(
        metric=metric,
        n=len(now),
        p50=percentile(now, 0.5) if len(now) else None,
        p90=percentile(now, 0.9) if len(now) else None,
        n_before=len(before),
        p50_before=percentile(before, 0.5) if len(before) else None,
        p90_before=percentile(before, 0.9) if len(before) else None,
    )
