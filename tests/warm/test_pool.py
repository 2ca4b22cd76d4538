import os

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sooner.warm import CreationSuspended, Kind, Limits, PoolError, ResourcePool


class Stream:
    """A pretended device stream that remembers what was done to it."""

    def __init__(self, config):
        self.config = config
        self.in_flight = 0
        self.dirty = False
        self.sticky = False
        self.alive = True


class Streams(Kind):
    """Makes pretended streams; faults are switched on by tests."""

    def __init__(self):
        self.made = []
        self.failing = set()

    def make(self, config):
        if "make" in self.failing:
            raise RuntimeError("no more streams")
        self.made.append(Stream(config))
        return self.made[-1]

    def fingerprint(self, thing, _config):
        return thing.config

    def drain(self, thing):
        if "drain" in self.failing:
            raise RuntimeError("a callback hangs")
        thing.in_flight = 0

    def reset(self, thing):
        assert not thing.in_flight, "reset while a callback is in flight"
        if "reset" in self.failing:
            raise RuntimeError("cannot reset")
        thing.dirty = False

    def healthy(self, thing):
        return not thing.sticky

    def destroy(self, thing):
        assert thing.alive, "destroyed twice"
        thing.alive = False
        if "destroy" in self.failing:
            raise RuntimeError("cannot destroy")


@pytest.fixture
def streams():
    return Streams()


def use(pool, kind, config="a", **more):
    with pool.lease(kind, config, **more) as lease:
        return lease.thing


def test_a_resource_is_reused_under_the_same_configuration(streams):
    pool = ResourcePool()
    assert use(pool, streams) is use(pool, streams)
    assert (pool.statistics.hits, pool.statistics.misses) == (1, 1)


def test_another_configuration_is_another_resource(streams):
    pool = ResourcePool()
    assert use(pool, streams, ("gpu0", 1)) is not use(pool, streams, ("gpu0", 2))


def test_two_leases_at_once_never_share(streams):
    pool = ResourcePool()
    with pool.lease(streams, "a") as one, pool.lease(streams, "a") as other:
        assert one.thing is not other.thing


def test_it_is_drained_before_it_is_reset(streams):
    pool = ResourcePool()
    with pool.lease(streams, "a") as lease:
        lease.thing.in_flight = 3
        lease.thing.dirty = True
    again = use(pool, streams)
    assert again is lease.thing
    assert not again.dirty


@pytest.mark.parametrize("step", ["drain", "reset"])
def test_a_step_that_raises_destroys(streams, step):
    pool = ResourcePool()
    streams.failing.add(step)
    first = use(pool, streams)
    assert not first.alive
    assert pool.statistics.destroyed[step] == 1


def test_a_sticky_error_destroys(streams):
    pool = ResourcePool()
    with pool.lease(streams, "a") as lease:
        lease.thing.sticky = True
    assert not lease.thing.alive
    assert pool.statistics.destroyed["unhealthy"] == 1


def test_a_configuration_that_changed_in_use_destroys(streams):
    pool = ResourcePool()
    with pool.lease(streams, "a") as lease:
        lease.thing.config = "changed"
    assert not lease.thing.alive
    assert pool.statistics.destroyed["fingerprint"] == 1


def test_an_exception_in_the_test_destroys(streams):
    pool = ResourcePool()
    with pytest.raises(ValueError, match="test"), pool.lease(streams, "a") as lease:
        raise ValueError("test")
    assert not lease.thing.alive


def test_a_lease_can_say_that_it_failed(streams):
    pool = ResourcePool()
    with pool.lease(streams, "a") as lease:
        lease.fail()
    assert not lease.thing.alive


def test_a_resource_is_replaced_after_its_uses(streams):
    pool = ResourcePool(Limits(uses=2))
    things = [use(pool, streams) for _ in range(4)]
    assert things[0] is things[1]
    assert things[1] is not things[2]


def test_a_resource_is_replaced_when_it_is_old(streams):
    now = [0.0]
    pool = ResourcePool(Limits(age_s=10.0), clock=lambda: now[0])
    first = use(pool, streams)
    now[0] = 10.0
    assert use(pool, streams) is not first
    assert not first.alive


def test_the_least_recently_used_goes_first(streams):
    pool = ResourcePool(Limits(total=2))
    a, b = use(pool, streams, "a"), use(pool, streams, "b")
    use(pool, streams, "a")
    use(pool, streams, "c")
    assert (a.alive, b.alive) == (True, False)


