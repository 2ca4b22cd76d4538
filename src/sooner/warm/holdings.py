"""What a process keeps between tests on purpose: descriptors, children and process groups that no test leaked.

Witnesses subtract it (`descriptors()`, `children()`, `groups()`), and so a warm worker is not discarded for its worlds.
"""

import contextlib
import os
import sys
import weakref
from collections.abc import Hashable, Iterable
from typing import Any, Final, Protocol

from sooner.warm.pool import Kind


class Holder(Protocol):
    """Something that is kept between tests."""

    @property
    def descriptors(self) -> frozenset[int]:
        """What it holds open."""

    @property
    def children(self) -> frozenset[int]:
        """Children of this process that belong to it."""

    @property
    def groups(self) -> frozenset[int]:
        """Identities of process groups that belong to it."""


_holders: Final["weakref.WeakSet[Any]"] = weakref.WeakSet()


def keep(holder: Holder) -> None:
    """Have a holder's belongings known, for as long as it exists."""
    _holders.add(holder)


def descriptors() -> frozenset[int]:
    """Descriptors that are kept."""
    return frozenset().union(*(holder.descriptors for holder in _holders))


def children() -> frozenset[int]:
    """Child processes that are kept."""
    return frozenset().union(*(holder.children for holder in _holders))


def groups() -> frozenset[int]:
    """Process groups that are kept, by their identity."""
    return frozenset().union(*(holder.groups for holder in _holders))


class Accounted(Kind[Any, Any]):
    """A kind whose resources are accounted: what making one opened is held until it is destroyed.

    Args:
        kind: What makes, checks and ends the resources.
    """

    def __init__(self, kind: Kind[Any, Any]) -> None:
        self._kind = kind
        self._held: dict[int, tuple[frozenset[int], frozenset[int]]] = {}
        keep(self)

    @property
    def descriptors(self) -> frozenset[int]:
        """Descriptors that its resources hold."""
        return frozenset().union(*(files for files, _ in self._held.values()))

    @property
    def children(self) -> frozenset[int]:
        """None: a resource that is a process tells its holder by itself."""
        return frozenset()

    @property
    def groups(self) -> frozenset[int]:
        """Process groups that its resources are."""
        return frozenset().union(*(made for _, made in self._held.values()))

    def make(self, config: Hashable) -> Any:
        """Make a resource and remember what that opened."""
        files, known = _open_files(), _process_groups()
        thing = self._kind.make(config)
        self._held[id(thing)] = (_open_files() - files, _process_groups() - known)
        return thing

    def fingerprint(self, thing: Any, config: Hashable) -> Hashable:
        """As the kind says."""
        return self._kind.fingerprint(thing, config)

    def drain(self, thing: Any) -> None:
        """As the kind does."""
        self._kind.drain(thing)

    def reset(self, thing: Any) -> None:
        """As the kind does."""
        self._kind.reset(thing)

    def healthy(self, thing: Any) -> bool:
        """As the kind says."""
        return self._kind.healthy(thing)

    def destroy(self, thing: Any) -> None:
        """As the kind does; what is still open afterwards is nobody's any more."""
        self._held.pop(id(thing), None)
        self._kind.destroy(thing)

    def abort(self, thing: Any) -> None:
        """As the kind does, see `destroy`."""
        self._held.pop(id(thing), None)
        self._kind.abort(thing)


def _open_files() -> frozenset[int]:
    """Descriptors that are open now, without the one that listing them took."""
    found = set()
    with contextlib.suppress(OSError):
        for number in map(int, os.listdir("/proc/self/fd")):  # noqa: PTH208 - numbers, no paths
            with contextlib.suppress(OSError):
                os.fstat(number)
                found.add(number)
    return frozenset(found)


def _process_groups() -> frozenset[int]:
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    known: Iterable[Any] = c10d._world.pg_map if c10d is not None else ()  # noqa: SLF001 - there is no public list
    return frozenset(map(id, known))
