"""The all-reduce and all-gather families against what arithmetic says, on two and four ranks that are kept."""

import functools
import operator
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

from ranks import device

REDUCTIONS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "SUM": operator.add,
    "PRODUCT": operator.mul,
    "MIN": torch.minimum,
    "MAX": torch.maximum,
    "BAND": operator.and_,
    "BOR": operator.or_,
    "BXOR": operator.xor,
}
"""Reductions of gloo; nccl has no bitwise ones."""
DTYPES = [torch.float32, torch.float64, torch.int32, torch.int64, torch.uint8]
SHAPE = (3, 5)


def values_of(rank: int, dtype: torch.dtype = torch.float32, shape: tuple[int, ...] = SHAPE) -> torch.Tensor:
    """Small whole numbers, others on each rank: sums and products of them are exact in every type."""
    count = torch.Size(shape).numel()
    return (torch.arange(count, device=device()) % 3 + rank + 1).reshape(shape).to(dtype)


def everybodys(dtype: torch.dtype = torch.float32, shape: tuple[int, ...] = SHAPE) -> list[torch.Tensor]:
    return [values_of(rank, dtype, shape) for rank in range(dist.get_world_size())]


def assert_equal(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def all_reduce(name: str, dtype: torch.dtype) -> None:
    tensor = values_of(dist.get_rank(), dtype)
    dist.all_reduce(tensor, getattr(dist.ReduceOp, name))
    assert_equal(tensor, functools.reduce(REDUCTIONS[name], everybodys(dtype)))


def all_reduce_later() -> None:
    tensors = [values_of(dist.get_rank(), shape=(size,)) for size in (1, 1000, 7)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for work, tensor in zip(works, tensors, strict=True):
        work.wait()
        assert_equal(tensor, sum(everybodys(shape=tuple(tensor.shape))))


def all_reduce_strided() -> None:
    """A tensor that is not contiguous is refused or reduced, never mixed up."""
    whole = values_of(dist.get_rank()).t().contiguous().t()
    expected = sum(everybodys())
    dist.all_reduce(whole)
    assert_equal(whole, expected)


def all_reduce_functionally() -> None:
    tensor = values_of(dist.get_rank())
    reduced = functional.all_reduce(tensor, "sum", dist.group.WORLD)
    assert_equal(reduced.wait() if hasattr(reduced, "wait") else reduced, sum(everybodys()))
    assert_equal(tensor, values_of(dist.get_rank()))


def all_reduce_in_pairs() -> None:
    """Every rank makes all groups, in the same order, and uses its own."""
    rank, size = dist.get_rank(), dist.get_world_size()
    groups = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    own = rank // 2
    tensor = values_of(rank)
    dist.all_reduce(tensor, group=groups[own])
    assert_equal(tensor, values_of(2 * own) + values_of(2 * own + 1))
    dist.barrier()
    for number, group in enumerate(groups):
        if number == own:
            dist.destroy_process_group(group)


def all_gather(dtype: torch.dtype) -> None:
    gathered = [torch.empty(SHAPE, dtype=dtype, device=device()) for _ in range(dist.get_world_size())]
    dist.all_gather(gathered, values_of(dist.get_rank(), dtype))
    for found, expected in zip(gathered, everybodys(dtype), strict=True):
        assert_equal(found, expected)


def all_gather_into_one(dtype: torch.dtype) -> None:
    gathered = torch.empty((dist.get_world_size() * SHAPE[0], SHAPE[1]), dtype=dtype, device=device())
    dist.all_gather_into_tensor(gathered, values_of(dist.get_rank(), dtype))
    assert_equal(gathered, torch.cat(everybodys(dtype)))


def all_gather_uneven() -> None:
    size = dist.get_world_size()
    gathered = [torch.empty(rank + 1, device=device()) for rank in range(size)]
    dist.all_gather(gathered, values_of(dist.get_rank(), shape=(dist.get_rank() + 1,)))
    for rank, found in enumerate(gathered):
        assert_equal(found, values_of(rank, shape=(rank + 1,)))


def all_gather_functionally() -> None:
    gathered = functional.all_gather_tensor(values_of(dist.get_rank()), 1, dist.group.WORLD)
    assert_equal(gathered.wait() if hasattr(gathered, "wait") else gathered, torch.cat(everybodys(), dim=1))


def all_gather_objects() -> None:
    gathered: list[object] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, {"rank": dist.get_rank(), "text": "x" * dist.get_rank()})
    assert gathered == [{"rank": rank, "text": "x" * rank} for rank in range(dist.get_world_size())]


def reduce_scatter() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    own = torch.empty(4, device=device())
    dist.reduce_scatter_tensor(own, values_of(rank, shape=(4 * size,)))
    assert_equal(own, sum(everybodys(shape=(4 * size,))).chunk(size)[rank])


def broadcast_from(source: int) -> None:
    tensor = values_of(dist.get_rank())
    dist.broadcast(tensor, source)
    assert_equal(tensor, values_of(source))


def all_to_all() -> None:
    size, rank = dist.get_world_size(), dist.get_rank()
    sent = values_of(rank, shape=(size, 2))
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent)
    assert_equal(received, torch.stack([values_of(other, shape=(size, 2))[rank] for other in range(size)]))


def reduce_nan() -> list[float]:
    tensor = torch.tensor([float("nan") if dist.get_rank() == 0 else 1.0, 1.0], device=device())
    dist.all_reduce(tensor)
    return [float(value) for value in tensor.isnan()]


BOTH = pytest.mark.parametrize(
    "size", [pytest.param(2, marks=pytest.mark.gpus(2)), pytest.param(4, marks=pytest.mark.gpus(4))]
)


@BOTH
@pytest.mark.parametrize("name", REDUCTIONS)
def test_all_reduce(world, size, name):
    ranks = world(size)
    is_bitwise = name.startswith("B")
    if is_bitwise and ranks.backend == "nccl":
        pytest.skip("nccl reduces no bits")
    for dtype in [dtype for dtype in DTYPES if not (is_bitwise and dtype.is_floating_point)]:
        ranks.run(all_reduce, name, dtype)


@BOTH
@pytest.mark.parametrize(
    "function", [all_reduce_later, all_reduce_strided, all_reduce_functionally, reduce_scatter, all_to_all]
)
def test_other_reductions_and_exchanges(world, size, function):
    world(size).run(function)


@BOTH
@pytest.mark.parametrize("function", [all_gather, all_gather_into_one])
@pytest.mark.parametrize("dtype", [*DTYPES, torch.bfloat16, torch.bool], ids=str)
def test_all_gather(world, size, function, dtype):
    world(size).run(function, dtype)


@BOTH
def test_tensors_of_other_sizes_are_gathered_or_refused(world, size):
    ranks = world(size)
    if ranks.backend == "gloo":
        with pytest.raises(RuntimeError, match="invalid tensor size"):
            ranks.run(all_gather_uneven)
    else:
        ranks.run(all_gather_uneven)


@BOTH
@pytest.mark.parametrize("function", [all_gather_functionally, all_gather_objects])
def test_other_gatherings(world, size, function):
    world(size).run(function)


@BOTH
def test_everybody_has_what_one_broadcasts(world, size):
    ranks = world(size)
    for source in range(size):
        ranks.run(broadcast_from, source)


@pytest.mark.gpus(4)
def test_groups_of_two_reduce_by_themselves(world):
    world(4).run(all_reduce_in_pairs)


@BOTH
def test_what_is_no_number_on_one_rank_is_none_on_all(world, size):
    assert world(size).run(reduce_nan) == [[1.0, 0.0]] * size
