"""Job selection: the frontier of `sooner jobs` beside rolling greedy cover and the way of 2019, and how fast it is.

Each rule decides every commit after the training share with what was known then, and all are compared at equal cost.
Made projects (`selection_projects.py`) of many natures, where it is known what truly broke; and a real table, where
there is one (`--data DIR` or SOONER_DATA: the folder that holds ozone_jobs.csv.gz), in blocks of time, each decided
with what was before it only. Spans, priors and what jobs see of each other were chosen on made projects of seeds 51 to
54, with all of that table in view; seeds 11 to 16, 201 to 221 and 301 to 304 have been looked at since
(docs/explanation/selection.md).
`--only folders`: projects whose breakages are of what a commit touches, or not. `--only readings`: cover that learns
from red that is repeated or lasts, flakes included. `--only memory`: what the
latest commits teach beside all of them (4 min).
"""

import argparse
import itertools
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from figures import machine, save, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "analysis" / "selection"))
from selection_projects import FOLDERS, NATURES, Nature, Project, project
from sooner.analysis.selection.backtest import Backtest, Plan, Step, compared, windows
from sooner.analysis.selection.choice import selection
from sooner.analysis.selection.clusters import (
    correlation_2019,
    group,
    group_2019,
    matrix_2019,
    representatives,
)
from sooner.analysis.selection.correlation import jaccard, pairs, phi, tables
from sooner.analysis.selection.cover import Constraints, exact, greedy
from sooner.analysis.selection.facts import Cells, Record, cells, latest, mean_minutes, until
from sooner.analysis.selection.flakes import REAL, judge
from sooner.analysis.selection.names import known_lineage
from sooner.analysis.selection.policy import Goal, Learner
from sooner.analysis.selection.settings import JobSettings, terms
from sooner.analysis.selection.truth import Truth, cost_share, score, truths
from sooner.analysis.selection.validate import held_out_repeats, on_commits

Selected = Mapping[int, frozenset[int]]
EVERY = 25


def ours(facts: Record, train: float, goal: Goal) -> Selected:
    done = Backtest.run(facts, Plan(goal=goal, train=train, every=EVERY), lineage=known_lineage(facts))
    return {step.commit: step.selected for step in done.steps}


def rolling(facts: Record, train: float, choose: Callable[[Record, int], frozenset[int]], every: int) -> Selected:
    """Any rule that chooses a fixed set until it is asked again; it is shown only what was known by then."""
    first, found, chosen = int(train * len(facts.commits)), {}, frozenset()
    for commit in range(first, len(facts.commits)):
        if commit == first or (every and (commit - first) % every == 0):
            chosen = choose(until(facts, commit), commit)
        found[commit] = chosen
    return found


def broken(facts: Record, known: Cells, reading: str) -> Any:
    """By cell: a breakage as the flake model judges, or a crude one (red, repeated or lasting), or just red."""
    if reading == "red":
        return known.passes == 0
    judged = judge(known, len(facts.jobs))
    if reading == "judged":
        return judged.began >= REAL
    found = truths(facts, known, judged)
    crude = found[reading] if reading in found else either(found)
    return np.isin(known.commit * len(facts.jobs) + known.job, crude.commit * len(facts.jobs) + crude.job)


def greedy_order(facts: Record, commit: int, reading: str) -> tuple[list[int], list[float], Any, Any]:
    """Greedy cover of what is known: its order, the share that is seen with each, all jobs' costs, which are there."""
    known = cells(facts)
    real = broken(facts, known, reading)
    alive = np.zeros(len(facts.jobs), dtype=bool)
    alive[known.job[known.commit >= commit - 20]] = True
    events, where = np.unique(known.commit[real], return_inverse=True)
    sees = np.zeros((len(events), len(facts.jobs)), dtype=bool)
    sees[where, known.job[real]] = True
    sees &= alive
    left, order, seen = sees.any(axis=1), list[int](), list[float]()
    whole, cost = left.sum(), np.maximum(mean_minutes(facts), 0.05)
    while left.any():
        order.append(int((sees[left].sum(axis=0) / cost).argmax()))
        left &= ~sees[:, order[-1]]
        seen.append(float(1 - left.sum() / whole))
    return order, seen, cost, alive


