"""Flaky tests and jobs on a terminal, and what became of the quarantine."""

from collections.abc import Sequence
from typing import Final

from sooner.analysis.trunk.flaky import Flaky
from sooner.analysis.trunk.quarantine import Update
from sooner.model.quarantine import Entry
from sooner.model.text import one_line
from sooner.report.signal_times import date, how_long
from sooner.report.wording import table

_WIDEST: Final = 70


def flaky_text(rows: Sequence[Flaky], most: int) -> str:
    """A line a test or job, what costs most first."""
    if not rows:
        return "nothing flaky: nothing both failed and passed on one commit"
    cells = [("COST", "WAITED", "REPEATED", "RATE", "", "FLAKES", "COMMITS", "LAST", "KIND", "NAME")]
    for row in rows[:most]:
        last = date(row.last) if row.last is not None else "-"
        cells.append(
            (
                how_long(row.cost_s), how_long(row.red_s), how_long(row.rerun_s), percent(row.rate.value),
                f"[{percent(row.rate.low)}, {percent(row.rate.high)}]", f"{row.failures}/{row.runs}", str(row.commits),
                last, row.kind.value, name_of(row),
            )
        )  # fmt: skip
    more = f"\n... and {len(rows) - most} more (--limit)" if len(rows) > most else ""
    return table(cells) + more


def name_of(row: Flaky) -> str:
    """What it is called, with what must be known besides; safe on one line."""
    name = one_line(row.id)
    if len(name) > _WIDEST:
        name = "..." + name[3 - _WIDEST :]
    variant = f" [{one_line(row.variant)[:_WIDEST]}]" if row.variant else ""
    return name + variant + (" (broken now)" if row.broken_now else "")


def percent(share: float) -> str:
    """`0.3 %`, `12 %`."""
    return f"{100 * share:.1f} %" if share < 0.1 else f"{100 * share:.0f} %"  # noqa: PLR2004 - digits that matter


def update_text(update: Update, file: str) -> str:
    """What entered and left the quarantine."""
    held = len(update.quarantine.tests) + len(update.quarantine.jobs)
    lines = [f"quarantine {file}: {held} entries, {len(update.entered)} entered, {len(update.left)} left"]
    lines += [f"  entered: {_entry(entry)} (leaves after {entry.stable_runs} passes)" for entry in update.entered]
    lines += [f"  left: {_entry(one.entry)}: {one.passes} passes in a row" for one in update.left]
    lines += [f"  no run since it entered: {_entry(entry)}" for entry in update.silent]
    return "\n".join(lines)


def _entry(entry: Entry) -> str:
    return one_line(f"{entry.id} [{entry.variant}]" if entry.variant else entry.id)
