"""Which failures were real: a flake passes when it is run again, a breakage stays until somebody mends it. Pure.

Of each job a mixture is fitted. On a healthy commit every attempt fails by chance, with a rate that has better and
worse spells, is higher where other jobs of the commit flaked (what goes down takes many along), and itself differs from
commit to commit (beta-binomial: repeats of one commit share machines, ports and bad luck). On a broken commit every
attempt fails. Whether a commit is broken follows a chain over commits: healthy -> broken with the job's own rate,
broken -> healthy with a rate shared by all jobs, so red that is inherited is not taken for a new breakage.

A pass proves the commit healthy for that job (a failure that is sometimes a pass on the same code is a flake, by
definition), so only runs of cells without any pass are uncertain, and they are solved exactly, each on its own.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from sooner.analysis.selection.facts import Cells, Flags, Indices, Numbers

ROUNDS: Final = 12
"""Of expectation and maximisation, from nothing. On Apache Ozone the rates move by less than 1 % after five; where a
third of all attempts flake, later."""
_ALIKE: Final = 10.0
"""Breakages, shared by all jobs, that a job's own count beside. Jobs differ far more in how they flake: with one, a job
that fails by chance two times of three was said to break at every tenth commit. 5 to 50 are alike on made projects, and
foretell Apache Ozone's hidden repeats alike."""
_FLAKE_PRIOR_RUNS: Final = 20.0
"""Attempts that a job's flake rate is shrunk with towards that of all jobs."""
_SPELL_CELLS: Final = 25
"""A job's flakes come in spells: its cells before and after a run of red tell the rate of that time."""
_SPELL_PRIOR_RUNS: Final = 60.0
"""Attempts that the rate of a spell is shrunk with towards the job's own. Both were chosen by how well hidden repeats
are foretold on the first half of Apache Ozone's table (Brier score 0.143 against 0.146 without spells); on all of it
0.132 against 0.137."""
_STORM: Final = 1.0
"""Flakes that a commit is expected to have besides: so many more than usual must be proven until they tell much."""
_WORST_STORM: Final = 30.0
_MOST_FLAKES: Final = 0.9
_CONCENTRATIONS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Tried for a + b of the beta distribution: 1 is "all or nothing on a commit", 64 nearly independent attempts."""
_USUAL_CONCENTRATION: Final = 8.0
"""Where nothing else is known (normal prior on its logarithm); Apache Ozone has 16."""
_SMALL: Final = 1e-9
_ALONE: Final = 0.1
"""How real a red cell is that stands alone: of repeated failures on Apache Ozone 5 % stay red."""
_SURELY_BROKEN: Final = 0.01
_MANY: Final = 1 << 16
_FRAILTIES: Final = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""Tried for the shape of the commits' frailty: at 0.01 breakages nearly always come several at once."""
REAL: Final = 0.5
"""A failure is called real from this probability on."""
COUNTED: Final = 0.3
"""Cells less likely than this to have broken are not breakages, not even partly: thousands of single failures that are
each a breakage with 5 % would outweigh the few that surely were."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """What was fitted; by job unless said otherwise."""

    breaks: Numbers
    """Healthy -> broken, per cell."""
    flakes: Numbers
    """Share of the attempts on healthy commits that fail, in the long run."""
    concentration: float
    """a + b of all jobs' beta distributions."""
    mends: float
    """Broken -> healthy, per cell, all jobs."""
    frailty: float
    """Shape of the gamma distribution of what commits multiply the jobs' rates with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Probabilities by cell, in the order of the cells."""

    broken: Numbers
    """The job was really broken on the commit, newly or inherited."""
    began: Numbers
    """It broke on this very commit: broken here, healthy on the job's commit before."""
    rates: Rates


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of cells without a pass, one job each, as rows of a table with the runs in columns order of length."""

    cells: Indices
    """[run, place] -> index of the cell, -1 behind the end."""
    closed: Flags
    """[run]: a pass followed."""
    job: Indices
    repeats: "_Repeats"
    red: Indices
    """The cells of all runs, one run after the other."""
    around: "_Around"
    """Of the red cells, in that order."""
    storms: Numbers
    """By red cell: how much more flaked on its commit than usual."""


def judge(cells: Cells, jobs: int, *, start: Rates | None = None, rounds: int = ROUNDS) -> Judged:
    """Fit the rates and give each cell its probabilities.

    Args:
        cells: Sorted by (commit, job).
        jobs: How many jobs there are.
        start: Rates to start from, such as those of the last fit.
        rounds: Of expectation and maximisation.
    """
    runs = _runs(cells)
    rates = start if start is not None and len(start.breaks) == jobs else _first_guess(cells, jobs)
    # Without this guess, a project without repeats would never leave "all flakes": many red at once are no chance.
    guess = _guess(cells, jobs)
    if start is None:
        rates = _fitted(cells, runs, guess, guess, rates)
    flakes = _spells(cells, runs.around, guess, rates)
    broken, began = _expected(cells, runs, rates, flakes, _frail(cells, runs.red, guess, rates))
    for _ in range(rounds):
        rates = _fitted(cells, runs, broken, began, rates)
        flakes = _spells(cells, runs.around, broken, rates)
        broken, began = _expected(cells, runs, rates, flakes, _frail(cells, runs.red, began, rates))
    return Judged(broken=broken, began=began, rates=rates)


def _first_guess(cells: Cells, jobs: int) -> Rates:
    red = (cells.passes == 0).mean() if len(cells) else 0.0
    flaky = cells.failures.sum() / max(1, int((cells.failures + cells.passes).sum()))
    return Rates(
        breaks=np.full(jobs, max(float(red), 1e-4) / 5),
        flakes=np.full(jobs, min(max(float(flaky), 1e-4), 0.5)),
        concentration=4.0,
        mends=0.5,
        frailty=1.0,
    )


def guessed(others: Numbers) -> Numbers:
    """How real red cells are, judged only by how many more jobs are red on their commits than by chance."""
    found: Numbers = _ALONE + (1 - 2 * _ALONE) * (1 - np.exp(-np.maximum(others, 0.0)))
    return found


def _guess(cells: Cells, jobs: int) -> Numbers:
    """By cell: how real it is, before anything is fitted."""
    red = cells.passes == 0
    if not len(cells):
        return np.zeros(0)
    others = np.bincount(cells.commit, red)[cells.commit] - 1.0
    usual = np.bincount(cells.job, red, jobs) / np.maximum(np.bincount(cells.job, minlength=jobs), 1)
    by_chance = np.bincount(cells.commit, usual[cells.job])[cells.commit] - usual[cells.job]
    found: Numbers = np.where(red, guessed(others - by_chance), 0.0)
    return found


class InARow(NamedTuple):
    """Consecutive cells of one job (over the commits on which it was judged) without any pass: runs of red."""

    order: Indices
    """The cells by job, then by commit."""
    job: Indices
    """Of each cell in that order."""
    follows: Flags
    """Whether each cell in that order goes on with a run."""
    starts: Indices
    """[run]: its first place in that order."""
    places: Indices
    """Places of all red cells in that order ..."""
    run: Indices
    """... and the run that each is of."""
    closed: Flags
    """[run]: a pass followed."""


def reds_in_a_row(cells: Cells) -> InARow:
    """Find the runs of red."""
    order = np.lexsort((cells.commit, cells.job))
    red, job = cells.passes[order] == 0, cells.job[order]
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = red[1:] & red[:-1] & (job[1:] == job[:-1])
    begins = red & ~follows
    starts, run = np.flatnonzero(begins), np.cumsum(begins)[red] - 1
    after = starts + np.bincount(run, minlength=len(starts))
    inside = np.minimum(after, len(order) - 1)
    closed = (after < len(order)) & (job[inside] == job[starts])
    return InARow(order, job, follows, starts, np.flatnonzero(red), run, closed)


def _runs(cells: Cells) -> _Runs:
    found = reds_in_a_row(cells)
    place = found.places - found.starts[found.run]
    table = np.full((len(found.starts), int(place.max(initial=0)) + 1), -1, dtype=np.int64)
    table[found.run, place] = found.order[found.places]
    red = found.order[found.places]
    around = _around(cells, found, found.places)
    return _Runs(table, found.closed, found.job[found.starts], _repeats(cells), red, around, _storms(cells, red))


@dataclass(frozen=True, slots=True)
class _Around:
    """What ran near some cells, but not in their own runs of red."""

    counts: tuple[Numbers, Numbers]
    """Failures, and all attempts, of each cell in the order of (job, commit)."""
    red: Indices
    """The places of red cells in that order ..."""
    red_cells: Indices
    """... and the cells there."""
    some: Indices
    """The cells that are asked for."""
    bounds: Indices
    """[4, some]: places before the run from the first to the second, behind it from the third to the fourth."""


def _around(cells: Cells, runs: InARow, places: Indices) -> _Around:
    """Of the cells at these places in the order of (job, commit)."""
    job, run = runs.job, (np.cumsum(~runs.follows) - 1)[places]
    begins = np.flatnonzero(~runs.follows)
    begin, end = begins[run], np.append(begins[1:], len(job))[run]
    first, last = np.searchsorted(job, job[places], side="left"), np.searchsorted(job, job[places], side="right")
    bounds = [np.maximum(first, begin - _SPELL_CELLS), begin, end, np.minimum(last, end + _SPELL_CELLS)]
    counts = tuple(some[runs.order].astype(np.float64) for some in (cells.failures, cells.failures + cells.passes))
    return _Around(
        counts=(counts[0], counts[1]),
        red=runs.places,
        red_cells=runs.order[runs.places],
        some=runs.order[places],
        bounds=np.stack(bounds),
    )


def _storms(cells: Cells, red: Indices) -> Numbers:
    """By red cell: how much more flaked on its commit than usual, among the *other* jobs: what goes down takes many.

    Only a pass beside a failure counts. It shrinks towards 1, and is never below: quiet proves nothing.
    """
    if not len(cells):
        return np.ones(0)
    proven = ((cells.passes > 0) & (cells.failures > 0)).astype(np.float64)
    usual = (np.bincount(cells.job, proven) / np.maximum(np.bincount(cells.job), 1))[cells.job]
    commit = cells.commit[red]
    more = [_STORM + np.bincount(cells.commit, some)[commit] - some[red] for some in (proven, usual)]
    return np.clip(more[0] / more[1], 1.0, _WORST_STORM)


def _spells(cells: Cells, around: _Around, broken: Numbers, rates: Rates) -> Numbers:
    """By cell that is asked for: the job's flake rate at that time, from healthy cells around its run of red."""
    # Breakages that follow each other soon would look like a spell: what no repeat has passed is no evidence of one.
    well = np.ones(len(cells))
    well[around.red] = np.where(cells.failures[around.red_cells] > 1, 0.0, 1 - broken[around.red_cells])
    near = []
    for counts in around.counts:
        before = np.concatenate([[0.0], np.cumsum(well * counts)])
        low, begin, end, high = before[around.bounds]
        near.append(begin - low + high - end)
    usual = rates.flakes[cells.job[around.some]]
    found: Numbers = (near[0] + _SPELL_PRIOR_RUNS * usual) / (near[1] + _SPELL_PRIOR_RUNS)
    return found


