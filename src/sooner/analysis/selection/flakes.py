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
from itertools import pairwise
from typing import Final

import numpy as np

from sooner.analysis.selection.facts import Cells, Flags, InARow, Indices, Numbers, numbered

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
class _Sums:
    """What is the same in all rounds: of the cells only the red ones are uncertain."""

    cells: Numbers
    """By job; so are the next two."""
    failures: Numbers
    attempts: Numbers
    commit: Indices
    """By cell: which of the commits that have cells it is on."""
    starts: Indices
    """By such a commit: its first cell."""

    def expected(self, cells: Cells, breaks: Numbers) -> Numbers:
        """By such a commit: breakages that are expected on it."""
        found: Numbers = np.add.reduceat(breaks[cells.job], self.starts) if len(self.starts) else np.zeros(0)
        return found


def _sums(cells: Cells, jobs: int) -> _Sums:
    new = np.diff(cells.commit, prepend=-1) != 0
    return _Sums(
        cells=np.bincount(cells.job, minlength=jobs).astype(np.float64),
        failures=np.bincount(cells.job, cells.failures.astype(np.float64), jobs).astype(np.float64),
        attempts=np.bincount(cells.job, (cells.failures + cells.passes).astype(np.float64), jobs).astype(np.float64),
        commit=np.cumsum(new) - 1,
        starts=np.flatnonzero(new),
    )


@dataclass(frozen=True, slots=True)
class _Runs:
    """Runs of cells without a pass, one job each, the longest first.

    Their cells lie place by place: the first ones of all runs, then the second ones of those that have one, and so on.
    """

    closed: Flags
    """[run]: a pass followed."""
    job: Indices
    last: Indices
    """[run]: its last cell."""
    red: Indices
    """The cells of all runs."""
    bounds: Indices
    """[place]: where its cells begin among these, and last their number."""
    repeats: "_Repeats"
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
    runs, sums = _runs(cells), _sums(cells, jobs)
    rates = start if start is not None and len(start.breaks) == jobs else _first_guess(cells, jobs)
    # Without this guess, a project without repeats would never leave "all flakes": many red at once are no chance.
    guess = _guess(cells, jobs)
    expected = sums.expected(cells, rates.breaks)
    if start is None:
        rates, expected = _fitted(cells, runs, sums, (guess, guess), rates)
    flakes = _spells(cells, runs.around, guess, rates)
    broken, began = _expected(cells, runs, rates, flakes, _frail(cells, runs.red, sums, guess, (rates, expected)))
    for _ in range(rounds):
        rates, expected = _fitted(cells, runs, sums, (broken, began), rates)
        flakes = _spells(cells, runs.around, broken, rates)
        broken, began = _expected(cells, runs, rates, flakes, _frail(cells, runs.red, sums, began, (rates, expected)))
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


def _runs(cells: Cells) -> _Runs:
    found = cells.in_a_row
    lengths = np.bincount(found.run, minlength=len(found.starts))
    runs = np.argsort(-lengths, kind="stable")
    rank = np.empty(len(runs), dtype=np.int64)
    rank[runs] = np.arange(len(runs))
    place = found.places - found.starts[found.run]
    order = np.lexsort((rank[found.run], place))
    red = found.order[found.places[order]]
    bounds = np.concatenate([[0], np.cumsum(np.bincount(place))]).astype(np.int64)
    return _Runs(
        closed=found.closed[runs],
        job=found.job[found.starts][runs],
        last=red[bounds[lengths[runs] - 1] + np.arange(len(runs))],
        red=red,
        bounds=bounds,
        repeats=_repeats(cells),
        around=_around(cells, found, found.places[order]),
        storms=_storms(cells, red),
    )


@dataclass(frozen=True, slots=True)
class _Around:
    """What ran near some cells, but not in their own runs of red."""

    some: Indices
    """The cells that are asked for."""
    counts: tuple[Numbers, Numbers]
    """Failures, and all attempts, of the cells near each; the red ones as if they were healthy."""
    red: Indices
    """The red cells in the order of (job, commit): what is broken of them tells nothing."""
    bounds: Indices
    """[4, some]: which of these lie before the run, from the first to the second, and behind it, third to fourth."""


