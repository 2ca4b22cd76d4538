"""Needs on a terminal: a line a test or for its cases that are alike, the lines that decide below it, a summary.

What is shown comes in as rows: this room does not know where they are from.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sooner.model.text import one_line, test_of
from sooner.report.wording import aligned, and_more, counted

_LETTERS: Final = {"run": "r", "skip": "s", "fail": "F", "absent": "-", "unknown": "?"}
_WIDEST: Final = 100


class NeedRow(Struct, frozen=True, kw_only=True):
    """One test, or one case of it."""

    nodeid: str
    profile: dict[str, str]
    min: str
    gpu_min: str
    full: str
    max: str
    confidence: str
    cases: int = 1
    """How many its test has, of which it is one."""
    remarks: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def needs_text(rows: Sequence[NeedRow], most: int, *, why: bool) -> str:
    """A table, at most so many lines: cases of one test of which the same is said are one."""
    sizes = list(rows[0].profile) if rows else []
    found = _together(rows, with_lines=why)
    head = ("TEST", "/".join(sizes), "MIN", "ON DEVICES", "FULL", "MAX", "SURE", "")
    shown = [head]
    shown += [
        (
            _short(name),
            "".join(_LETTERS.get(each, "?") for each in row.profile.values()),
            row.min, row.gpu_min, row.full, row.max, row.confidence, ", ".join(remarks),
        )
        for name, row, remarks in found[:most]
    ]  # fmt: skip
    lines: list[str] = []
    for index, line in enumerate(aligned(shown)):
        lines.append(line)
        if why and index:
            lines += [f"    {one_line(line)}" for line in found[index - 1][1].lines]
    if len(found) > most:
        lines.append(f"... and {len(found) - most} more (--limit)")
    return "\n".join(lines)


def _together(rows: Sequence[NeedRow], *, with_lines: bool) -> list[tuple[str, NeedRow, Sequence[str]]]:
    """What to call each line, the first of the rows that it stands for, and its remarks."""
    groups: dict[tuple[str, object], list[NeedRow]] = {}
    for row in rows:
        numbers = (row.min, row.gpu_min, row.full, row.max, row.confidence)
        said = (*row.profile.values(), *numbers, row.remarks, row.lines if with_lines else ())
        groups.setdefault((test_of(row.nodeid), said), []).append(row)
    found: list[tuple[str, NeedRow, Sequence[str]]] = []
    for (function, _), alike in groups.items():
        first = alike[0]
        if len(alike) == 1:
            found.append((first.nodeid, first, first.remarks))
        else:
            name = f"{function}[...]" if len(alike) == first.cases else first.nodeid
            found.append((name, first, (*first.remarks, counted(len(alike), "case"))))
    return found


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
    """A line a disagreement, cases of one test with the same one together: its kind, the test, what about it."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for kind, nodeid, detail in rows:
        groups.setdefault((kind, test_of(nodeid), detail), []).append(nodeid)
    lines = [
        f"{kind:15}{_short(ids[0])}{and_more(len(ids))}: {one_line(detail)}"
        for (kind, _, detail), ids in groups.items()
    ]
    if len(lines) > most:
        lines[most:] = [f"... and {len(lines) - most} more (--limit)"]
    return "\n".join(lines)


def _short(nodeid: str) -> str:
    text = one_line(nodeid)
    return text if len(text) <= _WIDEST else f"...{text[-_WIDEST + 3 :]}"
