"""Statistics of compiler caches: what `sccache --show-stats --stats-format=json` prints at the end of a build.

Every number becomes a measure `sccache.NAME`; counts by language are added up. The job is told by `--set job=NAME` and
`--set run=ID`, because the file does not know it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sooner.history.errors import IngestError
from sooner.history.ingest.intake import Intake
from sooner.history.ingest.json_facts import as_mapping
from sooner.history.ingest.opening import opened
from sooner.history.tables import Epoch, MeasureRow

_LARGEST: Final = 2**63
"""Beyond it, and where it is NaN, a number is none that anybody counted."""


def is_sccache(item: Any) -> bool:
    """Whether a JSON object is one of theirs."""
    return "compile_requests" in as_mapping(as_mapping(item).get("stats"))


def take_sccache(path: Path, intake: Intake) -> None:
    """Read one file of statistics.

    Raises:
        IngestError: It is no such file.
    """
    try:
        with opened(path) as stream:
            told = json.load(stream)
    except (ValueError, RecursionError) as error:
        raise IngestError(str(path), f"no JSON: {error}", line=getattr(error, "lineno", 0)) from None
    if not is_sccache(told):
        raise IngestError(str(path), "no statistics of sccache: there is no stats.compile_requests")
    known = intake.options.constants
    for name, value in _numbers(told["stats"]).items():
        intake.add(
            MeasureRow(
                run=known.get("run", ""),
                job=known.get("job", ""),
                commit=known.get("commit", ""),
                name=f"sccache.{name}",
                value=value,
                unit="ratio" if name == "hit_rate" else "",
                at=Epoch(path.stat().st_mtime),
                source=f"sccache:{path.name}",
            )
        )


def _numbers(stats: Mapping[str, Any]) -> dict[str, float]:
    """Numbers by name, and the share of requests to the cache that it could answer."""
    numbers = dict(_flat(stats))
    hits, misses = numbers.get("cache_hits", 0.0), numbers.get("cache_misses", 0.0)
    if hits + misses:
        numbers["hit_rate"] = hits / (hits + misses)
    return numbers


def _flat(stats: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in stats.items():
        parts = as_mapping(value)
        if _is_number(value):
            yield name, float(value)
        elif "counts" in parts:
            yield name, float(sum(filter(_is_number, as_mapping(parts["counts"]).values())))
        elif _is_number(parts.get("secs")) and _is_number(parts.get("nanos", 0)):
            yield f"{name}_s", parts["secs"] + parts.get("nanos", 0) / 1e9


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