def _log_flake(rates: Rates, flakes: Numbers, failures: Indices) -> Numbers:
    """Log-probability that all attempts of a red cell failed by chance."""
    from scipy.special import betaln

    mean = np.clip(flakes, _SMALL, 1 - _SMALL)
    a, b = mean * rates.concentration, (1 - mean) * rates.concentration
    found: Numbers = betaln(a + failures, b) - betaln(a, b)
    return found


def _frail(cells: Cells, red: Indices, began: Numbers, rates: Rates) -> Numbers:
    """By red cell: how much more likely a breakage is on its commit, seeing what happened to the *other* jobs.

    Commits multiply the rates of all jobs with a frailty of gamma distribution (Clayton 1978): a job that is red
    together with many is believed, one that is red alone must prove itself where breakages never come alone.
    """
    if not len(cells):
        return np.ones(0)
    commit = cells.commit[red]
    expected = rates.breaks[cells.job]
    all_expected = np.bincount(cells.commit, expected)[commit]
    all_began = np.bincount(cells.commit, began)[commit]
    found: Numbers = (rates.frailty + all_began - began[red]) / (rates.frailty + all_expected - expected[red])
    return found


def _expected(cells: Cells, runs: _Runs, rates: Rates, flakes: Numbers, frail: Numbers) -> tuple[Numbers, Numbers]:
    """Forward and backward over all runs at once, place by place."""
    broken, began = np.zeros(len(cells)), np.zeros(len(cells))
    count, length = runs.cells.shape
    if not count:
        return broken, began
    usual, mends = np.clip(rates.breaks[runs.job], _SMALL, 0.5), rates.mends
    here = runs.cells >= 0
    rate = np.zeros((count, length))
    rate[here] = np.clip(rates.breaks[cells.job[runs.red]] * frail, _SMALL, 0.5)
    by_chance = np.ones((count, length))
    # Only red that is there: what went down is up again when somebody repeats the commit, so it foretells no repeat.
    worse = np.minimum(flakes * runs.storms, np.maximum(flakes, _MOST_FLAKES))
    by_chance[here] = np.exp(_log_flake(rates, worse, cells.failures[runs.red]))
    forward = np.zeros((2, count, length))  # healthy, broken
    scale = np.ones((count, length))
    well, ill = np.ones(count), np.zeros(count)
    for at in range(length):
        on, breaks = here[:, at], rate[:, at]
        next_well = (well * (1 - breaks) + ill * mends) * by_chance[:, at]
        next_ill = well * breaks + ill * (1 - mends)
        total = np.where(on, next_well + next_ill, 1.0)
        well, ill = np.where(on, next_well / total, well), np.where(on, next_ill / total, ill)
        forward[0, :, at], forward[1, :, at], scale[:, at] = well, ill, total
    back_well = np.where(runs.closed, 1 - usual, 1.0)
    back_ill = np.where(runs.closed, mends, 1.0)
    for at in range(length - 1, -1, -1):
        on, breaks = here[:, at], rate[:, at]
        total = forward[0, :, at] * back_well + forward[1, :, at] * back_ill
        ill_here = forward[1, :, at] * back_ill / total
        before_well = forward[0, :, at - 1] if at else np.ones(count)
        new_here = before_well * breaks * back_ill / scale[:, at] / total
        index = runs.cells[on, at]
        broken[index], began[index] = ill_here[on], new_here[on]
        stay_well = (1 - breaks) * by_chance[:, at] * back_well + breaks * back_ill
        stay_ill = mends * by_chance[:, at] * back_well + (1 - mends) * back_ill
        back_well = np.where(on, stay_well / scale[:, at], back_well)
        back_ill = np.where(on, stay_ill / scale[:, at], back_ill)
    return broken, began


