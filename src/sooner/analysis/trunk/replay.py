"""What was known of a trunk at a moment: a question as it would have been asked then. Pure."""

from collections.abc import Sequence
from typing import Final

from sooner.analysis.trunk.breakages import flake_rate_of, series_of
from sooner.analysis.trunk.facts import Commit, Event, Limits, Question, Signal, Status

PRIOR_RUNS: Final = 60.0
"""The flake rate from before the window counts as so many runs at most."""


def question_at(
    commits: Sequence[Commit], signals: Sequence[Signal], now: float, *, window: int, limits: Limits | None = None
) -> Question:
    """The last commits of a trunk and their runs, as they were known then.

    Args:
        commits: Oldest first.
        signals: With all their events.
        now: Epoch seconds; runs that had not started are not there, runs that had not ended are pending.
        window: How many commits are looked at.
        limits: What decisions keep to.
    """
    known = [commit for commit in commits if commit.time <= now]
    seen, older = known[-window:], {commit.sha: i for i, commit in enumerate(known[:-window])}
    inside = {commit.sha for commit in seen}
    asked = tuple(_signal_at(signal, now, inside, older) for signal in signals)
    return Question(
        now=now,
        commits=tuple(seen[::-1]),
        signals=tuple(signal for signal in asked if signal.events),
        limits=limits or Limits(),
    )


def _signal_at(signal: Signal, now: float, inside: set[str], older: dict[str, int]) -> Signal:
    events = tuple(_event_at(event, now) for event in signal.events if event.sha in inside and event.started_at <= now)
    return Signal(key=signal.key, kind=signal.kind, flake_prior=_prior(signal, now, older), events=events)


def _event_at(event: Event, now: float) -> Event:
    if event.ended_at is None or event.ended_at <= now:
        return event
    return Event(sha=event.sha, status=Status.PENDING, started_at=event.started_at, attempt=event.attempt)


def _prior(signal: Signal, now: float, older: dict[str, int]) -> tuple[float, float] | None:
    before = [e for e in signal.events if e.sha in older and e.ended_at is not None and e.ended_at <= now]
    if not before:
        return None
    runs = min(float(len(before)), PRIOR_RUNS)
    return flake_rate_of(series_of(signal.key, before, older)) * runs, runs
