"""Pools and placements on a terminal."""

from collections.abc import Sequence
from typing import Final

from sooner.analysis.sizing.decide import Priced, Proposal
from sooner.analysis.sizing.judge import Judged
from sooner.model.text import one_line
from sooner.report.signal_times import how_long
from sooner.report.wording import counted, short, table

_WIDEST: Final = 48
_MOST_LOST: Final = 20
_FATES: Final = ("skipped", "falls_back", "fewer_ranks", "fails")


def pools_text(pools: Sequence[Judged]) -> str:
    """A line a pool: observed beside predicted, and whether it is understood."""
    rows = [("POOL", "JUDGED JOBS", "OBSERVED P50", "P90", "PREDICTED P50", "P90", "MACHINES", "FITS", "")]
    for pool in pools:
        machines = "-" if pool.capacity is None else f"{pool.capacity:.1f}"
        why = f"{pool.reason} ({pool.model})" if pool.model else pool.reason
        rows.append(
            (
                short(pool.label, _WIDEST), str(pool.judged_jobs), said(pool.observed.p50), said(pool.observed.p90),
                said(pool.predicted.p50), said(pool.predicted.p90), machines, "yes" if pool.fits else "NO", why,
            )
        )  # fmt: skip
    return table(rows)


def options_text(priced: Sequence[Priced], proposal: Proposal, shown: Priced | None) -> str:
    """A line an option, cheapest first; below, what is proposed and what it does to tests."""
    has_queues = any(one.waiting is not None for one in priced)
    rows: list[tuple[str, ...]] = [
        ("OPTION", "DEV-MIN/DAY", "/COMMIT", "SHARDS", "LONGEST", "SKIP", "CPU", "FEWER", "FAIL", "LOST", "MOVED",
         "DELAY MEAN", "WORST", *(("QUEUE P90", "SIGNAL P50", "P90") if has_queues else ()))
    ]  # fmt: skip
    for one in sorted(priced, key=lambda one: one.price.device_minutes_per_day):
        cost, wait = one.price, one.waiting
        mark = "* " if one is proposal.best else "+ " if one.option.name in proposal.frontier else "  "
        signal: tuple[str, ...] = ("-", "-", "-") if has_queues else ()
        if wait is not None:
            signal = (how_long(wait.queue_p90), how_long(wait.signal_p50), how_long(wait.signal_p90))
        rows.append(
            (
                mark + one.option.name, f"{cost.device_minutes_per_day:,.0f}", f"{cost.device_minutes_per_commit:,.0f}",
                _shards(one), how_long(cost.longest_s), *(str(cost.at_commit.get(f, 0)) for f in _FATES),
                str(len(cost.lost)), str(cost.moved), how_long(cost.delay_mean_h * 3600),
                how_long(cost.delay_worst_h * 3600), *signal,
            )
        )  # fmt: skip
    lines = [
        table(rows),
        "",
        "* proposed, + on the frontier. SKIP, CPU (falls back to it), FEWER (ranks), FAIL: tests at a commit.",
    ]
    lines.append(f"proposed: {proposal.best.option.name if proposal.best else 'nothing'}: {proposal.reason}")
    if shown is not None:
        lines += _details(shown)
    refused = next((one.refused for one in priced if one.refused), "")
    return "\n".join([*lines, *([f"queues: {refused}"] if refused else [])])


def _shards(one: Priced) -> str:
    return " ".join(
        f"{len(lane.shards)}x{lane.runner.devices}" + (f"/{lane.every_h:g}h" if lane.every_h else "")
        for lane in one.option.lanes
    )


def _what(names: Sequence[str]) -> str:
    """What a lane is made of: tests, or whole files (`--by file`)."""
    return "test" if any("::" in name for name in names) else "file"


def _details(one: Priced) -> list[str]:
    lines = [f"\n{one.option.name}:"]
    for lane in one.option.lanes:
        when = f"every {lane.every_h:g} h" if lane.every_h else "at every commit"
        walls = ", ".join(how_long(wall) for wall in lane.walls_s)
        lines.append(
            f"  {short(lane.runner.label)}, {when}: {counted(len(lane.tests), _what(lane.tests))},"
            f" {counted(len(lane.shards), 'shard')} of {walls}"
        )
    if one.price.lost:
        lines.append(f"  {counted(len(one.price.lost), 'test')} whose full need is met nowhere:")
        lines += [f"    {one_line(name)}" for name in one.price.lost[:_MOST_LOST]]
        if len(one.price.lost) > _MOST_LOST:
            lines.append(f"    ... and {len(one.price.lost) - _MOST_LOST} more (--json lists all)")
    return lines


def said(seconds: float | None) -> str:
    """A time, or a dash."""
    return "-" if seconds is None else how_long(seconds)
