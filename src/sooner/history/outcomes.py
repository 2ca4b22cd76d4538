"""What can be said of a job or a test in the history, and the many words that others use for it.

More values than `sooner.model.outcomes` has, because foreign systems know more ends: cancelled, an error outside of the
test, still running. Never-run, skipped, skipped for lack of devices, cancelled, infrastructure and failed stay apart:
each is another reason to act.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from sooner.model.outcomes import Outcome


class HistoryOutcome(StrEnum):
    """The one word that the history keeps for an attempt."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    """Something outside of the test itself failed: its fixture, its collection, its start."""
    TIMED_OUT = "timed_out"
    CRASHED = "crashed"
    OUT_OF_MEMORY = "out_of_memory"
    SKIPPED = "skipped"
    SKIPPED_NO_DEVICES = "skipped_no_devices"
    """A coverage hole: it would have run on a machine with more devices."""
    CANCELLED = "cancelled"
    INFRASTRUCTURE = "infrastructure"
    """Not the fault of the code under test: a runner was lost, a machine broke, the system gave up."""
    NOT_RUN = "not_run"
    RUNNING = "running"
    """Queued or running when the record was written: a later record of the same attempt takes its place."""


BROKEN: Final = frozenset(
    {
        HistoryOutcome.FAILED,
        HistoryOutcome.ERROR,
        HistoryOutcome.TIMED_OUT,
        HistoryOutcome.CRASHED,
        HistoryOutcome.OUT_OF_MEMORY,
    }
)
"""Outcomes that say: the code under test did not do what it should."""

UNSETTLED: Final = frozenset({HistoryOutcome.RUNNING, HistoryOutcome.NOT_RUN})
"""Outcomes that a later record of the same attempt may replace: the run went on, or was resumed."""

_OF_RUNS: Final[Mapping[Outcome, HistoryOutcome]] = {
    Outcome.PASSED: HistoryOutcome.PASSED,
    Outcome.FAILED: HistoryOutcome.FAILED,
    Outcome.TIMED_OUT: HistoryOutcome.TIMED_OUT,
    Outcome.CRASHED: HistoryOutcome.CRASHED,
    Outcome.OUT_OF_MEMORY: HistoryOutcome.OUT_OF_MEMORY,
    Outcome.WORKER_LOST: HistoryOutcome.INFRASTRUCTURE,
    Outcome.HOLE: HistoryOutcome.SKIPPED_NO_DEVICES,
    Outcome.SKIPPED: HistoryOutcome.SKIPPED,
    Outcome.NOT_RUN: HistoryOutcome.NOT_RUN,
}


def of_run(outcome: Outcome) -> HistoryOutcome:
    """The history's word for an outcome of one of our own runs."""
    return _OF_RUNS[outcome]


WORDS: Final[Mapping[HistoryOutcome, tuple[str, ...]]] = {
    HistoryOutcome.PASSED: (
        "passed", "pass", "success", "succeeded", "successful", "ok", "green", "neutral", "xpass", "xpassed",
        "xfail", "xfailed", "soft_passed", "soft_fail", "soft_failed", "flaky", "fixed",
    ),
    HistoryOutcome.FAILED: ("failed", "fail", "failure", "red", "notok", "not_ok", "regression", "unstable"),
    HistoryOutcome.ERROR: ("error", "errored", "err"),
    HistoryOutcome.TIMED_OUT: ("timed_out", "timeout", "timedout", "time_out"),
    HistoryOutcome.CRASHED: ("crashed", "crash", "aborted_by_signal", "segfault"),
    HistoryOutcome.OUT_OF_MEMORY: ("out_of_memory", "oom"),
    HistoryOutcome.SKIPPED: (
        "skipped", "skip", "ignored", "disabled", "pending_test", "blocked", "blocked_failed",
    ),
    HistoryOutcome.SKIPPED_NO_DEVICES: ("skipped_no_devices", "hole", "coverage_hole"),
    HistoryOutcome.CANCELLED: ("cancelled", "canceled", "cancel", "aborted", "abort", "canceling", "killed"),
    HistoryOutcome.INFRASTRUCTURE: (
        "infrastructure", "infra", "startup_failure", "stale", "worker_lost", "runner_lost", "lost", "expired",
        "infra_failure", "infrastructure_fail", "infrastructure_failure", "exception",
    ),
    HistoryOutcome.NOT_RUN: (
        "not_run", "notrun", "not_executed", "never_run", "action_required", "broken", "waiting_failed", "not_built",
        "not_started", "unblocked",
    ),
    HistoryOutcome.RUNNING: (
        "running", "queued", "pending", "in_progress", "requested", "waiting", "scheduled", "assigned", "accepted",
        "started", "limiting", "limited", "creating", "created", "still_running", "preparing",
    ),
}  # fmt: skip
"""Spellings of GitHub, Buildkite, GitLab, Jenkins, CircleCI, pytest, gtest and sooner itself; see `spelled`."""

_WORD: Final = {word: outcome for outcome, words in WORDS.items() for word in words}
_SEPARATORS: Final = re.compile(r"[\s-]+")


def spelled(word: str) -> HistoryOutcome | None:
    """The outcome that a foreign system means by a word, None where nobody knows: case and hyphens do not matter."""
    return _WORD.get(_SEPARATORS.sub("_", word.strip().lower()))


_DEVICE: Final = r"(?:gpus?|accelerators?|xpus?|(?:cuda|gpu|rocm|hip|xpu|visible)[ -]?devices?)\b"
_LACKING: Final = re.compile(
    r"(?:needs?|requires?|requiring|at least|>=?|more than|fewer than|less than|not enough|insufficient|too few|lacks?"
    rf"|minimum|multi(?:ple)?|no|without)\W{{1,3}}(?:[\w.]+\W{{1,3}}){{0,4}}?{_DEVICE}"
    rf"|\b{_DEVICE}.{{0,30}}?(?:required|needed|necessary|not available|unavailable|not found|insufficient)"
    r"|\b(?:cuda|rocm|hip|xpu) (?:is )?(?:not available|unavailable)"
    r"|\bworld[ _]size.{0,30}?(?:too small|not enough|insufficient|exceeds|larger than)"
    r"|\b(?:small|insufficient) world[ _]size"
    r"|(?:\bneeds?|\brequires?|\bat least|>=?) ?\d+\+? devices|skipped_no_devices",
    re.IGNORECASE,
)
"""Skips that more devices would have run, as PyTorch ("Need at least 2 CUDA devices"), JAX, DeepSpeed and Transformer
Engine ("Test requires 2 GPUs") spell them."""
_LACKING_MORE: Final = re.compile(
    r"compute capability|\bsm_?\d|hopper|ampere|blackwell|\bMI\d{3}|\barch|memory|\bGi?B\b", re.IGNORECASE
)
"""Skips that name another device, not more of them."""


def of_skip(message: str) -> HistoryOutcome:
    """Whether a skip is a coverage hole, judged by its message."""
    if _LACKING.search(message) and not _LACKING_MORE.search(message):
        return HistoryOutcome.SKIPPED_NO_DEVICES
    return HistoryOutcome.SKIPPED
