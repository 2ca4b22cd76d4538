"""Spans of time and moments as people write them on the command line."""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, Final

from sooner.model.errors import UsageError

_SECONDS: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
EPOCH_MS: Final = 1e11
"""Epoch seconds from here on are milliseconds: 1973 as those, the year 5138 as seconds."""
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|min|h|d|w)")


def seconds_of(text: str, option: str) -> float:
    """Seconds of `90m`, `36h`, `2d`, `1w`.

    Raises:
        UsageError: It is no span.
    """
    match = _SPAN.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(f"{option} {text!r} is no time such as 36h, 2d or 1w")
    return float(match[1]) * _SECONDS[match[2]]


def moment_of(text: str, option: str, *, now: float) -> float:
    """Epoch seconds of a date (2026-11-01), a time (2026-11-01T12:00), or a span before `now` (1d), 1970 at most.

    Raises:
        UsageError: It is neither.
    """
    if _SPAN.fullmatch(text.strip().lower()):
        return max(0.0, now - seconds_of(text, option))
    try:
        return iso_epoch(text)
    except ValueError:
        raise UsageError(f"{option} {text!r} is neither a date such as 2026-11-01 nor a span such as 1d") from None


def epoch_of(text: str, option: str) -> float:
    """Epoch seconds, given as such or as ISO 8601 (2026-11-01T12:00).

    Raises:
        UsageError: It is neither, or no time that a calendar has.
    """
    is_number = True
    try:
        moment = float(text)
    except ValueError:
        is_number = False
        try:
            moment = iso_epoch(text)
        except ValueError:
            raise UsageError(f"{option} {text!r}: neither ISO 8601 (2026-11-01T12:00) nor epoch seconds") from None
    if is_number and EPOCH_MS <= moment < EPOCH_MS * 100:
        raise UsageError(f"{option} {text!r} is in milliseconds: epoch seconds are {moment / 1000:.0f}")
    if not 0 <= moment < EPOCH_MS:
        raise UsageError(f"{option} {text!r}: no time between 1970 and 5138")
    return moment


def check_order(options: Mapping[str, Any], since: float | None, until: float | None) -> None:
    """Refuse a time that ends before it begins, of the options `since` and `until`.

    Raises:
        UsageError: It does.
    """
    if since is not None and until is not None and since >= until:
        raise UsageError(f"--since {options['since']} is not before --until {options['until'] or 'now'}")


def iso_epoch(text: str) -> float:
    """Epoch seconds of ISO 8601; UTC where it names no zone.

    Raises:
        ValueError: It is none.
    """
    moment = dt.datetime.fromisoformat(text)
    return moment.replace(tzinfo=moment.tzinfo or dt.UTC).timestamp()
