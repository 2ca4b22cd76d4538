"""The coverage ledger: when each test last really ran, where, on how much, and which are past the policy. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sooner.analysis.sizing.needs import TestNeed, number
from sooner.model.patterns import is_meant

_UNITS: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0, "w": 7 * 86_400.0}
_SPAN: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(s|min|m|h|d|w)")


class Execution(Struct, frozen=True, kw_only=True, gc=False):
    """A test really ran: it passed, or failed by what it tests. Skips are none, whatever their reason."""

    test: str
    at: float
    """When it started, epoch seconds."""
    where: str = ""
    devices: int | None = None
    """How many it had; None where nobody recorded that."""
    ranks: int | None = None
    outcome: str = ""
    is_pretended: bool = False
    """Whether its devices only stand in for real ones."""


class Required(StrEnum):
    """Which need an execution must meet."""

    FULL = "full"
    GPU_MIN = "gpu_min"
    MIN = "min"
    ANY = "any"
    """It ran, on whatever."""


class Rule(Struct, frozen=True, kw_only=True):
    """How fresh tests must be."""

    match: str = "*"
    """Of node ids, as a shell spells patterns."""
    within_s: float
    at: Required = Required.FULL
    exempt: str = ""
    """A reason, for tests that need not run."""


class Standing(StrEnum):
    """Where a test stands."""

    COVERED = "covered"
    LATE = "late"
    """It ran as it should, but too long ago."""
    TOO_SMALL = "too_small"
    """It ran lately, but on too few devices."""
    NOT_PROVEN = "not_proven"
    """It ran lately, but nobody recorded on how many devices, or nobody knows what it needs."""
    NEVER = "never"
    """No execution is known."""
    NEVER_RUNS = "never_runs"
    """No number of devices makes it run: it cannot be covered, and is listed."""
    EXEMPT = "exempt"


MET: Final = frozenset({Standing.COVERED, Standing.EXEMPT, Standing.NEVER_RUNS})


class Entry(Struct, frozen=True, kw_only=True):
    """One test's line in the ledger."""

    test: str
    standing: Standing
    needs: int | None
    """Devices that the rule asks for; None where it asks for none, or nobody knows."""
    within_s: float
    last: Execution | None
    """The last execution at the need that is asked for."""
    last_any: Execution | None
    """The last one at all."""
    age_s: float | None
    """Of `last`."""
    why: str = ""
    last_skip: Execution | None = None
    """When it was last skipped, where that was later than it last ran."""


def span(text: str) -> float:
    """Seconds of `90 min`, `24h`, `7d`.

    Raises:
        ValueError: It is no such text.
    """
    found = _SPAN.fullmatch(text.strip().lower())
    if not found:
        raise ValueError(text)
    return float(found[1]) * _UNITS[found[2]]


def ledger(
    tests: Iterable[str],
    needs: Mapping[str, TestNeed],
    executions: Iterable[Execution],
    rules: Sequence[Rule],
    now: float,
) -> list[Entry]:
    """The standing of every test, at a time; executions after it are not looked at.

    Args:
        tests: All that there are: those of the needs, and those that the history ever saw.
        needs: By node id.
        executions: In any order.
        rules: The first that matches a test is its rule; tests that none matches are left out.
        now: Epoch seconds.
    """
    ran: dict[str, list[Execution]] = {}
    for one in executions:
        if one.at <= now and one.ranks != 0:
            ran.setdefault(one.test, []).append(one)
    entries = []
    for test in sorted(set(tests)):
        rule = next((rule for rule in rules if matches(test, rule.match)), None)
        if rule is not None:
            entries.append(_entry(test, needs.get(test), ran.get(test, ()), rule, now))
    return entries


def with_skips(entries: Iterable[Entry], skips: Iterable[Execution], now: float) -> list[Entry]:
    """The same, with the last skip of each test that has not run since: a skip is no execution, and often why.

    Args:
        entries: What `ledger` found.
        skips: Times at which tests were skipped, in any order, with what they would have had.
        now: Epoch seconds: what came later is not looked at.
    """
    last: dict[str, Execution] = {}
    for one in skips:
        if one.at <= now and (one.test not in last or one.at > last[one.test].at):
            last[one.test] = one
    return [_with_skip(entry, last.get(entry.test)) for entry in entries]


def _with_skip(entry: Entry, skip: Execution | None) -> Entry:
    if skip is None or (entry.last_any is not None and entry.last_any.at >= skip.at):
        return entry
    where = "" if skip.devices is None else f", last on {skip.devices} device{'s' * (skip.devices != 1)}"
    where += ", too few" if skip.outcome == "skipped_no_devices" else ""
    says = {
        Standing.NEVER: f"it was skipped{where}",
        Standing.LATE: f"{entry.why}, and was skipped since{where}",
    }
    return replace(entry, last_skip=skip, why=says.get(entry.standing, entry.why))


def matches(test: str, pattern: str) -> bool:
    """Whether a pattern means a test: the whole node id, or its path."""
    return is_meant(test, pattern) or is_meant(test.split("::", maxsplit=1)[0], pattern)


def _entry(test: str, need: TestNeed | None, ran: Sequence[Execution], rule: Rule, now: float) -> Entry:
    wanted, is_known = _wanted(need, rule.at)
    last_any = max(ran, key=lambda one: one.at, default=None)
    enough = [one for one in ran if _is_enough(one, wanted) and is_known]
    last = max(enough, key=lambda one: one.at, default=None)
    age = now - last.at if last else None
    standing, why = _standing(need, rule, ran, age, wanted=wanted, is_known=is_known, now=now)
    return Entry(
        test=test, standing=standing, needs=wanted, within_s=rule.within_s, last=last, last_any=last_any, age_s=age,
        why=why,
    )  # fmt: skip


def _wanted(need: TestNeed | None, at: Required) -> tuple[int | None, bool]:
    """Devices that an execution must have, and whether that is known."""
    if at is Required.ANY:
        return None, True
    if need is None:
        return None, False
    found = {Required.FULL: need.full, Required.GPU_MIN: need.gpu_min, Required.MIN: need.min}[at]
    if found is None:  # it needs no devices, ever
        return 0, True
    return number(found), number(found) is not None


def _is_enough(one: Execution, wanted: int | None) -> bool:
    return not wanted or (one.devices is not None and one.devices >= wanted)


def _standing(
    need: TestNeed | None, rule: Rule, ran: Sequence[Execution], age: float | None, *, wanted: int | None,
    is_known: bool, now: float,
) -> tuple[Standing, str]:  # fmt: skip
    if rule.exempt:
        return Standing.EXEMPT, rule.exempt
    if need is not None and need.never_runs and not ran:
        return Standing.NEVER_RUNS, "no number of devices makes it run"
    if age is not None and age <= rule.within_s:
        return Standing.COVERED, ""
    recent = [one for one in ran if now - one.at <= rule.within_s]
    if recent and not is_known:
        return Standing.NOT_PROVEN, "it ran, but what it needs is not known"
    if recent and all(one.devices is None for one in recent):
        return Standing.NOT_PROVEN, "it ran, but on how many devices is not recorded"
    if recent:
        most = max(one.devices or 0 for one in recent)
        return Standing.TOO_SMALL, f"it ran on {most} of {wanted} devices"
    return (Standing.LATE, "it ran too long ago") if ran else (Standing.NEVER, "no execution is known")
