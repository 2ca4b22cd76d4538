"""Decisions about trunk, and breakages, as text for a terminal. What tests and commits are called is data."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from sooner.analysis.trunk.breakages import Breakage
from sooner.analysis.trunk.facts import Answer, Commit, Hold, Question, Reason, Rerun, Revert
from sooner.model.text import one_line

_SHORT = 12


def decisions_as_text(question: Question, answer: Answer) -> str:
    """Reverts first, then runs, then what is held with its reason; signals that pass are only counted."""
    lines = [f"{len(question.commits)} commits, {len(question.signals)} signals, as of {_moment(question.now)}"]
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
            sure = "" if decision.probability is None else f" ({decision.probability:.2%})"
            yield f"REVERT {decision.culprit[:_SHORT]}{sure}: {decision.reason}"
            yield from (f"       breaks {one_line(key)}" for key in decision.signals[:10])
            if len(decision.signals) > 10:  # noqa: PLR2004
                yield f"       and {len(decision.signals) - 10} more"
        case Rerun():
            runs = ", ".join(f"{again.sha[:_SHORT]} x {again.count}" for again in decision.reruns)
            yield f"RERUN  {one_line(decision.signal)}: {runs}"
            yield f"       {decision.reason}"
        case Hold(reason=Reason.PASSING | Reason.FLAKY | Reason.FIXED):
            pass
        case Hold():
            yield f"HOLD   {one_line(decision.signal)}: {decision.reason}: {decision.detail}"


def breakages_as_text(found: Sequence[Breakage], commits: Sequence[Commit]) -> str:
    """One line a breakage, oldest first."""
    if not found:
        return "no breakage: whatever failed is explained by flakes"
    return "\n".join(_breakage(one, commits) for one in found)


def _breakage(one: Breakage, commits: Sequence[Commit]) -> str:
    span = "" if one.first == one.last else f", among {one.last - one.first + 1} commits"
    until = "still broken" if one.fixed is None else f"fixed by {commits[one.fixed].sha[:_SHORT]}"
    moment, sha = _moment(commits[one.culprit].time), commits[one.culprit].sha[:_SHORT]
    return f"{moment}  {sha} {one.probability:6.1%}{span}: {one_line(one.signal)}, {one.failures} failures, {until}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
