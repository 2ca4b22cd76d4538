"""GitHub Actions: annotations for what did not pass, and a table in the step's summary.

Format and limits: "Workflow commands for GitHub Actions" (10 annotations of a type a step, 1 MiB a step summary).
"""

from collections.abc import Sequence
from typing import Final

from sooner.model.events import Verdict
from sooner.model.outcomes import Outcome
from sooner.report.wording import WORDS, seconds, unit_label

_MOST_ANNOTATIONS: Final = 10
_MOST_ROWS: Final = 500


def annotations(verdicts: Sequence[Verdict]) -> list[str]:
    """`::error title=...::...` for the first units that did not pass; what is in quarantine is a notice."""
    found = [verdict for verdict in verdicts if verdict.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
    failed = [_annotation("error", verdict) for verdict in found if not verdict.is_excused]
    excused = [_annotation("notice", verdict, "quarantined: ") for verdict in found if verdict.is_excused]
    return [*failed[:_MOST_ANNOTATIONS], *excused[:_MOST_ANNOTATIONS]]


def _annotation(level: str, verdict: Verdict, prefix: str = "") -> str:
    title = _property(unit_label(verdict.unit, verdict.variant))
    return f"::{level} title={title}::{_data(f'{prefix}{WORDS[verdict.outcome]}: {verdict.cause}')}"


def step_summary(verdicts: Sequence[Verdict], headline: str) -> str:
    """Markdown: the headline and a row for each unit that did not pass or was flaky."""
    rows = [verdict for verdict in verdicts if verdict.outcome is not Outcome.PASSED or verdict.flaky]
    lines = [f"**{_markdown(headline)}**", ""]
    if rows:
        lines += ["| unit | verdict | cause | time |", "|---|---|---|---|"]
    for verdict in rows[:_MOST_ROWS]:
        outcome = "flaky" if verdict.flaky else WORDS[verdict.outcome] + (", quarantined" if verdict.is_excused else "")
        cells = [unit_label(verdict.unit, verdict.variant), outcome, verdict.cause, seconds(verdict.duration_s)]
        lines.append("| " + " | ".join(map(_markdown, cells)) + " |")
    return "\n".join(lines) + "\n"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _markdown(text: str) -> str:
    """Text as text: neither HTML nor Markdown of a test's name or cause has an effect."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
    return "".join("\\" + char if char in "\\`*_[]|~#!" else char for char in text)
