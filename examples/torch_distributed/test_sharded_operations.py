"""Pooling, medians and scans of distributed tensors, for every placement, against a single process.

Each function computes the same thing twice: on the whole tensor, which every rank has, and on a `DTensor` that holds it
sharded along each dimension, replicated, or as parts to be summed or averaged. Values are distinct whole numbers, so
results and indices must be equal, not close.
"""

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F  # noqa: N812 - as everybody calls it
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Partial, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.debug import CommDebugMode

from ranks import mesh

Operation = Callable[[torch.Tensor], object]
POOLING: dict[str, tuple[tuple[int, ...], Operation]] = {
    "avg_pool1d": ((8, 4, 12), lambda x: F.avg_pool1d(x, 2)),
    "avg_pool1d with padding": ((8, 4, 12), lambda x: F.avg_pool1d(x, 3, stride=2, padding=1, count_include_pad=False)),
    "avg_pool2d": ((4, 4, 8, 8), lambda x: F.avg_pool2d(x, 2)),
    "avg_pool2d with strides": ((4, 4, 8, 8), lambda x: F.avg_pool2d(x, (2, 4), stride=(1, 2))),
    "avg_pool3d": ((4, 4, 4, 4, 4), lambda x: F.avg_pool3d(x, 2)),
    "max_pool1d": ((8, 4, 12), lambda x: F.max_pool1d(x, 2, return_indices=True)),
    "max_pool2d": ((4, 4, 8, 8), lambda x: F.max_pool2d(x, 2, return_indices=True)),
    "max_pool2d with padding": ((4, 4, 8, 8), lambda x: F.max_pool2d(x, 3, padding=1, return_indices=True)),
    "max_pool3d": ((4, 4, 4, 4, 4), lambda x: F.max_pool3d(x, 2, return_indices=True)),
}
REDUCING: dict[str, Callable[[torch.Tensor, int], object]] = {
    "median": lambda x, dim: torch.median(x, dim),
    "nanmedian": lambda x, dim: torch.nanmedian(x, dim),
    "cummax": lambda x, dim: torch.cummax(x, dim),
    "cummin": lambda x, dim: torch.cummin(x, dim),
    "cumsum": lambda x, dim: torch.cumsum(x, dim),
}
WHOLE: dict[str, Operation] = {"median": torch.median, "nanmedian": torch.nanmedian}
SHAPES = [(8, 4, 12), (5, 3, 7)]
"""One that two and four ranks divide, and one that they do not."""


def whole_of(shape: tuple[int, ...], device: str) -> torch.Tensor:
    """Distinct whole numbers in a random order, the same on every rank."""
    order = torch.randperm(torch.Size(shape).numel(), generator=torch.Generator().manual_seed(7))
    return order.reshape(shape).float().to(device)


def parts_of(whole: torch.Tensor, factor: int) -> torch.Tensor:
    """This rank's part: the parts of all ranks sum up to `factor` times the whole."""
    noise = [torch.randint(-9, 9, whole.shape, generator=torch.Generator().manual_seed(i)) for i in range(size_of())]
    parts = [part.to(whole) for part in noise]
    parts[0] = whole * factor - sum(parts[1:])
    return parts[dist.get_rank()]


def size_of() -> int:
    return dist.get_world_size()


def placed(whole: torch.Tensor, on: DeviceMesh) -> Iterator[tuple[Placement, DTensor]]:
    """The same tensor under every placement."""
    for placement in (Replicate(), *(Shard(dim) for dim in range(whole.dim()))):
        yield placement, distribute_tensor(whole, on, [placement])
    for name, factor in (("sum", 1), ("avg", size_of())):
        yield Partial(name), DTensor.from_local(parts_of(whole, factor), on, [Partial(name)])


def assert_agree(operation: Operation, whole: torch.Tensor, *, exact: bool = True) -> list[str]:
    """Every placement gives what a single process gives; returns the placements of the results."""
    expected, seen = flat(operation(whole)), []
    tolerance = {"rtol": 0, "atol": 0} if exact else {}
    for placement, tensor in placed(whole, mesh()):
        found = flat(operation(tensor))
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert isinstance(one, DTensor)
            torch.testing.assert_close(
                one.full_tensor(), other, msg=lambda text, p=placement: f"{p}: {text}", **tolerance
            )
        seen.append(f"{placement} -> {found[0].placements[0]}")
    return seen


