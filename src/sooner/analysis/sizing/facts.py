"""What pools and their jobs are, as facts. Times are epoch seconds, lengths are seconds, unknown is NaN.

Needs numpy (`pip install 'sooner[stats]'`).
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]

DAY_S: Final = 86_400.0
HOUR_S: Final = 3_600.0


class Queue(Struct, frozen=True, kw_only=True):
    """The jobs of one pool, in the order in which they were created. All arrays are of equal length."""

    created: Numbers
    """When a job could have started: what it needs had ended."""
    started: Numbers
    """NaN for a job that never started, or of which that is to be predicted."""
    completed: Numbers
    """When it ended; for one that never started, when it was given up."""
    seconds: Numbers
    """How long it runs; NaN where nobody knows."""
    to_predict: Flags
    """Jobs of the last part of the record whose start is not told: the model has to."""
    priority: Numbers | None = None
    """Higher is taken first; None: all are alike."""

    @property
    def waits(self) -> Numbers:
        """`started - created`, not below 0: clocks of two machines differ."""
        waits: Numbers = np.maximum(0.0, self.started - self.created)
        return waits

    def __len__(self) -> int:
        return len(self.created)


class Steps(Struct, frozen=True):
    """A number that changes over time: `counts[i]` holds from `times[i]` on, and the first one before that too."""

    times: tuple[float, ...]
    counts: tuple[float, ...]

    def since(self, at: float) -> "Steps":
        """The same from a time on."""
        index = max(0, int(np.searchsorted(self.times, at, side="right")) - 1)
        return Steps((at, *self.times[index + 1 :]), self.counts[index:])

    @property
    def top(self) -> float:
        """The largest count."""
        return max(self.counts)


class PoolSpec(Struct, frozen=True, kw_only=True):
    """What is declared about a pool; all of it may be unknown."""

    label: str
    capacity: Steps | None = None
    """Machines over time: how many jobs run at once."""
    boot_s: float = 0.0
    """From the moment that a job is given a machine until it starts on it; the machine is taken meanwhile."""
    idle_s: float | None = None
    """Machines are booted when jobs wait, and let go when they idle for so long; None: they stay on."""


class Node(Struct, frozen=True, kw_only=True):
    """Machines that split: each has `devices` and gives jobs of each label as many as `widths` says."""

    count: int
    """How many there are; 0 where nobody knows."""
    devices: int
    widths: Mapping[str, int]


class Percentiles(Struct, frozen=True, kw_only=True):
    """Of waits, in seconds."""

    p50: float | None
    p90: float | None

    @classmethod
    def of(cls, waits: Numbers) -> "Percentiles":
        """Interpolated linearly; None where there is nothing."""
        if not len(waits):
            return cls(p50=None, p90=None)
        p50, p90 = np.quantile(waits, [0.5, 0.9])
        return cls(p50=float(p50), p90=float(p90))
