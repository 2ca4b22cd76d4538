"""Time to signal on a terminal: a row a group, with a sparkline of its weeks and the changes below."""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from sooner.analysis.metrics.statistics import Estimate
from sooner.analysis.metrics.summary import By, Group, Shift
from sooner.report.wording import short, table

_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDEST_KEY: Final = 56
_MOST_WEEKS: Final = 26
_MINUTE, _HOUR = 60.0, 3600.0


def sparkline(values: Sequence[float]) -> str:
    """Small bars, the smallest value lowest."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in values)


def how_long(seconds: float) -> str:
    """A time as people say it."""
    if abs(seconds) >= 10 * _HOUR:
        return f"{seconds / _HOUR:.0f} h"
    if abs(seconds) >= _HOUR:
        return f"{seconds / _HOUR:.1f} h"
    return f"{seconds / _MINUTE:.1f} min" if abs(seconds) >= _MINUTE else f"{seconds:.0f} s"


def date(at: float) -> str:
    """The day, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def overview(metrics: Mapping[str, tuple[int, Estimate, Estimate] | None]) -> str:
    """A line a metric."""
    rows = [("METRIC", "N", "P50", "", "P90", "")]
    for name, figures in metrics.items():
        if figures is None:
            rows.append((name, "0", "-", "", "-", ""))
            continue
        n, p50, p90 = figures
        rows.append((name, str(n), how_long(p50.value), _interval(p50), how_long(p90.value), _interval(p90)))
    return table(rows)


def groups_text(groups: Sequence[Group], by: By, most: int) -> str:
    """A line a group, the changes of each below it."""
    rows = [(by.value.upper(), "N", "P50", "", "P90", "", "QUEUE", "WEEKS")]
    for group in groups[:most]:
        key = date(float(group.key)) if by is By.WEEK else (group.key or "(none)")
        weeks = [median for _, median in group.weeks][-_MOST_WEEKS:]
        queue = how_long(group.parts.get("queue", 0.0))
        p50, p90 = group.p50, group.p90
        figures = (how_long(p50.value), _interval(p50), how_long(p90.value), _interval(p90), queue)
        rows.append((short(key, _WIDEST_KEY), str(group.n), *figures, sparkline(weeks)))
    more = f"\n... and {len(groups) - most} more (--limit)" if len(groups) > most else ""
    return table(rows) + more


def changes_text(groups: Sequence[Group], most: int, *, why: bool) -> str:
    """The changes of all groups, the newest first, at most so many."""
    found = sorted(((group.key, shift) for group in groups for shift in group.changes), key=lambda one: -one[1].at)
    lines = []
    for key, shift in found[:most]:
        lines.append(f"{date(shift.at)}  {short(key)}: {_moved(shift)}")
        if why:
            lines += [f"    {one.part}: {how_long(one.before)} -> {how_long(one.after)}" for one in shift.parts]
            named = [one for one in shift.jobs if one.part and one.part != key]
            lines += [f"    job {short(j.part)}: {how_long(j.before)} -> {how_long(j.after)}" for j in named]
    if len(found) > most:
        lines.append(f"... and {len(found) - most} earlier ones (--limit)")
    return "\n".join(lines)


def _moved(shift: Shift) -> str:
    percent = 100 * (shift.after_s / shift.before_s - 1) if shift.before_s else 0.0
    return f"{how_long(shift.before_s)} -> {how_long(shift.after_s)} ({percent:+.0f} %), moved by: {shift.part}"


def _interval(estimate: Estimate) -> str:
    return f"[{how_long(estimate.low)}, {how_long(estimate.high)}]"
