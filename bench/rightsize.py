"""The price of PyTorch's pull request 177085, and placements that keep every test at its full need.

Data: seconds of each file of the ROCm `distributed` configuration, by week
(pytorch_distributed_test_times_2026.csv.gz), and jobs by runner label in 30 days
(pytorch_runner_load_30d_2026-03-18.csv). Entries that have not changed for four weeks belong to jobs that no longer
run, and are dropped.

Assumption: which tests are in which file is not in the data. As many tests as the pull request counts are laid into the
files at random, in proportion to the files' seconds; needs are as often as they were measured on PyTorch 2.6 (4,700
tests), and tests that need more than two devices sit in 47 of the files. All tests take as long, or those whose full
need is above two devices take 0.5, 2 or 4 times as long as others: the least saving over these is given too.
"""

import argparse
import csv
import datetime as dt
import gzip
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from figures import machine, save, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from sooner.analysis.sizing.decide import Limits, Objective, Priced, decide
from sooner.analysis.sizing.needs import PROBED, TestNeed
from sooner.analysis.sizing.options import options
from sooner.analysis.sizing.placement import Option, Runner, Terms, Test, lane, price

BUILD = "linux-jammy-rocm-py3.10"
AT = "2026-03-15"
"""The last snapshot before the pull request."""
FROZEN_DAYS = 28
TESTS = 4495
WIDE_FILES = 47
LABEL = "linux.rocm.gpu.gfx950."
SHARDS = 3
FACTORS = (1.0, 0.5, 2.0, 4.0)
"""How much longer tests of a full need above two devices take than others; the first is shown."""
MEASURED = (
    # tests, fewest devices, fewest at which it runs on devices, full need
    (2269, 0, 0, 0),
    (408, 1, 1, 1),
    (617, 2, 2, 2),
    (782, 2, 2, 4),
    (64, 0, 4, 4),
    (341, 4, 4, 4),
    (12, 8, 8, 8),
)
"""PyTorch 2.6, 4,700 tests without 207 that never ran: profiles over numbers of visible devices."""


