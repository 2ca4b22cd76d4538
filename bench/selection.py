"""Job selection: the frontier of `sooner jobs` beside rolling greedy cover and the way of 2019, and how fast it is.

Each rule decides every commit after the training share with what was known then; all are measured by the same truth:
real breakages in hindsight, and two readings without a model. Made projects: blocks of jobs that break together or
alone, with flakes, in bursts or not. A real table, where there is one: SOONER_DATA names the folder that holds
ozone_jobs.csv.gz. The design and its defaults were chosen with all of that table in view: its figures are in-sample.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from figures import machine, save, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "analysis" / "selection"))
from sooner.analysis.selection.backtest import Backtest, Plan
from sooner.analysis.selection.clusters import (
    correlation_2019,
    group,
    group_2019,
    matrix_2019,
    representatives,
)
from sooner.analysis.selection.correlation import jaccard, pairs, phi, tables
from sooner.analysis.selection.cover import Constraints, exact, greedy
from sooner.analysis.selection.facts import Record, State, cells, mean_minutes, recorded, until
from sooner.analysis.selection.flakes import REAL, judge
from sooner.analysis.selection.names import known_lineage
from sooner.analysis.selection.policy import Goal
from sooner.analysis.selection.truth import cost_share, score, truths
from sooner.analysis.selection.validate import held_out_repeats, on_commits

Selected = Mapping[int, frozenset[int]]
EVERY = 25


def made(
    seed: int, *, blocks: int = 5, size: int = 8, commits: int = 1500, rate: float = 0.03, alone: float = 0.4,
    flake: float = 0.01, repeats: float = 0.4, bursts: bool = False,
) -> Record:  # fmt: skip
    """A project whose jobs break block by block, half a block, or alone; in bursts: twice as often after a breakage."""
    chance = np.random.default_rng(seed)
    jobs = blocks * size
    minutes = np.exp(chance.normal(3, 0.8, jobs))
    left, hot = np.zeros(jobs, int), np.ones(jobs)
    columns: list[Any] = []
    at = 0.0
    for commit in range(commits):
        at += chance.exponential(3 * 3600)
        if chance.random() < rate:
            weight = hot / hot.sum()
            first = int(chance.choice(jobs, p=weight))
            block = np.arange(first // size * size, first // size * size + size)
            hit = [first] if chance.random() < alone else block if chance.random() < 0.6 else block[: size // 2]
            fresh = [job for job in hit if not left[job]]
            left[fresh] = chance.geometric(0.4)
            hot[fresh] += 30.0 if bursts else 0.0
        hot = 1 + (hot - 1) * 0.95
        for repeat in range(1 + (chance.random() < repeats)):
            bad = (left > 0) | (chance.random(jobs) < flake)
            state = np.where(bad, State.FAILED, State.PASSED)
            spent = minutes * chance.lognormal(0, 0.1, jobs)
            columns.append((np.full(jobs, commit), np.arange(jobs), state, np.full(jobs, at + 20_000 * repeat), spent))
        left = np.maximum(left - 1, 0)
    commit, job, state, asked, spent = (np.concatenate(column) for column in zip(*columns, strict=True))
    return recorded(
        [f"{i:040x}" for i in range(commits)], [f"job{i:03}" for i in range(jobs)], commit=commit, job=job,
        state=state.astype(np.int8), asked=asked, known=asked + 60 * spent, minutes=spent,
    )  # fmt: skip


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


def cover_until(share: float) -> Callable[[Record, int], frozenset[int]]:
    """The peer: the fewest minutes that see this share of all breakages known so far, greedily."""

    def choose(facts: Record, commit: int) -> frozenset[int]:
        known = cells(facts)
        real = judge(known, len(facts.jobs)).began >= REAL
        seen = known.commit >= commit - 20
        alive = np.zeros(len(facts.jobs), dtype=bool)
        alive[known.job[seen]] = True
        events, where = np.unique(known.commit[real], return_inverse=True)
        sees = np.zeros((len(events), len(facts.jobs)), dtype=bool)
        sees[where, known.job[real]] = True
        sees &= alive
        left, chosen = np.ones(len(events), dtype=bool), set()
        cost = np.maximum(mean_minutes(facts), 0.05)
        wanted = share * sees.any(axis=1).sum()
        while (~left).sum() < wanted - 1e-9:
            gain = sees[left].sum(axis=0) / cost
            job = int(gain.argmax())
            if gain[job] <= 0:
                break
            chosen.add(job)
            left &= ~sees[:, job]
        return frozenset(chosen)

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


def frontier(name: str, facts: Record, train: float, quick: bool) -> list[list[str]]:
    rules: list[tuple[str, Callable[[], Selected]]] = [
        (f"sooner, budget {budget:.0%}", lambda budget=budget: ours(facts, train, Goal(budget=budget)))
        for budget in ((0.4, 0.6) if quick else (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8))
    ]
    rules += [(f"sooner, recall {r:.0%}", lambda r=r: ours(facts, train, Goal(recall=r))) for r in (0.9, 0.97)]
    rules += [
        (f"rolling cover of {share:.0%}", lambda share=share: rolling(facts, train, cover_until(share), EVERY))
        for share in ((1.0,) if quick else (0.8, 0.9, 0.95, 1.0))
    ]
    rules.append(("cover of 100 %, once", lambda: rolling(facts, train, cover_until(1.0), 0)))
    rules.append(("way of 2019, rolling", lambda: rolling(facts, train, way_of_2019, 4 * EVERY)))
    found = truths(facts)
    rows = []
    for label, rule in rules:
        begin = time.perf_counter()
        selected = rule()
        spent = time.perf_counter() - begin
        figures = [score(found[kind], selected) for kind in ("judged", "repeated", "persisted")]
        cells_ = [f"{one.caught}/{one.breakages}" for one in figures]
        cost = cost_share(facts, selected)
        rows.append([name, label, f"{cost:.1%}", f"{figures[0].recall:.1%}", *cells_, f"{spent:.1f} s"])
        print("  ".join(rows[-1]), file=sys.stderr)
    return rows


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


def matrices(jobs: int, commits: int, present: float, red: float, seed: int = 1) -> tuple[Any, Any]:
    chance = np.random.default_rng(seed)
    ran = np.empty((commits, jobs), dtype=np.float32)
    failed = np.empty((commits, jobs), dtype=np.float32)
    for begin in range(0, commits, 5000):
        rows = slice(begin, min(begin + 5000, commits))
        shape = ran[rows].shape
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
    sizes = [(1000, 10_000, 0.6, 0.03), (1000, 10_000, 1.0, 0.03)]
    if large:
        sizes += [(4000, 40_000, 0.6, 0.03), (10_000, 100_000, 1.0, 0.01)]
    for jobs, commits, present, red in sizes:
        ran, failed = matrices(jobs, commits, present, red)
        spent, _ = analysed(ran, failed)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        peer = "-"
        if jobs == 1000 and present < 1 and not quick:
            found = pandas_corr(ran, failed, 1000)
            peer = f"{found[0]:.1f} s (difference {found[1]:.0e})" if found else "not to be had"
        rows.append([f"{jobs:,} x {commits:,}, {present:.0%} present", f"{spent:.2f} s", peer, f"{peak:.1f} GiB"])
        figures[rows[-1][0]] = spent
        del ran, failed
    print(table(["analysed (phi, Jaccard; up to 2,000 jobs clusters, FDR)", "sooner", "pandas corr", "peak"], rows))
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
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer points and projects, no pandas")
    parser.add_argument("--large", action="store_true", help="10,000 jobs x 100,000 commits too (needs 16 GiB)")
    parser.add_argument("--only", choices=["speed", "frontier", "ozone"], help="only this part")
    options = parser.parse_args(arguments)
    document: dict[str, Any] = {"machine": machine()}
    head = ["project", "rule", "cost", "recall", "judged", "repeated", "persisted", "time"]
    if options.only in (None, "speed"):
        document["speed"] = speed(options.quick, options.large)
    rows: list[list[str]] = []
    if options.only in (None, "frontier"):
        projects = {
            "blocks": {},
            "alone": {"alone": 0.9},
            "bursts": {"alone": 0.8, "bursts": True},
            "few jobs": {"blocks": 2, "size": 4},
        }
        for name, more in list(projects.items())[: 1 if options.quick else None]:
            rows += frontier(name, made(1, **more), 0.5, options.quick)
        document["recommended"] = recommended()
        print(document["recommended"])
    data = Path(os.environ.get("SOONER_DATA", ""))
    if options.only in (None, "ozone") and (data / "ozone_jobs.csv.gz").is_file():
        facts, quiet = ozone(data)
        rows += frontier("Ozone, last 30 %", facts, 0.7, options.quick)
        rows += [] if options.quick else frontier("Ozone, second half", facts, 0.5, quick=False)
        held = held_out_repeats(facts)
        control = on_commits(facts, quiet)
        document["flakes"] = {"held_out": held, "control": control}
        print(
            f"held-out repeats: {held.all_agreement:.1%} of {held.all_cells:,} agree; of {held.cells} whose first"
            f" attempt failed {held.agreement:.1%} (always saying flake: {held.always_flake:.1%})\n"
            f"breakages for 100 commits: documentation only {control.rate:.2f}, others {control.others:.2f}"
        )
    if rows:
        print(table(head, rows))
    document["frontier"] = rows
    import msgspec

    save("selection", msgspec.to_builtins(document))


if __name__ == "__main__":
    main()
