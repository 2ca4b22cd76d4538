"""Which commits a trunk is made of, and which attempts were about them.

Attempts on requests are left out: what never landed broke nothing. Commits that nothing ran on are kept where they lie
between others: one of them may be the culprit.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from sooner.analysis.trunk.facts import Commit
from sooner.history import CommitRow, History, JobRow, Where, is_of_a_request, trunk_among
from sooner.model.errors import UsageError


def landed_jobs(history: History, where: Where) -> tuple[list[JobRow], Where, list[str]]:
    """Attempts on one branch of one repository; which these are; and what a reader should know about that.

    Raises:
        UsageError: The history holds several repositories, and none was named.
    """
    rows = [row for row in history.jobs(where) if not is_of_a_request(row.event, row.pull_request)]
    repositories = sorted({row.repository for row in rows if row.repository})
    if len(repositories) > 1:
        raise UsageError(f"the history holds several repositories, name one with --repository: {_some(repositories)}")
    branches = Counter(row.branch for row in rows if row.branch)
    if len(branches) < 2 or where.branch:  # noqa: PLR2004 - there is nothing to choose from
        return rows, where, []
    best = trunk_among(branches)
    note = f"of {len(branches)} branches only {best!r} is used (--branch names another one)"
    return [row for row in rows if row.branch == best], replace(where, branch=best), [note]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")  # noqa: PLR2004 - a line


def first_seen(jobs: Iterable[JobRow]) -> dict[str, float]:
    """When each commit was first run, by its jobs."""
    found: dict[str, float] = {}
    for row in jobs:
        at = row.started if row.started is not None else row.created
        if row.commit and at is not None:
            found[row.commit] = min(at, found.get(row.commit, at))
    return found


def commits_of(history: History, where: Where, seen: Mapping[str, float]) -> tuple[Commit, ...]:
    """The commits of a trunk, oldest first: those that were run, and those between them.

    Args:
        history: The history.
        where: Which branch.
        seen: When each was first run; empty: all commits that are known by their time.
    """
    told = {row.sha: row for row in history.commits(Where(repository=where.repository))}
    order = history.commit_order(where)
    order += sorted(seen.keys() - set(order), key=lambda sha: (seen[sha], sha))
    between = _between(order, told, seen)
    found = []
    for sha in order:
        row = told.get(sha)
        times = [time for time in (seen.get(sha), row.time if row else None) if time is not None]
        if sha in seen or sha in between or (times and not seen):
            files = tuple(row.files) if row and row.files else None
            found.append(Commit(sha=sha, time=min(times, default=0.0), files=files))
    return tuple(found)


def _between(order: Sequence[str], told: Mapping[str, CommitRow], seen: Mapping[str, float]) -> frozenset[str]:
    """Commits that nothing ran on, along first parents: what a merge brought along landed with the merge."""
    sha = next((sha for sha in reversed(order) if sha in seen), "")
    line: list[str] = []
    known: set[str] = set()
    while sha in told and sha not in known:
        line.append(sha)
        known.add(sha)
        sha = next(iter(told[sha].parents), "")
    oldest = max((i for i, one in enumerate(line) if one in seen), default=-1)
    return frozenset(line[: oldest + 1])
