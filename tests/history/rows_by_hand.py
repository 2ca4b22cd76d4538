"""Rows by hand, with nothing in them that a test does not name."""

from pathlib import Path

from sooner.history import HistoryOutcome, JobRow, TestRow

AT = 1_750_000_000.0
"""2025-06-15 15:06:40 UTC."""


def job(name="build", run="1", outcome=HistoryOutcome.PASSED, **fields):
    return JobRow(job=name, run=run, outcome=outcome, **fields)


def unit(name="u", run="1", outcome=HistoryOutcome.PASSED, **fields):
    return TestRow(unit=name, run=run, outcome=outcome, **fields)


def files(root: Path):
    """Parquet files that are visible."""
    return sorted(path for path in root.rglob("*.parquet") if not any(part[0] == "." for part in path.parts))