def flat(result: object) -> list[torch.Tensor]:
    return [result] if isinstance(result, torch.Tensor) else list(result)


def pool(name: str) -> list[str]:
    shape, operation = POOLING[name]
    return assert_agree(operation, whole_of(shape, mesh().device_type), exact=name.startswith("max"))


def reduce_along(name: str, shape: tuple[int, ...], dim: int) -> list[str]:
    whole = whole_of(shape, mesh().device_type)
    return assert_agree(lambda tensor: REDUCING[name](tensor, dim), whole)


def reduce_whole(name: str, shape: tuple[int, ...]) -> list[str]:
    return assert_agree(WHOLE[name], whole_of(shape, mesh().device_type))


def skip_nans(dim: int) -> None:
    """A median that skips what is no number, also where one shard holds nothing else."""
    whole = whole_of((8, 4, 12), mesh().device_type)
    whole[0:4, 1] = float("nan")
    on = mesh()
    for placement in (Replicate(), Shard(0), Shard(1), Shard(2)):
        found = torch.nanmedian(distribute_tensor(whole, on, [placement]), dim)
        expected = torch.nanmedian(whole, dim)
        torch.testing.assert_close(found.values.full_tensor(), expected.values, equal_nan=True, rtol=0, atol=0)


def differentiate(name: str) -> None:
    """Gradients flow back to the shards."""
    shape, operation = POOLING[name]
    whole = whole_of(shape, mesh().device_type).requires_grad_()
    (flat(operation(whole))[0] * 2).sum().backward()
    on = mesh()
    for placement in (Replicate(), Shard(0), Shard(1)):
        tensor = distribute_tensor(whole.detach(), on, [placement]).requires_grad_()
        (flat(operation(tensor))[0] * 2).sum().backward()
        torch.testing.assert_close(tensor.grad.full_tensor(), whole.grad)


def count_messages(name: str) -> dict[str, int]:
    """How many collectives a pooling takes, by placement."""
    shape, operation = POOLING[name]
    counts = {}
    for placement, tensor in placed(whole_of(shape, mesh().device_type), mesh()):
        with CommDebugMode() as mode:
            operation(tensor)
        counts[str(placement)] = mode.get_total_counts()
    return counts


NO_STRATEGY = pytest.mark.xfail(
    strict=True,
    raises=NotImplementedError,
    reason="torch 2.13: the backward operator does not have a sharding strategy registered",
)
BOTH = pytest.mark.parametrize(
    "size", [pytest.param(2, marks=pytest.mark.gpus(2)), pytest.param(4, marks=pytest.mark.gpus(4))]
)


@BOTH
@pytest.mark.parametrize("name", POOLING)
def test_pooling(world, size, name):
    world(size).run(pool, name)


@BOTH
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", REDUCING)
def test_reductions_and_scans_along_each_dimension(world, size, name, shape):
    ranks = world(size)
    for dim in range(len(shape)):
        ranks.run(reduce_along, name, shape, dim)


@BOTH
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", WHOLE)
def test_medians_of_everything(world, size, name, shape):
    world(size).run(reduce_whole, name, shape)


@BOTH
def test_a_median_skips_what_is_no_number(world, size):
    ranks = world(size)
    for dim in range(3):
        ranks.run(skip_nans, dim)


@BOTH
@pytest.mark.parametrize(
    "name",
    ["max_pool2d", *(pytest.param(name, marks=NO_STRATEGY) for name in ("avg_pool2d", "avg_pool3d", "max_pool3d"))],
)
def test_gradients_of_pooling(world, size, name):
    world(size).run(differentiate, name)


@pytest.mark.gpus(2)
@pytest.mark.parametrize("name", ["avg_pool1d", "avg_pool2d", "avg_pool3d"])
def test_averages_over_batch_and_channels_take_no_messages(world, name):
    """Linear: not even parts that are still to be summed need to be."""
    (counts, other) = world(2).run(count_messages, name)
    assert counts == other
    assert {counts[str(placement)] for placement in (Replicate(), Shard(0), Shard(1), Partial("sum"))} == {0}
    assert counts[str(Shard(2))] > 0