def cover_until(share: float, reading: str = "judged") -> Callable[[Record, int], frozenset[int]]:
    """The peer: the fewest minutes that see this share of all breakages known so far, greedily."""

    def choose(facts: Record, commit: int) -> frozenset[int]:
        order, seen, _, _ = greedy_order(facts, commit, reading)
        return frozenset(order[: int(np.searchsorted(seen, share - 1e-9)) + 1])

    return choose


def way_of_2019(facts: Record, _commit: int) -> frozenset[int]:
    """Its clusters, and of each the job that broke most: the document chooses them by hand."""
    last = int(facts.commit.max()) + 1
    short = Record(**{
        **{name: getattr(facts, name) for name in facts.__slots__}, "commits": facts.commits[:last],
        "decided": facts.decided[:last],
    })  # fmt: skip
    matrix, columns = matrix_2019(short, list(facts.jobs))
    place = [facts.jobs.index(column) for column in columns]
    known = cells(facts)
    red = np.bincount(known.job[known.passes == 0], minlength=len(facts.jobs))
    return frozenset(place[i] for i in representatives(group_2019(correlation_2019(matrix)), red[place]))


def at_random(share: float, seed: int = 1) -> Callable[[Record, int], frozenset[int]]:
    """Jobs that are drawn until the budget is spent: what a budget alone is worth."""

    def choose(facts: Record, commit: int) -> frozenset[int]:
        known = cells(facts)
        alive = np.unique(known.job[known.commit >= commit - 20])
        cost = mean_minutes(facts)
        drawn = np.random.default_rng([seed, commit]).permutation(alive)
        spent = np.cumsum(cost[drawn])
        return frozenset(drawn[spent <= share * cost[alive].sum()].tolist())

    return choose


def true_breakages(project: Project) -> Truth:
    """What truly broke, as a truth to score against."""
    pairs_ = [(commit, job) for commit, jobs in sorted(project.broke.items()) for job in sorted(jobs)]
    commit, job = np.array(pairs_, dtype=np.int64).reshape(-1, 2).T
    return Truth(commit=commit, job=job, probability=np.ones(len(commit)))


BUDGETS = (0.1, 0.2, 0.3, 0.4, 0.6)


def steps_at(
    facts: Record, train: float, goals: Sequence[Goal], files: Mapping[int, Sequence[str]] | None = None
) -> list[list[Step]]:
    """Several goals at once: the rankings are the same."""
    learner = Learner(facts, every=EVERY, lineage=known_lineage(facts), files=files)
    plans = [Plan(goal=goal, train=train, every=EVERY) for goal in goals]
    return compared(learner, plans, lambda _done, _all: None)


def chosen(steps: Sequence[Step]) -> Selected:
    return {step.commit: step.selected for step in steps}


def covers_at(facts: Record, train: float, budgets: Sequence[float], reading: str = "judged") -> list[Selected]:
    """Rolling greedy cover cut at budgets: its jobs in its order, until half of the next one does not fit."""
    first, found = int(train * len(facts.commits)), [dict[int, frozenset[int]]() for _ in budgets]
    order, cost, whole = list[int](), np.zeros(0), 0.0
    for commit in range(first, len(facts.commits)):
        if (commit - first) % EVERY == 0:
            order, _, cost, alive = greedy_order(until(facts, commit), commit, reading)
            whole = float(cost[alive].sum())
        spent = np.cumsum(cost[order]) - cost[order] / 2
        for one, budget in zip(found, budgets, strict=True):
            one[commit] = frozenset(order[: int(np.searchsorted(spent, budget * whole, side="right"))])
    return found


