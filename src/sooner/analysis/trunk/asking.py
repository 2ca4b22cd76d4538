"""Which runs would tell most, and when to wait for those that come by themselves. Pure.

All thresholds were fitted to simulated trunks (`bench/trunk.py`): hours against runs at equal precision.
"""

from collections.abc import Mapping
from typing import Final

from sooner.analysis.trunk.case import Case
from sooner.analysis.trunk.facts import Again, Rerun
from sooner.analysis.trunk.outages import streak_of
from sooner.analysis.trunk.posterior import Posterior

HALF_SURE: Final = 0.5
"""Below this probability of a break a gap of untested commits is not searched, and few runs are enough at once ..."""
FEW: Final = 2
"""... so many where flakes are the likeliest, of a signal that flakes: most of them will have told of a flake ..."""
FEW_OF_STABLE: Final = 4
"""... and so many else: it hardly flakes, or an outage is likelier."""
STABLE: Final = 0.028
"""A signal hardly flakes if its rate, as it was known before it failed, is below this: no failure in 15 runs, or one in
50. It is seldom asked about for nothing, so of a likely break a run of the suspect and one of its parent are asked for
to spare, and nobody waits for the slowest."""
AT_ONCE: Final = 3
"""Most runs of one commit that are asked for at once: where three do not settle it, what they tell comes first."""
AT_LAST: Final = 6
"""The same after many runs of the suspect and its parent: what is not told by then fails only some runs."""
WORTH: Final = 0.003
"""While flakes are the likeliest, runs are asked for if the cube of the odds of a break times what they save, in usual
lengths of a run, is worth this; else the next run that ends by itself tells for nothing. The cube lets a signal that
never flaked be asked about at once, and one that did wait for a second failure."""
NEWER: Final = 0.15
"""Of the doubt that a revert may leave, the share that newer commits may have: flakes of the commit before the culprit
are the commonest way to a wrong one. Of 1,200 simulated reverts at up to 10 % flakes 0.25 let one be wrong."""
OLDER: Final = 0.25
"""The same for older commits: breaks that fail only some of their runs."""
OVERDUE: Final = 1.5
"""Usual lengths of a run up to which the suspect's first run is waited for."""
SPREAD: Final = 0.04
"""A commit is a candidate from this share of the leading one's probability on."""
MOST_OF_GAP: Final = 4
"""Untested commits that run at once: with four, a gap of 24 commits is closed in two rounds."""
PROBE_AFTER: Final = 1.0
"""Usual lengths of a run after which one asks whether an outage is over."""


def is_settled(case: Case, found: Posterior, place: int) -> bool:
    """Whether this commit is the culprit, as surely as a revert needs, and the machines have worked since it failed."""
    return _is_sure(case, found, place) and case.has_passed_since(place)


def _is_sure(case: Case, found: Posterior, place: int) -> bool:
    """Whether its probability is that of a revert, and its neighbors have no more of the doubt than they may."""
    doubt = 1 - case.limits.revert_probability
    misled = max(found.newer(place) / NEWER, found.older(place) / OLDER)
    return found.guilt(place) >= 1 - doubt and misled <= doubt


def can_wait(case: Case, found: Posterior, place: int) -> bool:
    """Whether a run that ends by itself tells soon enough: the suspect's first, or the next where flakes are likely."""
    if not case.has_ended(place) and case.runs_for_h(place) < OVERDUE * case.usual_h:
        return True
    broken = float(found.broken[1:].sum())
    odds = broken / max(1 - broken, 1e-9)
    return found.none > HALF_SURE and case.tells_soon(place) * odds**3 < WORTH


def probe(case: Case, found: Posterior) -> Rerun | None:
    """Ask whether an outage is over where nothing else will tell: all that still runs is newer than a break may be."""
    place = streak_of(case.failures, case.passes)
    if found.burst_now < HALF_SURE or not 0 < place < len(case.failures):
        return None
    last = max((hour for i, hour, _ in case.done if i < place), default=case.now)
    is_running = any(i < place for i, _ in case.pending)
    if is_running or case.now - last < PROBE_AFTER * case.usual_h or not case.may_run(place - 1):
        return None
    again = (Again(case.commits[place - 1].sha, 1),)
    reason = "failures follow the time: this run tells whether the machines still fail"
    return Rerun(signal=case.signal.key, reruns=again, reason=reason, probability=round(found.burst_now, 4))


