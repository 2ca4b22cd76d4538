"""A run as a Chrome trace (Trace Event Format): opens in Perfetto and chrome://tracing, one row a device."""

from collections.abc import Iterable, Sequence
from typing import Any

from sooner.model.events import Attempt, Verdict

_MICROSECONDS = 1_000_000
_HOST_ROW = "host"


def trace_document(verdicts: Iterable[Verdict], rows: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Every attempt of every unit as one complete event on the row of each device that it held.

    Args:
        verdicts: What happened.
        rows: (device id, label) of each device, in the order of the rows; one more row holds units without a device.
    """
    number = {device: i for i, (device, _) in enumerate(rows)}
    names = [label for _, label in rows] + [_HOST_ROW]
    events: list[dict[str, Any]] = [
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": i, "args": {"name": name}} for i, name in enumerate(names)
    ]
    events.append({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "sooner"}})
    for verdict in verdicts:
        for count, attempt in enumerate(verdict.attempts, start=1):
            on = [number.get(device, len(rows)) for device in attempt.devices] or [len(rows)]
            events.extend(_complete_event(verdict, attempt, count, row) for row in on)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _complete_event(verdict: Verdict, attempt: Attempt, count: int, row: int) -> dict[str, Any]:
    return {
        "ph": "X",
        "name": verdict.unit,
        "cat": attempt.outcome.value,
        "ts": round(attempt.started_at * _MICROSECONDS),
        "dur": max(1, round((attempt.ended_at - attempt.started_at) * _MICROSECONDS)),
        "pid": 1,
        "tid": row,
        "args": {
            "variant": verdict.variant,
            "outcome": attempt.outcome.value,
            "cause": attempt.cause,
            "attempt": count,
            "devices": list(attempt.devices),
        },
    }
