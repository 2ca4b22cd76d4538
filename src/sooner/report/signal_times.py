"""Time to signal on a terminal: a row a group, with a sparkline of its weeks and the changes below."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sooner.analysis.metrics.statistics import Estimate
from sooner.analysis.metrics.summary import WEEK_S, By, Group, Shift
from sooner.report.wording import short, table

_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDEST_KEY: Final = 56
_MOST_WEEKS: Final = 26
_NO_KEY: Final = "(none)"
_MINUTE, _HOUR = 60.0, 3600.0
Say = Callable[[float], str]


def sparkline(values: Sequence[float]) -> str:
    """Small bars, the smallest value lowest."""
    if not values:
        return ""
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    return "".join(_BARS[round((value - low) / span * (len(_BARS) - 1))] for value in values)


def week_bars(weeks: Sequence[tuple[float, float]]) -> str:
    """The last weeks, a bar for each that has a median; one in which nothing ran is a blank."""
    if not weeks:
        return ""
    shown = [(week, median) for week, median in weeks if week > weeks[-1][0] - _MOST_WEEKS * WEEK_S]
    bars = sparkline([median for _, median in shown])
    gaps = [round((week - before) / WEEK_S) - 1 for (before, _), (week, _) in itertools.pairwise(shown)]
    return "".join(" " * gap + bar for gap, bar in zip([0, *gaps], bars, strict=True))


def how_long(seconds: float) -> str:
    """A time as people say it."""
    if abs(seconds) >= 10 * _HOUR:
        return f"{seconds / _HOUR:.0f} h"
    if abs(seconds) >= _HOUR:
        return f"{seconds / _HOUR:.1f} h"
    return f"{seconds / _MINUTE:.1f} min" if abs(seconds) >= _MINUTE else f"{seconds:.0f} s"


def plain(value: float) -> str:
    """A number that is no time."""
    return f"{value:.4g}"


def date(at: float) -> str:
    """The day, UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(at))


def overview(metrics: Mapping[str, tuple[int, Estimate, Estimate] | None], say: Say = how_long) -> str:
    """A line a metric; `say` writes its values."""
    rows = [("METRIC", "N", "P50", "", "P90", "")]
    for name, figures in metrics.items():
        if figures is None:
            rows.append((short(name), "0", "-", "", "-", ""))
            continue
        n, p50, p90 = figures
        rows.append((short(name), str(n), say(p50.value), _interval(p50, say), say(p90.value), _interval(p90, say)))
    return table(rows)


def groups_text(groups: Sequence[Group], by: By, most: int, say: Say = how_long) -> str:
    """A line a group; of more weeks than are asked for the last ones, each with its bar among them."""
    is_weekly = by is By.WEEK
    shown = groups[max(len(groups) - most, 0) :] if is_weekly else groups[:most]
    bars = sparkline([group.p50.value for group in shown])
    rows = [(by.value.upper(), "N", "P50", "", "P90", "", "QUEUE", "" if is_weekly else "WEEKS")]
    for group, bar in zip(shown, bars, strict=True):
        key = date(float(group.key)) if is_weekly else (group.key or _NO_KEY)
        weeks = bar if is_weekly else week_bars(group.weeks)
        queue = how_long(group.parts.get("queue", 0.0))
        p50, p90 = group.p50, group.p90
        figures = (say(p50.value), _interval(p50, say), say(p90.value), _interval(p90, say), queue)
        rows.append((short(key, _WIDEST_KEY), str(group.n), *figures, weeks))
    left = len(groups) - len(shown)
    more = f"\n... and {left} {'earlier ones' if is_weekly else 'more'} (--limit)" if left else ""
    return table(rows) + more


def changes_text(groups: Sequence[Group], by: By, most: int, *, why: bool, say: Say = how_long) -> str:
    """The changes of all groups, the newest first, at most so many; those of weeks are of the whole."""
    found = sorted(((group.key, shift) for group in groups for shift in group.changes), key=lambda one: -one[1].at)
    lines = []
    for key, shift in found[:most]:
        whose = "" if by is By.WEEK else f"{short(key or _NO_KEY)}: "
        lines.append(f"{date(shift.at)}  {whose}{_moved(shift, say)}")
        if why:
            lines += [f"    {one.part}: {say(one.before)} -> {say(one.after)}" for one in shift.parts]
            named = [one for one in shift.jobs if one.part and one.part != key]
            lines += [f"    job {short(j.part)}: {say(j.before)} -> {say(j.after)}" for j in named]
    if len(found) > most:
        lines.append(f"... and {len(found) - most} earlier ones (--limit)")
    return "\n".join(lines)


def _moved(shift: Shift, say: Say) -> str:
    percent = 100 * (shift.after_s / shift.before_s - 1) if shift.before_s else 0.0
    return f"{say(shift.before_s)} -> {say(shift.after_s)} ({percent:+.0f} %), moved by: {shift.part}"


def _interval(estimate: Estimate, say: Say) -> str:
    return f"[{say(estimate.low)}, {say(estimate.high)}]"