def reruns(case: Case, found: Posterior, place: int) -> tuple[Again, ...]:
    """The runs that would settle it in one round, as far as limits let them."""
    wanted: dict[int, int] = {}
    most = case.limits.max_reruns_per_decision
    gap = _untested(case, found)
    if gap and float(found.broken[1:].sum()) < HALF_SURE:
        gap = _first_failing(case, gap[-1])
    for i in gap:
        if case.runs_left(i) and len(wanted) < most:
            wanted[i] = 1
    if not wanted:
        _confirm(case, found, place, wanted, most)
    return tuple(Again(case.commits[i].sha, wanted[i]) for i in sorted(wanted, reverse=True))


def _first_failing(case: Case, after: int) -> list[int]:
    """The oldest failing commit behind a gap, if it is not running: a flake is told before a gap is searched."""
    failing = next((i for i in range(after + 1, len(case.failures)) if case.failures[i]), None)
    return [] if failing is None or any(i == failing for i, _ in case.pending) else [failing]


def _untested(case: Case, found: Posterior) -> list[int]:
    """Of the candidates that never ran, those that divide what is probable into equal parts."""
    floor = found.broken[1:].max() * SPREAD
    candidates = [i for i in range(1, len(found.broken)) if found.broken[i] >= floor]
    ran = case.failures + case.passes
    under_way = {i for i, _ in case.pending}
    gap = [i for i in candidates if not ran[i]]
    if any(i in under_way for i in gap):
        return []  # the runs under way divide it already
    if len(gap) <= MOST_OF_GAP:
        return gap
    parts = MOST_OF_GAP + 1
    return sorted({gap[round(k * len(gap) / parts) - 1] for k in range(1, parts)})


def _confirm(case: Case, found: Posterior, place: int, wanted: dict[int, int], most: int) -> None:
    """Add runs of the suspect and its parent until, should they end as expected, it is settled; and some to spare."""
    extra = case.expected(place)
    is_likely = float(found.broken[1:].sum()) >= HALF_SURE
    is_stable = case.flakes_before_failing(place) < STABLE
    few = FEW if found.none > HALF_SURE and not is_stable else FEW_OF_STABLE
    most = most - sum(map(case.under_way, (place, place - 1))) if is_likely else min(most, few)
    cap = max(AT_ONCE, min(AT_LAST, case.ended_about(place) - AT_ONCE))
    pair = [i for i in (place, place - 1) if (is_likely and case.has_ended(i)) or not case.runs_again(i)]
    left = {i: min(cap - case.under_way(i), case.runs_left(i)) for i in pair}
    found = case.weigh(extra)
    while sum(wanted.values()) < most:
        is_sure = _is_sure(case, found, place)
        if is_sure and case.has_passed_since(place, extra):
            if wanted and is_stable and is_likely:
                _spare(case, left, wanted)
            return
        older = float(found.broken[:place].sum()) + found.burst_now  # what a success of the parent speaks against
        other = 1.0 - found.guilt(place) - older  # what a failure of the suspect speaks against
        sides = (place - 1,) if is_sure else (place, place - 1) if other >= older else (place - 1, place)
        side = next((i for i in sides if left.get(i, 0) > wanted.get(i, 0)), None)
        if side is None:
            return
        wanted[side] = wanted.get(side, 0) + 1
        extra.append((side, case.now, float(side == place)))
        found = case.weigh(extra)


def _spare(case: Case, left: Mapping[int, int], wanted: dict[int, int]) -> None:
    """Add one run of each commit that is to run."""
    for side in sorted(wanted, reverse=True):
        if wanted[side] < left[side] and sum(wanted.values()) < case.limits.max_reruns_per_decision:
            wanted[side] += 1
