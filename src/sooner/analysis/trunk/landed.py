"""Which commits a trunk is made of.

Commits that nothing ran on are kept where they lie
between others: one of them may be the culprit.
"""

from collections.abc import Collection, Mapping, Sequence

from sooner.analysis.trunk.facts import Commit
from sooner.history import CommitRow, History, Where


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
    between = commits_between(order, told, seen)
    found = []
    for sha in order:
        row = told.get(sha)
        times = [time for time in (seen.get(sha), row.time if row else None) if time is not None]
        if sha in seen or sha in between or (times and not seen):
            files = tuple(row.files) if row and row.files else None
            found.append(Commit(sha=sha, time=min(times, default=0.0), files=files))
    return tuple(found)


def commits_between(order: Sequence[str], told: Mapping[str, CommitRow], seen: Collection[str]) -> frozenset[str]:
    """Commits that nothing ran on, along first parents: what a merge brought along landed with the merge.

    Args:
        order: Commits that ran, and others; of those that ran the newest last.
        told: What is known of commits, by id.
        seen: Those that ran.
    """
    sha = next((sha for sha in reversed(order) if sha in seen), "")
    line: list[str] = []
    known: set[str] = set()
    while sha in told and sha not in known:
        line.append(sha)
        known.add(sha)
        sha = next(iter(told[sha].parents), "")
    oldest = max((i for i, one in enumerate(line) if one in seen), default=-1)
    return frozenset(line[: oldest + 1])
