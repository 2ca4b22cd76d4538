"""How units, devices, times and outcomes are called in front of people; the same everywhere."""

from collections.abc import Mapping, Sequence
from typing import Final

from sooner.model.devices import Device
from sooner.model.outcomes import Outcome
from sooner.model.text import columns, cut, one_line, padded

WORDS: Final[Mapping[Outcome, str]] = {
    Outcome.PASSED: "passed",
    Outcome.FAILED: "FAILED",
    Outcome.TIMED_OUT: "TIMED OUT",
    Outcome.CRASHED: "CRASHED",
    Outcome.OUT_OF_MEMORY: "OUT OF MEMORY",
    Outcome.WORKER_LOST: "LOST",
    Outcome.HOLE: "COVERAGE HOLE",
    Outcome.SKIPPED: "skipped",
    Outcome.NOT_RUN: "not run",
}
STYLES: Final[Mapping[Outcome, str]] = {
    Outcome.PASSED: "32",
    Outcome.SKIPPED: "33",
    Outcome.NOT_RUN: "33",
    Outcome.HOLE: "35",
    Outcome.WORKER_LOST: "35",
}
_RED: Final = "31"
_MINUTE: Final = 60
_HOUR: Final = 3600
_LONGEST_VARIANT: Final = 60
_WIDEST_CELL: Final = 120
"""The longest names of jobs in PyTorch's CI have about a hundred characters."""
_LONGEST_LAST: Final = 1_000
"""The last column may hold a list or a sentence, and makes no other line wider."""


def unit_label(name: str, variant: str) -> str:
    """`name`, or `name [A=1 B=2]`; safe on one line of a terminal."""
    if not variant:
        return one_line(name)
    short = one_line(variant)
    cut = short if len(short) <= _LONGEST_VARIANT else short[: _LONGEST_VARIANT - 3] + "..."
    return f"{one_line(name)} [{cut}]"


def and_more(cases: int) -> str:
    """What to say after the id of one of so many cases that stand together; nothing where it is alone."""
    return f" and {cases - 1:,} more of its cases" if cases > 1 else ""


def device_label(ids: Sequence[str], devices: Mapping[str, Device]) -> str:
    """`GPU 3`, `GPU 0,1,2,3`, `GPU 0,1 of gpu-node-7`, `the host`."""
    if not ids:
        return "the host"
    known = [devices[device] for device in ids if device in devices]
    if len(known) < len(ids):
        return ", ".join(ids)
    where = f" of {known[0].node}" if known[0].node else ""
    return f"{known[0].word} {','.join(str(device.index) for device in known)}{where}"


def seconds(value: float) -> str:
    """`0.42 s`, `12.3 s`, `4 min 05 s`, `2 h 03 min`."""
    if value < 10:  # noqa: PLR2004 - two digits matter only here
        return f"{value:.2f} s"
    if value < _MINUTE:
        return f"{value:.1f} s"
    if value < _HOUR:
        return f"{int(value) // _MINUTE} min {int(value) % _MINUTE:02d} s"
    return f"{int(value) // _HOUR} h {int(value) % _HOUR // _MINUTE:02d} min"


def outcome_text(outcome: Outcome, cause: str, *, colour: bool) -> str:
    """`passed`, `FAILED (exit code 1)`."""
    text = WORDS[outcome] + (f" ({one_line(cause)})" if cause else "")
    return f"\x1b[{STYLES.get(outcome, _RED)}m{text}\x1b[0m" if colour else text


def counted(count: int, noun: str) -> str:
    """`1 unit`, `3 units`, `1,200 units`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(text: str, most: int = _WIDEST_CELL) -> str:
    """Text of at most so many columns on one line; what is cut off is an ellipsis (`--json` cuts nothing)."""
    return cut(one_line(text), most)


def unheard(text: str) -> str:
    """A line's beginning that GitHub Actions takes for no command: `::error::` is one behind nothing but spaces."""
    return f"- {text}" if text.lstrip().startswith("::") else text


def table(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """Rows as columns, those with these indices to the right; what is too long for a cell is cut off."""
    last = len(rows[0]) - 1
    shown = [[cut(cell, _LONGEST_LAST if i == last else _WIDEST_CELL) for i, cell in enumerate(row)] for row in rows]
    return "\n".join(aligned(shown, right=right))


def aligned(rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> list[str]:
    """A line a row, whose cells stand in columns of a terminal."""
    rows = [(unheard(first), *others) for first, *others in rows]
    widths = [max(map(columns, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(padded(cell, widths[i], right=i in right) for i, cell in enumerate(row)).rstrip() for row in rows]
