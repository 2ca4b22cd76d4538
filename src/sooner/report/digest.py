"""The digest of a time, for a terminal and as Markdown; both are made from the same tables."""

import re
import time
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from sooner.analysis.metrics.statistics import Estimate
from sooner.analysis.trunk.digest import Broke, Digest, SignalTime, Undone, What
from sooner.model.text import cut, one_line
from sooner.report.flaky import name_of, percent
from sooner.report.signal_times import how_long
from sooner.report.wording import counted, table

_SHA: Final = 10
_WIDEST: Final = 60
_SPECIAL: Final = "\\`*_[]|~#!<>$"
_ISSUE: Final = re.compile(r"(#|\bGH-)(?=\d)", re.IGNORECASE)
"""What GitHub makes a reference of when Markdown has been made HTML: a backslash before it is gone by then."""


class Part(Struct, frozen=True, kw_only=True):
    """A table under a title; what stands in its cells is text from anywhere."""

    title: str
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    empty: str = ""
    """What to say where there are no rows."""
    more: int = 0
    """Rows that were left out."""

    @property
    def is_empty(self) -> bool:
        """Nothing is shown, and nothing was left out."""
        return not self.rows and not self.more


def digest_text(digest: Digest, most: int) -> str:
    """For a terminal."""
    blocks = [one_line(_headline(digest))]
    for part in _parts(digest, most):
        lines = [part.title, table([part.header, *(tuple(map(_cell, row)) for row in part.rows)])]
        lines = [f"{part.title}: {part.empty}"] if part.is_empty else lines
        if part.more:
            lines.append(f"... and {part.more} more (--limit)")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def digest_markdown(digest: Digest, most: int) -> str:
    """As Markdown that holds no HTML and mentions nobody, whatever commit messages and names of tests hold."""
    blocks = [f"## {markdown_text(_headline(digest))}"]
    for part in _parts(digest, most):
        lines = [f"### {part.title}", ""]
        if part.is_empty:
            lines.append(part.empty)
        else:
            lines += [_markdown_row(part.header), "|" + "---|" * len(part.header)]
            lines += [_markdown_row(row) for row in part.rows]
        if part.more:
            lines += ["", f"... and {part.more} more"]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def markdown_text(text: str) -> str:
    """Text as text: no HTML, no Markdown, no mention, no reference to an issue."""
    text = _cell(text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("@", "@\u200b")
    text = text.replace("://", ":\u200b//").replace("www.", "www\u200b.")
    text = _ISSUE.sub("\\1\u200b", text)
    return "".join("\\" + char if char in _SPECIAL else char for char in text)


def _cell(text: str) -> str:
    return one_line(text) if text else ""


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(markdown_text, cells)) + " |"


def _headline(digest: Digest) -> str:
    branch = f" of {digest.branch}" if digest.branch else ""
    landed = counted(digest.commits, "commit")
    people = f" by {counted(digest.authors, 'author')}" if digest.authors else ""
    return f"Trunk digest{branch}, {_when(digest.since)} to {_when(digest.until)} UTC: {landed}{people}"


def _parts(digest: Digest, most: int) -> Iterator[Part]:
    yield _part(
        "Landed, by area", ("AREA", "COMMITS"), [(one.name, str(one.commits)) for one in digest.areas], most, "nothing"
    )
    yield _part(
        "Broke",
        ("CULPRIT", "PROBABILITY", "TITLE", "AUTHOR", "SIGNALS", "FOUND BY", "FOUND", "RED"),
        [_broke(one) for one in digest.broke],
        most,
        "nothing that is known",
    )
    yield _part(
        "Reverted and landed again",
        ("WHAT", "COMMIT", "OF", "TITLE", "AFTER", "BY", "WHY"),
        [_undone(one) for one in digest.undone],
        most,
        "nothing",
    )
    yield _part(
        "Flaky, by what it cost (rates of two weeks)",
        ("COST", "RATE", "", "FLAKES", "KIND", "NAME"),
        [
            (
                how_long(one.cost_s), percent(one.rate.value), f"[{percent(one.rate.low)}, {percent(one.rate.high)}]",
                f"{one.failures}/{one.runs}", one.kind.value, name_of(one),
            )
            for one in digest.flaky
        ],
        most,
        "nothing that is known",
    )  # fmt: skip
    yield _part(
        "Time to signal, and in the week before",
        ("METRIC", "N", "P50", "BEFORE", "", "P90", "BEFORE", ""),
        [_signal(one) for one in digest.signal_times if one.n or one.n_before],
        most,
        "no job has the times that are needed",
    )


def _part(title: str, header: tuple[str, ...], rows: Sequence[tuple[str, ...]], most: int, empty: str) -> Part:
    return Part(title=title, header=header, rows=tuple(rows[:most]), empty=empty, more=max(0, len(rows) - most))


def _broke(one: Broke) -> tuple[str, ...]:
    red = f"{how_long(one.red_s)}, still red" if one.is_red else how_long(one.red_s)
    sure = percent(one.probability) if one.culprit else "-"
    return (
        one.culprit[:_SHA] or "(older)", sure, cut(one.title, _WIDEST) or "-", one.author or "-",
        str(len(one.signals)), cut(one.found_by, _WIDEST), _when(one.found_at), red,
    )  # fmt: skip


def _undone(one: Undone) -> tuple[str, ...]:
    after = "-" if one.after_s is None else how_long(one.after_s)
    what = "reverted" if one.what is What.REVERT else "landed again"
    title, why = cut(one.title, _WIDEST), cut(one.why, _WIDEST) or "-"
    return what, one.sha[:_SHA], one.of[:_SHA] or "-", title, after, one.by or "-", why


def _signal(one: SignalTime) -> tuple[str, ...]:
    return (
        one.metric, f"{one.n} ({one.n_before})", _said(one.p50), _said(one.p50_before), _moved(one.p50, one.p50_before),
        _said(one.p90), _said(one.p90_before), _moved(one.p90, one.p90_before),
    )  # fmt: skip


def _said(estimate: Estimate | None) -> str:
    return "-" if estimate is None else how_long(estimate.value)


def _moved(now: Estimate | None, before: Estimate | None) -> str:
    """By how much, where the intervals do not even touch; else it may be chance."""
    if now is None or before is None or not before.value:
        return ""
    sure = now.low > before.high or now.high < before.low
    return f"{100 * (now.value / before.value - 1):+.0f} %" if sure else "same"


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
