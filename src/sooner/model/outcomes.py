"""Outcomes: what can finally be said of a unit, and the exit codes that follow from it.

A failing test is a value here, never an exception. A fault of the infrastructure is never `FAILED`.
"""

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import Final


class Outcome(StrEnum):
    """The one word that a verdict, or one attempt, ends with."""

    PASSED = "passed"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    WORKER_LOST = "worker_lost"
    HOLE = "hole"
    SKIPPED = "skipped"
    NOT_RUN = "not_run"


BROKEN: Final = frozenset({Outcome.FAILED, Outcome.TIMED_OUT, Outcome.CRASHED, Outcome.OUT_OF_MEMORY})
"""Outcomes that say: the unit under test did not do what it should."""

RETRIED: Final = BROKEN | {Outcome.WORKER_LOST}
"""Outcomes of an attempt after which another attempt can tell more."""


class ExitCode(IntEnum):
    """Exit codes of the command line: 0-5 mean what they mean to pytest, ours start at 10."""

    ALL_PASSED = 0
    SOME_FAILED = 1
    INTERRUPTED = 2
    BUG = 3
    USAGE = 4
    NOTHING_TO_RUN = 5
    COVERAGE_HOLE = 10
    INFRASTRUCTURE = 11
    POLICY = 12
    SIGINT = 130

    @property
    def words(self) -> str:
        """What it means, in front of people."""
        return "interrupted before anything ran" if self is ExitCode.SIGINT else self.name.lower().replace("_", " ")


def exit_code(outcomes: Iterable[Outcome], *, interrupted: bool = False, has_started: bool = False) -> ExitCode:
    """The exit code of a run with these verdicts; where several hold the order is 1, 11, 10.

    An interrupted run exits with INTERRUPTED whatever its verdicts are, or with SIGINT if nothing has run: no
    attempt of a unit had started, and none has another verdict.
    """
    seen = set(outcomes)
    if interrupted:
        return ExitCode.INTERRUPTED if has_started or seen - {Outcome.NOT_RUN} else ExitCode.SIGINT
    if not seen:
        return ExitCode.NOTHING_TO_RUN
    if seen & BROKEN:
        return ExitCode.SOME_FAILED
    if seen & {Outcome.WORKER_LOST, Outcome.NOT_RUN}:
        return ExitCode.INFRASTRUCTURE
    if Outcome.HOLE in seen:
        return ExitCode.COVERAGE_HOLE
    return ExitCode.ALL_PASSED
