"""The summary of a run: what it came to, what did not pass, how close to the bound it was, where to look."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from sooner.model.events import Verdict
from sooner.model.outcomes import ExitCode, Outcome
from sooner.model.text import printable
from sooner.model.units import unit_key
from sooner.report.wording import counted, outcome_text, seconds, unit_label

_MOST_LISTED: Final = 50


class Figures(Struct, frozen=True, kw_only=True):
    """How long a run took, and how long it could have taken."""

    makespan_s: float
    """First start to last end, of what ran now."""
    bound_s: float
    """What no schedule of these units with these durations on these devices could be faster than."""
    sequential_s: float
    """Sum of all durations."""


def summary_text(
    verdicts: Sequence[Verdict], figures: Figures, folder: Path, *, code: ExitCode, colour: bool, notes: Sequence[str]
) -> str:
    """The summary for people."""
    lines = ["", "=== Summary ===", _counts(verdicts, colour=colour)]
    lines += _not_passed(verdicts, folder, colour=colour)
    lines += [
        f"flaky: {unit_label(v.unit, v.variant)} passed at attempt {len(v.attempts)}" for v in verdicts if v.flaky
    ]
    if figures.makespan_s > 0:
        speedup = figures.sequential_s / figures.makespan_s
        lines.append(
            f"time: {seconds(figures.makespan_s)} for {seconds(figures.sequential_s)} of units ({speedup:.1f} at once),"
            f" no schedule under {seconds(figures.bound_s)}"
        )
    lines += [f"note: {note}" for note in notes]
    lines.append(f"reports: {folder}/ (junit.xml, results.jsonl, events.jsonl, trace.json for ui.perfetto.dev, logs/)")
    if code in (ExitCode.INTERRUPTED, ExitCode.SIGINT):
        lines.append(f"to go on: sooner run --resume {shlex.quote(str(folder))}")
    lines.append(f"exit code {code.value}: {code.words}")
    return "\n".join(lines) + "\n"


def _counts(verdicts: Sequence[Verdict], *, colour: bool) -> str:
    counts: dict[Outcome, int] = {}
    for verdict in verdicts:
        counts[verdict.outcome] = counts.get(verdict.outcome, 0) + 1
    parts = [
        f"{counts[outcome]} {outcome_text(outcome, '', colour=colour)}" for outcome in Outcome if outcome in counts
    ]
    excused = sum(verdict.is_excused for verdict in verdicts)
    more = f"; {excused} of them in quarantine: that fails no run" if excused else ""
    return f"{counted(len(verdicts), 'unit')}: {', '.join(parts)}{more}"


def _not_passed(verdicts: Sequence[Verdict], folder: Path, *, colour: bool) -> list[str]:
    found = [verdict for verdict in verdicts if verdict.outcome is not Outcome.PASSED]
    lines = []
    for verdict in found[:_MOST_LISTED]:
        log = f"  {folder / verdict.log}" if verdict.log else ""
        text = outcome_text(verdict.outcome, verdict.cause, colour=colour)
        quarantined = ", quarantined" if verdict.is_excused else ""
        lines.append(f"  {unit_label(verdict.unit, verdict.variant)}: {text}{quarantined}{log}")
    if len(found) > _MOST_LISTED:
        lines.append(f"  ... and {len(found) - _MOST_LISTED} more")
    return lines


def summary_json(
    verdicts: Sequence[Verdict], figures: Figures, folder: Path, *, code: ExitCode, notes: Sequence[str]
) -> dict[str, Any]:
    """The summary for programs."""
    counts: Mapping[str, int] = {
        outcome.value: sum(verdict.outcome is outcome for verdict in verdicts) for outcome in Outcome
    }
    return {
        "run": printable(str(folder)),
        "exit_code": code.value,
        "counts": counts,
        "quarantined": sum(verdict.is_excused for verdict in verdicts),
        **msgspec.structs.asdict(figures),
        "notes": list(notes),
        "units": [
            {
                "unit": verdict.unit,
                "variant": verdict.variant,
                "key": unit_key(verdict.unit, verdict.variant),
                "outcome": verdict.outcome.value,
                "cause": verdict.cause,
                "flaky": verdict.flaky,
                "quarantined": verdict.quarantined,
                "duration_s": verdict.duration_s,
                "log": verdict.log,
            }
            for verdict in verdicts
        ],
    }
