"""Neighbours exchange tensors with `batch_isend_irecv`, alone and inside compiled functions.

torch.compile refuses point-to-point operations unless TORCHDYNAMO_ENABLE_P2P_COMPILATION=1 was set when it was
imported; `config.patch` is the same for a process that has imported it already. Each compiled exchange leaves an entry
in torch's registry of works, so the ranks are not kept for the next test: `world.doubt` says so.
"""

from collections.abc import Callable

import pytest
import torch
import torch._dynamo
import torch._inductor.compile_fx  # once, here, and not on every rank
import torch.distributed as dist
from torch._dynamo.testing import CompileCounterWithBackend

from ranks import device

BACKENDS = ["eager", "aot_eager", "inductor"]
RING = 4


def exchange(tensor: torch.Tensor, following: int, previous: int) -> torch.Tensor:
    """Send a tensor to the next rank of a ring, receive one from the previous."""
    received = torch.empty_like(tensor)
    requests = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, tensor, following), dist.P2POp(dist.irecv, received, previous)]
    )
    for request in requests:
        request.wait()
    return received * 2 + 1


def neighbours() -> tuple[int, int]:
    rank, size = dist.get_rank(), dist.get_world_size()
    return (rank + 1) % size, (rank - 1) % size


def values_of(rank: int) -> torch.Tensor:
    return torch.arange(6.0, device=device()).reshape(2, 3) + 100 * rank


def round_trip(function: Callable[..., torch.Tensor]) -> None:
    following, previous = neighbours()
    received = function(values_of(dist.get_rank()), following, previous)
    torch.testing.assert_close(received, values_of(previous) * 2 + 1)


def exchange_eagerly() -> None:
    round_trip(exchange)


def exchange_compiled(backend: str) -> tuple[int, int]:
    """Twice, so that the second call runs what the first one compiled; returns graphs and calls of them."""
    torch._dynamo.reset()
    counter = CompileCounterWithBackend(backend)
    with torch._dynamo.config.patch(enable_p2p_compilation=True):
        compiled = torch.compile(exchange, backend=counter, fullgraph=True)
        round_trip(compiled)
        round_trip(compiled)
    return counter.frame_count, len(torch._dynamo.utils.counters["graph_break"])


def compile_without_leave() -> None:
    torch._dynamo.reset()
    with torch._dynamo.config.patch(enable_p2p_compilation=False):
        round_trip(torch.compile(exchange, backend="eager", fullgraph=True))


@pytest.mark.gpus(2)
def test_a_pair_exchanges_tensors(world):
    world(2).run(exchange_eagerly)


@pytest.mark.gpus(4)
def test_a_ring_passes_tensors_on(world):
    world(RING).run(exchange_eagerly)


@pytest.mark.gpus(2)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_pair_exchanges_tensors_in_one_graph(world, backend):
    assert world(2).run(exchange_compiled, backend) == [(1, 0)] * 2


@pytest.mark.gpus(4)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_ring_passes_tensors_on_in_one_graph(world, backend):
    assert world(RING).run(exchange_compiled, backend) == [(1, 0)] * RING


@pytest.mark.gpus(2)
def test_point_to_point_operations_are_not_compiled_unless_asked_for(world):
    with pytest.raises(torch._dynamo.exc.Unsupported, match="P2P compilation disabled"):
        world(2).run(compile_without_leave)


@pytest.mark.gpus(2)
def test_a_compiled_exchange_leaves_its_works_registered(world):
    """Known in torch 2.13; when this fails, the leak is mended and compiled ranks can be kept."""
    ranks = world(2)
    ranks.run(exchange_compiled, "eager")
    assert "collectives that nobody waited for" in ranks.doubt
