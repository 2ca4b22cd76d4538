"""Made projects for the bench of job selection: what truly broke is known, so no model has to be believed.

Each nature is one way in which projects differ. Breakages come by component and by platform, by whole rows or columns
of a matrix of jobs or alone; flakes differ from job to job; some jobs run only on some commits, some appear, some go.
What goes down without anybody's fault is no breakage, and a job that was cancelled for another's sake saw nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from sooner.analysis.selection.facts import Record, State, recorded

_HOUR_S = 3600.0
_OUTAGE_ENDS: Final = 0.33


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """What a project is like."""

    components: int = 8
    platforms: int = 5
    commits: int = 1500
    rate: float = 0.04
    """Breakages for each commit."""
    alone: float = 0.4
    """Share of breakages that one job alone sees; of the others half break a component on all platforms, a quarter a
    platform, a quarter half a component."""
    flake: float = 0.02
    """Mean share of healthy attempts that fail; by job it is gamma distributed of shape 0.5."""
    repeats: float = 0.3
    """Share of commits that run twice."""
    rerun_red: float = 0.3
    """Share of failed jobs that somebody runs again."""
    bursts: float = 0.0
    """What a breakage multiplies the weight of its jobs with, fading over 20 commits."""
    skew: float = 1.0
    """Spread of the logarithm of the jobs' own weights: 0 breaks them all alike."""
    drift: float = 0.0
    """Share of the weights that is dealt out anew every 150 commits."""
    moving: float = 0.0
    """Share of the jobs that appear late or go early."""
    present: float = 1.0
    """Share of the commits that a job runs on (half of the jobs)."""
    by_minutes: float = 0.5
    """Long jobs break more often: the power of their minutes."""
    hours: float = 3.0
    """Between commits, on average."""
    mend: float = 0.4
    fail_fast: float = 0.0
    """Share of a component's jobs that are cancelled when one of them has failed and they still run."""
    outages: float = 0.0
    """Share of the commits on which the machines of a platform go down: its jobs fail, and pass when they are run
    again. A third of the outages is over with each commit."""
    folders: float = 0.0
    """Share of the breakages that are of a component which the commit touches."""


NATURES: Final[Mapping[str, Nature]] = {
    "matrix": Nature(),
    "mostly alone": Nature(alone=0.9),
    "always together": Nature(alone=0.0, flake=0.005),
    "bursts": Nature(alone=0.8, bursts=20.0),
    "few jobs": Nature(components=4, platforms=2),
    "many jobs": Nature(components=25, platforms=8, rate=0.08),
    "no flakes": Nature(flake=0.0),
    "flakes 10 %": Nature(flake=0.1),
    "flakes 30 %": Nature(flake=0.3),
    "no repeats": Nature(repeats=0.0, rerun_red=0.0),
    "concentrated": Nature(skew=2.5),
    "diffuse": Nature(skew=0.0, alone=0.7, by_minutes=0.0),
    "drift": Nature(drift=0.5, skew=1.5),
    "jobs come and go": Nature(moving=0.5),
    "sparse": Nature(present=0.3),
    "rare breakages": Nature(rate=0.01),
    "fast commits": Nature(hours=0.2, mend=0.1),
    "fail fast": Nature(fail_fast=0.9, alone=0.2),
    "outages": Nature(outages=0.02),
}


