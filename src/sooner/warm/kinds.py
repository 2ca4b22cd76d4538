"""Kinds of resources that tests pay for again and again, for `ResourcePool` and the fixture `resource`.

Each is keyed by its full configuration, reads back what it can from the live thing, and is destroyed in any doubt.
Process groups, device streams and contexts are here; what a test computes with (compiled functions, weights) is in
`artefacts`. torch is imported when something is made, not before.
"""

import importlib
import os
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from sooner.warm.pool import Kind

_VOTE_S: Final = 30.0


def _import(name: str) -> Any:
    return importlib.import_module(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessGroupConfig:
    """A process group of this process."""

    backend: str = "gloo"
    ranks: tuple[int, ...] | None = None
    """Its members in the default group; None is all."""
    timeout_s: float | None = None
    """Of its collectives; None is torch's own default."""


class ProcessGroups(Kind[ProcessGroupConfig, Any]):
    """Process groups. All ranks of the default group lease in the same order, as with `torch.distributed.new_group`.

    A process that is no rank of anything becomes the only rank of a default group of its own. torch gives each group a
    name of its own and prefixes the store with it, so no group finds the keys of an earlier one.
    """

    def __init__(self) -> None:
        self._works = 0

    def make(self, config: ProcessGroupConfig) -> Any:
        """A new group."""
        dist = _import("torch.distributed")
        if not dist.is_initialized():
            _join(dist, config.backend)
        self._works = _works()
        timeout = None if config.timeout_s is None else timedelta(seconds=config.timeout_s)
        ranks = None if config.ranks is None else list(config.ranks)
        return dist.new_group(ranks, timeout=timeout, backend=config.backend)

    def fingerprint(self, thing: Any, config: ProcessGroupConfig) -> Hashable:
        """Backend and members as the group tells them; its timeout where the backend can tell it."""
        dist = _import("torch.distributed")
        members = tuple(dist.get_process_group_ranks(thing))
        everybody = tuple(range(dist.get_world_size()))
        ranks = None if config.ranks is None and members == everybody else members
        return ProcessGroupConfig(backend=dist.get_backend(thing), ranks=ranks, timeout_s=_timeout_s(thing, config))

    def drain(self, thing: Any) -> None:
        """Wait for all ranks; a collective that nobody waited for is a doubt.

        Raises:
            RuntimeError: There is such a collective.
        """
        if (left := _works() - self._works) > 0:
            raise RuntimeError(f"{left} collectives are registered that nobody waited for")
        _import("torch.distributed").barrier(thing)

    def healthy(self, thing: Any) -> bool:
        """Whether torch knows the group: a test may have destroyed it."""
        world = _import("torch.distributed.distributed_c10d")._world  # noqa: SLF001 - there is no public list
        return thing in world.pg_map

    def destroy(self, thing: Any) -> None:
        """End it together with all ranks."""
        dist = _import("torch.distributed")
        if self.healthy(thing):
            dist.barrier(thing)
            dist.destroy_process_group(thing)

    def abort(self, thing: Any) -> None:
        """End it without a word to the other ranks: after a failure they may not be there."""
        c10d = _import("torch.distributed.distributed_c10d")
        if self.healthy(thing):
            c10d._abort_process_group(thing)  # noqa: SLF001 - there is no public one

    @staticmethod
    def vote(keep: bool) -> bool:  # noqa: FBT001 - the pool's `Vote`
        """Whether all ranks of the default group keep it; a rank that says nothing in time says no."""
        dist = _import("torch.distributed")
        if not dist.is_initialized() or dist.get_world_size() == 1:
            return keep
        store = dist.distributed_c10d._get_default_store()  # noqa: SLF001 - there is no public one
        return store_vote(store, dist.get_rank(), dist.get_world_size())(keep)


def store_vote(store: Any, rank: int, size: int, *, timeout_s: float = _VOTE_S) -> Callable[[bool], bool]:
    """A vote among processes that share a torch store; ranks vote in the same order.

    Args:
        store: Theirs.
        rank: This process's number.
        size: How many vote.
        timeout_s: How long to wait for the others.
    """

    def vote(keep: bool) -> bool:  # noqa: FBT001 - the pool's `Vote`
        number = (store.add(f"sooner-votes-of-{rank}", 1) - 1) if size > 1 else 0
        keys = [f"sooner-vote-{number}-{other}" for other in range(size)]
        store.set(keys[rank], "keep" if keep else "discard")
        try:
            store.wait(keys, timedelta(seconds=timeout_s))
        except RuntimeError:  # DistStoreError: somebody is silent
            return False
        return all(store.get(key) == b"keep" for key in keys)

    return vote


def _join(dist: Any, backend: str) -> None:
    """Become a rank: of what launched this process, or of nothing but itself."""
    if "RANK" in os.environ and "WORLD_SIZE" in os.environ:
        dist.init_process_group(backend)
    else:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)