def natures(quick: bool, seeds: Sequence[int]) -> tuple[str, list[list[Any]]]:
    """Peers on made projects, each beside `sooner` at the cost of the peer."""
    budgets = BUDGETS[::4] if quick else BUDGETS
    rows: list[list[Any]] = []
    for name, nature in list(NATURES.items())[: 3 if quick else None]:
        for seed in seeds:
            made = project(nature, seed)
            truth, facts = true_breakages(made), made.facts
            labels = [*(f"{budget:.0%}" for budget in budgets), "all it knows"]
            peers = dict(zip(labels, covers_at(facts, 0.5, [*budgets, np.inf]), strict=True))
            if not quick:
                peers["2019"] = rolling(facts, 0.5, way_of_2019, 4 * EVERY)
                peers["random 60 %"] = rolling(facts, 0.5, at_random(0.6), EVERY)
            costs = {label: max(round(cost_share(facts, found), 4), 0.03) for label, found in peers.items()}
            distinct = sorted(set(costs.values()))
            goals = [*(Goal(budget=cost) for cost in distinct), *(Goal(recall=recall) for recall in RECALLS)]
            steps = steps_at(facts, 0.5, goals)
            mine = [chosen(some) for some in steps]
            for label, theirs in peers.items():
                own = mine[distinct.index(costs[label])]
                hits = score(truth, theirs), score(truth, own)
                rows.append([name, seed, label, hits[0].breakages, cost_share(facts, theirs), hits[0].caught,
                             cost_share(facts, own), hits[1].caught, *only_one_caught(truth, theirs, own)])  # fmt: skip
            for recall, some in zip(RECALLS, steps[len(distinct) :], strict=True):
                found, held = score(truth, chosen(some)), windows(truth.by_commit(), some)
                stated = float(np.mean([step.stated for step in some]))
                rows.append([name, seed, f"recall {recall:.0%}", found.breakages, 1.0, found.breakages,
                             cost_share(facts, chosen(some)), found.caught, stated, found.recall,
                             held.count, held.held])  # fmt: skip
            print(name, seed, file=sys.stderr)
    return "\n".join([by_budget(rows), asked_recalls(rows)]), rows


RECALLS = (0.9, 0.95, 0.97)


def only_one_caught(truth: Truth, theirs: Selected, own: Selected) -> tuple[int, int]:
    """Breakages that the peer alone caught, and that we alone caught."""
    broken = {commit: jobs for commit, jobs in truth.by_commit().items() if commit in own}
    hits = [(not theirs[at].isdisjoint(jobs), not own[at].isdisjoint(jobs)) for at, jobs in broken.items()]
    return sum(a and not b for a, b in hits), sum(b and not a for a, b in hits)


def by_chance(some: Sequence[Sequence[Any]]) -> float:
    """Two-sided sign test: how likely so uneven a split is of the breakages that only one of the two caught."""
    from scipy.stats import binomtest

    theirs, own = (sum(row[i] for row in some) for i in (8, 9))
    return float(binomtest(theirs, theirs + own).pvalue) if theirs + own else 1.0


def interval_of_difference(some: Sequence[Sequence[Any]]) -> str:
    """Bootstrap over projects, 95 %, of how many more we catch."""
    more = np.array([row[7] - row[5] for row in some])
    draws = np.random.default_rng(1).integers(len(more), size=(10_000, len(more)))
    low, high = np.quantile(more[draws].sum(axis=1), (0.025, 0.975))
    return f"{more.sum():+d} [{low:+.0f}, {high:+.0f}]"


def by_budget(rows: Sequence[Sequence[Any]]) -> str:
    """For each nature and peer: breakages that the peer caught > that we caught / all.

    Better or worse is said where a sign test finds so uneven a split in fewer than 1 of 20 cases. Below: how many
    projects were won, and how many more breakages were caught.
    """
    labels = [label for label in dict.fromkeys(row[2] for row in rows) if not label.startswith("recall")]
    lines = []
    for name in dict.fromkeys(row[0] for row in rows):
        line = [name]
        for label in labels:
            some = [row for row in rows if row[0] == name and row[2] == label]
            theirs, own, whole = (sum(row[i] for row in some) for i in (5, 7, 3))
            sure = "" if by_chance(some) > 0.05 else " better" if own > theirs else " worse"
            line.append(f"{theirs} > {own} / {whole} at {np.mean([row[6] for row in some]):.0%}{sure}")
        lines.append(line)
    totals, won, more = ["all"], ["won / equal / lost"], ["more caught [95 %]"]
    for label in labels:
        some = [row for row in rows if row[2] == label]
        totals.append(" > ".join(str(sum(row[i] for row in some)) for i in (5, 7)))
        counts = [sum(sign(row[7] - row[5]) == way for row in some) for way in (1, 0, -1)]
        won.append(" / ".join(map(str, counts)))
        more.append(interval_of_difference(some))
    return table(["caught by the peer > by sooner", *labels], [*lines, totals, won, more])


