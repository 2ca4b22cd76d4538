"""The coverage ledger on a terminal."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from sooner.analysis.sizing.ledger import MET, Entry, Standing
from sooner.model.text import one_line, test_of
from sooner.report.signal_times import how_long
from sooner.report.wording import and_more, counted, table

_WIDEST: Final = 90
_WORDS: Final = {
    Standing.COVERED: "covered",
    Standing.LATE: "too long ago",
    Standing.TOO_SMALL: "too few devices",
    Standing.NOT_PROVEN: "not proven",
    Standing.NEVER: "never ran",
    Standing.NEVER_RUNS: "can never run",
    Standing.EXEMPT: "exempt",
}


def ledger_text(listed: Sequence[Entry], entries: Sequence[Entry], most: int) -> str:
    """A line a test or for its cases that stand alike, those that never ran first, then a line that counts them all.

    Of cases that stand alike the one is shown that never ran at its need, or the longest ago.
    """
    order = list(_WORDS)
    rows = [("TEST", "STANDING", "NEEDS", "LAST AT NEED", "LAST RUN ON", "WHERE", "WHY")]
    worst = sorted(listed, key=lambda entry: (entry.standing in MET, -order.index(entry.standing), entry.test))
    groups: dict[tuple[object, ...], list[Entry]] = {}
    for entry in worst:
        devices = entry.last_any.devices if entry.last_any else None
        alike = (test_of(entry.test), entry.standing, entry.needs, devices, entry.why)
        groups.setdefault(alike, []).append(entry)
    for cases in list(groups.values())[:most]:
        entry = max(cases, key=lambda one: math.inf if one.age_s is None else one.age_s)
        any_run = entry.last_any
        had = "-" if any_run is None else "?" if any_run.devices is None else counted(any_run.devices, "device")
        rows.append(
            (
                one_line(entry.test)[:_WIDEST] + and_more(len(cases)),
                _WORDS[entry.standing],
                "?" if entry.needs is None else str(entry.needs),
                "-" if entry.age_s is None else f"{how_long(entry.age_s)} ago",
                had,
                one_line(any_run.where)[:_WIDEST] if any_run else "-",
                entry.why,
            )
        )
    counts = Counter(entry.standing for entry in entries)
    said = ", ".join(f"{counts[standing]} {word}" for standing, word in _WORDS.items() if counts[standing])
    parts = [table(rows)] if len(rows) > 1 else []
    if len(groups) > most:
        parts.append(f"... and {len(groups) - most} more (--limit)")
    return "\n".join([*parts, f"{counted(len(entries), 'test')}: {said}" if entries else "no tests: nothing to judge"])
