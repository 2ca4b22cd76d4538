"""The selection of jobs on a terminal: what runs and why, what a backtest showed, who could stand in for whom."""

from collections.abc import Sequence
from typing import Final

from sooner.analysis.selection.backtest import Summary
from sooner.analysis.selection.calibrate import trials_for
from sooner.analysis.selection.change import Answer
from sooner.analysis.selection.choice import Selection
from sooner.analysis.selection.related import Correlation
from sooner.analysis.selection.validate import Control, HeldOut
from sooner.model.text import one_line
from sooner.report.wording import counted, short, table

_MOST_MISSED: Final = 20
_MOST_OF_A_SET: Final = 20
_LONGEST_LINE: Final = 100
_LONGEST_WHY: Final = 300
_TINY: Final = 1e-4
_NOTHING_BROKE: Final = "there was nothing to catch"


def percent(share: float) -> str:
    """`97.3 %`."""
    return f"{100 * share:.1f} %"


def backtest_text(summary: Summary, *, recall: float | None, budget: float | None) -> str:
    """What was caught, missed and spent."""
    asked = [f"recall {percent(recall)}"] if recall is not None else []
    asked += [f"at most {percent(budget)} of the cost"] if budget is not None else []
    before = f"{counted(summary.commits, 'commit')} decided, learned from {summary.trained_on} before them"
    rate = _NOTHING_BROKE
    if summary.breakages:
        rate = f"{percent(summary.recall)} [{percent(summary.low)}, {percent(summary.high)}]"
    expected = summary.expected
    was = _would_have_caught(expected.recall, expected.low, expected.breakages)
    lines = [
        f"{before}; asked for {', '.join(asked)}",
        f"caught  {summary.caught} of {counted(summary.breakages, 'breakage')}: {rate}",
        f"cost    {percent(summary.cost)} of running everything",
        f"level   {percent(summary.level)} of the cost; {was}",
        f"stated bound held in {summary.windows.held} of {summary.windows.count} rolling windows{_empty(summary)}",
        f"missed breakages stayed red for {counted(round(summary.red_hours), 'hour')} together{_later(summary)}",
        "other readings of a breakage:",
    ]
    for name, score in summary.by_definition.items():
        share = percent(score.recall) if score.breakages else _NOTHING_BROKE
        lines.append(f"  {name:<10} {score.caught} of {score.breakages}: {share}")
    asked_for = 0.0 if recall is None else recall
    is_missed, is_few = expected.recall < asked_for, summary.breakages < trials_for(asked_for)
    if is_missed:
        lines.append(f"not reached: by what was known at the end this level catches less than {percent(asked_for)}")
    if not summary.enough_evidence and summary.level < 1.0 and (is_few or not is_missed):
        lines.append("not enough evidence: so few breakages are known that this recall cannot be proven")
    if summary.missed:
        lines.append("missed:")
    for one in summary.missed[:_MOST_MISSED]:
        after = one.detected_after_commits
        seen = "never seen" if after is None else f"seen {counted(after, 'commit')} later"
        jobs = ", ".join(map(short, one.jobs))
        lines.append(f"  {one_line(one.sha)[:12]}  {jobs}  ({seen}, {percent(one.probability)} real)")
        if one.failure_line:
            lines.append(f"      - {short(one.failure_line, _LONGEST_LINE)}")
    if len(summary.missed) > _MOST_MISSED:
        lines.append(f"  ... and {len(summary.missed) - _MOST_MISSED} more (--json)")
    return "\n".join(lines)


def _empty(summary: Summary) -> str:
    return f", {summary.windows.empty} of them without a breakage" if summary.windows.empty else ""


def _later(summary: Summary) -> str:
    if summary.detection_hours is None:
        return ""
    count = f"{summary.seen_later} of {len(summary.missed)}"
    return f"; {count} were seen later, after {summary.detection_hours:.1f} hours (median)"


def answer_text(answer: Answer) -> str:
    """A line a job: those that run, then those that do not."""
    lines = []
    if answer.run_all:
        lines.append("everything runs")
    lines += [f"run   {short(line.job)}: {short(line.why, _LONGEST_WHY)}" for line in answer.jobs]
    lines += [f"drop  {short(line.job)}: {short(line.why, _LONGEST_WHY)}" for line in answer.dropped]
    was = _would_have_caught(answer.recall, answer.recall_low, answer.breakages)
    lines.append(f"level {percent(answer.level)} of the cost of all jobs; {was}")
    return "\n".join(lines)


def _would_have_caught(recall: float, low: float, breakages: float) -> str:
    if not breakages:
        return "no breakage is known that tells what it would catch"
    return f"of {breakages:.1f} breakages before it would have caught {percent(recall)}, at least {percent(low)} (95 %)"


