"""How long units are expected to take: read from JSON, merged from samples, looked up for a plan.

The schedule only needs the right order of magnitude and no outlier: medians everywhere, because one hang or
one cold cache in the past must not reserve devices tomorrow.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import msgspec

from sooner.model.errors import PlanError
from sooner.model.units import Plan, UnitKey

_SHAPE = 'a JSON object {"unit name" or "unit name|variant": seconds}'


def read_durations(text: str, *, source: str) -> dict[UnitKey, float]:
    """Seconds by unit, from a JSON object.

    Raises:
        PlanError: It is no such object, or a value is no finite number of seconds from 0 on.
    """
    try:
        values = msgspec.json.decode(text.encode("utf-8", "surrogatepass"))
    except msgspec.DecodeError as error:
        raise PlanError(f"this is not JSON: {error}", source=source, hint=f"expected {_SHAPE}") from None
    if not isinstance(values, dict):
        raise PlanError("this is not an object", source=source, hint=f"expected {_SHAPE}")
    return {UnitKey(key): _seconds(key, value, text, source) for key, value in values.items()}


def merge(samples: Mapping[UnitKey, Sequence[float]]) -> dict[UnitKey, float]:
    """The median of each unit's samples, of two the smaller; units without a usable sample are left out.

    The lower median, because outliers of durations lie above: a hang, a cold cache, a shared machine.
    """
    usable = {key: sorted(value for value in values if _is_duration(value)) for key, values in samples.items()}
    return {key: values[(len(values) - 1) // 2] for key, values in usable.items() if values}


def expected(plan: Plan, known: Mapping[UnitKey, float]) -> dict[UnitKey, float]:
    """Expected seconds of the plan's units, as far as anything is known of them.

    In this order: the unit itself; its name without a variant; the median of its name's other variants.
    """
    variants: defaultdict[str, list[float]] = defaultdict(list)
    for key, seconds in known.items():
        variants[key.partition("|")[0]].append(seconds)
    found = {}
    for unit in plan.units:
        exact = next((key for key in (unit.key, UnitKey(unit.name)) if key in known), None)
        if exact is not None:
            found[unit.key] = known[exact]
        elif unit.name in variants:
            found[unit.key] = median(variants[unit.name])
    return found


def _seconds(key: str, value: Any, text: str, source: str) -> float:
    if _is_duration(value):
        return float(value)
    line = _line_of(key, text)
    raise PlanError(f"{value!r} is no number of seconds", source=source, line=line, key=key, hint=f"expected {_SHAPE}")


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


def _line_of(key: str, text: str) -> int:
    """Line on which a key is spelled in JSON as it is; 0 where it is spelled with escapes."""
    position = text.find(f'"{key}"')
    return text.count("\n", 0, position) + 1 if position >= 0 else 0
