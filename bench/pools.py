"""Queue simulation: held-out waits of pools with known truth, options ranked, a million jobs; beside simpler ways.

Pools are drawn at random (sizes, loads, bursts, cron, nights, growth, booting machines, others' jobs). Each is
predicted from its record alone: the judged days (the last 30 %) six hours at a time, as `sooner simulate-pool` does.
Beside it:

- *itself*: the true pool goes on from its true state every six hours with other jobs of others, three times: what of
  the distance is chance;
- *once*: the same, all judged days in one go, without looking at what happened meanwhile;
- *naive*: the visible jobs alone on the true number of machines (mean), no delay, no others;
- *Allen-Cunneen*: E[wait] by the formula for G/G/c (Allen, "Probability, statistics and queueing theory", 1990), with
  true machines, measured rates and variances, beside the observed mean.

*Nodes*: three labels share nodes that split. Each label is predicted as a pool of its own; with the nodes declared; and
with their number fitted. Options there replace 4-device jobs by ones of 1, 2 or 4 devices, in more or fewer shards.

Options: what a workflow's jobs could be replaced by (shards, sizes, a cron), replayed on what was fitted, and on the
truth; pairs whose true p90 of the signal differ by at least 5 % must come out in the right order.
"""

import argparse
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from figures import machine, save, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from sooner.analysis.sizing.declared import crowd_of, fitted, split_of
from sooner.analysis.sizing.events import Machines, Nodes, Task, play
from sooner.analysis.sizing.facts import DAY_S, HOUR_S, PoolSpec, Queue, Steps
from sooner.analysis.sizing.fifo import starts
from sooner.analysis.sizing.judge import judge
from sooner.analysis.sizing.needs import TestNeed
from sooner.analysis.sizing.placement import Lane, Option, Runner
from sooner.analysis.sizing.replay import Pool, waiting
from sooner.analysis.sizing.synthetic import (
    Recipe,
    SharedRecipe,
    World,
    dispersion,
    queue_of,
    shared_queues,
    shared_tasks,
    true_starts,
    world,
)

KINDS = ("all jobs known", "machines vary", "machines are booted", "others hold a third", "others hold 60 %")