def _fitted(cells: Cells, runs: _Runs, broken: Numbers, began: Numbers, old: Rates) -> Rates:
    jobs = len(old.breaks)
    well = 1 - broken
    healthy = np.bincount(cells.job, well, jobs)
    new = np.bincount(cells.job, began, jobs)
    overall = (new.sum() + 0.5) / (healthy.sum() + 100.0)
    breaks = (new + _ALIKE) / (healthy + _ALIKE / overall)
    # A breakage ends by being mended; those that are still open have not.
    ends = float(broken[_last_cells(runs)[runs.closed]].sum()) if len(runs.job) else 0.0
    mends = (ends + 1.0) / (broken.sum() + 2.0)
    failures = np.bincount(cells.job, well * cells.failures, jobs)
    attempts = np.bincount(cells.job, well * (cells.failures + cells.passes), jobs)
    mean = (failures.sum() + 0.1) / (attempts.sum() + 10.0)
    flakes = (failures + _FLAKE_PRIOR_RUNS * mean) / (attempts + _FLAKE_PRIOR_RUNS)
    concentration = _concentration(runs.repeats, well, flakes, old.concentration)
    frailty = _frailty(cells, began, breaks)
    mends = min(max(mends, 0.02), 0.98)
    return Rates(breaks=breaks, flakes=flakes, concentration=concentration, mends=mends, frailty=frailty)


