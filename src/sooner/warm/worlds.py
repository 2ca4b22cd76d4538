"""The worlds of a process: kept between tests, void after a fork, closed at the end."""

import importlib
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from sooner.warm.forking import ForkRefused, fork_refusal
from sooner.warm.holdings import keep
from sooner.warm.mothers import Mother
from sooner.warm.pool import Kind, Limits, ResourcePool, Statistics
from sooner.warm.world import AFTER_FAILURE_S, DEFAULT_TIMEOUT_S, World, WorldConfig, world_config
from sooner.warm.zygote import Zygote

_CAPTURE: Final = "sooner.warm.baseline:capture_for_births"
_LIMITS: Final = Limits(per_key=2, total=4)
_LEARNED: Final = ("torch", "numpy", "sympy")
"""Packages whose modules are imported before ranks are born, once a rank has imported them."""
_WORTH_PRELOADING: Final = (
    *("numpy", "torch", "torch.distributed", "torch.optim", "torch._dynamo", "torch._inductor.compile_fx"),
    *("torch.distributed.tensor", "torch.testing._internal.common_distributed"),
)
"""What a new interpreter imports of what this process has imported: each takes a second or more in a rank."""


class _Kind(Kind[WorldConfig, World]):
    """How a pool makes, checks and ends worlds."""

    def __init__(self, owner: "Worlds") -> None:
        self._owner = owner

    def make(self, config: WorldConfig) -> World:
        return self._owner.make(config)

    def drain(self, thing: World) -> None:
        thing.tidy()

    def healthy(self, thing: World) -> bool:
        return thing.is_healthy()

    def destroy(self, thing: World) -> None:
        self._owner.end(thing)


class Worlds:
    """Leases worlds. Ranks come from a fork server that is made when the first is needed.

    Args:
        preload: Modules that ranks find imported.
        timeout_s: How long a function may take if its call says nothing else.
        limits: What is kept at most.
        from_here: Whether the fork server is a fork of this process, with all its modules, where that is possible;
            otherwise it is a new interpreter, which imports `preload` first.
    """

    def __init__(
        self,
        *,
        preload: Iterable[str] = (),
        timeout_s: float = DEFAULT_TIMEOUT_S,
        limits: Limits = _LIMITS,
        from_here: bool = True,
    ) -> None:
        self.timeout_s = timeout_s
        self._preload = tuple(preload)
        self._limits = limits
        self._from_here = from_here
        self._owner = os.getpid()
        self._zygote: Zygote | None = None
        self._begin()
        keep(self)

    def _begin(self) -> None:
        self._pool = ResourcePool(self._limits)
        self._kind = _Kind(self)
        self._worlds: list[World] = []
        self._learned: set[str] = set()
        self._taught: set[str] = set()
        self._devices: dict[tuple[str, ...], int] = {}

    @property
    def statistics(self) -> Statistics:
        """Hits, misses and why worlds ended."""
        return self._pool.statistics

    @property
    def descriptors(self) -> frozenset[int]:
        """What is held open in this process: no test leaked it."""
        mine = self._zygote.descriptors if self._zygote else frozenset()
        return mine.union(*(world.descriptors for world in self._worlds))

    @property
    def children(self) -> frozenset[int]:
        """Children of this process that belong to it: no test left them."""
        return frozenset({self._zygote.pid}) if self._zygote else frozenset()

    @property
    def groups(self) -> frozenset[int]:
        """Process groups of this process that belong to it: none, they are in ranks."""
        return frozenset()

    @contextmanager
    def lease(
        self,
        size: int,
        backend: str | None = "gloo",
        *,
        group_timeout_s: float | None = None,
        timeout_s: float | None = None,
        test_id: str = "",
        is_kept: bool = True,
    ) -> Iterator[World]:
        """Hold a world: a kept one of the same configuration, or a new one.

        Args:
            size: Number of ranks.
            backend: Of the default process group; None for ranks without one.
            group_timeout_s: Of its collectives; None is torch's own default.
            timeout_s: How long a function may take; by default as for all worlds.
            test_id: What random generators are seeded from; by default the test that pytest says is running.
            is_kept: False for ranks that nobody had before, and that end with the lease.

        Raises:
            ForkRefused: Nobody can give birth to ranks; says why.
        """
        self._renew_after_fork()
        config = world_config(size, backend, group_timeout_s=group_timeout_s, is_kept=is_kept)
        with self._pool.lease(self._kind, config) as lease:
            world = lease.thing
            world.timeout_s = self.timeout_s if timeout_s is None else timeout_s
            world.after_failure_s = AFTER_FAILURE_S
            world.test_id = test_id
            yield world

    def devices(self) -> int:
        """How many devices ranks of this process can see; asked in a rank, for asking makes a process unfit to fork."""
        torch: Any = importlib.import_module("torch")
        if torch.version.cuda is None and torch.version.hip is None:
            return 0
        masks = tuple(os.environ.get(name, "") for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"))
        if masks not in self._devices:
            with self.lease(1, None, is_kept=False) as world:
                (self._devices[masks],) = world.run(_count_devices)
        return self._devices[masks]

    def make(self, config: WorldConfig) -> World:
        """A world with living ranks; for the pool."""
        world = World(config, self.mother, timeout_s=self.timeout_s)
        self._worlds.append(world)
        world.start()
        return world

    def end(self, world: World) -> None:
        """Kill the ranks of a world and remember what they had to import; for the pool."""
        self._learned.update(name for name in world.imported if name.partition(".")[0] in _LEARNED)
        world.close()
        self._worlds.remove(world)

    def mother(self) -> Mother:
        """The fork server; a new one where the last one was lost or must not fork any more."""
        if self._zygote is not None and not self._zygote.is_alive():
            self._end_zygote()
        if self._zygote is None:
            self._zygote, self._taught = self._new_zygote(), set()
        lesson = self._learned - self._taught
        return self._zygote if not lesson or self._teach(self._zygote, lesson) else self.mother()

    def _teach(self, zygote: Zygote, lesson: set[str]) -> bool:
        """Have the fork server import what ranks had to import; one that must not fork any more is given up."""
        self._taught |= lesson
        try:
            zygote.preload(sorted(lesson))
        except ForkRefused:
            self._learned.clear()
            self._end_zygote()
            return False
        zygote.call(_CAPTURE)
        return True

    def _new_zygote(self) -> Zygote:
        if self._from_here and not fork_refusal():
            zygote = Zygote.fork()
            zygote.preload(self._preload)
        else:
            zygote = Zygote.start([*self._preload, *(name for name in _WORTH_PRELOADING if name in sys.modules)])
        zygote.call(_CAPTURE)
        return zygote

    def _end_zygote(self) -> None:
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _renew_after_fork(self) -> None:
        """In a forked child: let go of the parent's worlds, which are not ours, and begin anew."""
        if os.getpid() != self._owner:
            for world in self._worlds:
                world.close()
            self._end_zygote()
            self._owner = os.getpid()
            self._begin()

    def close(self) -> None:
        """Kill all ranks and the fork server."""
        self._renew_after_fork()
        self._pool.close()
        for world in list(self._worlds):
            self.end(world)
        self._end_zygote()


def _count_devices() -> int:
    torch: Any = importlib.import_module("torch")
    return int(torch.cuda.device_count())
