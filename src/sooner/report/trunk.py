"""Decisions about trunk, and breakages, as text for a terminal. What tests and commits are called is data."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from sooner.analysis.trunk.breakages import Breakage
from sooner.analysis.trunk.facts import Answer, Commit, Hold, Question, Reason, Rerun, Revert
from sooner.model.text import one_line, probability_text
from sooner.report.wording import counted, short

_SHORT = 12
_LONGEST = 300
"""Characters of a signal: a test's id with its parameters."""
_COUNTED = (Reason.PASSING, Reason.FLAKY, Reason.FIXED)
"""Signals that are held for these reasons are only counted."""


def decisions_as_text(question: Question, answer: Answer) -> str:
    """Reverts first, then runs, then what is held with its reason; signals that pass are only counted."""
    asked = f"{counted(len(question.commits), 'commit')}, {counted(len(question.signals), 'signal')}"
    lines = [f"{asked}, as of {_moment(question.now)}"]
    if not answer.decisions:
        lines.append("nothing has failed" if question.commits else "nothing had run by then")
    for kind in (Revert, Rerun):
        for decision in answer.decisions:
            if isinstance(decision, kind):
                lines += _of_one(decision)
    lines += _holds(one for one in answer.decisions if isinstance(one, Hold))
    reasons = Counter(one.reason for one in answer.decisions if isinstance(one, Hold))
    if reasons:
        lines.append("held: " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
    return "\n".join(lines)


def _of_one(decision: Revert | Rerun) -> Iterator[str]:
    match decision:
        case Revert():
            sure = "" if decision.probability is None else f" ({probability_text(decision.probability)})"
            yield f"REVERT {_commit(decision.culprit)}{sure}: {decision.reason}"
            yield from (f"       breaks {short(key, _LONGEST)}" for key in decision.signals[:10])
            if len(decision.signals) > 10:  # noqa: PLR2004
                yield f"       and {len(decision.signals) - 10} more"
        case Rerun():
            runs = ", ".join(f"{_commit(again.sha)} x {again.count}" for again in decision.reruns)
            yield f"RERUN  {short(decision.signal, _LONGEST)}: {runs}"
            yield f"       {decision.reason}"


def _holds(held: Iterable[Hold]) -> Iterator[str]:
    """A line for all signals that are held for the same: who breaks one test breaks a thousand cases of it."""
    alike: dict[tuple[Reason, str], list[str]] = {}
    for one in held:
        if one.reason not in _COUNTED:
            alike.setdefault((one.reason, one.detail), []).append(one.signal)
    for (reason, detail), signals in alike.items():
        yield f"HOLD   {short(signals[0], _LONGEST)}{_more(len(signals))}: {reason}: {short(detail, _LONGEST)}"


def breakages_as_text(found: Sequence[Breakage], commits: Sequence[Commit]) -> str:
    """One line a breakage, oldest first; signals of which the same is said are one."""
    if not found:
        return "no breakage: whatever failed is explained by flakes"
    alike: dict[tuple[str, str], list[str]] = {}
    for one in found:
        alike.setdefault(_breakage(one, commits), []).append(one.signal)
    return "\n".join(
        f"{before}{short(signals[0], _LONGEST)}{_more(len(signals))}{after}"
        for (before, after), signals in alike.items()
    )


def _breakage(one: Breakage, commits: Sequence[Commit]) -> tuple[str, str]:
    """What stands before the signal's name, and behind it."""
    span = "" if one.first == one.last else f", among {one.last - one.first + 1} commits"
    until = "still broken" if one.fixed is None else f"fixed by {_commit(commits[one.fixed].sha)}"
    moment, sha = _moment(commits[one.culprit].time), _commit(commits[one.culprit].sha)
    failures = counted(one.failures, "failure")
    sure = "or older" if one.is_older else f"{one.probability:6.1%}{span}"
    return f"{moment}  {sha} {sure}: ", f", {failures}, {until}"


def _more(signals: int) -> str:
    return f" and {counted(signals - 1, 'more signal')}" if signals > 1 else ""


def _commit(sha: str) -> str:
    return one_line(sha)[:_SHORT]


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