def readings(seeds: Sequence[int]) -> str:
    """Cover that learns from the crude reading, scored by it and by what truly broke, beside `sooner` at its cost."""
    lines, budgets = [], (0.2, 0.3, 0.4, 0.6)
    for name in ("matrix", "mostly alone", "no repeats", "fast commits"):
        for seed in seeds:
            made = project(NATURES[name], seed)
            facts, scored = made.facts, {"crude": either(truths(made.facts)), "true": true_breakages(made)}
            theirs = covers_at(facts, 0.5, budgets, "crude")
            costs = [max(round(cost_share(facts, found), 4), 0.03) for found in theirs]
            mine = [chosen(steps) for steps in steps_at(facts, 0.5, [Goal(budget=cost) for cost in costs])]
            for label, truth in scored.items():
                pairs_ = [(score(truth, one), score(truth, own)) for one, own in zip(theirs, mine, strict=True)]
                cells_ = [f"{one.caught} > {own.caught} / {own.breakages}" for one, own in pairs_]
                lines.append([f"{name} {seed}, {label}", *cells_])
            print(name, seed, file=sys.stderr)
    return table(["cover of what lasts > sooner", *(f"{budget:.0%}" for budget in budgets)], lines)


def by_folder(seeds: Sequence[int]) -> str:
    """Breakages that cover, `sooner` without the changed files, and with them, catch at the same budgets."""
    lines = []
    for name, nature in FOLDERS.items():
        caught, costs = np.zeros((3, len(BUDGETS)), dtype=int), np.zeros((3, len(BUDGETS)))
        breakages = 0
        for seed in seeds:
            made = project(nature, seed)
            truth, facts = true_breakages(made), made.facts
            goals = [Goal(budget=budget) for budget in BUDGETS]
            rules = [covers_at(facts, 0.5, BUDGETS)]
            rules += [[chosen(steps) for steps in steps_at(facts, 0.5, goals, files)] for files in (None, made.files)]
            caught += [[score(truth, one).caught for one in rule] for rule in rules]
            costs += [[cost_share(facts, one) / len(seeds) for one in rule] for rule in rules]
            breakages += score(truth, rules[0][0]).breakages
            print(name, seed, file=sys.stderr)
        cells_ = [
            " > ".join(f"{some} ({cost:.0%})" for some, cost in zip(*column, strict=True))
            for column in zip(caught.T.tolist(), costs.T.tolist(), strict=True)
        ]
        lines.append([f"{name}, {breakages}", *cells_])
    head = ["cover > sooner without files > with them (cost)", *(f"{budget:.0%}" for budget in BUDGETS)]
    return table(head, lines)


def forgetting(quick: bool, seeds: Sequence[int]) -> str:
    """Breakages caught in the last 600 of 9,000 commits, by how many commits before them are learned from."""
    test, spans = 600, (500, 1000, 2000, 4000, 8400)
    goals = [Goal(budget=budget) for budget in (0.1, 0.2, 0.3, 0.45, 0.6)]
    caught, breakages = np.zeros((len(spans), len(goals)), dtype=int), 0
    for nature in list(NATURES.values())[: 2 if quick else None]:
        for seed in seeds:
            made = project(replace(nature, commits=9000), seed)
            truth = true_breakages(made)
            for row, span in zip(caught, spans, strict=True):
                steps = steps_at(latest(made.facts, attempts=0, commits=span + test), 1 - test / 9000, goals)
                row += [score(truth, chosen(some)).caught for some in steps]
            breakages += score(truth, chosen(steps[0])).breakages
    rows = [[f"{span:,}", *some] for span, some in zip(spans, caught.tolist(), strict=True)]
    return table(
        [f"learned from the latest, of {breakages} breakages", *(f"{goal.budget:.0%}" for goal in goals)], rows
    )


def sign(value: int) -> int:
    return (value > 0) - (value < 0)


