"""Devices of several machines: a gang is of one of them."""

import msgspec
import pytest
from fleets import fleet, work
from hypothesis import given
from hypothesis import strategies as st

from sooner.model.outcomes import Outcome
from sooner.schedule.bounds import lower_bound
from sooner.schedule.order import ranks
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.simulate import simulate
from sooner.schedule.work import Begin, Conclude, Ended, Policy, PutAside, Start


def nodes(*sizes):
    """Machines of so many devices each, named by letters."""
    return [
        msgspec.structs.replace(device, node=name, id=f"{name}/{device.id}")
        for name, size in zip("abcdefgh", sizes, strict=False)
        for device in fleet(size)
    ]


def starts(commands):
    return [(command.key, command.devices) for command in commands if isinstance(command, Start)]


def conclusions(commands):
    return [command for command in commands if isinstance(command, Conclude)]


def test_a_gang_is_of_one_node():
    scheduler = Scheduler([work("one"), work("two", 2), work("other", 2)], nodes(2, 2), ranks=[0, 1, 2])
    assert starts(scheduler.handle(Begin(0))) == [("one", (0,)), ("two", (2, 3))]


def test_a_narrow_unit_goes_where_it_leaves_the_fewest_devices_over():
    scheduler = Scheduler([work("wide", 3), work("narrow"), work("full", 4)], nodes(4, 4), ranks=[0, 1, 2])
    assert starts(scheduler.handle(Begin(0))) == [("wide", (0, 1, 2)), ("narrow", (3,)), ("full", (4, 5, 6, 7))]


def test_a_unit_wider_than_every_node_is_a_hole_that_says_so():
    scheduler = Scheduler([work("wide", 3)], nodes(2, 2))
    (verdict,) = conclusions(scheduler.handle(Begin(0)))
    assert verdict.outcome is Outcome.HOLE
    assert verdict.cause == "needs 3 devices, no node of the run has more than 2"


def test_a_unit_that_only_a_node_that_was_lost_could_run_is_a_hole():
    scheduler = Scheduler([work("narrow"), work("wide", 2)], nodes(2, 1), ranks=[1, 0])
    assert starts(scheduler.handle(Begin(0))) == [("wide", (0, 1)), ("narrow", (2,))]
    scheduler = Scheduler([work("a"), work("b"), work("wide", 2)], nodes(2, 1), ranks=[0, 1, 2])
    scheduler.handle(Begin(0))
    assert [verdict.key for verdict in conclusions(scheduler.handle(PutAside(1, (0,))))] == ["wide"]


def test_a_node_that_is_lost_is_lost_at_once():
    scheduler = Scheduler([work("a"), work("wide", 2), work("other", 2)], nodes(2, 2), ranks=[0, 1, 2])
    scheduler.handle(Begin(0))
    assert conclusions(scheduler.handle(PutAside(1, (2, 3)))) == []
    (verdict,) = conclusions(scheduler.handle(PutAside(2, (0,))))
    assert verdict.cause == "needs 2 devices, no node of the run has more than 1"


def test_a_reservation_keeps_the_devices_of_the_node_that_is_free_soonest():
    works = [work("late", 1, 10.0), work("soon", 1, 5.0), work("wide", 2, 1.0), work("narrow", 1, 20.0)]
    scheduler = Scheduler(works, nodes(2, 2), ranks=[0, 1, 2, 3])
    assert starts(scheduler.handle(Begin(0))) == [("late", (0,)), ("soon", (1,)), ("wide", (2, 3))]
    works = [work("a", 2, 10.0), work("b", 1, 5.0), work("wide", 2, 1.0), work("narrow", 1, 20.0)]
    scheduler = Scheduler(works, nodes(2, 2), ranks=[0, 1, 2, 3])
    assert starts(scheduler.handle(Begin(0))) == [("a", (0, 1)), ("b", (2,))]
    assert starts(scheduler.handle(Ended(5, "b", Outcome.PASSED))) == [("wide", (2, 3))]


def test_shared_units_of_one_gang_are_of_one_node():
    works = [work("a", 1, memory_mib=60, shared=True), work("pair", 2, memory_mib=60, shared=True)]
    devices = [msgspec.structs.replace(device, memory_mib=100) for device in nodes(2, 2)]
    assert starts(Scheduler(works, devices, ranks=[0, 1]).handle(Begin(0))) == [("a", (0,)), ("pair", (2, 3))]


def test_four_wide_units_run_on_two_nodes_of_four_at_once():
    works = [work(f"u{i}", 4, 10.0) for i in range(4)]
    seconds = {one.key: 10.0 for one in works}
    assert lower_bound(works, seconds, nodes(4, 4)) == 20.0
    assert max(placed.end_s for placed in simulate(works, seconds, nodes(4, 4))) == 20.0


@pytest.mark.parametrize("policy", list(Policy))
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    widths=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=14),
)
def test_every_unit_that_fits_a_node_runs_on_one(policy, sizes, widths):
    devices = nodes(*sizes)
    works = [work(f"u{i}", width, float(length)) for i, (width, length) in enumerate(widths)]
    seconds = {one.key: one.seconds for one in works}
    placed = simulate(works, seconds, devices, ranks=ranks(works, devices), policy=policy)
    assert {one.key for one in placed} == {one.key for one in works if one.devices <= max(sizes)}
    for one in placed:
        assert len({devices[i].node for i in one.devices}) <= 1
    if policy is Policy.PACKED:
        end = max((one.end_s for one in placed), default=0.0)
        fitting = [one for one in works if one.devices <= max(sizes)]
        assert end >= lower_bound(fitting, seconds, devices) - 1e-9