def test_creation_is_given_up_after_failures_in_a_row(streams):
    pool = ResourcePool(Limits(creation_failures=2))
    streams.failing.add("make")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no more streams"):
            use(pool, streams)
    with pytest.raises(CreationSuspended, match="no more streams"):
        use(pool, streams)


def test_a_child_dies_with_its_parent(streams):
    pool = ResourcePool()
    clients = Streams()
    with pool.lease(clients, "client") as client:
        child = use(pool, streams, parent=client)
        assert child.alive
        client.fail()
    assert not child.alive


def test_a_leased_child_of_a_dead_parent_is_not_stored(streams):
    pool = ResourcePool()
    clients = Streams()
    with pool.lease(clients, "client") as client:
        held = pool.lease(streams, "a", parent=client)
        child = held.__enter__()
        client.fail()
    held.__exit__(None, None, None)
    assert not child.thing.alive


def test_all_ranks_decide_whether_a_collective_resource_is_kept(streams):
    pool = ResourcePool()
    first = use(pool, streams, vote=lambda mine: mine and False)
    assert not first.alive
    second = use(pool, streams, vote=lambda mine: mine)
    assert second.alive


def test_a_pool_is_void_after_a_fork(streams):
    pool = ResourcePool()
    thing = use(pool, streams)
    pid = os.fork()
    if pid == 0:
        try:
            use(pool, streams)
        except PoolError:
            pool.close()
            os._exit(0 if thing.alive else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_closed_pool_leases_nothing(streams):
    pool = ResourcePool()
    thing = use(pool, streams)
    pool.close()
    assert not thing.alive
    with pytest.raises(PoolError):
        use(pool, streams)


def test_a_destroy_that_raises_does_not_stop_the_test(streams):
    pool = ResourcePool(Limits(uses=1))
    streams.failing.add("destroy")
    use(pool, streams)
    assert use(pool, streams).config == "a"


class PoolMachine(RuleBasedStateMachine):
    """The pool against a model: no resource is in two hands, dirty, in flight, sick, or of another configuration."""

    def __init__(self):
        super().__init__()
        self.streams = Streams()
        self.now = 0.0
        self.limits = Limits(per_key=2, total=3, uses=5, age_s=50.0, creation_failures=3)
        self.pool = ResourcePool(self.limits, clock=lambda: self.now)
        self.held = []

    @rule(config=st.sampled_from("abc"))
    def take(self, config):
        context = self.pool.lease(self.streams, config)
        try:
            lease = context.__enter__()
        except (RuntimeError, CreationSuspended):
            assert "make" in self.streams.failing or self.pool.statistics.creation_failures
            return
        thing = lease.thing
        assert thing.alive
        assert thing.config == config
        assert not thing.dirty
        assert not thing.in_flight
        assert not thing.sticky
        assert all(thing is not other.thing for _, other in self.held)
        thing.dirty = True
        thing.in_flight = 1
        self.held.append((context, lease))

    @precondition(lambda self: self.held)
    @rule(data=st.data(), damage=st.sampled_from(["none", "sticky", "config", "fail", "exception"]))
    def give_back(self, data, damage):
        context, lease = self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))
        error = None
        if damage == "sticky":
            lease.thing.sticky = True
        elif damage == "config":
            lease.thing.config += "x"
        elif damage == "fail":
            lease.fail()
        elif damage == "exception":
            error = ValueError("test")
        try:
            context.__exit__(type(error) if error else None, error, None)
        except ValueError:
            assert damage == "exception"
        if damage != "none":
            assert not lease.thing.alive

    @rule(fault=st.sampled_from(["make", "drain", "reset", "destroy"]))
    def break_something(self, fault):
        self.streams.failing ^= {fault}

    @rule(seconds=st.floats(0.0, 60.0))
    def wait(self, seconds):
        self.now += seconds

    @rule()
    def invalidate(self):
        self.pool.invalidate()

    @invariant()
    def limits_hold(self):
        idle = [
            thing
            for thing in self.streams.made
            if thing.alive and all(thing is not lease.thing for _, lease in self.held)
        ]
        assert len(idle) <= self.limits.total
        for config in "abc":
            assert sum(thing.config == config for thing in idle) <= self.limits.per_key

    def teardown(self):
        for context, _ in self.held:
            context.__exit__(None, None, None)
        self.pool.close()
        assert not any(thing.alive for thing in self.streams.made)


PoolMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
test_the_pool_keeps_its_promises_whatever_happens = PoolMachine.TestCase