def selection_text(selection: Selection) -> str:
    """A line a job, the frontier, the best fixed set."""
    rows = [("", "JOB", "MIN", "COST", "RISK", "BROKE", "ALONE", "WHY")]
    for line in selection.jobs:
        figures = (f"{line.minutes:.1f}", percent(line.cost_share), percent(line.risk_share))
        counts = (str(line.breakages), str(line.alone))
        rows.append(("run" if line.selected else "drop", short(line.job), *figures, *counts, one_line(line.why)))
    expected = selection.expected
    parts = [table(rows, right=(2, 3, 4, 5, 6)), _frontier_text(selection)]
    parts.append(
        f"chosen: {percent(selection.cost_share)} of the cost, at a level of {percent(selection.level)};"
        f" {_would_have_caught(expected.recall, expected.low, expected.breakages)}"
    )
    if fixed := selection.fixed:
        distance = "the optimum" if fixed.proven and fixed.gap < _TINY else f"within {percent(fixed.gap)} of the bound"
        parts.append(
            f"best fixed set ({fixed.by}, {distance}): {counted(len(fixed.jobs), 'job')},"
            f" {percent(fixed.cost_share)} of the cost, sees {fixed.covered} of {fixed.breakages} breakages:"
            f" {_some(fixed.jobs)}"
        )
    if selection.note:
        parts.append(selection.note)
    return "\n\n".join(parts)


def _some(jobs: Sequence[str]) -> str:
    left = len(jobs) - _MOST_OF_A_SET
    more = f" and {left} more (--json)" if left > 0 else ""
    return ", ".join(map(short, jobs[:_MOST_OF_A_SET])) + more


def flakes_text(held: HeldOut, control: Control | None, code: Control | None) -> str:
    """Whether the flake model can be believed."""
    if not held.all_cells:
        lines = ["no job ran twice on the same commit: nothing here tells a flake from a breakage"]
    else:
        said = f"the next outcome was foretold in {percent(held.all_agreement)}"
        lines = [
            f"hidden repeats of {held.all_cells:,} cells: {said}, broken or not in {percent(held.verdict_agreement)}"
        ]
        bounds = f"always saying flake: {percent(held.always_flake)}; the model's own limit: {percent(held.ceiling)}"
        lines += [f"of {held.cells:,} whose first attempt failed: {percent(held.agreement)} ({bounds})"]
    if control is None:
        advice = "`sooner ingest CHECKOUT` tells which files commits touch"
        return "\n".join([*lines, f"no commit is known to touch only documentation: no control ({advice})"])
    for name, one in (("", control), (", without the jobs that read it", code)):
        if one is not None:
            rate = f"{one.rate:.1f} [{one.low:.1f}, {one.high:.1f}] (of {one.commits})"
            lines.append(f"breakages for 100 commits of documentation{name}: {rate}; for 100 others: {one.others:.1f}")
            lines += [f"  - {short(job)}: {share:.2f}" for job, share in one.jobs]
    return "\n".join(lines)


def _frontier_text(selection: Selection) -> str:
    if not any(one.breakages for one in selection.frontier):
        return "no breakage is known that tells what a budget would catch"
    rows = [("COST", "RECALL", "AT LEAST")]
    rows += [(percent(one.level), percent(one.recall), percent(one.low)) for one in selection.frontier]
    return table(rows, right=(0, 1, 2))


def correlation_text(found: Correlation) -> str:
    """Clusters, pairs, and who could stand in for whom."""
    if not found.jobs:
        return "no job passed or failed: there is nothing to compare"
    rows = [("CLUSTER", "JOBS")]
    several = [some for some in found.clusters if len(some) > 1]
    rows += [(str(i), ", ".join(map(short, some))) for i, some in enumerate(several, 1)]
    alone = len(found.clusters) - len(several)
    parts = [
        table(rows) if several else "no two jobs belong together",
        "1 job is alone" if alone == 1 else f"{alone} jobs are alone",
    ]
    if found.method != "2019" and not found.flakes_removed:
        parts.append("hardly any failure was run again: flakes cannot be told from breakages, all red counts")
    if found.pairs:
        lines = [("PHI", "JACCARD", "RAN", "RED", "JOBS")]
        for one in found.pairs[:_MOST_MISSED]:
            names = f"{short(one.a)} + {short(one.b)}"
            lines.append((f"{one.phi:.2f}", f"{one.jaccard:.2f}", str(one.both_ran), str(one.both_red), names))
        parts.append(table(lines, right=(0, 1, 2, 3)))
    if found.stand_ins:
        stands = [("MISSED", "", "OF", "KEPT INSTEAD OF")]
        for stand in found.stand_ins[:_MOST_MISSED]:
            interval = f"[{percent(stand.low)}, {percent(stand.high)}]"
            names = f"{short(stand.kept)} instead of {short(stand.dropped)}"
            stands.append((percent(stand.rate), interval, str(stand.breakages), names))
        parts.append(table(stands, right=(0, 1, 2)))
    return "\n\n".join(parts)
