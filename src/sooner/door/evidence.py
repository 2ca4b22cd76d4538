"""What earlier runs showed of each test by itself, and the level of isolation that follows from it.

A test starts at the strictest level that the budget allows: a process of its own if that costs at most the given share
of its duration, else a shared one. It is promoted to a shared process once it ran alone several times and left nothing,
and moved out of it when it was seen to spoil the process or to be spoilt there. Only tests that set up nothing wider
than themselves take part: what a class, a module or the session shares is not set up again for each.
"""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from msgspec import Struct, structs

EVIDENCE: Final = "sooner/evidence"
FORK_S: Final = 0.02
"""What a process of its own costs a test: a fork of a process with torch and DTensor imported, and its end."""
PROMOTED: Final = 3
"""So many runs alone that left nothing behind: the test may share a process."""
_PARDONED: Final = 20
"""So many runs alone after pollution was seen: it is tried again in a shared process."""
_DEARER: Final = 1.25
_DEARER_S: Final = 0.05
"""A test that took longer alone by both paid for what it shares with others (imports, caches): promoted at once."""


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of one test."""

    alone: int = 0
    """Runs by itself, in a row, that left nothing behind."""
    trouble: str = ""
    """`discard`: it spoils processes. `pollution`: others spoil it. `order`: it needs what others leave. Or empty."""


_NONE: Final = Evidence()


class Ledger:
    """Evidence of all tests, from and for pytest's cache.

    Args:
        config: Where the cache and the budget are.
        is_open: Whether tests may be moved at all: `--isolation=auto`, `--reuse=on`, and this process may be forked.
    """

    def __init__(self, config: pytest.Config, *, is_open: bool) -> None:
        self._cache = getattr(config, "cache", None)
        self._budget: float = config.option.isolation_budget
        self._is_open = is_open
        known: Any = self._cache.get(EVIDENCE, {}) if self._cache is not None else {}
        self._known = {
            nodeid: Evidence(alone=int(value.get("alone", 0)), trouble=str(value.get("trouble", "")))
            for nodeid, value in (known.items() if isinstance(known, dict) else ())
            if isinstance(value, dict)
        }
        self._has_changed = False

    @property
    def says_nothing(self) -> bool:
        """Whether every test shares: asking for each would be for nothing."""
        return not self._is_open or (not self._known and not self._budget)

    def is_alone(self, item: pytest.Item, seconds: float | None) -> bool:
        """Whether a test without a mark gets a process of its own.

        Args:
            item: The test; its file shares no fixtures between tests.
            seconds: How long it takes, where known.
        """
        if self.says_nothing or not (self._is_troubled(item) or self._is_within_budget(item, seconds)):
            return False
        return not _shares(item)

    def _is_troubled(self, item: pytest.Item) -> bool:
        return self.of(item).trouble in ("discard", "pollution")

    def _is_within_budget(self, item: pytest.Item, seconds: float | None) -> bool:
        known = self.of(item)
        if seconds is None or known.trouble or known.alone >= PROMOTED:
            return False
        return seconds * self._budget >= FORK_S

    def of(self, item: pytest.Item) -> Evidence:
        """What is known of a test."""
        return self._known.get(item.nodeid, _NONE)

    def may_need_others(self, item: pytest.Item) -> bool:
        """Whether a failure alone may only say that the test needs what others leave: it was never seen alone."""
        known = self.of(item)
        return known.alone == 0 and known.trouble != "pollution"

    def saw_alone(self, item: pytest.Item, *, left: str, seconds: float, expected: float | None) -> None:
        """Note a run by itself.

        Args:
            item: The test.
            left: What it left behind that a shared process would have been discarded for; empty if nothing.
            seconds: How long it took.
            expected: How long it took before, where known.
        """
        before = self.of(item)
        alone = 0 if left else before.alone + 1
        trouble = "discard" if left else "" if before.trouble == "discard" or alone >= _PARDONED else before.trouble
        if expected is not None and seconds > max(expected * _DEARER, expected + _DEARER_S) and not trouble:
            alone = max(alone, PROMOTED)
        self._set(item, Evidence(alone=alone, trouble=trouble))

    def saw_shared(self, item: pytest.Item, *, discard: str, pollution: bool, order: bool) -> None:
        """Note a run beside others; nothing if there was no trouble."""
        trouble = "order" if order else "pollution" if pollution else "discard" if discard else ""
        if trouble:
            self._set(item, Evidence(trouble=trouble))

    def _set(self, item: pytest.Item, evidence: Evidence) -> None:
        if evidence != self.of(item):
            self._known[item.nodeid] = evidence
            self._has_changed = True

    def save(self) -> None:
        """Write what is new."""
        if self._cache is not None and self._has_changed:
            said: Mapping[str, Evidence] = {nodeid: one for nodeid, one in self._known.items() if one != _NONE}
            self._cache.set(EVIDENCE, {nodeid: structs.asdict(one) for nodeid, one in said.items()})


def _shares(item: pytest.Item) -> bool:
    """Whether a test uses a fixture of the session, but for pytest's own; or keeps ranks that others use."""
    if not isinstance(item, pytest.Function):
        return True
    info = getattr(item, "_fixtureinfo", None)
    for definitions in info.name2fixturedefs.values() if info else ():
        last = definitions[-1] if definitions else None
        if last is not None and str(last.scope) == "session" and not last.func.__module__.startswith("_pytest."):
            return True
    return any(base.__name__.startswith("MultiProc") for base in getattr(item.cls, "__mro__", ()))
