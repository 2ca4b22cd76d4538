"""The published rules of PyTorch's auto-revert, for comparison: partition, sandwich, counts.

Source: pytorch/test-infra, `pytorch_auto_revert/signal.py` and its SIGNAL_ACTIONS.md (November 2026), without the AI
adviser. Written anew from the description; known faults included.
"""

import heapq
from collections.abc import Sequence
from typing import Final

from sooner.analysis.trunk.facts import (
    Again,
    Decision,
    Event,
    Hold,
    Kind,
    Question,
    Reason,
    Rerun,
    Revert,
    Signal,
    Status,
)

FAILURES_NEEDED: Final = 3
SUCCESSES_NEEDED: Final = 2
FAILURES_OF_A_JOB: Final = 2
"""On the suspect itself, for signals of jobs."""


class _Column:
    """One commit of a signal."""

    def __init__(self, sha: str, events: Sequence[Event]) -> None:
        self.sha = sha
        self.events = events
        self.failures = [event for event in events if event.status is Status.FAILURE]
        self.successes = [event for event in events if event.status is Status.SUCCESS]
        self.is_pending = any(event.status is Status.PENDING for event in events)


class _Parts:
    """Failed, unknown and successful commits, newest first in each."""

    def __init__(self, failed: list[_Column], unknown: list[_Column], successful: list[_Column]) -> None:
        self.failed, self.unknown, self.successful = failed, unknown, successful
        self.failures = sum(len(column.failures) for column in failed)
        self.successes = sum(len(column.successes) for column in successful)

    @property
    def suspect(self) -> _Column:
        return self.failed[-1]

    @property
    def base(self) -> _Column:
        return self.successful[0]


def decide_by_rules(question: Question, signal: Signal) -> Decision:
    """What the published rules say of one signal."""
    by_sha: dict[str, list[Event]] = {}
    for event in sorted(signal.events, key=lambda event: event.started_at):
        by_sha.setdefault(event.sha, []).append(event)
    columns = [_Column(commit.sha, by_sha.get(commit.sha, ())) for commit in question.commits]
    resolved = next((column for column in columns if column.failures or column.successes), None)
    if resolved is not None and resolved.successes:
        return _hold(signal, Reason.FIXED, "the newest commit with a result has a success")
    if not any(column.successes for column in columns):
        return _hold(signal, Reason.NO_SUCCESSES, "no success in the window")
    parts = _partition(columns)
    if parts is None:
        return _hold(signal, Reason.NO_PARTITION, "failures and successes do not divide the window")
    if any(column.failures and column.successes for column in columns):
        return _hold(signal, Reason.FLAKY, "a commit has both outcomes")
    return _judge(question, signal, parts)


def _hold(signal: Signal, reason: Reason, detail: str) -> Hold:
    return Hold(signal=signal.key, reason=reason, detail=detail)


def _partition(columns: Sequence[_Column]) -> _Parts | None:
    if len(columns) < 2:  # noqa: PLR2004 - one commit has no two sides
        return None
    failed: list[_Column] = []
    successful: list[_Column] = []
    for column in columns:
        if successful and column.failures:
            break  # an older pattern
        if successful or (column.successes and not column.failures):
            successful.append(column)
        else:
            failed.append(column)
    unknown: list[_Column] = []
    while failed and not failed[-1].failures:
        unknown.insert(0, failed.pop())
    return _Parts(failed, unknown, successful) if failed and successful else None


def _judge(question: Question, signal: Signal, parts: _Parts) -> Decision:
    sandwich = _sandwich(parts)
    wanted = _wanted(signal, parts, sandwich, question.limits.bisection_limit)
    if wanted:
        reruns = tuple(Again(commit.sha, 1) for commit in question.commits if commit.sha in wanted)
        return Rerun(signal=signal.key, reruns=reruns, reason="too little is known", culprit=parts.suspect.sha)
    if sandwich != "confirmed":
        return _hold(signal, Reason.INFRA_NOT_CONFIRMED, "no failure started between two successes")
    if parts.failures < FAILURES_NEEDED:
        return _hold(signal, Reason.INSUFFICIENT_FAILURES, f"{parts.failures} of {FAILURES_NEEDED} failures")
    if parts.successes < SUCCESSES_NEEDED:
        return _hold(signal, Reason.INSUFFICIENT_SUCCESSES, f"{parts.successes} of {SUCCESSES_NEEDED} successes")
    if signal.kind is Kind.JOB and len(parts.suspect.failures) < FAILURES_OF_A_JOB:
        return _hold(signal, Reason.INSUFFICIENT_FAILURES, "a job must fail twice on the suspect")
    if parts.unknown:
        return _hold(signal, Reason.PENDING_GAP, f"{len(parts.unknown)} commits before the suspect have no result")
    return Revert(
        signals=(signal.key,),
        culprit=parts.suspect.sha,
        reason="failures and successes divide at this commit",
        failures=parts.failures,
        successes=parts.successes,
    )


def _wanted(signal: Signal, parts: _Parts, sandwich: str, limit: int | None) -> set[str]:
    """Commits to run again."""
    wanted = {parts.unknown[i].sha for i in _gap([bool(column.events) for column in parts.unknown], limit)}
    suspect, base = parts.suspect, parts.base
    fails_once = signal.kind is Kind.JOB and not parts.unknown and len(suspect.events) < FAILURES_OF_A_JOB
    if not suspect.is_pending and (sandwich == "fail" or parts.failures < FAILURES_NEEDED or fails_once):
        wanted.add(suspect.sha)
    if not base.is_pending and (sandwich == "succeed" or parts.successes < SUCCESSES_NEEDED):
        wanted.add(base.sha)
    return wanted


def _sandwich(parts: _Parts) -> str:
    """Whether a failure started strictly between two successes: `confirmed`, `pending`, or what must run again."""
    good = [e.started_at for c in parts.successful for e in c.events if e.status is not Status.FAILURE]
    bad = [e.started_at for c in parts.failed for e in c.events if e.status is not Status.SUCCESS]
    passed = [e.started_at for c in parts.successful for e in c.successes]
    failed = [e.started_at for c in parts.failed for e in c.failures]
    if not good or max(good) <= min(bad):
        return "succeed"
    if max(bad) <= min(good):
        return "fail"
    return "confirmed" if any(min(passed) < at < max(passed) for at in failed) else "pending"


def _gap(covered: Sequence[bool], limit: int | None) -> list[int]:
    """Which places of a gap to run: all, or under a limit the middles of the longest stretches."""
    if limit is None:
        return [i for i, is_covered in enumerate(covered) if not is_covered]
    allowed, chosen = limit - sum(covered), []
    stretches: list[tuple[int, int, int]] = []
    start = None
    for i, is_covered in enumerate([*covered, True]):
        if not is_covered and start is None:
            start = i
        elif is_covered and start is not None:
            stretches.append((start - i, start, i - 1))
            start = None
    heapq.heapify(stretches)
    while allowed > 0 and stretches:
        _, low, high = heapq.heappop(stretches)
        middle = (low + high) // 2
        chosen.append(middle)
        allowed -= 1
        for a, b in ((low, middle - 1), (middle + 1, high)):
            if a <= b:
                heapq.heappush(stretches, (a - b - 1, a, b))
    return chosen
