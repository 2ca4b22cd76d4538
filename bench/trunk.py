"""Which commit broke trunk: the posterior beside the published rules on simulated trunks, calibration, speed, Ozone.

Each row is so many simulated trunks whose culprits are known. The rules are those of PyTorch's auto-revert, unmodified
(`--policy rules`). `--data DIR` adds the list of breakages of Apache Ozone, whose tables are not part of this project.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from figures import machine, save, table
from sooner.analysis.trunk.decide import decide, is_documentation
from sooner.analysis.trunk.facts import Commit, Event, Policy, Question, Revert, Signal, Status
from sooner.analysis.trunk.scores import Score, reliability, score
from sooner.analysis.trunk.simulate import SCENARIOS, Ending, Scenario, simulate

TRUNKS: Final = 400
SIGNALS: Final = 10_000
COMMITS: Final = 200
GOAL_S: Final = 5.0
LEARN_EVERY: Final = 200
"""Commits of Ozone after which it is learned anew which paths break which signals."""


def one(task: tuple[Scenario, Policy, int]) -> Ending:
    scenario, policy, seed = task
    return simulate(scenario, lambda question: decide(question, policy), seed)


def policies(
    trunks: int, seed: int, judges: tuple[Policy, ...], jobs: int
) -> tuple[list[list[str]], list[tuple[float, bool]], list[dict[str, object]]]:
    """Rows of the table, what was stated of each revert of ours, and the raw scores."""
    rows, stated, raw = [], [], []
    with ProcessPoolExecutor(jobs) as pool:
        for scenario in SCENARIOS:
            for policy in judges:
                tasks = [(scenario, policy, seed + number) for number in range(trunks)]
                endings = list(pool.map(one, tasks, chunksize=4))
                found = score(endings)
                rows.append(row(scenario, policy, found, [p for ending in endings for p, _ in ending.stated]))
                print(*rows[-1], sep="  ", file=sys.stderr, flush=True)
                raw.append({"scenario": scenario.name, "policy": policy, "score": msgspec.to_builtins(found)})
                if policy is Policy.BAYES:
                    stated += [pair for ending in endings for pair in ending.stated]
    return rows, stated, raw


def row(scenario: Scenario, policy: Policy, found: Score, stated: list[float]) -> list[str]:
    hours = "" if found.median_hours is None else f"{found.median_hours:.1f}"
    precision = ""
    if found.precision is not None and found.precision_low is not None:
        precision = f"{100 * found.precision:.1f} (from {100 * found.precision_low:.1f})"
    shares = [f"{100 * share:.1f}" for share in (found.right, found.wrong, found.none)]
    said = f"{100 * statistics.fmean(stated):.2f}" if stated and policy is Policy.BAYES else ""
    return [f"{scenario.name}, {policy}", *shares, hours, f"{found.mean_reruns:.1f}", precision, said]


def large_question(signals: int, seed: int) -> Question:
    """One signal in ten is broken, one run in a hundred is a flake."""
    generator = random.Random(seed)
    commits = tuple(Commit(sha=f"c{i}", time=300.0 * i) for i in reversed(range(COMMITS)))
    found = []
    for number in range(signals):
        culprit = generator.randrange(COMMITS // 2, COMMITS) if generator.random() < 0.1 else COMMITS
        events = tuple(
            Event(
                sha=f"c{i}",
                status=Status.FAILURE if i >= culprit or generator.random() < 0.01 else Status.SUCCESS,
                started_at=300.0 * i,
            )
            for i in range(COMMITS - 10)
        )
        found.append(Signal(key=f"signal {number}", events=events))
    return Question(now=300.0 * COMMITS, commits=commits, signals=tuple(found))


def speed(signals: int) -> tuple[float, float]:
    """Seconds to decide, and to read the document."""
    document = msgspec.json.encode(large_question(signals, 1))
    began = time.perf_counter()
    question = msgspec.json.decode(document, type=Question)
    read = time.perf_counter()
    decide(question)
    return time.perf_counter() - read, read - began


def ozone(data: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="sooner-trunk-") as folder:
        history = str(Path(folder) / "history")
        sources = [str(data / name) for name in ("ozone_jobs.csv.gz", "ozone_files.csv.gz")]
        sooner = [sys.executable, "-m", "sooner"]
        subprocess.run([*sooner, "ingest", *sources, "--history", history], check=True, capture_output=True)
        command = [*sooner, "trunk", "verdicts", "--history", history, "--breakages"]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        print(f"\nOzone: {len(lines)} breakages; the last five:\n" + "\n".join(lines[-5:]))
        replay(history)


def replay(root: str) -> None:
    """Decide after every commit as it would have been decided then; no revert may name a documentation-only commit."""
    from sooner.analysis.trunk.lessons import Lessons
    from sooner.analysis.trunk.load import load_trunk
    from sooner.analysis.trunk.replay import lessons_at, question_at
    from sooner.history import History, Where

    with History(root) as history:
        trunk = load_trunk(history, Where())
    files = {commit.sha: commit.files for commit in trunk.commits}
    reverts: dict[str, float] = {}
    lessons = Lessons()
    for number, commit in enumerate(trunk.commits[60:]):
        now = commit.time + 6 * 3600
        if number % LEARN_EVERY == 0:
            lessons = lessons_at(trunk.commits, trunk.signals, now, window=60)
        question = question_at(trunk.commits, trunk.signals, now, window=60, lessons=lessons)
        for decision in decide(question).decisions:
            if isinstance(decision, Revert):
                reverts[decision.culprit] = max(decision.probability or 0, reverts.get(decision.culprit, 0))
    documents = [sha for sha in reverts if files[sha] and all(map(is_documentation, files[sha] or ()))]
    print(f"replayed over {len(trunk.commits)} commits: {len(reverts)} reverts, {len(documents)} of documentation only")
    print(f"paths: {lessons.culprits} culprits, gain {lessons.gain:.2f}, used: {bool(lessons.everywhere)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trunks", type=int, default=TRUNKS, help=f"simulated trunks a row (default {TRUNKS})")
    parser.add_argument("--seed", type=int, default=10_000, help="of the first trunk (default 10000)")
    parser.add_argument("--quick", action="store_true", help="40 trunks a row, 1,000 signals")
    parser.add_argument("--policy", choices=list(Policy), help="only this one (default: both)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one a CPU)")
    parser.add_argument("--data", type=Path, help="folder with ozone_jobs.csv.gz and ozone_files.csv.gz")
    arguments = parser.parse_args()
    trunks, signals = (40, 1_000) if arguments.quick else (arguments.trunks, SIGNALS)
    judges = (Policy(arguments.policy),) if arguments.policy else (Policy.RULES, Policy.BAYES)
    rows, stated, raw = policies(trunks, arguments.seed, judges, arguments.jobs)
    heads = [
        f"{trunks} trunks a row",
        "right %",
        "wrong %",
        "none %",
        "hours",
        "reruns",
        "precision % (95 %)",
        "stated %",
    ]
    print(table(heads, rows))
    print("\nour reverts by the probability that was stated")
    lines = [
        [
            f"{r.low:.4f} - {r.high:.4f}",
            str(r.reverts),
            f"{r.stated:.4f}",
            f"{r.right:.4f}",
            f"{r.right_low:.4f} - {r.right_high:.4f}",
        ]
        for r in reliability(stated)
    ]
    print(table(["stated", "reverts", "mean", "right", "95 % interval"], lines))
    runs = [speed(signals) for _ in range(3)]
    seconds, reading = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"\n{signals:,} signals x {COMMITS} commits decided in {seconds:.1f} s, read in {reading:.1f} s", end=" ")
    print(f"(goal for 10,000: < {GOAL_S:.0f} s)")
    if arguments.data:
        ozone(arguments.data)
    figures = {"machine": machine(), "trunks": trunks, "rows": raw, "decide_s": seconds, "read_s": reading}
    print(f"\n{save('trunk', figures)}")


if __name__ == "__main__":
    main()
