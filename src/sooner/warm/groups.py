"""Process groups of a rank: opened on a store of their own, closed in an order that cannot hang, and looked after.

Known traps, each measured: a group that is destroyed while another rank still creates it fails there with "Connection
closed by peer"; a second group on the keys of the first hangs; destroying after a failure may hang for ever
(pytorch issue 194775). So every *epoch* has its own PrefixStore, a barrier comes before destroy, and after a failure a
group is aborted. torch is imported by functions here, never by the module.
"""

import importlib
import sys
from dataclasses import dataclass
from datetime import timedelta
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """What makes two process groups the same."""

    backend: str
    size: int
    timeout_s: float | None = None
    """Of collectives; None is torch's own default."""


@dataclass(frozen=True, slots=True)
class Registry:
    """What torch.distributed holds in this process: a test must leave it as it was."""

    default: int
    """Identity of the default group; 0 without one."""
    groups: int
    works: int
    """Collectives that nobody waited for (functional collectives, compiled point-to-point calls)."""


def connect_store(host: str, port: int, *, listener: int | None, timeout_s: float) -> Any:
    """The store of a world; the rank that was given the listening descriptor serves it."""
    distributed: Any = importlib.import_module("torch.distributed")
    more: dict[str, Any] = {"is_master": listener is not None, "timeout": timedelta(seconds=timeout_s)}
    if listener is not None:
        more |= {"wait_for_workers": False, "master_listen_fd": listener}
    try:
        return distributed.TCPStore(host, port, **more)
    except distributed.DistStoreError as error:  # as distributions build PyTorch
        if "without libuv" not in str(error):
            raise
        return distributed.TCPStore(host, port, use_libuv=False, **more)


def open_group(config: GroupConfig, *, rank: int, store: Any, epoch: int) -> None:
    """Initialise the default process group of an epoch; every rank of it does."""
    dist: Any = importlib.import_module("torch.distributed")
    more: dict[str, Any] = {}
    if config.timeout_s is not None:
        more["timeout"] = timedelta(seconds=config.timeout_s)
    if "nccl" in config.backend:
        torch: Any = importlib.import_module("torch")
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        more["device_id"] = device
    own = dist.PrefixStore(f"epoch-{epoch}", store)
    dist.init_process_group(config.backend, store=own, rank=rank, world_size=config.size, **more)


def close_group() -> None:
    """Destroy all process groups of this rank, after a barrier; every rank does. Without any it does nothing."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_initialized():
        dist.barrier()
        dist.destroy_process_group()


def abort_group() -> None:
    """End all process groups of this rank without a word to the others: for after a failure."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_initialized():
        dist.distributed_c10d._abort_process_group()  # noqa: SLF001 - there is no public one


def registry() -> Registry:
    """What torch.distributed holds now; nothing where it is not imported."""
    c10d = sys.modules.get("torch.distributed.distributed_c10d")
    if c10d is None:
        return Registry(0, 0, 0)
    world = c10d._world  # noqa: SLF001 - there is no public list
    default = world.default_pg
    return Registry(id(default) if default is not None else 0, len(world.pg_map), _works())


def _works() -> int:
    native = sys.modules.get("torch._C._distributed_c10d")
    count = getattr(native, "_get_work_registry_size", None)
    return int(count()) if count is not None else 0
