"""Which part of a call's environment identifies it: the variant.

A recorded call carries its whole environment. What it *declares* is smaller: the variables that its own
line sets (`A=1 pytest x`, `env A=1 pytest x`), and those that were in force only for a while (`export A=1;
pytest x; unset A`). A variable that is exported once and stays for the rest of the script is a setting of
the script and identifies nothing, so that adding such a line does not give every test a new history. Where
the line is not known (a script for sh, a submitted command) everything in which the calls differ is
declared.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct

from sooner.model.units import UnitKey, unit_key, variant_of

HINT_DEVICES: Final = "SOONER_NEED_DEVICES"
_OURS: Final = "SOONER_"
_LEFT_OUT: Final = frozenset({"_", "SHLVL"})
"""Names the shell's own bookkeeping (and, with us before it, our shim): not handed on to the unit."""
_VOLATILE: Final = _LEFT_OUT | {
    *(
        "PWD",
        "OLDPWD",
        "LINENO",
        "RANDOM",
        "SRANDOM",
        "SECONDS",
        "EPOCHSECONDS",
        "EPOCHREALTIME",
        "BASHPID",
        "PPID",
    ),
    *("COLUMNS", "LINES", "BASH_ENV", "BASH_EXECUTION_STRING", "PIPESTATUS", "HISTCMD"),
}


class Call(Struct, frozen=True, kw_only=True):
    """A call as far as its identity goes."""

    name: str
    changed: dict[str, str]
    """Variables that differ from the runner's environment, without volatile ones."""
    assigned: frozenset[str] | None
    """Names that the line of the call assigns; None where the line is not known."""


def difference(env: Mapping[str, str], base: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What to set and what to remove so that `base` becomes `env`."""
    changed = {name: value for name, value in env.items() if base.get(name) != value and name not in _LEFT_OUT}
    removed = sorted(name for name in base if name not in env and name not in _LEFT_OUT)
    return changed, tuple(removed)


def identifying(changed: Mapping[str, str]) -> dict[str, str]:
    """The variables that may identify a call: neither volatile nor sooner's own."""
    return {name: value for name, value in changed.items() if name not in _VOLATILE and not name.startswith(_OURS)}


def identities(calls: Sequence[Call]) -> list[tuple[str, str]]:
    """Name and variant of each call, all different: a call that is repeated exactly becomes `name#2`."""
    common, passing = _common(calls), _passing(calls)
    declared = [_declared(call, common=common, passing=passing) for call in calls]
    for twins in _repeated(calls, declared):
        differing = _differing([calls[index].changed for index in twins])
        for index in twins:
            declared[index] = declared[index] | {
                name: value for name, value in calls[index].changed.items() if name in differing
            }
    return numbered((call.name, variant_of(env)) for call, env in zip(calls, declared, strict=True))


def numbered(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The same pairs, made unique: the second `name` with the same variant becomes `name#2`."""
    seen: Counter[UnitKey] = Counter()
    taken: set[UnitKey] = set()
    unique = []
    for name, variant in pairs:
        first = unit_key(name, variant)
        seen[first] += 1
        given = name if seen[first] == 1 else f"{name}#{seen[first]}"
        while unit_key(given, variant) in taken:
            seen[first] += 1
            given = f"{name}#{seen[first]}"
        taken.add(unit_key(given, variant))
        unique.append((given, variant))
    return unique


def _declared(call: Call, *, common: set[tuple[str, str]], passing: set[str]) -> dict[str, str]:
    if call.assigned is None:
        return {name: value for name, value in call.changed.items() if (name, value) not in common}
    return {name: value for name, value in call.changed.items() if name in call.assigned or name in passing}


def _common(calls: Sequence[Call]) -> set[tuple[str, str]]:
    """Settings that all calls share, where there are at least two: they tell nothing apart."""
    if len(calls) < 2:  # noqa: PLR2004 - one call has nothing to share with
        return set()
    return set.intersection(*(set(call.changed.items()) for call in calls))


def _passing(calls: Sequence[Call]) -> set[str]:
    """Variables that were set for a while: at a later call they have another value, or none.

    Calls that assign a variable on their own line say nothing about what is in force around them.
    """
    passing: set[str] = set()
    for name in {name for call in calls for name in call.changed}:
        values = [call.changed.get(name) for call in calls if name not in (call.assigned or ())]
        if any(before not in (None, after) for before, after in pairwise(values)):
            passing.add(name)
    return passing


def _repeated(calls: Sequence[Call], declared: Sequence[Mapping[str, str]]) -> list[list[int]]:
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for index, (call, env) in enumerate(zip(calls, declared, strict=True)):
        groups[call.name, variant_of(env)].append(index)
    return [group for group in groups.values() if len(group) > 1]


def _differing(environments: Sequence[Mapping[str, str]]) -> set[str]:
    names = {name for env in environments for name in env}
    return {name for name in names if len({env.get(name) for env in environments}) > 1}