def _around(cells: Cells, runs: InARow, places: Indices) -> _Around:
    """Of the cells at these places in the order of (job, commit)."""
    job, run = runs.job, (np.cumsum(~runs.follows) - 1)[places]
    begins = np.flatnonzero(~runs.follows)
    begin, end = begins[run], np.append(begins[1:], len(job))[run]
    first, last = np.searchsorted(job, job[places], side="left"), np.searchsorted(job, job[places], side="right")
    bounds = np.stack([np.maximum(first, begin - _SPELL_CELLS), begin, end, np.minimum(last, end + _SPELL_CELLS)])
    counts = (_near(some[runs.order], bounds) for some in (cells.failures, cells.failures + cells.passes))
    red = runs.order[runs.places]
    return _Around(runs.order[places], tuple(counts), red, np.searchsorted(runs.places, bounds))  # type: ignore[arg-type]


def _near(values: Numbers | Indices, bounds: Indices) -> Numbers:
    """Sums of the values that lie within bounds."""
    before = np.concatenate([[0.0], np.cumsum(values)])
    low, begin, end, high = before[bounds]
    found: Numbers = begin - low + high - end
    return found


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
    failed = cells.failures[around.red]
    ill = _near(np.where(failed > 1, 1.0, broken[around.red]) * failed, around.bounds)
    near = [count - ill for count in around.counts]
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


def _frail(cells: Cells, red: Indices, sums: _Sums, began: Numbers, fitted: tuple[Rates, Numbers]) -> Numbers:
    """By red cell: how much more likely a breakage is on its commit, seeing what happened to the *other* jobs.

    Commits multiply the rates of all jobs with a frailty of gamma distribution (Clayton 1978): a job that is red
    together with many is believed, one that is red alone must prove itself where breakages never come alone.
    """
    rates, expected = fitted
    commit = sums.commit[red]
    own, real = rates.breaks[cells.job[red]], began[red]
    all_began = np.bincount(commit, real, len(expected))[commit]
    found: Numbers = (rates.frailty + all_began - real) / (rates.frailty + expected[commit] - own)
    return found


def _expected(cells: Cells, runs: _Runs, rates: Rates, flakes: Numbers, frail: Numbers) -> tuple[Numbers, Numbers]:
    """Forward and backward over all runs at once, place by place."""
    broken, began = np.zeros(len(cells)), np.zeros(len(cells))
    mends, count, red = rates.mends, len(runs.job), runs.red
    rate = np.clip(rates.breaks[cells.job[red]] * frail, _SMALL, 0.5)
    # Only red that is there: what went down is up again when somebody repeats the commit, so it foretells no repeat.
    worse = np.minimum(flakes * runs.storms, np.maximum(flakes, _MOST_FLAKES))
    by_chance = np.exp(_log_flake(rates, worse, cells.failures[red]))
    well, ill, scale = np.empty(len(red)), np.empty(len(red)), np.empty(len(red))
    places = [slice(begin, end) for begin, end in pairwise(runs.bounds.tolist())]
    before_well, before_ill = np.ones(count), np.zeros(count)
    for at in places:
        some = at.stop - at.start  # the runs that have this place are the first ones
        was_well, was_ill = before_well[:some], before_ill[:some]
        next_well = (was_well * (1 - rate[at]) + was_ill * mends) * by_chance[at]
        next_ill = was_well * rate[at] + was_ill * (1 - mends)
        scale[at] = next_well + next_ill
        before_well, before_ill = next_well / scale[at], next_ill / scale[at]
        well[at], ill[at] = before_well, before_ill
    back_well = np.where(runs.closed, 1 - np.clip(rates.breaks[runs.job], _SMALL, 0.5), 1.0)
    back_ill = np.where(runs.closed, mends, 1.0)
    for number in range(len(places) - 1, -1, -1):
        at = places[number]
        some = at.stop - at.start
        next_well, next_ill = back_well[:some], back_ill[:some]
        total = well[at] * next_well + ill[at] * next_ill
        before = well[places[number - 1]][:some] if number else 1.0
        broken[red[at]] = ill[at] * next_ill / total
        began[red[at]] = before * rate[at] * next_ill / scale[at] / total
        stay_well = (1 - rate[at]) * by_chance[at] * next_well + rate[at] * next_ill
        stay_ill = mends * by_chance[at] * next_well + (1 - mends) * next_ill
        back_well[:some], back_ill[:some] = stay_well / scale[at], stay_ill / scale[at]
    return broken, began