FOLDERS: Final[Mapping[str, Nature]] = {
    "breakages of what is touched, 90 %": Nature(folders=0.9),
    "60 %": Nature(folders=0.6),
    "files tell nothing": Nature(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A made history, and what truly broke."""

    facts: Record
    broke: Mapping[int, frozenset[int]]
    """Commit -> jobs that broke there."""
    might: Mapping[int, Any]
    """Commit -> [draw, job]: breakages that the project might have had there, as likely as they are."""
    files: Mapping[int, Sequence[str]]
    """Commit -> files that it touches."""


_EVERY: Final = 10


def project(nature: Nature, seed: int, *, draws: int = 0) -> Project:
    """A project of a nature. Every tenth commit may also say of so many draws what they would have broken."""
    chance = np.random.default_rng(seed)
    grid = np.stack(np.divmod(np.arange(nature.components * nature.platforms), nature.platforms))
    jobs = grid.shape[1]
    minutes = np.exp(chance.normal(2.7, 1.0, nature.components))[grid[0]] * np.exp(chance.normal(0, 0.5, jobs))
    flakes = np.minimum(chance.gamma(0.5, nature.flake / 0.5, jobs), 0.8) if nature.flake else np.zeros(jobs)
    weight = _weights(nature, chance, minutes)
    born, gone = _lives(nature, chance, jobs)
    rare = chance.random(jobs) < 0.5
    hot, left = np.ones(jobs), np.zeros(jobs, dtype=np.int64)
    down = np.zeros(jobs, dtype=bool)
    broke: dict[int, frozenset[int]] = {}
    might: dict[int, Any] = {}
    columns: list[Any] = []
    touches = _touched(nature, np.random.default_rng([seed, 1]))
    at = 0.0
    for commit in range(nature.commits):
        at += chance.exponential(nature.hours * _HOUR_S)
        if nature.drift and commit % 150 == 0:
            weight = np.where(chance.random(jobs) < nature.drift, _weights(nature, chance, minutes), weight)
        here = (born <= commit) & (commit < gone) & (~rare | (chance.random(jobs) < nature.present))
        if draws and commit % _EVERY == _EVERY // 2 and here.any():
            apart = np.random.default_rng([seed, commit])
            hits = np.stack([_hit(nature, apart, grid, weight * hot * here) for _ in range(draws)])
            might[commit] = hits & (left == 0) & here
        if chance.random() < nature.rate and here.any():
            likely = weight * hot * here
            if nature.folders and chance.random() < nature.folders:
                near = likely * np.isin(grid[0], list(touches[commit]))
                likely = near if near.any() else likely
            hit = _hit(nature, chance, grid, likely)
            hit &= (left == 0) & here
            if hit.any():
                broke[commit] = frozenset(np.flatnonzero(hit).tolist())
                left[hit] = chance.geometric(nature.mend)
                hot[hit] += nature.bursts
        hot = 1 + (hot - 1) * 0.95
        if nature.outages:
            down &= chance.random() > _OUTAGE_ENDS
            if chance.random() < nature.outages:
                down |= grid[1] == chance.integers(nature.platforms)
        columns += _attempts(nature, chance, commit, at, here, left > 0, down, flakes, minutes, grid[0])
        left = np.maximum(left - 1, 0)
    commit, job, state, asked, spent = (np.concatenate(column) for column in zip(*columns, strict=True))
    names = [f"component {c} / platform {p}" for c, p in grid.T]
    shas = [f"{i:040x}" for i in range(nature.commits)]
    facts = recorded(
        shas, names, commit=commit, job=job, state=state.astype(np.int8), asked=asked, known=asked + 60 * spent,
        minutes=spent,
    )  # fmt: skip
    # The record puts commits into the order of their first attempts; a commit without any comes last.
    place = {sha: i for i, sha in enumerate(facts.commits)}
    return Project(
        facts=facts,
        broke={place[shas[commit]]: hit for commit, hit in broke.items()},
        might={place[shas[commit]]: hits for commit, hits in might.items()},
        files={
            place[sha]: [f"src/component{one}/part{commit % 7}/file{commit % 11}" for one in some]
            for commit, (sha, some) in enumerate(zip(shas, touches, strict=True))
        },
    )


def _touched(nature: Nature, chance: np.random.Generator) -> list[tuple[int, ...]]:
    """By commit: one component or a few, some far more often than others."""
    often = np.exp(chance.normal(0, 0.8, nature.components))
    counts = np.minimum(1 + chance.poisson(0.5, nature.commits), nature.components)
    return [
        tuple(chance.choice(nature.components, count, replace=False, p=often / often.sum()).tolist())
        for count in counts.tolist()
    ]


def _weights(nature: Nature, chance: np.random.Generator, minutes: Any) -> Any:
    return np.exp(chance.normal(0, nature.skew, len(minutes))) * minutes**nature.by_minutes


def _lives(nature: Nature, chance: np.random.Generator, jobs: int) -> tuple[Any, Any]:
    born, gone = np.zeros(jobs), np.full(jobs, np.inf)
    moves = chance.random(jobs) < nature.moving
    late = moves & (chance.random(jobs) < 0.5)
    born[late] = chance.uniform(0.2, 0.95, int(late.sum())) * nature.commits
    gone[moves & ~late] = chance.uniform(0.2, 0.95, int((moves & ~late).sum())) * nature.commits
    return born, gone


def _hit(nature: Nature, chance: np.random.Generator, grid: Any, weight: Any) -> Any:
    first = int(chance.choice(len(weight), p=weight / weight.sum()))
    hit = np.zeros(len(weight), dtype=bool)
    kind = chance.random()
    if kind >= nature.alone:
        kind = (kind - nature.alone) / (1 - nature.alone)
        same = grid[0] == grid[0, first] if kind < 0.75 else grid[1] == grid[1, first]
        hit |= same & ((kind < 0.5) | (kind >= 0.75) | (chance.random(len(weight)) < 0.5))
    hit[first] = True
    return hit


def _attempts(  # noqa: PLR0917 - the state of one commit
    nature: Nature, chance: np.random.Generator, commit: int, at: float, here: Any, broken: Any, down: Any,
    flakes: Any, minutes: Any, component: Any,
) -> list[Any]:  # fmt: skip
    found = []
    run = here
    twice = chance.random() < nature.repeats
    for attempt in range(2):
        index = np.flatnonzero(run)
        bad = broken[index] | (chance.random(len(index)) < flakes[index])
        spent = minutes[index] * chance.lognormal(0, 0.1, len(index))
        bad |= down[index] & (attempt == 0)
        state = np.where(bad, State.FAILED, State.PASSED)
        if nature.fail_fast:
            _cancel(nature, chance, component[index], state, spent)
        start = np.full(len(index), at + attempt * 4 * _HOUR_S)
        found.append((np.full(len(index), commit), index, state, start, spent))
        failed = np.zeros(len(here), dtype=bool)
        failed[index[bad]] = True
        run = here if twice else failed & (chance.random(len(here)) < nature.rerun_red)
    return found


def _cancel(nature: Nature, chance: np.random.Generator, component: Any, state: Any, spent: Any) -> None:
    """As a matrix of a workflow does that fails fast."""
    failed = state == State.FAILED
    over = np.full(int(component.max(initial=0)) + 1, np.inf)
    np.minimum.at(over, component[failed], spent[failed])
    late = (spent > over[component]) & (chance.random(len(spent)) < nature.fail_fast)
    state[late], spent[late] = State.CANCELLED, over[component[late]]
