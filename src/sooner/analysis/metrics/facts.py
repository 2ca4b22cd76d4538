"""What the metrics are computed from. Pure data: `load.py` fills it from the history, tests write it by hand."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class Ending(StrEnum):
    """How an attempt of a job ended, as far as the metrics tell ends apart."""

    GREEN = "green"
    RED = "red"
    """The code under test did not do what it should."""
    OTHER = "other"
    """Skipped, cancelled, or not the code's fault: no verdict about the commit."""
    OPEN = "open"
    """Waiting or running."""


class JobFact(Struct, frozen=True, kw_only=True):
    """One attempt of a job. Times are epoch seconds, None where they are not known."""

    workflow: str = ""
    run: str = ""
    attempt: int = 1
    job: str
    commit: str = ""
    branch: str = ""
    event: str = ""
    label: str = ""
    """Of the runner."""
    ending: Ending
    run_created: float | None = None
    """When this attempt of the workflow's run was asked for."""
    created: float | None = None
    started: float | None = None
    completed: float | None = None
    steps: Mapping[str, float] = {}
    """Seconds of its parts `setup`, `build`, `test`, where the steps of the job are known."""


class Sample(Struct, frozen=True, kw_only=True):
    """One value of a metric."""

    at: float
    """What it is filed under: when the workflow's run, or the commit's first run, was asked for."""
    seconds: float
    workflow: str = ""
    job: str = ""
    label: str = ""
    commit: str = ""
    queue_s: float = 0.0
    """The part of it that was spent waiting for a runner."""
    steps: Mapping[str, float] = {}