def asked_recalls(rows: Sequence[Sequence[Any]]) -> str:
    lines = []
    for recall in RECALLS:
        some = [row for row in rows if row[2] == f"recall {recall:.0%}"]
        caught, whole = sum(row[7] for row in some), sum(row[3] for row in some)
        costs = [row[6] for row in some]
        stated = f"{np.mean([row[8] for row in some]):.1%}"
        kept = f"{sum(row[9] >= row[8] for row in some)}/{len(some)}"
        held = f"{sum(row[11] for row in some) / sum(row[10] for row in some):.1%}"
        lines.append([f"{recall:.0%}", f"{caught}/{whole}", f"{caught / whole:.1%}", f"{np.mean(costs):.1%}",
                      f"{min(costs):.0%}-{max(costs):.0%}", stated, kept, held])  # fmt: skip
    head = ["recall asked", "caught", "", "mean cost", "from - to", "stated bound", "projects above it", "windows held"]
    return table(head, lines)


BLOCKS = (0.25, 0.4, 0.55, 0.7, 0.85, 1.0)


def either(found: Mapping[str, Truth]) -> Truth:
    """Breakages by repeats or by persistence: no model at all."""
    cells_ = sorted(
        {
            pair
            for name in ("repeated", "persisted")
            for pair in zip(found[name].commit.tolist(), found[name].job.tolist(), strict=True)
        }
    )
    commit, job = np.array(cells_, dtype=np.int64).reshape(-1, 2).T
    return Truth(commit=commit, job=job, probability=np.ones(len(commit)))


