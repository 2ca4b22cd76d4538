"""The jobs of one change: what the rule proposes, what the change asks for, what the project lays down. Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from sooner.analysis.selection.calibrate import Past, recall_at
from sooner.analysis.selection.cover import Constraints
from sooner.analysis.selection.decide import HALF, Ranking, choose, reasons
from sooner.analysis.selection.hazard import View
from sooner.analysis.selection.lift import Lift, folders
from sooner.analysis.selection.request import Asked

_RECENT: Final = 0.3
"""Share of the breakages that counts as recent when drift is looked for."""
_ALARM: Final = 0.05
_FEWEST: Final = 5


class Line(Struct, frozen=True, kw_only=True):
    """A job and why it runs, or does not."""

    job: str
    why: str


class Answer(Struct, frozen=True, kw_only=True):
    """The jobs of a change."""

    jobs: tuple[Line, ...]
    dropped: tuple[Line, ...]
    run_all: bool
    sampled: bool
    """Everything runs because the change was drawn, so that the jobs that are left out keep being measured."""
    level: float
    """Share of the cost of all jobs that the rule may spend."""
    recall: float
    """What this level would have caught of the calibration's breakages."""
    recall_low: float
    drift: str
    """What is wrong with the rule's promise of late; empty where nothing is."""
    breakages: float = 0.0
    """That the calibration rests on; see `Point`."""
    would_drop: tuple[str, ...] = ()
    """Jobs that the rule, with its floors and areas, would leave out by itself: what a full run tests."""


class Wish(Struct, frozen=True, kw_only=True):
    """What a change brings with it."""

    asked: Asked
    areas: Mapping[str, str] = {}
    """Jobs of the areas that it touches, and why."""
    files: tuple[str, ...] = ()
    quiet: frozenset[int] = frozenset()
    """Jobs that it cannot break, because it touches only documentation."""
    sampled: bool = False
    part: float = HALF
    """How much must fit of the job at which the level ends, drawn for each change."""


def answer(
    names: Sequence[str],
    view: View,
    ranking: Ranking,
    *,
    level: float,
    past: Past,
    wish: Wish,
    rules: Constraints,
    lifts: Sequence[Lift] = (),
) -> Answer:
    """Put everything together; the later says more, and only `[ci skip]` takes away.

    Args:
        names: Of the jobs, by index.
        view: What is known.
        ranking: The order of the jobs.
        level: See `Answer`.
        past: Earlier breakages with their levels.
        wish: What the change brings with it.
        rules: Floors and dependencies.
        lifts: Folders that predict jobs.
    """
    choice = choose(ranking, level, without=wish.quiet, part=wish.part)
    whys = {names[job]: why for job, why in reasons(view, ranking, choice).items()}
    chosen = {names[job]: whys[names[job]] for job in choice.selected}
    for harmless in wish.quiet:
        if names[harmless] in whys and names[harmless] not in chosen:
            whys[names[harmless]] = "the change touches only documentation, which has never broken it"
    run_all = wish.sampled or wish.asked.everything
    floored = _with_floors(_predicted(wish.files, lifts, whys) | chosen, names, ranking, rules)
    own = _with_needs(floored | dict(wish.areas), names, rules, whys)
    if run_all:
        said = "[ci all]" if wish.asked.everything else "sample: this change runs everything"
        chosen = {names[job]: said for job in ranking.order} | dict.fromkeys(wish.asked.added, said)
    else:
        chosen = _with_needs(own | dict(wish.asked.added), names, rules, whys)
    skipped = wish.asked.skipped
    if not skipped.keys().isdisjoint(chosen):
        chosen = {job: why for job, why in chosen.items() if job not in skipped}
        chosen = _with_floors(chosen, names, ranking, rules, skipped)
        chosen = _with_needs(chosen, names, rules, whys.keys() - skipped.keys())
    dropped = {job: skipped.get(job, why) for job, why in whys.items() if job not in chosen}
    expected = recall_at(past, level)
    return Answer(
        jobs=tuple(Line(job=job, why=why) for job, why in chosen.items()),
        dropped=tuple(Line(job=job, why=why) for job, why in dropped.items()),
        run_all=run_all and not wish.asked.skipped,
        sampled=wish.sampled and not wish.asked.everything,
        level=level,
        recall=expected.recall,
        recall_low=expected.low,
        breakages=expected.breakages,
        drift=drift(past, level),
        would_drop=tuple(job for job in whys if job not in own),
    )


