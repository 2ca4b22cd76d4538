"""What is judged, and what is decided. Pure values; times are epoch seconds."""

from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

NotNegative = Annotated[float, Meta(ge=0)]


class Status(StrEnum):
    """What a run of a signal on a commit came to; whatever says nothing about the code is no event at all."""

    SUCCESS = "success"
    FAILURE = "failure"
    PENDING = "pending"


class Kind(StrEnum):
    """What a signal is a series of."""

    TEST = "test"
    JOB = "job"


class Policy(StrEnum):
    """Who judges."""

    BAYES = "bayes"
    RULES = "rules"


class Event(Struct, frozen=True, kw_only=True, gc=False):
    """One run of a signal on a commit. A retry inside of a job that passed is a success.

    It holds nothing that could hold it, so the garbage collector need not look at millions of them.
    """

    sha: str
    status: Status
    started_at: float
    ended_at: float | None = None
    attempt: int | None = 1


class Commit(Struct, frozen=True, kw_only=True):
    """One commit of trunk."""

    sha: str
    time: float
    files: tuple[str, ...] | None = None
    """Changed paths; None where they are not known."""
    pr: int | str | None = None


class Signal(Struct, frozen=True, kw_only=True):
    """The series of outcomes of one job or test over the commits of a branch."""

    key: str
    kind: Kind = Kind.TEST
    flake_prior: tuple[NotNegative, NotNegative] | None = None
    """Failures and runs that are known to be flakes' business, from before the window."""
    events: tuple[Event, ...] = ()
    priors: dict[str, NotNegative] = {}
    """How much more than others a commit is suspect before anything ran, by sha; 1 where it is not named."""

    def __post_init__(self) -> None:
        """Refuse a flake rate above one: probabilities would be none.

        Raises:
            ValueError: There were more failures than runs.
        """
        failures, runs = self.flake_prior or (0.0, 0.0)
        if failures > runs:
            raise ValueError(f"flake_prior is [failures, runs]: {failures:g} failures of {runs:g} runs")


class Limits(Struct, frozen=True, kw_only=True):
    """What the decisions keep to."""

    max_reruns_per_commit: Annotated[int, Meta(ge=0)] = 12
    """Runs of one signal on one commit beyond the first."""
    max_reruns_per_decision: Annotated[int, Meta(ge=0)] = 8
    """Runs asked for at once for one signal."""
    bisection_limit: Annotated[int, Meta(ge=0)] | None = None
    """Under `rules`: most commits of a gap that run at once; None is all."""
    revert_probability: Annotated[float, Meta(gt=0, le=1)] = 0.996
    """A revert needs a posterior of at least this."""


class NamedLimits(Struct, frozen=True):
    """The limits of a document by the names that they have in it, those that `Limits` does not know too."""

    limits: dict[str, object] = {}


class Question(Struct, frozen=True, kw_only=True):
    """Everything that a decision depends on."""

    now: float
    commits: tuple[Commit, ...]
    """Newest first."""
    signals: tuple[Signal, ...]
    id: str | int | float | None = None
    """Comes back with the answer."""
    limits: Limits = Limits()


class Reason(StrEnum):
    """Why nothing is done about a signal."""

    PASSING = "passing"
    FIXED = "fixed"
    FLAKY = "flaky"
    INFRASTRUCTURE = "infrastructure"
    ALREADY_BROKEN = "already_broken"
    WAITING = "waiting"
    NOT_ENOUGH_EVIDENCE = "not_enough_evidence"
    # Those of the published rules:
    NO_SUCCESSES = "no_successes"
    NO_PARTITION = "no_partition"
    INFRA_NOT_CONFIRMED = "infra_not_confirmed"
    INSUFFICIENT_FAILURES = "insufficient_failures"
    INSUFFICIENT_SUCCESSES = "insufficient_successes"
    PENDING_GAP = "pending_gap"


class Again(Struct, frozen=True):
    """Runs that are asked for."""

    sha: str
    count: int


class Revert(Struct, frozen=True, kw_only=True, tag_field="decision", tag="revert", omit_defaults=True):
    """A commit broke these signals and should go."""

    signals: tuple[str, ...]
    culprit: str
    probability: float | None = None
    """Posterior; None where rules decided."""
    reason: str
    failures: int = 0
    """On the culprit and newer commits."""
    successes: int = 0
    """On older commits."""


class Rerun(Struct, frozen=True, kw_only=True, tag_field="decision", tag="rerun", omit_defaults=True):
    """These runs would tell most."""

    signal: str
    reruns: tuple[Again, ...]
    reason: str
    culprit: str | None = None
    """The suspect so far."""
    probability: float | None = None


class Hold(Struct, frozen=True, kw_only=True, tag_field="decision", tag="hold", omit_defaults=True):
    """Nothing is to be done now."""

    signal: str
    reason: Reason
    detail: str = ""
    culprit: str | None = None
    probability: float | None = None


Decision = Revert | Rerun | Hold


class Answer(Struct, frozen=True, kw_only=True):
    """What is decided for one question."""

    id: str | int | float | None
    decisions: tuple[Decision, ...]