def recipe(kind: str, random: np.random.Generator) -> Recipe:
    machines = int(random.choice([6, 12, 25, 60]))
    more: dict[str, Any] = {
        "days": 35,
        "machines": machines,
        "load": float(random.uniform(0.55, 0.9)),
        "batch": float(random.uniform(0.3, 1.0) * machines),
        "median_s": float(random.choice([900, 2400, 6000])),
        "sigma": float(random.uniform(0.3, 0.9)),
        "delay_s": float(random.uniform(3, 60)),
    }
    if random.random() < 0.4:
        more |= {"cron_every_h": float(random.choice([3, 6])), "cron_jobs": max(1, machines // 4)}
    match kind:
        case "machines vary":
            more |= {"day_machines": float(random.uniform(0.2, 0.8)), "drift": float(random.uniform(0, 0.5))}
        case "machines are booted":
            more |= {"boot_s": float(random.uniform(60, 400))}
        case "others hold a third":
            more |= {"others": 0.33}
        case "others hold 60 %":
            more |= {"others": 0.6}
    return Recipe(**more)


def naive(queue: Queue, capacity: Steps, since: float) -> float:
    """p90 of the visible jobs alone."""
    steps = Steps((float(queue.created[0]),), (float(round(np.mean(capacity.counts))),))
    found = np.array(starts(queue.created.tolist(), queue.seconds.tolist(), steps)) - queue.created
    return float(np.quantile(found[queue.created >= since], 0.9))


def allen_cunneen(queue: Queue, capacity: Steps, since: float) -> float:
    """Mean wait by the formula."""
    kept = queue.created >= since
    gaps, seconds, c = np.diff(queue.created[kept]), queue.seconds[kept], float(np.mean(capacity.counts))
    rho = min(0.999, seconds.mean() / gaps.mean() / c)
    ca2, cs2 = gaps.var() / gaps.mean() ** 2, seconds.var() / seconds.mean() ** 2
    waits_at_all = rho ** (np.sqrt(2 * (c + 1)) - 1)
    return float(seconds.mean() / c * waits_at_all / (1 - rho) * (ca2 + cs2) / 2)


def itself(one: World, since: float, seed: int, ways: int = 3) -> float:
    """p90 of our waits where the true pool goes on from its true state every six hours, with other jobs of others."""
    begun = true_starts(one) - one.delays
    held = one.seconds + one.delays
    random = np.random.default_rng(seed)
    waits = []
    for way in range(ways):
        other = world(one.recipe, seed + 1000 * (way + 1))
        theirs = ~other.ours
        for at in np.arange(since, one.created[-1] + 1, 6 * HOUR_S):
            before = one.created < at
            waiting, running = before & (begun > at), before & (begun <= at) & (begun + held > at)
            ours = ~before & (one.created < at + 6 * HOUR_S) & one.ours
            come = theirs & (other.created >= at) & (other.created < at + 6 * HOUR_S)
            created = np.concatenate([one.created[waiting], one.created[ours], other.created[come]])
            lengths = np.concatenate([held[waiting], held[ours], (other.seconds + other.delays)[come]])
            order = np.argsort(created, kind="stable")
            busy = (begun + held)[running].tolist()
            found = starts(
                np.maximum(created, at)[order].tolist(), lengths[order].tolist(), one.capacity.since(at), busy=busy
            )
            is_told = (np.arange(len(created)) >= waiting.sum()) & (np.arange(len(created)) < (waiting | ours).sum())
            told = is_told[order]
            waits.append((np.array(found) - created[order])[told] + random.permutation(one.delays)[: told.sum()])
    return float(np.quantile(np.concatenate(waits), 0.9))


def off(predicted: float | None, observed: float | None) -> float:
    return float("nan") if not observed or predicted is None else predicted / observed - 1


def accuracy(pools: int, first: int, most: float) -> tuple[str, dict[str, Any]]:
    rows, figures = [], {}
    for number, kind in enumerate(KINDS):
        random = np.random.default_rng(100 + number + first)
        found: dict[str, list[float]] = {name: [] for name in ("model", "itself", "once", "naive", "mean")}
        fits = []
        bursty = []
        for seed in range(first, first + pools):
            one = world(recipe(kind, random), seed)
            if one.ours.sum() > most:
                continue
            started = true_starts(one)
            queue = queue_of(*(array[one.ours] for array in (one.created, started, started + one.seconds)))
            judged = judge(queue, PoolSpec(label="p"))
            once = judge(queue, PoolSpec(label="p"), horizon_s=30 * DAY_S)
            told = queue.waits[queue.created >= judged.since]
            found["model"].append(off(judged.predicted.p90, judged.observed.p90))
            if not one.recipe.boot_s:
                found["itself"].append(off(itself(one, judged.since, 77 * seed + 5), judged.observed.p90))
            found["once"].append(off(once.predicted.p90, once.observed.p90))
            found["naive"].append(off(naive(queue, one.capacity, judged.since), judged.observed.p90))
            found["mean"].append(off(allen_cunneen(queue, one.capacity, judged.since), float(told.mean())))
            fits.append(judged.fits)
            bursty.append(dispersion(queue.created))
        if not fits:
            continue
        errors = {name: np.abs(np.array(values)) for name, values in found.items()}
        model, once_off = errors["model"], errors["once"]
        row = [kind, len(model), f"{np.median(bursty):.0f}", f"{np.median(model):.1%}", f"{(model <= 0.1).mean():.0%}"]
        row += [f"{(model <= 0.2).mean():.0%}"]
        alone = errors["itself"]
        row += [f"{(alone <= bound).mean():.0%}" if len(alone) else "-" for bound in (0.1, 0.2)]
        row += [f"{np.mean(fits):.0%}", f"{np.median(once_off):.1%}"]
        row += [f"{(once_off <= 0.2).mean():.0%}", f"{np.median(found['naive']):+.0%}"]
        rows.append([*row, f"{np.median(found['mean']):+.0%}"])
        figures[kind] = {name: list(values) for name, values in found.items()} | {"fits": fits}
    header = [
        "pools",
        "n",
        "bursts",
        "p90 off",
        "<10 %",
        "<20 %",
        "itself: <10 %",
        "<20 %",
        "fits",
        "once: off",
        "<20 %",
        "naive",
        "Allen-C.",
    ]
    return table(header, rows), figures


SHARDS = ((1, 4.0), (2, 2.0), (4, 1.0), (8, 0.5), (4, 0.5), (4, 2.0))
"""(shards, length of each in units): what the workflow's jobs could be replaced by."""


def option(name: str, shards: int, seconds: float, every_h: float | None = None, label: str = "p") -> Option:
    need = TestNeed(nodeid="t")
    walls = (seconds,) * shards
    runner = Runner(devices=4, label=label)
    lanes = [Lane(runner=runner, tests=(need.nodeid,), shards=((),) * shards, walls_s=walls)]
    if every_h is not None:
        lanes.append(
            Lane(runner=runner, every_h=every_h, tests=(need.nodeid,), shards=((),) * 4, walls_s=(seconds,) * 4)
        )
    return Option(name=name, lanes=tuple(lanes))


def candidates(unit_s: float) -> list[Option]:
    found = [option(f"{n} x {length:g}", n, length * unit_s) for n, length in SHARDS]
    return [*found, option("2 x 1 + 4 x 1 every 3 h", 2, unit_s, 3.0)]


def truth(one: World, replaced: Any, pushes: list[float], some: Option, since: float) -> float:
    """p90 of the signal of an option in the true world."""
    kept = ~replaced
    created, held, owner = [one.created[kept]], [(one.seconds + one.delays)[kept]], [np.full(int(kept.sum()), -1)]
    delay = one.recipe.delay_s
    ticks: Any
    for lane in some.lanes:
        if lane.every_h is None:
            ticks, number = np.array(pushes), np.arange(len(pushes))
        else:
            ticks = np.arange(since, one.created[-1], lane.every_h * HOUR_S)
            number = np.full(len(ticks), -1)
        created.append(np.repeat(ticks, len(lane.walls_s)))
        held.append(np.tile(np.array(lane.walls_s) + delay, len(ticks)))
        owner.append(np.repeat(number, len(lane.walls_s)))
    at, took, whose = np.concatenate(created), np.concatenate(held), np.concatenate(owner)
    order = np.argsort(at, kind="stable")
    begun = np.empty(len(at))
    begun[order] = starts(at[order].tolist(), took[order].tolist(), one.capacity)
    ends = np.zeros(len(pushes))
    mine = whose >= 0
    np.maximum.at(ends, whose[mine], (begun + took - at)[mine])
    return float(np.quantile(ends[np.array(pushes) >= since], 0.9))


def ranking(pools: int) -> tuple[str, dict[str, Any]]:
    rows, figures = [], {}
    for number, kind in enumerate(KINDS):
        random = np.random.default_rng(500 + number)
        right = pairs = refused = best = asked = 0
        for seed in range(pools):
            made = recipe(kind, random)
            if made.boot_s:
                continue
            one = world(made, seed)
            started = true_starts(one)
            queue = queue_of(*(array[one.ours] for array in (one.created, started, started + one.seconds)))
            judged = judge(queue, PoolSpec(label="p"))
            asked += 1
            if not judged.can_rank or judged.steps is None:
                refused += 1
                continue
            ours = np.unique(one.bursts[one.ours])
            chosen = set(ours[:: max(2, len(ours) // 150)].tolist())
            replaced = one.ours & np.isin(one.bursts, list(chosen))
            pushes = [float(one.created[one.bursts == burst][0]) for burst in sorted(chosen)]
            judged_pushes = [at for at in pushes if at >= judged.since]
            if len(judged_pushes) < 8:
                asked -= 1
                continue
            pool = Pool(
                label="p", queue=queue, capacity=judged.steps, delay_s=judged.delay_s, disorder=judged.disorder,
                ours=replaced[one.ours].astype(float), since=judged.since, until=judged.until,
            )  # fmt: skip
            options = candidates(made.median_s)
            said = [waiting(some, {"p": pool}, judged_pushes) for some in options]
            told = [truth(one, replaced, pushes, some, judged.since) for some in options]
            for i, j in itertools.combinations(range(len(options)), 2):
                if abs(told[i] - told[j]) >= 0.05 * min(told[i], told[j]):
                    pairs += 1
                    right += (told[i] < told[j]) == (said[i].signal_p90 < said[j].signal_p90)
            best += told[int(np.argmin([one.signal_p90 for one in said]))] <= 1.05 * min(told)
        if asked:
            share = right / pairs if pairs else float("nan")
            rows.append([kind, asked, refused, pairs, f"{share:.1%}", f"{best}/{asked - refused}"])
            figures[kind] = {"right": right, "pairs": pairs, "refused": refused, "best": best}
    total = sum(one["right"] for one in figures.values()) / max(1, sum(one["pairs"] for one in figures.values()))
    figures["right"] = total
    text = table(["pools", "pools", "refused", "pairs", "in the right order", "best within 5 %"], rows)
    return f"{text}\nall: {total:.1%} of pairs in the right order", figures


def node_recipe(random: np.random.Generator) -> SharedRecipe:
    return SharedRecipe(
        nodes=int(random.choice([2, 4, 8, 16])),
        load=float(random.uniform(0.5, 0.85)),
        batch=float(random.uniform(2, 10)),
        median_s=float(random.choice([900, 2400, 6000])),
        sigma=float(random.uniform(0.3, 0.9)),
        handover_s=float(random.uniform(5, 60)),
        reserves=bool(random.random() < 0.7),
    )


NODE_OPTIONS = (
    ("gpu.4", 2, 2.0),
    ("gpu.4", 4, 1.0),
    ("gpu.2", 2, 2.0),
    ("gpu.2", 4, 1.0),
    ("gpu.2", 4, 2.0),
    ("gpu.1", 8, 1.0),
)
"""(label, shards, length of each in units)."""


def node_truth(  # noqa: PLR0917 - one caller
    made: SharedRecipe, tasks: list[Task], gone: Any, pushes: list[float], some: Option, since: float
) -> float:
    """p90 of the signal of an option on the true nodes."""
    kept = [task for task, is_gone in zip(tasks, gone, strict=True) if not is_gone]
    lane = some.lanes[0]
    added = [Task(label=lane.runner.label, created=at, seconds=wall) for at in pushes for wall in lane.walls_s]
    started = np.array(play([*kept, *added], dict.fromkeys(made.shares, made.pool)).started)[len(kept) :]
    ends = (started - np.array([task.created for task in added])).reshape(len(pushes), -1) + np.array(lane.walls_s)
    return float(np.quantile(ends.max(axis=1)[np.array(pushes) >= since], 0.9))


def nodes(pools: int) -> tuple[str, dict[str, Any]]:
    random = np.random.default_rng(900)
    found: dict[str, list[float]] = {name: [] for name in ("alone", "declared", "fitted")}
    right = pairs = refused = best = 0
    for seed in range(pools):
        made = node_recipe(random)
        tasks = shared_tasks(made, seed)
        queues = shared_queues(made, tasks, seed)
        unknown = Nodes(
            nodes=tuple(structs.replace(node, count=0) for node in made.pool.nodes),
            handover_s=made.handover_s, reserves=made.reserves,
        )  # fmt: skip
        split = min(split_of(queue, 0.7) for queue in queues.values())
        crowds = {"alone": None, "declared": crowd_of(queues, made.pool)}
        crowds["fitted"] = fitted(crowd_of(queues, unknown), split)
        judged: dict[str, Any] = {}
        for name, crowd in crowds.items():
            for label, queue in queues.items():
                one = judge(queue, PoolSpec(label=label), crowd=crowd)
                found[name].append(off(one.predicted.p90, one.observed.p90))
                if name == "declared":
                    judged[label] = one
        if any(abs(one.errors.get("declared", 1.0)) > 0.2 or not one.fits for one in judged.values()):
            refused += 1
            continue
        wide = np.array([task.label == "gpu.4" for task in tasks])
        bursts = np.cumsum(np.concatenate([[True], np.diff([task.created for task in tasks]) > 1.0]))
        chosen = np.unique(bursts[wide])
        chosen = chosen[:: max(2, len(chosen) // 120)]
        gone = wide & np.isin(bursts, chosen)
        first = [float(tasks[int(np.flatnonzero(bursts == burst)[0])].created) for burst in chosen]
        pushes = sorted(at for at in first if at >= judged["gpu.4"].since)
        created = np.array([task.created for task, is_gone in zip(tasks, gone, strict=True) if is_gone])
        known = {
            label: Pool(
                label=label, queue=queues[label], capacity=Steps((0.0,), (1.0,)), delay_s=one.delay_s,
                ours=np.isin(queues[label].created, created).astype(float) * (label == "gpu.4"),
                since=one.since, until=one.until, crowd=crowds["declared"],
            )
            for label, one in judged.items()
        }  # fmt: skip
        options = [
            option(f"{n} x {length:g} on {label}", n, length * made.median_s, label=label)
            for label, n, length in NODE_OPTIONS
        ]
        said = [waiting(some, known, pushes) for some in options]
        told = [node_truth(made, tasks, gone, pushes, some, judged["gpu.4"].since) for some in options]
        for i, j in itertools.combinations(range(len(options)), 2):
            if abs(told[i] - told[j]) >= 0.05 * min(told[i], told[j]):
                pairs += 1
                right += (told[i] < told[j]) == (said[i].signal_p90 < said[j].signal_p90)
        best += told[int(np.argmin([one.signal_p90 for one in said]))] <= 1.05 * min(told)
    rows = []
    for name, values in found.items():
        errors = np.abs(np.array(values))
        rows.append(
            [
                name,
                len(errors),
                f"{np.median(errors):.1%}",
                f"{(errors <= 0.1).mean():.0%}",
                f"{(errors <= 0.2).mean():.0%}",
            ]
        )
    share = right / max(1, pairs)
    text = table(["nodes", "labels", "p90 off", "<10 %", "<20 %"], rows)
    ranked = (
        f"{share:.1%} of {pairs} pairs in the right order, best within 5 %: {best}/{pools - refused}, refused {refused}"
    )
    return f"{text}\noptions on nodes: {ranked}", {
        **found,
        "right": right,
        "pairs": pairs,
        "refused": refused,
        "best": best,
    }


def speed() -> tuple[str, dict[str, float]]:
    one = world(Recipe(machines=650, batch=60, load=0.85, days=60), 0)
    created, seconds = one.created.tolist(), one.seconds.tolist()
    begin = time.perf_counter()
    starts(created, seconds, one.capacity)
    fast = time.perf_counter() - begin
    tasks = [Task(label="p", created=at, seconds=s) for at, s in zip(created, seconds, strict=True)]
    begin = time.perf_counter()
    play(tasks, {"p": Machines(capacity=one.capacity)})
    general = time.perf_counter() - begin
    started = true_starts(one)
    queue = queue_of(one.created, started, started + one.seconds)
    begin = time.perf_counter()
    judge(queue, PoolSpec(label="p"))
    fit = time.perf_counter() - begin
    figures = {"jobs": len(created), "fast_s": fast, "general_s": general, "fit_and_judge_s": fit}
    figures["command_s"] = _command_s(queue, lambda _: "", "")
    figures["grouped_s"] = _command_s(queue, _in_groups, ",run,workflow,branch")
    rows = [
        ["replay, first come first served", f"{fast:.1f} s"],
        ["replay, general (priorities, needs, cancellation, nodes)", f"{general:.1f} s"],
        ["fit and judge, all candidates", f"{fit:.1f} s"],
        ["sooner simulate-pool, from a CSV file", f"{figures['command_s']:.1f} s"],
        ["the same, with runs, workflows and branches", f"{figures['grouped_s']:.1f} s"],
    ]
    return table([f"{len(created):,} jobs", "time"], rows), figures


def _command_s(queue: Queue, more: Callable[[int], str], names: str) -> float:
    """Seconds of the whole command over these jobs as a table; `more` gives each job further cells."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "jobs.csv")
        rows = enumerate(zip(queue.created, queue.started, queue.completed, strict=True))
        path.write_text(
            f"label,created,started,completed{names}\n" + "\n".join(f"p,{c},{s},{e}{more(i)}" for i, (c, s, e) in rows)
        )
        begin = time.perf_counter()
        os.system(f"{sys.executable} -m sooner simulate-pool --jobs {path} --json > /dev/null")
        return time.perf_counter() - begin


def _in_groups(job: int) -> str:
    """Twenty jobs a run, forty workflows, three thousand branches."""
    run = job // 20
    return f",{run},workflow{run % 40},branch{run * 7919 % 3000}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pools", type=int, default=20, help="pools of each kind (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of `accuracy`, the first pool's (default: %(default)s)")
    parser.add_argument("--most-jobs", type=float, default=np.inf, help="leave larger pools of `accuracy` out")
    parser.add_argument("--only", choices=["accuracy", "ranking", "nodes", "speed"], help="one part")
    options = parser.parse_args()
    figures: dict[str, Any] = {"machine": machine()}
    parts = {
        "accuracy": lambda: accuracy(options.pools, options.seed, options.most_jobs),
        "ranking": lambda: ranking(options.pools),
        "nodes": lambda: nodes(options.pools),
        "speed": speed,
    }
    for name, part in parts.items():
        if options.only in (None, name):
            text, figures[name] = part()
            print(f"{text}\n", flush=True)
    save("pools", figures)


if __name__ == "__main__":
    main()
