"""What was known of a trunk at a moment: a question as it would have been asked then. Pure."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from sooner.analysis.trunk.breakages import find_breakages, flake_rates_of, series_of
from sooner.analysis.trunk.case import suspicion_of
from sooner.analysis.trunk.facts import Commit, Event, Question, Signal, Status
from sooner.analysis.trunk.lessons import Lessons, learn

PRIOR_RUNS: Final = 60.0
"""The flake rate from before the window counts as so many runs at most."""
MOST_SIGNALS: Final = 500
"""Signals, those with the most failures, from which it is learned which paths break what."""


def question_at(
    commits: Sequence[Commit],
    signals: Sequence[Signal],
    now: float,
    *,
    window: int,
    lessons: Lessons | None = None,
    tested: Mapping[str, float] = MappingProxyType({}),
) -> Question:
    """The last commits of a trunk and their runs, as they were known then.

    Args:
        commits: Oldest first.
        signals: With all their events.
        now: Epoch seconds; runs that had not started are not there, runs that had not ended are pending.
        window: How many commits are looked at, besides those between them that nothing ran on.
        lessons: Which paths break which signals (`lessons_at`).
        tested: Commits on which something ran that is no signal, and when first.
    """
    before, seen = _split(commits, signals, now, window, tested)
    older = {commit.sha: i for i, commit in enumerate(before)}
    inside = {commit.sha for commit in seen}
    asked = [
        (signal, events)
        for signal in signals
        if (events := tuple(_event_at(e, now) for e in signal.events if e.sha in inside and e.started_at <= now))
    ]
    flakes = _flakes([signal for signal, _ in asked], now, older)
    return Question(
        now=now,
        commits=tuple(seen[::-1]),
        signals=tuple(
            Signal(
                key=signal.key,
                kind=signal.kind,
                flake_prior=prior,
                events=events,
                priors=_priors(lessons, signal.key, seen) if lessons and lessons.everywhere else {},
            )
            for (signal, events), prior in zip(asked, flakes, strict=True)
        ),
    )


def lessons_at(
    commits: Sequence[Commit],
    signals: Sequence[Signal],
    now: float,
    *,
    window: int,
    tested: Mapping[str, float] = MappingProxyType({}),
) -> Lessons:
    """What was known then of which paths break which signals: from breakages before the window."""
    older, _ = _split(commits, signals, now, window, tested)
    if not any(commit.files for commit in older):
        return Lessons()
    places = {commit.sha: i for i, commit in enumerate(older)}
    series = [series_of(signal.key, _ended(signal, now, places), places) for signal in signals]
    failing = sorted((one for one in series if any(one.failures)), key=lambda one: -sum(one.failures))
    return learn(older, find_breakages(failing[:MOST_SIGNALS], [suspicion_of(commit) for commit in older]))


def _split(
    commits: Sequence[Commit], signals: Sequence[Signal], now: float, window: int, tested: Mapping[str, float]
) -> tuple[Sequence[Commit], Sequence[Commit]]:
    """Commits before the window, and in it: where only every tenth commit is run, it is ten times as long."""
    known = [commit for commit in commits if commit.time <= now]
    ran = {e.sha for signal in signals for e in signal.events if e.started_at <= now}
    ran |= {sha for sha, at in tested.items() if at <= now}
    places = [i for i, commit in enumerate(known) if commit.sha in ran]
    first = places[-window] if len(places) >= window else 0
    return known[:first], known[first:]


def _priors(lessons: Lessons, key: str, seen: Sequence[Commit]) -> dict[str, float]:
    return {commit.sha: lessons.factor(key, commit.files) for commit in seen if commit.files}


def _event_at(event: Event, now: float) -> Event:
    if event.ended_at is None or event.ended_at <= now:
        return event
    return Event(sha=event.sha, status=Status.PENDING, started_at=event.started_at, attempt=event.attempt)


def _ended(signal: Signal, now: float, places: dict[str, int]) -> list[Event]:
    """What had a verdict; where nobody tells when a run ended, it had one when it started."""
    return [
        e
        for e in signal.events
        if e.sha in places
        and e.status is not Status.PENDING
        and (e.started_at if e.ended_at is None else e.ended_at) <= now
    ]


def _flakes(signals: Sequence[Signal], now: float, older: dict[str, int]) -> list[tuple[float, float] | None]:
    before = [_ended(signal, now, older) for signal in signals]
    told = [k for k, events in enumerate(before) if events]
    rates = flake_rates_of([series_of(signals[k].key, before[k], older) for k in told])
    found: list[tuple[float, float] | None] = [None] * len(signals)
    for k, rate in zip(told, rates, strict=True):
        runs = min(float(len(before[k])), PRIOR_RUNS)
        found[k] = (rate * runs, runs)
    return found
