"""A pool of costly resources: reused under their full configuration, reset before reuse, destroyed in any doubt.

What a cache of live resources gets wrong, as the review of ROCm/xla pull request 861 lists it, decides the shape:

- *callbacks still in flight at reset*: a resource is drained before it is reset;
- *a configuration ignored on reuse*: the key is the whole configuration, and what comes back is stored only if the
  fingerprint read from the live resource still equals it;
- *a release that anybody could call*: only the lease's context manager gives back;
- *state that survives*: reset, then a health check; whatever raises or says no destroys the resource.

Cache the leaf (the stream), rebuild the tree (the client): a resource may name a parent and dies with it.
"""

import os
import time
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

Config = TypeVar("Config", bound=Hashable)
Thing = TypeVar("Thing")

_REASONS: Final = ("drain", "reset", "unhealthy", "fingerprint", "error", "age", "uses", "room", "parent", "closed")


class PoolError(Exception):
    """A pool was used in a way that cannot be right: after a fork, after its end, with a lease that is not held."""


class CreationSuspended(PoolError):  # noqa: N818 - what happened, as in sooner.model.errors
    """Making a resource failed so often that it is not tried again; says the last reason."""


class Kind(ABC, Generic[Config, Thing]):
    """How one kind of resource is made, checked and ended. Subclass it, and override what the resource needs."""

    @abstractmethod
    def make(self, config: Config) -> Thing:
        """Make a resource; may raise."""

    def fingerprint(self, thing: Thing, config: Config) -> Hashable:
        """The configuration as the live resource tells it; by default what was asked for."""
        del thing
        return config

    def drain(self, thing: Thing) -> None:
        """Wait until nothing that uses the resource is in flight; may raise."""

    def reset(self, thing: Thing) -> None:
        """Make it as good as new; may raise."""

    def healthy(self, thing: Thing) -> bool:
        """Whether it can be used again."""
        del thing
        return True

    def destroy(self, thing: Thing) -> None:
        """End it; must not raise, must not hang."""

    def abort(self, thing: Thing) -> None:
        """End it after a failure, when an orderly end might hang; by default as `destroy`."""
        self.destroy(thing)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a pool keeps at most."""

    per_key: int = 4
    """Idle resources of one configuration (Bazel's persistent workers: 4)."""
    total: int = 32
    """Idle resources in all; the least recently used goes first (Spring's context cache: 32)."""
    uses: int = 10_000
    """Leases of one resource before it is replaced."""
    age_s: float = 3600.0
    creation_failures: int = 3
    """Failures in a row, for one configuration, after which making is not tried any more."""


@dataclass(slots=True)
class Statistics:
    """What happened in a pool."""

    hits: int = 0
    misses: int = 0
    stored: int = 0
    creation_failures: int = 0
    destroyed: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_REASONS, 0))


@dataclass(slots=True, eq=False)
class _Entry:
    kind: Kind[Any, Any]
    config: Hashable
    thing: Any
    made_at: float
    parent: "_Entry | None"
    uses: int = 0
    doomed: str = ""
    """Why it must not be stored again; empty while it may."""
    children: "set[_Entry]" = field(default_factory=set)


class Lease(Generic[Thing]):
    """The exclusive use of one resource; given back by the `with` statement that made it, by nobody else."""

    __slots__ = ("_entry", "_failed")

    def __init__(self, entry: _Entry) -> None:
        self._entry = entry
        self._failed = False

    @property
    def thing(self) -> Thing:
        """The resource."""
        thing: Thing = self._entry.thing
        return thing

    @property
    def has_failed(self) -> bool:
        """Whether somebody said that the resource must not be used again."""
        return self._failed

    def fail(self) -> None:
        """Say that the resource must not be used again (a device error that is not an exception here)."""
        self._failed = True


def _entry_of(lease: "Lease[Any] | None") -> _Entry | None:
    return None if lease is None else lease._entry  # noqa: SLF001 - of this module, and of nobody else


Vote = Callable[[bool], bool]
"""Asks all ranks whether a collective resource may be kept: takes this rank's word, returns everybody's."""


