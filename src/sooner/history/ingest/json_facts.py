"""Small readings of foreign JSON: text, numbers and times that may be missing or of another type."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any, Final

from sooner.history.tables import Epoch

_MILLISECONDS: Final = 1e11
"""Larger numbers are no seconds: they would lie in the year 5138."""
_LAST_MS: Final = 253_000_000_000_000
"""Milliseconds up to the year 9987: what lies beyond is in no calendar."""

_LARGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = len(str(_LARGEST))


class Unusable(Exception):  # noqa: N818 - what the item is
    """Nothing can be made of an item, and why."""


def as_mapping(value: Any) -> Mapping[str, Any]:
    """An object, empty where it is none."""
    return value if isinstance(value, dict) else {}


def as_objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of a list."""
    if isinstance(value, list):
        yield from (part for part in value if isinstance(part, dict))


def as_text(value: Any) -> str:
    """Text; numbers as they are written."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def as_count(value: Any) -> int | None:
    """A whole number that the tables can hold."""
    if isinstance(value, str) and value.isdecimal() and len(value) <= _MOST_DIGITS:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST else None


def as_id(value: Any) -> str:
    """An identity; 0 and below are what systems write as long as they have none."""
    number = as_count(value)
    if number is not None:
        return str(number) if number > 0 else ""
    return as_text(value)


def as_time(value: Any, zone: tzinfo = UTC) -> Epoch | None:
    """A time: ISO 8601, or seconds or milliseconds since 1970; None where there is none.

    Raises:
        Unusable: It is text or a number, but no time.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not abs(value) < _LAST_MS:
            raise Unusable(f"{value!r:.40} is no time")
        return Epoch(value / 1000 if abs(value) > _MILLISECONDS else float(value)) if value else None
    if not isinstance(value, str) or not value.strip() or value.startswith("0001-01-01"):
        return None  # the last is what Go programs write for no time
    try:
        time = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
    except ValueError:
        raise Unusable(f"{value[:40]!r} is no time") from None
    return Epoch((time if time.tzinfo else time.replace(tzinfo=zone)).timestamp())