def _frailty(cells: Cells, began: Numbers, breaks: Numbers) -> float:
    """The shape under which the numbers of breakages by commit are likeliest (negative binomial)."""
    from scipy.special import gammaln

    if not len(cells):
        return 1.0
    expected = np.bincount(cells.commit, breaks[cells.job])
    seen = np.bincount(cells.commit, began)

    def likelihood(shape: float) -> float:
        parts = gammaln(shape + seen) - gammaln(shape) + shape * np.log(shape / (shape + expected + _SMALL))
        return float((parts + seen * np.log((expected + _SMALL) / (shape + expected + _SMALL))).sum())

    return max(_FRAILTIES, key=likelihood)


def _last_cells(runs: _Runs) -> Indices:
    ends = (runs.cells >= 0).sum(axis=1) - 1
    last: Indices = runs.cells[np.arange(len(runs.job)), ends]
    return last


@dataclass(frozen=True, slots=True)
class _Repeats:
    """Repeated cells: those with a failure, and the green ones, which are many and alike, counted by kind."""

    some: Indices
    job: Indices
    failures: Indices
    passes: Indices
    counts: Numbers


def _repeats(cells: Cells) -> _Repeats:
    some = np.flatnonzero((cells.failures + cells.passes > 1) & (cells.failures > 0))
    green = np.flatnonzero((cells.failures == 0) & (cells.passes > 1))
    kinds, counts = np.unique(cells.job[green] * _MANY + np.minimum(cells.passes[green], _MANY - 1), return_counts=True)
    return _Repeats(
        some=some,
        job=np.concatenate([cells.job[some], kinds // _MANY]),
        failures=np.concatenate([cells.failures[some], np.zeros(len(kinds), dtype=np.int64)]),
        passes=np.concatenate([cells.passes[some], kinds % _MANY]),
        counts=counts.astype(np.float64),
    )


def _concentration(repeats: _Repeats, well: Numbers, flakes: Numbers, old: float) -> float:
    """How much attempts of one healthy commit resemble each other: only repeats tell."""
    from scipy.special import betaln

    healthy = well[repeats.some]
    if not (healthy > _SURELY_BROKEN).any():
        return old
    weight = np.concatenate([np.where(healthy > _SURELY_BROKEN, healthy, 0.0), repeats.counts])
    mean = np.clip(flakes[repeats.job], _SMALL, 1 - _SMALL)

    def likelihood(concentration: float) -> float:
        a, b = mean * concentration, (1 - mean) * concentration
        usual = -((np.log(concentration / _USUAL_CONCENTRATION)) ** 2)
        return float(usual + (weight * (betaln(a + repeats.failures, b + repeats.passes) - betaln(a, b))).sum())

    return max(_CONCENTRATIONS, key=likelihood)


def next_failure(cells: Cells, judged: Judged) -> Numbers:
    """Probability that one more attempt of each cell fails."""
    both = judged.rates.concentration
    runs = reds_in_a_row(cells)
    flakes = np.empty(len(cells))
    flakes[runs.order] = _spells(cells, _around(cells, runs, np.arange(len(cells))), judged.broken, judged.rates)
    by_chance = (flakes * both + cells.failures) / (both + cells.failures + cells.passes)
    found: Numbers = judged.broken + (1 - judged.broken) * by_chance
    return found
