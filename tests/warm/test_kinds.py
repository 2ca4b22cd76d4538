import threading

import pytest

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402 - without torch: skipped
from torch import _dynamo  # noqa: E402

from sooner.warm.artefacts import CompileConfig, CompiledFunctions, InputSpec, Weights  # noqa: E402
from sooner.warm.kinds import (  # noqa: E402
    DeviceContexts,
    ProcessGroupConfig,
    ProcessGroups,
    StreamConfig,
    Streams,
    store_vote,
)
from sooner.warm.pool import ResourcePool  # noqa: E402

GROUP = ProcessGroupConfig(backend="gloo", timeout_s=60.0)


@pytest.fixture
def pool():
    pool = ResourcePool()
    yield pool
    pool.close()
    _dynamo.reset()
    if dist.is_initialized():
        dist.destroy_process_group()


def use(pool, kind, config, action=id, **more):
    with pool.lease(kind, config, **more) as lease:
        action(lease.thing)
        return lease.thing


def all_reduce(group):
    tensor = torch.ones(2)
    dist.all_reduce(tensor, group=group)
    assert tensor.tolist() == [1.0, 1.0]


def test_a_process_group_is_kept(pool):
    groups = ProcessGroups()
    first = use(pool, groups, GROUP, all_reduce)
    assert use(pool, groups, GROUP, all_reduce) is first
    assert use(pool, groups, ProcessGroupConfig(backend="gloo", timeout_s=61.0)) is not first


def test_what_a_process_group_is_like_is_read_from_it(pool):
    groups = ProcessGroups()
    with pool.lease(groups, GROUP) as lease:
        assert groups.fingerprint(lease.thing, GROUP) == GROUP
        longer = ProcessGroupConfig(backend="gloo", ranks=(0,), timeout_s=70.0)
        assert groups.fingerprint(lease.thing, longer) == ProcessGroupConfig(ranks=(0,), timeout_s=60.0)


def test_a_process_group_that_a_test_destroyed_is_not_kept(pool):
    groups = ProcessGroups()
    use(pool, groups, GROUP, dist.destroy_process_group)
    assert sum(pool.statistics.destroyed.values()) == 1
    use(pool, groups, GROUP, all_reduce)


def test_a_collective_that_nobody_waited_for_ends_the_process_group(pool):
    groups = ProcessGroups()
    left = []

    def leak(group):
        left.append(torch.ops._c10d_functional.all_reduce(torch.ones(1), "sum", group.group_name))

    use(pool, groups, GROUP, leak)
    assert pool.statistics.destroyed["drain"] == 1
    torch.ops._c10d_functional.wait_tensor(left[0])


def test_a_process_group_is_aborted_after_a_failure(pool):
    groups = ProcessGroups()
    with pytest.raises(ValueError, match="test"), pool.lease(groups, GROUP) as lease:
        raise ValueError("test")
    assert not groups.healthy(lease.thing)


def test_one_no_is_everybodys():
    store = dist.HashStore()
    words = {}

    def voter(rank, keep):
        vote = store_vote(store, rank, 2)
        words[rank] = [vote(keep), vote(True)]

    threads = [threading.Thread(target=voter, args=(rank, rank == 0)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert words == {0: [False, True], 1: [False, True]}


def test_a_silent_rank_says_no():
    assert store_vote(dist.HashStore(), 0, 2, timeout_s=0.05)(True) is False


def test_streams_of_the_cpu_are_kept_by_priority(pool):
    streams = Streams()
    first = use(pool, streams, StreamConfig(device="cpu"))
    assert use(pool, streams, StreamConfig(device="cpu")) is first
    assert use(pool, streams, StreamConfig(device="cpu", priority=1)) is not first


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_streams_of_a_device_are_kept_and_read_back(pool):
    streams = Streams()
    config = StreamConfig(device="cuda:0", priority=-1)
    first = use(pool, streams, config)
    assert use(pool, streams, config) is first
    assert streams.fingerprint(first, StreamConfig()) == config


def test_a_stream_dies_with_its_context(pool):
    contexts, streams = DeviceContexts(), Streams()
    with pool.lease(contexts, "cpu") as context:
        first = use(pool, streams, StreamConfig(device="cpu"), parent=context)
        assert use(pool, streams, StreamConfig(device="cpu"), parent=context) is first
        context.fail()
    assert pool.statistics.destroyed["parent"] == 1


def test_a_context_is_kept(pool):
    contexts = DeviceContexts()
    assert use(pool, contexts, "cpu") is use(pool, contexts, "cpu")


def affine(values, weights):
    return torch.sin(values) @ weights + 1


AFFINE = CompileConfig(function=f"{__name__}:affine", inputs=(InputSpec(shape=(3, 4)), InputSpec(shape=(4, 2))))
EAGER = CompileConfig(function=AFFINE.function, inputs=AFFINE.inputs, backend="eager")


def test_a_compiled_function_outlives_a_reset_of_the_compiler(pool):
    functions = CompiledFunctions()
    values, weights = torch.randn(3, 4), torch.randn(4, 2)

    def check(compiled):
        torch.testing.assert_close(compiled(values, weights), affine(values, weights))

    first = use(pool, functions, EAGER, check)
    _dynamo.reset()
    assert use(pool, functions, EAGER, check) is first


def test_a_compiled_function_refuses_other_inputs(pool):
    with pool.lease(CompiledFunctions(), EAGER) as lease, pytest.raises(RuntimeError, match="size mismatch"):
        lease.thing(torch.randn(5, 4), torch.randn(4, 2))


def test_a_compiled_function_is_not_kept_under_other_settings(pool):
    functions = CompiledFunctions()
    first = use(pool, functions, EAGER)
    with torch.no_grad():
        assert use(pool, functions, EAGER) is first
    assert pool.statistics.destroyed["fingerprint"] == 1
    assert use(pool, functions, EAGER) is not first


def load(name):
    tied = torch.arange(6.0).reshape(2, 3)
    return {"one": tied, "same": tied, "other": torch.full((2,), float("nan")), "count": torch.tensor(len(name))}


def test_weights_come_back_as_they_were(pool):
    loads = []
    weights = Weights(lambda name: loads.append(name) or load(name))

    def spoil(state):
        state["one"].mul_(2)
        state["other"].data.zero_()
        state["count"].numpy()[...] = 99
        state["one"].requires_grad_()

    first = use(pool, weights, "model", spoil)

    def check(state):
        assert state["one"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert state["other"].isnan().all()
        assert state["count"].item() == 5
        assert not state["one"].requires_grad

    assert use(pool, weights, "model", check) is first
    assert loads == ["model"]


def test_weights_that_shared_memory_share_it(pool):
    with pool.lease(Weights(load), "model") as lease:
        assert lease.thing["one"] is lease.thing["same"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda state: state.pop("one"),
        lambda state: state.update(new=torch.ones(1)),
        lambda state: state.update(one=torch.ones(7)),
        lambda state: state["one"].resize_(9),
    ],
    ids=["taken away", "added", "replaced", "resized"],
)
def test_weights_that_cannot_be_put_back_are_loaded_again(pool, spoil):
    weights = Weights(load)
    first = use(pool, weights, "model", spoil)
    assert pool.statistics.destroyed["reset"] == 1
    again = use(pool, weights, "model")
    assert again is not first
    assert again["one"].shape == (2, 3)
