"""Change points of `sooner tts`: how soon a step of 15 % is seen, false alarms, whether its part is named right.

Job-months are simulated: 240 runs of a job (8 a day), log-normal noise, one run in a hundred an outlier of 2 to 5
times. Each month is looked at anew after every third run, as by somebody who asks daily. The real series is PyTorch's
weekly total of ROCm's `distributed` configuration, where the data is there: SOONER_DATA names the folder that holds
pytorch_config_totals_2026.csv.gz.
"""

import argparse
import csv
import gzip
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from figures import save, table

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from sooner.analysis.metrics.changes import Numbers, changes_of_runs, changes_of_totals, part_that_moved

RUNS, STEP, LATEST = 240, 1.15, 24
SERIES = ("linux-jammy-rocm-py3.10", "distributed", "2026-03-01")


def month(rng: np.random.Generator, sigma: float, runs: int = RUNS) -> Numbers:
    seconds = 600 * np.exp(rng.normal(0, sigma, runs))
    outliers = rng.random(runs) < 0.01
    seconds[outliers] *= rng.uniform(2, 5, outliers.sum())
    return seconds


def false_alarms(rng: np.random.Generator, sigma: float, months: int) -> int:
    """Places where a change was reported at any time, in months without one."""
    count = 0
    for _ in range(months):
        seconds, alarms = month(rng, sigma), []
        for end in range(30, RUNS + 1, 3):
            for change in changes_of_runs(seconds[:end]):
                if all(abs(change.index - alarm) > 20 for alarm in alarms):
                    alarms.append(change.index)
        count += len(alarms)
    return count


def delays(rng: np.random.Generator, sigma: float, trials: int) -> Numbers:
    """Runs after a step until it is reported; RUNS where it never is."""
    found = []
    for _ in range(trials):
        seconds = month(rng, sigma)
        seconds[150:] *= STEP
        ends = range(151, 151 + 60)
        found.append(next((e - 150 for e in ends if any(c.index >= 140 for c in changes_of_runs(seconds[:e]))), RUNS))
    return np.array(found)


def attribution(rng: np.random.Generator, trials: int) -> float:
    """Share of steps, of the queue or of the duration, whose part was named right."""
    right = 0
    for trial in range(trials):
        queue, duration = 200 * np.exp(rng.normal(0, 0.3, 120)), month(rng, 0.1, 120)
        step = 0.15 * (queue.mean() + duration.mean())
        (queue if trial % 2 else duration)[60:] += step
        parts = [{"queue": queue[:60], "run": duration[:60]}, {"queue": queue[60:], "run": duration[60:]}]
        right += part_that_moved(*parts)[0].part == ("queue" if trial % 2 else "run")
    return right / trials


def first_sight(data: Path) -> str:
    """The last snapshot that was known when the jump was first reported."""
    with gzip.open(data / "pytorch_config_totals_2026.csv.gz", "rt") as file:
        rows = [row for row in csv.DictReader(file) if (row["build_env"], row["config"]) == SERIES[:2]]
    for end in range(5, len(rows) + 1):
        changes = changes_of_totals([float(row["total_seconds"]) for row in rows[:end]])
        if any(rows[change.index]["date"] == SERIES[2] for change in changes):
            return rows[end - 1]["date"]
    return "never"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    rng = np.random.default_rng(1)
    rows: list[list[str]] = []
    figures: dict[str, Any] = {}
    for sigma in (0.05, 0.08, 0.1, 0.15):
        alarms, found = false_alarms(rng, sigma, 100 // share), delays(rng, sigma, 200 // share)
        within = float((found <= LATEST).mean())
        figures[str(sigma)] = {"false_alarms_per_100_months": alarms * share, "within_24": within}
        rows.append(
            [
                f"{sigma:.0%}",
                alarms * share,
                f"{np.median(found):.0f}",
                f"{np.quantile(found, 0.9):.0f}",
                f"{within:.0%}",
            ]
        )
    columns = ["noise", "false alarms / 100 job-months", "delay, median", "delay, p90", "within 24 runs"]
    text = table(columns, rows)
    figures["attribution"] = attribution(rng, 400 // share)
    text += f"\nsteps of 15 % whose part (queue or duration) was named right: {figures['attribution']:.1%}"
    data = os.environ.get("SOONER_DATA", "")
    if data:
        figures["rocm_jump_seen_in"] = first_sight(Path(data))
        text += f"\nROCm distributed, 5.79 h -> 8.19 h on {SERIES[2]}: first reported in the snapshot of "
        text += figures["rocm_jump_seen_in"]
    print(text)
    save("metrics", figures)


if __name__ == "__main__":
    main()
