"""Needs on a terminal: a line a test, the lines that decide below it, a summary.

What is shown comes in as rows: this room does not know where they are from.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sooner.model.text import one_line
from sooner.report.wording import aligned, counted

_LETTERS: Final = {"run": "r", "skip": "s", "fail": "F", "absent": "-", "unknown": "?"}
_WIDEST: Final = 100


class NeedRow(Struct, frozen=True, kw_only=True):
    """One test."""

    nodeid: str
    profile: dict[str, str]
    min: str
    gpu_min: str
    full: str
    max: str
    confidence: str
    remarks: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def needs_text(rows: Sequence[NeedRow], most: int, *, why: bool) -> str:
    """A table, at most so many rows."""
    sizes = list(rows[0].profile) if rows else []
    head = ("TEST", "/".join(sizes), "MIN", "ON DEVICES", "FULL", "MAX", "SURE", "")
    shown = [head]
    shown += [
        (
            _short(row.nodeid),
            "".join(_LETTERS.get(each, "?") for each in row.profile.values()),
            row.min, row.gpu_min, row.full, row.max, row.confidence, ", ".join(row.remarks),
        )
        for row in rows[:most]
    ]  # fmt: skip
    lines: list[str] = []
    for index, line in enumerate(aligned(shown)):
        lines.append(line)
        if why and index:
            lines += [f"    {one_line(line)}" for line in rows[index - 1].lines]
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more (--limit)")
    return "\n".join(lines)


def summary_text(rows: Sequence[NeedRow]) -> str:
    """How many tests need how many devices; `r` runs, `s` skips, `F` fails, `-` is not there, `?` is not known."""
    counts = Counter(row.min for row in rows)
    known = sorted((key for key in counts if key.isdigit()), key=int)
    parts = [f"{counts[key]} from {key} on" for key in known]
    parts += [
        f"{counts[key]} {word}" for key, word in (("never", "never run"), ("unknown", "not known")) if counts[key]
    ]
    unsure = sum(row.confidence == "low" for row in rows)
    tests = counted(len(rows), "test")
    return f"{tests}: {', '.join(parts) or 'none'}" + (f"; unsure of {unsure}" if unsure else "")


def differences_text(rows: Sequence[tuple[str, str, str]], most: int) -> str:
    """A line a disagreement: its kind, the test, what about it."""
    lines = [f"{kind:15}{_short(nodeid)}: {one_line(detail)}" for kind, nodeid, detail in rows[:most]]
    if len(rows) > most:
        lines.append(f"... and {len(rows) - most} more (--limit)")
    return "\n".join(lines)


def _short(nodeid: str) -> str:
    text = one_line(nodeid)
    return text if len(text) <= _WIDEST else f"...{text[-_WIDEST + 3 :]}"
