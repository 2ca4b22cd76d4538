"""What became of the changes that ran everything: did the jobs that the rule would have left out stay green? Pure.

Jobs that are left out yield no data. So a share of the changes runs everything, and their records say what the rule
would have left out, and what recall it promised. Where such a change really broke something and only jobs that would
have been left out saw it, the rule missed. More misses than the promise allows are an alarm.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

_CHANCE: Final = 0.05
"""Failures that the job's flakes explain more often than this are not counted as real."""
_ALARM: Final = 0.05
"""So many misses must be rarer than this, were the promise true (exact binomial test)."""


class Kept(Struct, frozen=True, kw_only=True):
    """The record of one change."""

    identity: str
    """Its head commit."""
    everything: bool
    """Whether all jobs ran."""
    recall: float
    """That was promised: what the level would have caught of the breakages before."""
    dropped: tuple[str, ...]
    """Jobs that the rule would have left out, or left out."""


class Verdict(Struct, frozen=True, kw_only=True):
    """All attempts of a job on one change."""

    identity: str
    job: str
    passes: int
    failures: int


class Promise(Struct, frozen=True, kw_only=True):
    """What was promised against what was seen, over the changes that ran everything."""

    recorded: int
    """Changes with a record."""
    full: int
    """Of these, those that ran everything and whose outcomes are known."""
    broken: int
    """Of these, those on which some job really failed."""
    missed: int
    """Of these, those that the rule's own jobs would not have seen."""
    promised: float
    """Mean recall that was promised for the broken ones."""
    alarm: str
    """What is wrong; empty where nothing is."""


def promise(kept: Sequence[Kept], verdicts: Sequence[Verdict], flakes: dict[str, float]) -> Promise:
    """Compare.

    Args:
        kept: Records; of several of one change the last counts.
        verdicts: Outcomes on these changes.
        flakes: By job: share of healthy attempts that fail.
    """
    from scipy.stats import binom

    full = {one.identity: one for one in kept if one.everything}
    failed: dict[str, set[str]] = {}
    seen = set()
    for one in verdicts:
        if one.identity in full:
            seen.add(one.identity)
            if not one.passes and one.failures and flakes.get(one.job, 0.0) ** one.failures < _CHANCE:
                failed.setdefault(one.identity, set()).add(one.job)
    broken, missed, promised = len(failed), 0, 0.0
    for identity, jobs in failed.items():
        missed += jobs <= set(full[identity].dropped)
        promised += full[identity].recall / broken
    alarm = ""
    if missed and float(binom.sf(missed - 1, broken, min(max(1.0 - promised, 0.0), 1.0))) < _ALARM:
        alarm = (
            f"drift: of {broken} changes that ran everything and broke something, {missed} broke only jobs that would"
            f" have been left out, against a promised recall of {100 * promised:.1f} %: ask for more recall"
        )
    recorded = len({one.identity for one in kept})
    return Promise(
        recorded=recorded, full=len(seen), broken=broken, missed=missed, promised=promised, alarm=alarm
    )  # fmt: skip
