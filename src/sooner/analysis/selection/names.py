"""Which jobs go on under another name, by what is known at a moment. Pure: `sooner.history.lineage` proposes."""

from collections.abc import Sequence

import numpy as np

from sooner.analysis.selection.facts import NEVER, Record
from sooner.analysis.selection.policy import Lineage
from sooner.history.lineage import Life, lineage


def known_lineage(facts: Record) -> Lineage:
    """Successions among the jobs, from the commits before one: what came later is not looked at."""
    at = facts.decided[facts.commit]
    order = np.argsort(at, kind="stable")
    times, jobs = at[order], facts.job[order]
    place = {name: i for i, name in enumerate(facts.jobs)}
    count = len(facts.jobs)

    def known(commit: int) -> Sequence[tuple[Sequence[int], int]]:
        now = facts.decided[commit] if commit < len(facts.commits) else NEVER
        end = int(np.searchsorted(times, now))
        first, last = np.full(count, NEVER), np.full(count, -NEVER)
        # Times are ascending: what is written last to `last`, and backwards to `first`, stays.
        first[jobs[:end][::-1]] = times[:end][::-1]
        last[jobs[:end]] = times[:end]
        runs = np.bincount(jobs[:end], minlength=count)
        lives = [
            Life(facts.jobs[job], float(first[job]), float(last[job]), int(runs[job]))
            for job in np.flatnonzero(runs).tolist()
        ]
        return [
            ([place[old] for old in found.old if old != new], place[new])
            for found in lineage(lives)
            for new in found.new
        ]

    return known
