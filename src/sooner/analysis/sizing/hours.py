"""A level that depends on the hour of the day, and grows: fitted to what was seen of it, here and there."""

from typing import Final

import numpy as np
from msgspec import Struct, structs

from sooner.analysis.sizing.facts import DAY_S, HOUR_S, Indices, Numbers

_THURSDAY, _SATURDAY = 3, 5
"""Days of the week, from Monday on: of the beginning of time, and of the first day off."""
_HOURS: Final = 48
"""Of a working day, then those of a weekend; UTC."""
_APART: Final = 0.2
"""How far hours beside each other are apart, logarithm; standard deviation expected beforehand."""
_GROWTH: Final = 0.015
"""Growth a day, logarithm; standard deviation expected beforehand. Half as much again in a month."""
_LASTS_H: Final = 6.0
"""Hours for which what is off stays off: so much of the record counts as one observation."""
_LEAST_NOISE: Final = 0.02
_LEAST: Final = 0.5
"""Values below are taken for this: logarithms have no zero."""
_ROUNDS: Final = 3
_AHEAD_S: Final = 3 * DAY_S
"""Growth beyond this is not believed."""


def hour_of(times: Numbers) -> Indices:
    """The hour of the day, 24 more at weekends; UTC."""
    weekend = (times // DAY_S + _THURSDAY) % 7 >= _SATURDAY
    found: Indices = (times % DAY_S // HOUR_S + 24 * weekend).astype(np.int64)
    return found


class Levels(Struct, frozen=True):
    """The level at any time."""

    usual: float
    hours: Numbers
    """Of each hour (`hour_of`), beside the usual one; logarithms."""
    growth: float
    """A day; logarithm."""
    now: float

    def scaled(self, scale: float) -> "Levels":
        """So many times as high, at every hour."""
        return structs.replace(self, usual=self.usual * scale)

    def at(self, times: Numbers) -> Numbers:
        """Levels at these times."""
        days = np.minimum(times - self.now, _AHEAD_S) / DAY_S
        found: Numbers = self.usual * np.exp(self.hours[hour_of(times)] + self.growth * days)
        return found


def levels_of(times: Numbers, values: Numbers, seconds: Numbers, now: float) -> Levels:
    """Hours and growth at once, by least squares with a prior: growth alone would be taken for hours, and the reverse.

    An hour that was hardly seen is like its neighbours, and like that of the other kind of day; the noisier the values
    are beside the fit, the more so. How noisy they are follows from the fit, so it is made a few times.

    Args:
        times: When values were seen, epoch seconds.
        values: What was seen.
        seconds: For how long each was seen: its weight.
        now: The time that growth is counted from.
    """
    hours, days = hour_of(times), (times - now) / DAY_S
    mean = float(np.average(values, weights=seconds))
    beside = np.log(np.maximum(values, _LEAST) / mean)
    weights = seconds / HOUR_S
    seen, right = np.zeros((_HOURS + 1, _HOURS + 1)), np.zeros(_HOURS + 1)
    np.add.at(seen, (hours, hours), weights)
    seen[:_HOURS, _HOURS] = seen[_HOURS, :_HOURS] = np.bincount(hours, weights * days, _HOURS)
    seen[_HOURS, _HOURS] = float((weights * days * days).sum())
    right[:_HOURS] = np.bincount(hours, weights * beside, _HOURS)
    right[_HOURS] = float((weights * days * beside).sum())
    noise = _LEAST_NOISE**2
    for _ in range(_ROUNDS):
        found: Numbers = np.linalg.solve(seen + _LASTS_H * noise * _PRIOR, right).astype(np.float64)
        off = beside - found[hours] - found[_HOURS] * days
        noise = max(_LEAST_NOISE**2, float(np.average(off * off, weights=seconds)))
    # The mean of logarithms is less than the logarithm of the mean: levels are those that give the mean that was seen.
    usual = float(np.average(values, weights=seconds) / np.average(np.exp(beside - off), weights=seconds))
    return Levels(usual, found[:_HOURS], float(found[_HOURS]), now)


def _prior() -> Numbers:
    """Precision of what is expected beforehand."""
    hours = np.arange(24)
    pairs = [(first + hours, first + (hours + 1) % 24) for first in (0, 24)] + [(hours, hours + 24)]
    found = np.diag(np.full(_HOURS + 1, 0.2 / _APART**2))
    for one, other in pairs:
        np.add.at(found, (one, one), 1 / _APART**2)
        np.add.at(found, (other, other), 1 / _APART**2)
        np.subtract.at(found, (one, other), 1 / _APART**2)
        np.subtract.at(found, (other, one), 1 / _APART**2)
    found[_HOURS, _HOURS] = 1 / _GROWTH**2
    return found


_PRIOR: Final = _prior()
