"""Decisions about trunk, and breakages, as text for a terminal. What tests and commits are called is data."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from sooner.analysis.trunk.breakages import Breakage
from sooner.analysis.trunk.facts import Answer, Commit, Hold, Question, Reason, Rerun, Revert
from sooner.model.text import one_line, probability_text
from sooner.report.wording import counted, short

_SHORT = 12
_LONGEST = 300
"""Characters of a signal: a test's id with its parameters."""


def decisions_as_text(question: Question, answer: Answer) -> str:
    """Reverts first, then runs, then what is held with its reason; signals that pass are only counted."""
    asked = f"{counted(len(question.commits), 'commit')}, {counted(len(question.signals), 'signal')}"
    lines = [f"{asked}, as of {_moment(question.now)}"]
    if not answer.decisions:
        lines.append("nothing has failed")
    for kind in (Revert, Rerun, Hold):
        for decision in answer.decisions:
            if isinstance(decision, kind):
                lines += _of_one(decision)
    reasons = Counter(one.reason for one in answer.decisions if isinstance(one, Hold))
    if reasons:
        lines.append("held: " + ", ".join(f"{count} {reason}" for reason, count in reasons.most_common()))
    return "\n".join(lines)


def _of_one(decision: Revert | Rerun | Hold) -> Iterator[str]:
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
        case Hold(reason=Reason.PASSING | Reason.FLAKY | Reason.FIXED):
            pass
        case Hold():
            yield f"HOLD   {short(decision.signal, _LONGEST)}: {decision.reason}: {short(decision.detail, _LONGEST)}"


def breakages_as_text(found: Sequence[Breakage], commits: Sequence[Commit]) -> str:
    """One line a breakage, oldest first."""
    if not found:
        return "no breakage: whatever failed is explained by flakes"
    return "\n".join(_breakage(one, commits) for one in found)


def _breakage(one: Breakage, commits: Sequence[Commit]) -> str:
    span = "" if one.first == one.last else f", among {one.last - one.first + 1} commits"
    until = "still broken" if one.fixed is None else f"fixed by {_commit(commits[one.fixed].sha)}"
    moment, sha = _moment(commits[one.culprit].time), _commit(commits[one.culprit].sha)
    failures = counted(one.failures, "failure")
    sure = "or older" if one.is_older else f"{one.probability:6.1%}{span}"
    return f"{moment}  {sha} {sure}: {short(one.signal, _LONGEST)}, {failures}, {until}"


def _commit(sha: str) -> str:
    return one_line(sha)[:_SHORT]


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
