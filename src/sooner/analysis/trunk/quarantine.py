"""Who enters the quarantine, and who leaves it. Pure: the day comes as an argument.

Enters: what flaked on several commits, is not broken now and not mended since. Leaves: what passed so many runs in a
row, since it entered, that with its rate it would have failed by then with a probability of 95 %.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sooner.analysis.trunk.facts import Kind
from sooner.analysis.trunk.flaky import Flaky, Run, Subject
from sooner.model.quarantine import Entry, Quarantine

_CONFIDENCE: Final = 0.05
"""Chance that something with the recorded rate passes `stable_runs` runs in a row all the same."""
_FEWEST, _MOST = 20, 500
"""Bounds of `stable_runs`: 20 passes are little to know anything from, 500 are a month of most trunks."""


class Rule(Struct, frozen=True, kw_only=True):
    """What it takes to enter."""

    failures: int = 2
    """Flakes."""
    commits: int = 2
    """Different commits with both outcomes: one commit may have met a bad machine."""
    kinds: frozenset[Kind] = frozenset({Kind.TEST})
    """Jobs only where somebody asks for it: a whole job in quarantine tells of nothing that it tests."""


class Left(Struct, frozen=True, kw_only=True):
    """An entry that was stable."""

    entry: Entry
    kind: Kind
    passes: int
    """In a row, since it entered."""


class Update(Struct, frozen=True, kw_only=True):
    """A quarantine and how it came about."""

    quarantine: Quarantine
    entered: tuple[Entry, ...] = ()
    left: tuple[Left, ...] = ()
    silent: tuple[Entry, ...] = ()
    """Entries without a run since they entered: renamed, removed, or not run where the history looks."""


def stable_runs(rate: float) -> int:
    """Passes in a row after which something with this rate of failures is believed to be mended."""
    if rate <= 0:
        return _MOST
    needed = math.log(_CONFIDENCE) / math.log1p(-min(rate, 0.99))
    return min(max(math.ceil(needed), _FEWEST), _MOST)


def updated(
    old: Quarantine,
    rows: Sequence[Flaky],
    runs: Mapping[Subject, Sequence[Run]],
    *,
    today: date,
    rule: Rule | None,
    kinds: Collection[Kind] = frozenset(Kind),
) -> Update:
    """The quarantine of today.

    Args:
        old: The one so far.
        rows: The ranking.
        runs: Of each subject, in the order of time.
        today: Becomes the `since` of what enters.
        rule: What it takes to enter; None: nothing enters.
        kinds: Of which runs were looked for; entries of others stay, and nothing is said of them.
    """
    tests, jobs = (
        _table(kind, held, rows, runs, today=today, rule=rule) if kind in kinds else _Table(kept=held)
        for kind, held in ((Kind.TEST, old.tests), (Kind.JOB, old.jobs))
    )
    return Update(
        quarantine=Quarantine(tests=tests.kept, jobs=jobs.kept),
        entered=(*tests.entered, *jobs.entered),
        left=(*tests.left, *jobs.left),
        silent=(*tests.silent, *jobs.silent),
    )


class _Table(Struct, frozen=True, kw_only=True):
    kept: tuple[Entry, ...]
    entered: tuple[Entry, ...] = ()
    left: tuple[Left, ...] = ()
    silent: tuple[Entry, ...] = ()


def _table(
    kind: Kind,
    old: Sequence[Entry],
    rows: Sequence[Flaky],
    runs: Mapping[Subject, Sequence[Run]],
    *,
    today: date,
    rule: Rule | None,
) -> _Table:
    known = {(row.id, row.variant): row for row in rows if row.kind is kind}
    kept, left, silent = [], [], []
    for entry in old:
        own = _runs_since(entry, kind, runs)
        passes = passes_in_a_row(own)
        if own and passes >= entry.stable_runs:
            left.append(Left(entry=entry, kind=kind, passes=passes))
            continue
        if not own:
            silent.append(entry)
        row = known.get((entry.id, entry.variant)) if rule is not None else None
        kept.append(_told(entry, row) if row else entry)
    held = {(entry.id, entry.variant) for entry in old}
    entered = [
        _told(Entry(id=row.id, variant=row.variant, since=today), row)
        for row in rows
        if rule is not None and row.kind is kind and _may_enter(row, rule, held) and not _is_mended(row, runs)
    ]
    everybody = sorted((*kept, *entered), key=lambda entry: (entry.id, entry.variant))
    return _Table(kept=tuple(everybody), entered=tuple(entered), left=tuple(left), silent=tuple(silent))


def _may_enter(row: Flaky, rule: Rule, held: Collection[tuple[str, str]]) -> bool:
    is_new = bool(row.id) and not any(  # what has no name cannot be told again
        (name, variant) in held for name in {row.id, _function_of(row.id)} for variant in {row.variant, ""}
    )
    has_flaked = row.failures >= rule.failures and row.commits >= rule.commits
    return row.kind in rule.kinds and is_new and has_flaked and not (row.broken_now or row.has_cases)


def _function_of(name: str) -> str:
    """What an entry is named after that holds all parameters."""
    return name.partition("[")[0]


def _is_mended(row: Flaky, runs: Mapping[Subject, Sequence[Run]]) -> bool:
    """Whether it would leave at once."""
    own = runs.get(Subject(row.kind, row.id, row.variant), ())
    return passes_in_a_row(own) >= stable_runs(row.rate.value)


def _told(entry: Entry, row: Flaky) -> Entry:
    return replace(
        entry,
        rate=round(row.rate.value, 4),
        low=round(row.rate.low, 4),
        high=round(row.rate.high, 4),
        failures=row.failures,
        runs=row.runs,
        stable_runs=stable_runs(row.rate.value),
        evidence=row.evidence,
    )


def _runs_since(entry: Entry, kind: Kind, runs: Mapping[Subject, Sequence[Run]]) -> list[Run]:
    """Runs that an entry is about, of every variant and parameter that it holds, since the day on which it entered."""
    begin = datetime.combine(entry.since, datetime.min.time(), UTC).timestamp() if entry.since else 0.0
    found = [
        run
        for subject, own in runs.items()
        if subject.kind is kind
        and entry.id in (subject.id, _function_of(subject.id))
        and entry.variant in ("", subject.variant)
        for run in own
        if run.started is None or run.started >= begin
    ]
    return sorted(found, key=lambda run: run.started or 0.0)


def passes_in_a_row(runs: Sequence[Run]) -> int:
    """How many of the newest runs passed without a failure between them; runs in the order of time."""
    count = 0
    for run in reversed(runs):
        if run.failed:
            break
        count += 1
    return count
