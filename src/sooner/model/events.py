"""The one stream of events. `run` emits them; the journal, reports and the history listen.

Every event is frozen, says when it happened (`at`, epoch seconds) and is one JSON line (`sooner.model.jsonl`).
Nothing of its presentation is in it.
"""

from collections.abc import Collection

from msgspec import Struct

from sooner.model.outcomes import BROKEN, ExitCode, Outcome, exit_code


class Attempt(Struct, frozen=True, kw_only=True):
    """One start of a unit and how it ended."""

    outcome: Outcome
    cause: str = ""
    """Why, in a few words: `exit code 1`, `SIGSEGV`, `no end after 5 s`; empty for a pass."""
    devices: tuple[str, ...] = ()
    started_at: float = 0.0
    ended_at: float = 0.0
    exit_code: int | None = None
    signal: int | None = None
    peak_rss_mib: float = 0.0
    """Largest resident set of the unit's main process tree, as the kernel accounts it (ru_maxrss)."""
    leaked: tuple[str, ...] = ()
    """Commands of processes that outlived the unit's main process and had to be ended."""


class Verdict(Struct, frozen=True, kw_only=True, tag_field="event", tag="verdict"):
    """What is finally said of a unit: exactly one for each that was planned."""

    at: float
    unit: str
    variant: str = ""
    outcome: Outcome
    cause: str = ""
    flaky: bool = False
    """Passed, but only after another attempt had not."""
    attempts: tuple[Attempt, ...] = ()
    queued_s: float = 0.0
    """Seconds from the start of the run to the first start of the unit."""
    duration_s: float = 0.0
    """Seconds of the last attempt; 0 where it never started."""
    log: str = ""
    """Path of its log, relative to the run folder; empty where it never started."""
    quarantined: bool = False
    """Known to be flaky: if it is broken, that does not fail the run."""

    @property
    def is_excused(self) -> bool:
        """It is broken, and that does not fail the run."""
        return self.quarantined and self.outcome in BROKEN

    @property
    def counts_as(self) -> Outcome:
        """What the exit code of the run sees."""
        return Outcome.PASSED if self.is_excused else self.outcome


def exit_code_of(verdicts: Collection[Verdict], *, interrupted: bool) -> ExitCode:
    """The exit code of a run with these verdicts."""
    outcomes = (verdict.counts_as for verdict in verdicts)
    return exit_code(outcomes, interrupted=interrupted, has_started=any(verdict.attempts for verdict in verdicts))


class RunStarted(Struct, frozen=True, kw_only=True, tag_field="event", tag="run_started"):
    """A run, or its continuation, is about to start units."""

    at: float
    run: str
    units: int
    """Units planned in all."""
    pending: int
    """Units that have no verdict yet: fewer than `units` when a run is resumed."""
    devices: tuple[str, ...] = ()


class Started(Struct, frozen=True, kw_only=True, tag_field="event", tag="started"):
    """A unit's process runs."""

    at: float
    unit: str
    variant: str = ""
    attempt: int
    devices: tuple[str, ...] = ()
    pid: int = 0
    log: str = ""


class Finished(Struct, frozen=True, kw_only=True, tag_field="event", tag="finished"):
    """An attempt ended and none of its processes is left."""

    at: float
    unit: str
    variant: str = ""
    attempt: int
    devices: tuple[str, ...] = ()
    result: Attempt
    retried: bool = False
    """Another attempt follows; otherwise a verdict does."""


class DeviceChanged(Struct, frozen=True, kw_only=True, tag_field="event", tag="device"):
    """A device went away (held by another run, put aside) or came back."""

    at: float
    device: str
    state: str
    """`put_aside`, `held_elsewhere`, `not_free` or `available`."""
    reason: str = ""


class Interrupted(Struct, frozen=True, kw_only=True, tag_field="event", tag="interrupted"):
    """Somebody asked the run to stop: nothing more is started."""

    at: float
    reason: str


class RunFinished(Struct, frozen=True, kw_only=True, tag_field="event", tag="run_finished"):
    """Every unit has its verdict and no process is left."""

    at: float
    run: str
    exit_code: int


Event = RunStarted | Started | Finished | Verdict | DeviceChanged | Interrupted | RunFinished
