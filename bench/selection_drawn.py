"""Job selection on made projects, measured finely: what would be caught of breakages drawn from what a project is like.

A made project has thirty breakages to be caught, so that a difference of a percent needs a hundred projects. But it is
known how likely each breakage is at each commit. At every tenth commit of the second half 60 are drawn, and it is noted
how much of the cost of all jobs is spent, down the order of `sooner` and down that of rolling greedy cover, until a job
that sees them is half done. `knowing` is greedy cover of 300 others that were drawn there: of what the project is like
at that very commit, which no history tells.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from figures import save, table
from selection import EVERY, greedy_order
from selection_projects import NATURES, Project, project
from sooner.analysis.selection.cover import beginning
from sooner.analysis.selection.facts import Numbers, until
from sooner.analysis.selection.names import known_lineage
from sooner.analysis.selection.policy import Learner

BUDGETS: Final = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6)
DRAWS: Final = 60
KNOWN: Final = 300


def shares(order: Sequence[int], cost: Numbers, total: float) -> Numbers:
    """By job: share of the cost that is spent when it is half done; 2.0 for those that are not in the order."""
    found = np.full(len(cost), 2.0)
    found[list(order)] = (np.cumsum(cost[list(order)]) - cost[list(order)] / 2) / total
    return found


def caught(hits: Any, share: Numbers) -> Numbers:
    """Share of the draws that each budget catches."""
    levels = np.where(hits, share, 2.0).min(axis=1)
    return (levels[:, None] <= np.array(BUDGETS)).mean(axis=0)


def one(made: Project) -> dict[str, Numbers]:
    """By rule: the share of the draws that each budget catches, on average over the commits."""
    facts, first = made.facts, len(made.facts.commits) // 2
    learner = Learner(facts, every=EVERY, lineage=known_lineage(facts))
    learner.warm_up(first)
    found: dict[str, list[Numbers]] = {"cover": [], "sooner": [], "knowing": []}
    order: list[int] = []
    for commit in range(first, len(facts.commits)):
        if (commit - first) % EVERY == 0:
            learner.learn(commit)
            order = greedy_order(until(facts, commit), commit, "judged")[0]
        view, ranking = learner.ranked(commit)
        if (might := made.might.get(commit)) is None:
            continue
        hits, others = might[:DRAWS], might[DRAWS:]
        hits = hits[hits.any(axis=1)]
        if len(hits):
            cost = np.where(view.alive, ranking.cost, 0.0)
            best = beginning(others, ranking.cost, view.alive, [], ranking.total)
            found["cover"].append(caught(hits, shares(order, cost, ranking.total)))
            found["sooner"].append(caught(hits, ranking.share))
            found["knowing"].append(caught(hits, shares(best, cost, ranking.total)))
    return {name: np.mean(values, axis=0) for name, values in found.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[11], help="of the made projects")
    parser.add_argument("--natures", nargs="+", default=[name for name in NATURES if name != "many jobs"])
    options = parser.parse_args(arguments)
    by_nature: dict[str, list[dict[str, Numbers]]] = {}
    for name in options.natures:
        for seed in options.seeds:
            by_nature.setdefault(name, []).append(one(project(NATURES[name], seed, draws=DRAWS + KNOWN)))
            print(name, seed, file=sys.stderr)
    everything = [values for some in by_nature.values() for values in some]
    lines = []
    for name, some in [*by_nature.items(), ("all", everything)]:
        means = {rule: 100 * np.mean([values[rule] for values in some], axis=0) for rule in some[0]}
        columns = zip(*means.values(), strict=True)
        lines.append([name, *(" > ".join(f"{value:.1f}" for value in column) for column in columns)])
    more = 100 * np.array([values["sooner"] - values["cover"] for values in everything])
    error = more.std(axis=0) / max(len(more) - 1, 1) ** 0.5
    lines.append(["sooner - cover", *(f"{a:+.1f} +- {b:.1f}" for a, b in zip(more.mean(axis=0), error, strict=True))])
    print(table(["% caught: cover > sooner > knowing", *(f"{budget:.0%}" for budget in BUDGETS)], lines))
    save("selection_drawn", {"all": [{k: v.tolist() for k, v in values.items()} for values in everything]})


if __name__ == "__main__":
    main()