def _works() -> int:
    count = getattr(_import("torch._C._distributed_c10d"), "_get_work_registry_size", None)
    return int(count()) if count is not None else 0


def _timeout_s(group: Any, config: ProcessGroupConfig) -> float | None:
    if config.timeout_s is None:
        return None
    device = _import("torch").device("cuda" if "nccl" in config.backend else "cpu")
    options = getattr(group._get_backend(device), "options", None)  # noqa: SLF001 - there is no public one
    timeout = getattr(options, "_timeout", None)
    return config.timeout_s if timeout is None else float(timeout.total_seconds())


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamConfig:
    """A stream of a device."""

    device: str = "cuda:0"
    """As torch spells devices; `cpu` has streams too, which do everything at once."""
    priority: int = 0


class Streams(Kind[StreamConfig, Any]):
    """Device streams: the leaf that is cached, while the tree above it is built anew."""

    def make(self, config: StreamConfig) -> Any:
        """A new stream."""
        torch = _import("torch")
        if config.device.startswith("cuda"):
            return torch.cuda.Stream(device=config.device, priority=config.priority)
        return torch.cpu.Stream(priority=config.priority)

    def fingerprint(self, thing: Any, config: StreamConfig) -> Hashable:
        """Device and priority as the stream tells them; streams of the CPU tell nothing."""
        if not hasattr(thing, "device"):
            return config
        return StreamConfig(device=str(thing.device), priority=int(thing.priority))

    def drain(self, thing: Any) -> None:
        """Wait for what is in flight; raises what the device says of it."""
        if hasattr(thing, "synchronize"):
            thing.synchronize()

    def healthy(self, thing: Any) -> bool:
        """Whether it is idle, and the device in order."""
        return bool(thing.query()) if hasattr(thing, "query") else True


class DeviceContexts(Kind[str, Any]):
    """Contexts of devices: 0.3 to 2 s to make, and made once a process. The key is a device such as `cuda:0`.

    A primary context cannot be destroyed from within its process: a lease that fails says that the process must end.
    """

    def make(self, config: str) -> Any:
        """Initialise a device; the thing is the `torch.device`."""
        torch = _import("torch")
        device = torch.device(config)
        torch.empty(1, device=device)
        return device

    def fingerprint(self, thing: Any, config: str) -> Hashable:
        """The device."""
        del config
        return str(thing)

    def drain(self, thing: Any) -> None:
        """Wait for what is in flight; raises what the device says of it (an error that sticks)."""
        if thing.type == "cuda":
            _import("torch").cuda.synchronize(thing)

    def reset(self, thing: Any) -> None:
        """Give memory back that nobody uses, and forget how much there was."""
        if thing.type == "cuda":
            cuda = _import("torch").cuda
            cuda.empty_cache()
            cuda.reset_peak_memory_stats(thing)
            cuda.reset_accumulated_memory_stats(thing)

    def healthy(self, thing: Any) -> bool:
        """Whether a computation on it still gives what it must."""
        torch = _import("torch")
        return bool((torch.ones(8, device=thing) * 2).sum().item() == 16)  # noqa: PLR2004 - eight twos