def _fitted(
    cells: Cells, runs: _Runs, sums: _Sums, judged: tuple[Numbers, Numbers], old: Rates
) -> tuple[Rates, Numbers]:
    """Rates from what is broken and began by now, and with them what is expected of each commit."""
    jobs, red = len(old.breaks), runs.red
    job, broken, began = cells.job[red], judged[0][red], judged[1][red]
    failed = np.bincount(job, broken * cells.failures[red], jobs)
    new = np.bincount(job, began, jobs)
    healthy = sums.cells - np.bincount(job, broken, jobs)
    overall = (new.sum() + 0.5) / (healthy.sum() + 100.0)
    breaks = (new + _ALIKE) / (healthy + _ALIKE / overall)
    # A breakage ends by being mended; those that are still open have not.
    ends = float(judged[0][runs.last[runs.closed]].sum()) if len(runs.job) else 0.0
    mends = (ends + 1.0) / (broken.sum() + 2.0)
    failures, attempts = sums.failures - failed, sums.attempts - failed
    mean = (failures.sum() + 0.1) / (attempts.sum() + 10.0)
    flakes = (failures + _FLAKE_PRIOR_RUNS * mean) / (attempts + _FLAKE_PRIOR_RUNS)
    concentration = _concentration(runs.repeats, 1 - judged[0][runs.repeats.some], flakes, old.concentration)
    expected = sums.expected(cells, breaks)
    seen: Numbers = np.bincount(sums.commit[red], began, len(expected)).astype(np.float64)
    frailty = _frailty(expected, seen)
    mends = min(max(mends, 0.02), 0.98)
    return Rates(breaks=breaks, flakes=flakes, concentration=concentration, mends=mends, frailty=frailty), expected


def _frailty(expected: Numbers, seen: Numbers) -> float:
    """The shape under which the numbers of breakages by commit are likeliest (negative binomial)."""
    from scipy.special import gammaln

    if not len(expected):
        return 1.0

    def likelihood(shape: float) -> float:
        parts = gammaln(shape + seen) - gammaln(shape) + shape * np.log(shape / (shape + expected + _SMALL))
        return float((parts + seen * np.log((expected + _SMALL) / (shape + expected + _SMALL))).sum())

    return max(_FRAILTIES, key=likelihood)


@dataclass(frozen=True, slots=True)
class _Repeats:
    """Repeated cells: many are alike, so they are counted by kind."""

    some: Indices
    """Those with a failure: they may be broken."""
    kind: Indices
    """Of these."""
    green: Numbers
    """[kind]: how many others there are."""
    job: Indices
    """[kind], as the next two."""
    failures: Indices
    passes: Indices


def _repeats(cells: Cells) -> _Repeats:
    repeated = np.flatnonzero(cells.failures + cells.passes > 1)
    counts = [np.minimum(count[repeated], _MANY - 1) for count in (cells.failures, cells.passes)]
    widths = [int(count.max(initial=0)) + 1 for count in counts]
    keys = (cells.job[repeated] * widths[0] + counts[0]) * widths[1] + counts[1]
    kinds, kind, _ = numbered(keys, int(keys.max(initial=-1)) + 1)
    failed = counts[0] > 0
    return _Repeats(
        some=repeated[failed],
        kind=kind[failed],
        green=np.bincount(kind[~failed], minlength=len(kinds)).astype(np.float64),
        job=kinds // (widths[0] * widths[1]),
        failures=kinds // widths[1] % widths[0],
        passes=kinds % widths[1],
    )


def _concentration(repeats: _Repeats, healthy: Numbers, flakes: Numbers, old: float) -> float:
    """How much attempts of one healthy commit resemble each other: only repeats tell."""
    from scipy.special import betaln

    if not (healthy > _SURELY_BROKEN).any():
        return old
    told = np.where(healthy > _SURELY_BROKEN, healthy, 0.0)
    weight = repeats.green + np.bincount(repeats.kind, told, len(repeats.green))
    mean = np.clip(flakes, _SMALL, 1 - _SMALL)

    def likelihood(concentration: float) -> float:
        a, b = mean * concentration, (1 - mean) * concentration
        usual = -((np.log(concentration / _USUAL_CONCENTRATION)) ** 2)
        after = betaln(a[repeats.job] + repeats.failures, b[repeats.job] + repeats.passes)
        return float(usual + (weight * (after - betaln(a, b)[repeats.job])).sum())

    return max(_CONCENTRATIONS, key=likelihood)


def next_failure(cells: Cells, judged: Judged) -> Numbers:
    """Probability that one more attempt of each cell fails."""
    both = judged.rates.concentration
    runs = cells.in_a_row
    flakes = np.empty(len(cells))
    flakes[runs.order] = _spells(cells, _around(cells, runs, np.arange(len(cells))), judged.broken, judged.rates)
    by_chance = (flakes * both + cells.failures) / (both + cells.failures + cells.passes)
    found: Numbers = judged.broken + (1 - judged.broken) * by_chance
    return found
