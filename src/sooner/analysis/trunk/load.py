"""Rows of the history as commits and signals.

A job's signal keeps its workflow, its name and its configuration; shard and runner are dropped ("test (default, 2, 5,
linux.gpu)" is "test (default)"), and its shards are one run. A test's signal is (workflow, job, node id), the workflow
as far as the jobs of its run are known; a retry that passed inside of a job counts as passed. Cancelled, skipped and
infrastructure say nothing about the code: they are no events.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from sooner.analysis.trunk.attempts import branches_of
from sooner.analysis.trunk.facts import Commit, Kind, Signal
from sooner.analysis.trunk.landed import commits_of
from sooner.analysis.trunk.load_jobs import landed_jobs, note_of
from sooner.analysis.trunk.load_tests import Tests
from sooner.history import History, Where, check_one_repository, trunk_among


class Trunk(Struct, frozen=True, kw_only=True):
    """What a history knows of a branch."""

    commits: tuple[Commit, ...]
    """Oldest first."""
    signals: tuple[Signal, ...]
    """With all events of all commits."""
    tested: Mapping[str, float] = {}
    """Commits on which tests ran, and when first: one that never failed is no signal."""
    ended: float | None = None
    """When the last run ended that is a signal, or may become one; None where there is none."""
    notes: tuple[str, ...] = ()
    """What a reader should know about how they were chosen."""


def load_trunk(
    history: History, where: Where, *, kinds: Iterable[Kind] = (Kind.JOB,), as_of: float | None = None
) -> Trunk:
    """Commits of a branch and the signals over them.

    Attempts on requests are left out: what never landed broke nothing.

    Args:
        history: The history.
        where: Which branch.
        kinds: Of signals.
        as_of: What was known then, epoch seconds: of what ran, or came, later nothing is. None: everything.

    Raises:
        UsageError: The history holds several repositories, and none was named.
    """
    jobs, where, notes = landed_jobs(history, where, as_of)
    wanted = frozenset(kinds)
    if Kind.TEST in wanted:
        check_one_repository(
            history, Where(repository=where.repository, since=where.since, until=where.until or as_of), "tests"
        )
    seen = jobs.first_seen()
    if Kind.TEST in wanted and not seen and not where.branch:
        branches = branches_of(history, replace(where, until=where.until or as_of))
        where = replace(where, branch=trunk_among(branches))
        notes += [note_of(branches, where.branch)] if len(branches) > 1 else []
    tests = Tests(history, where, as_of, any_branch=bool(seen)) if Kind.TEST in wanted else None
    signals: list[Signal] = []
    if Kind.JOB in wanted:
        signals += jobs.signals()
    if tests:
        signals += tests.signals(jobs)
    commits = commits_of(history, where, seen or (tests.first_seen() if tests else {}))
    ends = [event.ended_at or event.started_at for signal in signals for event in signal.events]
    return Trunk(
        commits=commits,
        signals=tuple(signals),
        tested=tests.first_seen() if tests else {},
        ended=max([*ends, *(tests.ends() if tests else ())], default=None),
        notes=tuple(notes),
    )
