"""What a cron means in hours. Pure."""

import re
from typing import Final

_DAY_H: Final = 24
_ANY_DAY: Final = ["*", "*", "*"]
_HOURS: Final = re.compile(r"(?:\*|(?P<first>\d{1,2})(?:-(?P<last>\d{1,2}))?)(?:/(?P<step>[1-9]\d?))?")
"""One part of the second field: `*`, `3`, `2-8`, each perhaps with `/2`."""


def cron_every(hours: float) -> str:
    """A cron of every so many hours, in the style of PyTorch's periodic workflows: `0 0,3,6,... * * *`.

    Raises:
        ValueError: Cron cannot say it: the hours do not divide a day.
    """
    if hours != int(hours) or not 1 <= hours <= _DAY_H or _DAY_H % int(hours):
        raise ValueError(hours)
    times = range(0, _DAY_H, int(hours))
    return f"0 {'*' if hours == 1 else ','.join(map(str, times))} * * *"


def hours_between(cron: str) -> int | None:
    """Hours from each run of a cron to the next; None where these differ, or days are left out."""
    fields = cron.split()
    if len(fields) != 2 + len(_ANY_DAY) or fields[2:] != _ANY_DAY or not fields[0].isdecimal():
        return None
    hours = _hours(fields[1])
    gaps = {(then - now) % _DAY_H or _DAY_H for now, then in zip(hours, hours[1:] + hours[:1], strict=True)}
    return gaps.pop() if len(gaps) == 1 else None


def _hours(field: str) -> list[int]:
    found: set[int] = set()
    for part in field.split(","):
        told = _HOURS.fullmatch(part)
        if told is None:
            return []
        first = int(told["first"] or 0)
        is_one = told["first"] and not told["last"] and not told["step"]
        last = first if is_one else int(told["last"] or _DAY_H - 1)
        found |= set(range(first, last + 1, int(told["step"] or 1)))
    return sorted(hour for hour in found if hour < _DAY_H)