def by_block(facts: Record, quick: bool) -> list[list[str]]:
    """Every rule from 25 % on, in blocks of time: caught of judged ones, of repeated or persisted ones, and cost."""
    begin = BLOCKS[0]
    budgets = (0.6,) if quick else (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    goals = [*(Goal(budget=budget) for budget in budgets), Goal(recall=0.9), Goal(recall=0.97)]
    names = [*(f"sooner, budget {budget:.0%}" for budget in budgets), "sooner, recall 90%", "sooner, recall 97%"]
    mine = [chosen(steps) for steps in steps_at(facts, begin, goals)]
    rules: list[tuple[str, Callable[[], Selected]]] = [
        (name, lambda selected=selected: selected) for name, selected in zip(names, mine, strict=True)
    ]
    rules += [
        (f"rolling cover of {share:.0%}", lambda share=share: rolling(facts, begin, cover_until(share), EVERY))
        for share in ((1.0,) if quick else (0.9, 1.0))
    ]
    for name, reading in (("all red", "red"), ("repeated or lasting", "crude")):
        choose = cover_until(1.0, reading)
        rules.append((f"rolling cover, {name}", lambda choose=choose: rolling(facts, begin, choose, EVERY)))
    rules.append(("way of 2019, rolling", lambda: rolling(facts, begin, way_of_2019, 4 * EVERY)))
    rules.append(("at random, 60 %", lambda: rolling(facts, begin, at_random(0.6), 1)))
    found = truths(facts)
    readings = [found["judged"], either(found)]
    rows = []
    for label, rule in rules:
        selected = rule()
        row = [label, f"{cost_share(facts, selected):.1%}"]
        row += [f"{one.caught}/{one.breakages}" for one in (score(truth, selected) for truth in readings)]
        for low, high in itertools.pairwise(BLOCKS):
            count = len(facts.commits)
            some = {commit: jobs for commit, jobs in selected.items() if low * count <= commit < high * count}
            hits = [score(truth, some) for truth in readings]
            counts = " ".join(f"{one.caught}/{one.breakages}" for one in hits)
            row.append(f"{counts} {cost_share(facts, some):.0%}")
        rows.append(row)
        print("  ".join(row), file=sys.stderr)
    return rows


def labels(facts: Record, train: float) -> str:
    """What a breakage could be: for each reading, the peers and the cheapest fixed set that hindsight would choose."""
    known, first = cells(facts), int(train * len(facts.commits))
    mine = chosen(steps_at(facts, train, [Goal(budget=0.6)])[0])
    lines = []
    for reading in ("judged", "repeated", "persisted", "crude", "red"):
        at = broken(facts, known, reading) & (known.commit >= first)
        truth = Truth(commit=known.commit[at], job=known.job[at], probability=np.ones(int(at.sum())))
        events, where = np.unique(truth.commit, return_inverse=True)
        sees = np.zeros((len(events), len(facts.jobs)), dtype=bool)
        sees[where, truth.job] = True
        later = known.commit >= first
        cost = np.maximum(np.bincount(known.job[later], minlength=len(facts.jobs)) * mean_minutes(facts), 1e-3)
        fixed = greedy(sees, np.ones(len(events)), cost, float(len(events)), Constraints())
        rules = [dict.fromkeys(mine, frozenset(fixed.jobs)), mine]
        rules += [rolling(facts, train, cover_until(1.0, reading), every) for every in (0, EVERY)]
        hits = [f"{score(truth, one).caught}/{len(events)} at {cost_share(facts, one):.0%}" for one in rules]
        lines.append([reading, *hits])
    head = ["reading", "fixed set in hindsight", "sooner, budget 60%", "cover, learned once", f"cover, every {EVERY}"]
    return table([f"after {train:.0%}: {head[0]}", *head[1:]], lines)


def recommended(seed: int = 1) -> str:
    """The jobs that the document of 2019 recommends, on a history with its structure, beside ours at the same cost."""
    from document_2019 import COMBINED, COMBINED_CLUSTERS, RECOMMENDED, history

    facts = history(COMBINED, COMBINED_CLUSTERS, seed=seed, noise=0.001)
    chosen = frozenset(COMBINED.index(job) for job in RECOMMENDED)
    first = int(0.7 * len(facts.commits))
    fixed = dict.fromkeys(range(first, len(facts.commits)), chosen)
    known = cells(facts)
    broken: dict[int, set[int]] = {}
    for commit, job in zip(known.commit[known.passes == 0], known.job[known.passes == 0], strict=True):
        broken.setdefault(int(commit), set()).add(int(job))
    share = cost_share(facts, fixed)
    mine = ours(facts, 0.7, Goal(budget=share))

    def recall(selected: Selected) -> float:
        hits = [bool(broken[commit] & selected[commit]) for commit in selected if commit in broken]
        return float(np.mean(hits))

    return (
        f"its {len(RECOMMENDED)} recommended jobs: {recall(fixed):.1%} at {share:.1%} of the cost;"
        f" sooner: {recall(mine):.1%} at {cost_share(facts, mine):.1%}"
    )


def ozone(folder: Path) -> tuple[Record, list[int]]:
    from sooner.analysis.selection.load import changed_files, trunk
    from sooner.analysis.selection.request import only_documentation
    from sooner.history import History, Where
    from sooner.history.ingest.intake import Options
    from sooner.history.ingest.take import ingest

    with tempfile.TemporaryDirectory() as root, History(root) as history:
        ingest(history, [str(folder / "ozone_jobs.csv.gz"), str(folder / "ozone_files.csv.gz")], Options())
        facts, _ = trunk(history, Where())
        files = changed_files(history, Where())
    return facts, [i for i, sha in enumerate(facts.commits) if only_documentation(files.get(sha, ()))]


def matrices(  # noqa: PLR0917 - one line of the table
    jobs: int, commits: int, present: float, red: float, seed: int = 1, workflows: int = 0
) -> tuple[Any, Any]:
    """Jobs that run at random, or with their workflow (then 0.3 % of the cells are lost to cancelling)."""
    chance = np.random.default_rng(seed)
    ran = np.empty((commits, jobs), dtype=np.float32)
    failed = np.empty((commits, jobs), dtype=np.float32)
    for begin in range(0, commits, 5000):
        rows = slice(begin, min(begin + 5000, commits))
        shape = ran[rows].shape
        if workflows:
            starts = chance.random((shape[0], workflows), dtype=np.float32) < present
            ran[rows] = starts[:, np.arange(jobs) % workflows] & (chance.random(shape, dtype=np.float32) >= 0.003)
        else:
            ran[rows] = chance.random(shape, dtype=np.float32) < present
        failed[rows] = ran[rows] * (chance.random(shape, dtype=np.float32) < red)
    return ran, failed


def analysed(ran: Any, red: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    counts = tables(ran, red)
    alike = phi(counts)
    jaccard(counts)
    if len(alike) <= 2000:
        group(alike)
        pairs(counts)
    return time.perf_counter() - begin, alike


def pandas_corr(ran: Any, red: Any, limit: int) -> tuple[float, float] | None:
    """Seconds of `pandas.DataFrame.corr` on the same matrix, in an environment of its own; the largest difference."""
    from peers import CACHE, _venv

    python = _venv("pandas", "pandas", "numpy", "scipy")
    if python is None:
        return None
    some = slice(0, limit)
    path = CACHE / "matrix.npy"
    np.save(path, np.where(ran > 0, red, np.nan)[:, some])
    program = (
        "import sys, time, numpy as np, pandas as pd\n"
        f"df = pd.DataFrame(np.load({str(path)!r}).astype('float64'))\n"
        "t = time.perf_counter(); c = df.corr().values; print(time.perf_counter() - t)\n"
        f"np.save({str(path)!r}, c)\n"
    )
    done = subprocess.run([str(python), "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    theirs = np.load(path)
    path.unlink()
    mine = phi(tables(np.ascontiguousarray(ran[:, some]), np.ascontiguousarray(red[:, some])))
    return float(done.stdout), float(np.nanmax(np.abs(theirs - mine)))


def speed(quick: bool, large: bool) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    rows = []
    sizes = [(1000, 10_000, 0.6, 0.03, 0), (1000, 10_000, 1.0, 0.03, 0)]
    if large:
        sizes += [(4000, 40_000, 0.6, 0.03, 0), (10_000, 100_000, 1.0, 0.01, 0), (10_000, 100_000, 0.6, 0.01, 60)]
    for jobs, commits, present, red, workflows in sizes:
        ran, failed = matrices(jobs, commits, present, red, workflows=workflows)
        spent, _ = analysed(ran, failed)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        how = f" in {workflows} workflows" if workflows else ""
        rows.append([f"{jobs:,} x {commits:,}, {present:.0%} present{how}", f"{spent:.2f} s", f"{peak:.1f} GiB"])
        print(*rows[-1], file=sys.stderr)
        figures[rows[-1][0]] = spent
        del ran, failed
    print(table(["analysed (phi, Jaccard; up to 2,000 jobs clusters, FDR)", "sooner", "peak"], rows))
    rows = []
    for jobs, events in ((200, 300), (1000, 600)):
        chance = np.random.default_rng(2)
        sees = chance.random((events, jobs)) < 1.5 / jobs
        block = chance.integers(0, jobs // 10, jobs)
        for event in np.flatnonzero(chance.random(events) < 0.6):
            sees[event] |= (block == chance.integers(jobs // 10)) & (chance.random(jobs) < 0.8)
        cost = np.exp(chance.normal(3, 0.8, jobs))
        begin = time.perf_counter()
        found = greedy(sees, np.ones(events), cost, 0.97 * sees.any(axis=1).sum(), Constraints())
        spent = time.perf_counter() - begin
        proof = exact(sees, np.ones(events), cost, 0.97 * sees.any(axis=1).sum(), Constraints(), found=found, time_s=20)
        proven = "proven" if proof.proven else "bound"
        rows.append([f"{jobs:,} jobs, {events} breakages", f"{spent:.2f} s", f"{proof.gap:.2%} ({proven})"])
        figures[rows[-1][0]] = {"greedy_s": spent, "gap": proof.gap, "proven": proof.proven}
    print(table(["fixed set of jobs", "greedy", "gap to the optimum"], rows))
    figures["select"] = [
        selecting(200 if quick else 1000, commits) for commits in (600, 3000, 10_000)[: 3 if large else 1]
    ]
    # The peer comes last: its environment may have to be installed first, and it takes half a minute.
    if not quick and (found := pandas_corr(*matrices(*sizes[0][:4]), 1000)):
        figures["pandas"] = found[0]
        print(f"pandas corr on the first matrix: {found[0]:.1f} s (difference {found[1]:.0e})")
    return figures


def selecting(jobs: int, commits: int) -> dict[str, float]:
    """All that `sooner jobs select` does after the history is read."""
    facts = project(Nature(components=jobs // 10, platforms=10, commits=commits, rate=0.3), 1).facts
    settings = JobSettings()
    begin, cpu = time.perf_counter(), time.process_time()
    facts = latest(facts)
    learner = Learner(facts, terms=terms(facts, settings), lineage=known_lineage(facts))
    learner.warm_up(len(facts.commits))
    learner.learn(len(facts.commits))
    found = selection(learner, Goal(recall=0.97, budget=0.6), settings)
    spent, cpu = time.perf_counter() - begin, time.process_time() - cpu
    print(
        f"selection over {jobs:,} jobs x {len(facts.commits)} commits, {found.breakages} breakages known: {spent:.1f} s"
        f" ({cpu:.1f} s of CPU)"
    )
    return {"jobs": jobs, "commits": commits, "seconds": spent, "cpu_seconds": cpu}


READS_DOCUMENTS = ("rat", "basic (rat)", "docs", "basic (docs)", "dependency", "basic (dependency)")
"""Ozone's jobs that look at documentation or licences: they may well break on a commit that touches only these."""


def flakes(facts: Record, quiet: Sequence[int]) -> dict[str, Any]:
    held, known = held_out_repeats(facts), cells(facts)
    reads = [facts.jobs.index(job) for job in READS_DOCUMENTS if job in facts.jobs]
    on = np.isin(known.commit[(known.passes == 0) & ~np.isin(known.job, reads)], quiet)
    red = [100 * on.sum() / max(len(quiet), 1), 100 * (~on).sum() / (len(facts.commits) - len(quiet))]
    print(f"red for 100 commits, jobs of code: {red[0]:.1f} on documentation, {red[1]:.1f} on others")
    controls = {"all jobs": on_commits(facts, quiet), "jobs of code": on_commits(facts, quiet, READS_DOCUMENTS)}
    print(
        f"held-out repeats: {held.all_agreement:.1%} of {held.all_cells:,} agree; of {held.cells} whose first attempt"
        f" failed {held.agreement:.1%} (always saying flake: {held.always_flake:.1%}; the most that the model's own"
        f" probabilities promise: {held.ceiling:.1%})"
    )
    for name, control in controls.items():
        print(
            f"breakages for 100 commits, {name}: {control.rate:.2f} on {control.commits} that touch only documentation"
            f" ({control.certain} likelier than not: [{control.low:.2f}, {control.high:.2f}]), {control.others:.2f} on"
            f" others; {', '.join(f'{job} {share:.2f}' for job, share in control.jobs)}"
        )
    return {"held_out": held, "controls": controls}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points and projects, no pandas")
    parser.add_argument("--large", action="store_true", help="10,000 jobs x 100,000 commits too (needs 16 GiB)")
    parser.add_argument(
        "--only", choices=["speed", "natures", "readings", "memory", "folders", "ozone"], help="only this part"
    )
    parser.add_argument("--data", type=Path, help="folder that holds ozone_jobs.csv.gz (else SOONER_DATA)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[2], help="of the made projects")
    options = parser.parse_args(arguments)
    document: dict[str, Any] = {"machine": machine()}
    if options.only in (None, "speed"):
        document["speed"] = speed(options.quick, options.large)
    if options.only in (None, "natures"):
        text, document["natures"] = natures(options.quick, options.seeds)
        print(text)
        document["recommended"] = recommended()
        print(document["recommended"])
    if options.only == "folders":
        print(by_folder(options.seeds))
    if options.only == "readings":
        print(readings(options.seeds))
    if options.only == "memory":
        print(forgetting(options.quick, options.seeds))
    data = options.data or (Path(os.environ["SOONER_DATA"]) if os.environ.get("SOONER_DATA") else None)
    if options.only in (None, "ozone") and data is not None and (data / "ozone_jobs.csv.gz").is_file():
        facts, quiet = ozone(data)
        rows = by_block(facts, options.quick)
        names = [f"{low:.0%}-{high:.0%}" for low, high in itertools.pairwise(BLOCKS)]
        print(table(["Ozone", "cost", "judged", "repeated or persisted", *names], rows))
        document["ozone"] = rows
        for train in () if options.quick else (0.5, 0.7):
            print(labels(facts, train))
        document["flakes"] = flakes(facts, quiet)
    import msgspec

    save("selection", msgspec.to_builtins(document))


if __name__ == "__main__":
    main()