class ResourcePool:
    """Leases resources; see the module's docstring for the rules. Not thread-safe: a worker runs one test at a time.

    Args:
        limits: What is kept at most.
        clock: Monotonic seconds.
    """

    def __init__(self, limits: Limits | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits or Limits()
        self._clock = clock
        self._pid = os.getpid()
        self._idle: OrderedDict[_Entry, None] = OrderedDict()
        """Idle resources, the least recently used first."""
        self._leased: set[_Entry] = set()
        self._failures: dict[tuple[int, Hashable], tuple[int, str]] = {}
        self._closed = False
        self.statistics = Statistics()

    @contextmanager
    def lease(
        self,
        kind: Kind[Config, Thing],
        config: Config,
        *,
        parent: "Lease[Any] | None" = None,
        vote: Vote | None = None,
    ) -> Iterator[Lease[Thing]]:
        """Hold a resource of exactly this configuration.

        Args:
            kind: How to make and check it; the same object for the same kind of resource.
            config: Its full configuration: what differs in anything is another resource.
            parent: What it was made from; it never outlives it.
            vote: For a collective resource: whether all ranks keep it. All ranks lease in the same order.

        Raises:
            CreationSuspended: Making it failed too often.
            PoolError: The pool is closed, or belongs to the process that this one was forked from.
        """
        self._check()
        entry = self._find(kind, config, _entry_of(parent)) or self._make(kind, config, parent)
        self._leased.add(entry)
        entry.uses += 1
        lease: Lease[Thing] = Lease(entry)
        failed = True
        try:
            yield lease
            failed = lease.has_failed
        finally:
            self._give_back(entry, failed=failed, vote=vote)

    def _check(self) -> None:
        if self._closed:
            raise PoolError("the pool is closed")
        if os.getpid() != self._pid:
            raise PoolError(
                f"the pool belongs to process {self._pid}, this is {os.getpid()}: make a new pool after a fork"
            )

    def _find(self, kind: Kind[Any, Any], config: Hashable, parent: _Entry | None) -> _Entry | None:
        """The idle resource that was used last, of those that fit and are neither too old nor used up."""
        for entry in reversed(list(self._idle)):
            if entry.kind is not kind or entry.config != config or entry.parent is not parent:
                continue
            if reason := self._worn_out(entry):
                self._destroy(entry, reason)
                continue
            del self._idle[entry]
            self.statistics.hits += 1
            return entry
        return None

    def _worn_out(self, entry: _Entry) -> str:
        if entry.uses >= self._limits.uses:
            return "uses"
        return "age" if self._clock() - entry.made_at >= self._limits.age_s else ""

    def _make(self, kind: Kind[Config, Thing], config: Config, parent: "Lease[Any] | None") -> _Entry:
        self.statistics.misses += 1
        key = (id(kind), config)
        failures, reason = self._failures.get(key, (0, ""))
        if failures >= self._limits.creation_failures:
            raise CreationSuspended(f"{type(kind).__name__} failed {failures} times in a row, the last time: {reason}")
        try:
            thing = kind.make(config)
        except Exception as error:
            self.statistics.creation_failures += 1
            self._failures[key] = (failures + 1, repr(error))
            raise
        self._failures.pop(key, None)
        entry = _Entry(kind, config, thing, self._clock(), _entry_of(parent))
        if entry.parent is not None:
            entry.parent.children.add(entry)
        return entry

    def _give_back(self, entry: _Entry, *, failed: bool, vote: Vote | None) -> None:
        """Drain, reset, check, compare, store: a doubt at any step destroys."""
        if os.getpid() != self._pid:
            return  # a child that was forked inside the lease: the resource is its parent's
        self._leased.discard(entry)
        doubt = entry.doomed or ("error" if failed else self._doubt(entry))
        if vote is not None and not vote(not doubt):
            doubt = doubt or "error"
        if doubt or self._closed:
            self._destroy(entry, doubt or "closed")
            return
        self._idle[entry] = None
        self.statistics.stored += 1
        self._make_room(entry)

    def _doubt(self, entry: _Entry) -> str:
        """The first step of the way back that did not go well; empty where all did."""
        step = "drain"
        try:
            entry.kind.drain(entry.thing)
            step = "reset"
            entry.kind.reset(entry.thing)
            step = "unhealthy"
            if not entry.kind.healthy(entry.thing):
                return step
            step = "fingerprint"
            return "" if entry.kind.fingerprint(entry.thing, entry.config) == entry.config else step
        except Exception:  # noqa: BLE001 - whatever a driver raises is a doubt
            return step

    def _make_room(self, newest: _Entry) -> None:
        same = [e for e in self._idle if e.kind is newest.kind and e.config == newest.config]
        for entry in same[: max(0, len(same) - self._limits.per_key)]:
            self._destroy(entry, "room")
        while len(self._idle) > self._limits.total:
            self._destroy(next(iter(self._idle)), "room")

    def _destroy(self, entry: _Entry, reason: str) -> None:
        """End a resource and everything that was made from it; what is leased of that ends when it comes back."""
        for child in list(entry.children):
            if child in self._leased:
                child.doomed = "parent"
            else:
                self._destroy(child, "parent")
        self._idle.pop(entry, None)
        if entry.parent is not None:
            entry.parent.children.discard(entry)
        self.statistics.destroyed[reason] += 1
        end = entry.kind.destroy if reason in ("age", "uses", "room", "parent", "closed") else entry.kind.abort
        try:
            end(entry.thing)
        except Exception:  # noqa: BLE001 - it is gone for us either way; the next one is made anew
            return

    def invalidate(self, kind: Kind[Any, Any] | None = None) -> None:
        """Destroy what is idle, of one kind or all; what is leased is destroyed when it comes back."""
        self._check()
        for entry in [e for e in self._idle if kind is None or e.kind is kind]:
            if entry in self._idle:
                self._destroy(entry, "closed")
        for entry in self._leased:
            if kind is None or entry.kind is kind:
                entry.doomed = "closed"

    def close(self) -> None:
        """Destroy everything that is idle; nothing can be leased any more. In a forked child nothing is touched."""
        if os.getpid() == self._pid and not self._closed:
            self._closed = True
            for entry in list(self._idle):
                if entry in self._idle:
                    self._destroy(entry, "closed")