def seconds_of_files(data: Path) -> tuple[dict[str, float], int]:
    """Seconds by file at the snapshot, and how many entries were dropped as frozen."""
    with gzip.open(data / "pytorch_distributed_test_times_2026.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if row["build_env"] == BUILD]
    now = dt.date.fromisoformat(AT)
    history: dict[str, dict[dt.date, float]] = {}
    for row in rows:
        date = dt.date.fromisoformat(row["date"])
        if date <= now:
            history.setdefault(row["test_file"], {})[date] = float(row["seconds"])
    current = {name: values for name, values in history.items() if now in values}
    kept = {name: values[now] for name, values in current.items() if not frozen(values, now)}
    return kept, len(current) - len(kept)


def frozen(values: dict[dt.date, float], now: dt.date) -> bool:
    """Whether a file's seconds are what they were in every snapshot of the last four weeks, and before."""
    last = [seconds for date, seconds in values.items() if date >= now - dt.timedelta(days=FROZEN_DAYS + 3)]
    return min(values) <= now - dt.timedelta(days=FROZEN_DAYS) and len(set(last)) == 1


def runs_per_day(data: Path) -> float:
    with (data / "pytorch_runner_load_30d_2026-03-18.csv").open() as file:
        jobs = {row["runner_label"]: float(row["jobs_30d"]) for row in csv.DictReader(file)}
    return jobs[f"{LABEL}4"] / 30 / SHARDS


def drawn(files: dict[str, float], seed: int, wide_factor: float) -> list[Test]:
    """Tests laid into files, with needs."""
    random = np.random.default_rng(seed)
    names, seconds = list(files), np.array(list(files.values()))
    share = seconds / seconds.sum()
    total = sum(count for count, *_ in MEASURED)
    wide = set(random.choice(len(names), WIDE_FILES, replace=False, p=share).tolist())
    inside = np.array([index in wide for index in range(len(names))])
    counts = random.multinomial(TESTS, share)
    slots = {True: [i for i, n in enumerate(counts) for _ in range(n) if inside[i]],
             False: [i for i, n in enumerate(counts) for _ in range(n) if not inside[i]]}  # fmt: skip
    kinds: list[tuple[int, int, int]] = []
    for count, *kind in MEASURED:
        kinds += [tuple(kind)] * round(count / total * TESTS)  # type: ignore[list-item]
    kinds = kinds[:TESTS]
    random.shuffle(slots[True])
    random.shuffle(slots[False])
    tests = []
    weights = sum(count / total * (wide_factor if full > 2 else 1.0) for count, _, _, full in MEASURED)
    each = seconds.sum() / TESTS / weights
    for number, (least, gpu, full) in enumerate(sorted(kinds, key=lambda kind: -kind[0])):
        pile = slots[True] if (least > 2 and slots[True]) or not slots[False] else slots[False]
        if least <= 2 and slots[True] and random.random() < len(slots[True]) / (len(slots[True]) + len(slots[False])):
            pile = slots[True]
        path = names[pile.pop()]
        profile = {str(n): "run" if n >= least else "skip" for n in PROBED}
        need = TestNeed(
            nodeid=f"{path}::t{number}", path=path, profile=profile, min=least, gpu_min=gpu or None, full=full,
            adaptive=least < full,
        )  # fmt: skip
        tests.append(Test(need=need, seconds=each * (wide_factor if full > 2 else 1.0)))
    return tests


def study(tests: Sequence[Test], runs: float, sizes: Sequence[int], setup_min: float) -> dict[str, Priced]:
    runners = tuple(Runner(devices=n, label=f"{LABEL}{n}") for n in sizes)
    total = sum(test.seconds for test in tests)
    terms = Terms(
        runners=runners, commits_per_day=runs, target_s=1.1 * total / SHARDS + setup_min * 60, setup_s=setup_min * 60
    )
    four = runners[-1]
    found = options(tests, terms, periods_h=(3.0, 24.0), current=(four, SHARDS))
    two = next(runner for runner in runners if runner.devices == 2)
    everything = lane(tests, two, terms, shards=SHARDS), lane(tests, four, terms, every_h=3, shards=SHARDS)
    found.insert(1, Option(name="177085", lanes=everything))
    found.insert(2, Option(name="177085, periodic off", lanes=everything[:1]))
    return {
        one.name: Priced(option=one, price=price(one, tests, terms), refused="no arrivals in the data") for one in found
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("SOONER_DATA"), help="folder with the two files")
    parser.add_argument("--seed", type=int, default=0, help="of where tests are (default: %(default)s)")
    parser.add_argument("--setup", type=float, default=0.0, help="minutes of set-up of a shard (default: %(default)s)")
    choice = parser.parse_args()
    if choice.data is None or not choice.data.is_dir():
        parser.error("--data: which folder holds the data?")
    files, dropped = seconds_of_files(choice.data)
    runs = runs_per_day(choice.data)
    hours = sum(files.values()) / 3600
    print(f"{len(files)} files, {hours:.2f} h; {dropped} frozen entries dropped; {runs:.0f} runs a day")
    figures: dict[str, Any] = {"machine": machine(), "files": len(files), "runs_per_day": runs}
    for title, sizes in (("1, 2 and 4 devices", (1, 2, 4)), ("and CPU runners for CPU tests", (0, 1, 2, 4))):
        draws = [study(drawn(files, choice.seed, factor), runs, sizes, choice.setup) for factor in FACTORS]
        rows = []
        for name in [name for name in draws[0] if all(name in draw for draw in draws)]:
            costs = [draw[name].price for draw in draws]
            base = [draw["current"].price.device_minutes_per_day for draw in draws]
            share = [cost.device_minutes_per_day / b for cost, b in zip(costs, base, strict=True)]
            first = costs[0]
            rows.append(
                [
                    name, f"{first.device_minutes_per_day:,.0f}", f"{share[0]:.0%}",
                    f"{1 - max(share):.0%}", f"{first.longest_s / 3600:.1f} h",
                    *(first.at_commit.get(fate, 0) for fate in ("skipped", "falls_back", "fewer_ranks", "absent")),
                    len(first.lost), first.moved, f"{first.delay_mean_h:.1f} h", f"{first.delay_worst_h:.1f} h",
                ]
            )  # fmt: skip
        header = ["option", "device-min/day", "of now", "saved, least", "longest", "skip", "CPU", "fewer", "later",
                  "lost", "moved", "delay", "worst"]  # fmt: skip
        print(f"\nrunners of {title}:\n{table(header, rows)}")
        best = decide(list(draws[0].values()), Objective.DEVICE_MINUTES, Limits(delay_h=6, moved=1200))
        chosen = best.best.option.name if best.best else best.reason
        print(f"least device-minutes with at most 1,200 tests moved, for at most 6 h: {chosen}")
        figures[title] = {row[0]: row[1:] for row in rows}
    save("rightsize", figures)


if __name__ == "__main__":
    main()
