"""What pytest's cache remembers for the next run: how long each test took, and which were seen polluted."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

DURATIONS: Final = "sooner/durations"
POLLUTION: Final = "sooner/pollution"
_MOST_SEQUENCES: Final = 20


class Durations:
    """Expected durations of tests, from and for pytest's own cache; without one, nothing is known.

    Args:
        config: Where the cache is.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._cache = getattr(config, "cache", None)
        known: Any = self._cache.get(DURATIONS, {}) if self._cache is not None else {}
        self._known: Mapping[str, float] = known if isinstance(known, dict) else {}
        self._new: dict[str, float] = {}
        self._sequences: list[list[str]] = []

    @property
    def are_known(self) -> bool:
        """Whether anything is known."""
        return bool(self._known)

    def of_items(self, items: Sequence[pytest.Item]) -> dict[int, float]:
        """Expected seconds of items, by position, where known."""
        known = self._known
        return {i: known[item.nodeid] for i, item in enumerate(items) if item.nodeid in known} if known else {}

    def add(self, item: pytest.Item, seconds: float) -> None:
        """Note how long all phases of a test took."""
        self._new[item.nodeid] = round(seconds, 4)

    def add_pollution(self, nodeids: Sequence[str]) -> None:
        """Note that the last of these failed after the others and passed by itself."""
        self._sequences.append(list(nodeids))

    def save(self) -> None:
        """Write what is new."""
        if self._cache is None:
            return
        self._cache.set(DURATIONS, {**self._known, **self._new})
        if self._sequences:
            self._cache.set(POLLUTION, self._sequences[-_MOST_SEQUENCES:])