def _with_floors(
    chosen: dict[str, str], names: Sequence[str], ranking: Ranking, rules: Constraints, skipped: Collection[str] = ()
) -> dict[str, str]:
    for floor in rules.floors:
        alive = [job for job in ranking.order if job in floor.jobs and names[job] not in skipped]
        for job in alive:
            if sum(names[one] in chosen for one in alive) >= floor.least:
                break
            chosen.setdefault(names[job], f"floor: at least {floor.least} of {floor.name}")
    return chosen


def _predicted(files: Sequence[str], lifts: Sequence[Lift], alive: Mapping[str, str]) -> dict[str, str]:
    touched = {folder for path in files for folder in folders(path)}
    return {
        one.job: f"changes in {one.folder}/ break it {one.lift:.1f} times as often (p = {one.p:.1g})"
        for one in lifts
        if one.folder in touched and one.job in alive
    }


def _with_needs(
    chosen: dict[str, str], names: Sequence[str], rules: Constraints, alive: Collection[str]
) -> dict[str, str]:
    """These, and of what exists now all that they need."""
    place = {name: i for i, name in enumerate(names)}
    waiting = list(chosen)
    while waiting:
        job = waiting.pop()
        for need in rules.needs.get(place.get(job, -1), ()):
            if names[need] in alive and names[need] not in chosen:
                chosen[names[need]] = f"{job} needs it"
                waiting.append(names[need])
    return chosen


def without_needs(found: Answer, wish: Wish, names: Sequence[str], rules: Constraints) -> list[tuple[str, str]]:
    """Jobs that run although the change skips what they need, each with that."""
    place = {name: i for i, name in enumerate(names)}
    running = [line.job for line in found.jobs]
    return [
        (job, names[need])
        for job in running
        for need in rules.needs.get(place[job], ())
        if names[need] in wish.asked.skipped
    ]


def unmet_floors(found: Answer, wish: Wish, names: Sequence[str], rules: Constraints) -> list[tuple[str, str]]:
    """Facets of which fewer jobs run than must, because the change skips some, each with the words that skip one."""
    running, skipped = {line.job for line in found.jobs}, wish.asked.skipped
    short = [floor for floor in rules.floors if sum(names[job] in running for job in floor.jobs) < floor.least]
    words = [(floor.name, next((skipped[names[j]] for j in floor.jobs if names[j] in skipped), "")) for floor in short]
    return [(name, why) for name, why in words if why]


def drift(past: Past, level: float) -> str:
    """Whether the latest breakages were missed more often than the ones before: then the past no longer tells."""
    from scipy.stats import fisher_exact

    levels: dict[int, float] = {}
    for commit, real, at in zip(past.commit.tolist(), past.real.tolist(), past.level.tolist(), strict=True):
        if real >= 0.5:  # noqa: PLR2004 - more likely than not
            levels[commit] = min(levels.get(commit, 2.0), at)
    ordered = [levels[commit] for commit in sorted(levels)]
    late = max(_FEWEST, round(_RECENT * len(ordered)))
    if len(ordered) < 2 * _FEWEST:
        return ""
    missed = [at > level for at in ordered]
    new, old = sum(missed[-late:]), sum(missed[:-late])
    table = [[new, late - new], [old, len(ordered) - late - old]]
    if fisher_exact(table, alternative="greater").pvalue >= _ALARM:
        return ""
    return (
        f"drift: of the last {late} breakages this level would have missed {new}, of the {len(ordered) - late} before"
        f" {old}: run everything until it has learned, or ask for more recall"
    )
