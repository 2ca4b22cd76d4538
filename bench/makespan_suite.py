"""The suites of the makespan bench: which units, how long they really take, what they recorded, what the bound is."""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

DEVICES: Final = 8
UNITS: Final = 60
WIDTHS: Final = {1: 0.72, 2: 0.14, 4: 0.09, 8: 0.05}
"""Share of the units of each width, as in the suites of GPU libraries: most need one device, few need all."""
NOISE: Final = 0.2
"""A unit really takes its nominal time, give or take so much."""
UNIT_SCRIPT: Final = Path(__file__).with_name("makespan_unit.sh")


class Unit(NamedTuple):
    """One unit: how many devices it needs, and how long it nominally takes."""

    name: str
    width: int
    seconds: float


class Record(NamedTuple):
    """What a unit wrote down about itself."""

    name: str
    start: float
    end: float
    alone: bool
    devices: frozenset[str]


class Result(NamedTuple):
    """One contestant on one suite."""

    wall_s: float
    """First start to last end, as the units recorded them."""
    bound_s: float
    """No schedule of these units, as long as they really took, ends sooner."""
    overlaps: int
    failures: int
    pause_s: float
    """Median time between the end of a unit and the start of the next on the same device."""

    @property
    def ratio(self) -> float:
        """Wall over bound."""
        return self.wall_s / self.bound_s


def make_suite(seed: int, *, mean_s: float, sigma: float) -> list[Unit]:
    """A suite: widths drawn by their shares, durations log-normal with this mean and this sigma of the logarithm."""
    source = random.Random(seed)
    widths = source.choices(list(WIDTHS), weights=list(WIDTHS.values()), k=UNITS)
    mu = math.log(mean_s) - sigma**2 / 2
    return [Unit(f"u{i:02d}", width, source.lognormvariate(mu, sigma)) for i, width in enumerate(widths)]


def draw(units: Sequence[Unit], seed: int) -> dict[str, float]:
    """How long each unit really takes this time."""
    source = random.Random(f"draw {seed}")
    return {unit.name: unit.seconds * source.uniform(1 - NOISE, 1 + NOISE) for unit in units}


def lay_out(folder: Path, seconds: Mapping[str, float]) -> Path:
    """Make the folder that the units of one run work in."""
    (folder / "seconds").mkdir(parents=True)
    (folder / "locks").mkdir()
    for name, value in seconds.items():
        (folder / "seconds" / name).write_text(f"{value:.4f}\n", encoding="ascii")
    return folder


def result_of(folder: Path, units: Sequence[Unit], *, phases: bool = False) -> Result:
    """Judge a run by what its units recorded, whatever the runner says about it.

    Args:
        folder: Where the units worked.
        units: What should have run.
        phases: Add up the walls of the widths instead of taking the whole: the pauses between phases, in which the
            runner starts anew, would not count in a suite that takes minutes.
    """
    records = _records(folder)
    by_name = {record.name: record for record in records}
    ran = [unit for unit in units if unit.name in by_name]
    took = [Unit(unit.name, unit.width, by_name[unit.name].end - by_name[unit.name].start) for unit in ran]
    groups = [[by_name[unit.name] for unit in ran if unit.width == width] for width in WIDTHS] if phases else [records]
    wrong = [unit for unit in ran if len(by_name[unit.name].devices) != unit.width]
    return Result(
        wall_s=sum(_wall(group) for group in groups if group),
        bound_s=bound(took),
        overlaps=sum(not record.alone for record in records),
        failures=len(units) - len(ran) + len(records) - len(by_name) + len(wrong),
        pause_s=_pause(records),
    )


def bound(units: Sequence[Unit]) -> float:
    """The tight lower bound: full-width units run alone; beside them area, the longest, and two 4-wide at once."""
    rest = [unit for unit in units if unit.width < DEVICES]
    area = sum(unit.width * unit.seconds for unit in rest) / DEVICES
    longest = max((unit.seconds for unit in rest), default=0.0)
    halves = sum(unit.seconds for unit in rest if unit.width == DEVICES // 2) / 2
    return sum(unit.seconds for unit in units if unit.width == DEVICES) + max(area, longest, halves)


def _records(folder: Path) -> list[Record]:
    try:
        lines = (folder / "times").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return []
    return [
        Record(name, float(start), float(end), state == "alone", frozenset(devices))
        for name, start, end, state, *devices in map(str.split, lines)
    ]


def _pause(records: Sequence[Record]) -> float:
    pauses = []
    for device in range(DEVICES):
        there = sorted((r.start, r.end) for r in records if str(device) in r.devices)
        pauses += [start - end for (_, end), (start, _) in pairwise(there)]
    return median(pauses) if pauses else 0.0


def _wall(records: Iterable[Record]) -> float:
    known = list(records)
    return max(record.end for record in known) - min(record.start for record in known)
