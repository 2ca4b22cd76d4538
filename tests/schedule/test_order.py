from itertools import permutations
from math import exp
from statistics import NormalDist

import pytest
from fleets import fleet, work
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.model.outcomes import Outcome
from sooner.model.units import Need, Plan, Unit
from sooner.schedule.bounds import lower_bound
from sooner.schedule.order import assumed_seconds, new_ranks, ranks
from sooner.schedule.shard import shard
from sooner.schedule.simulate import makespan, simulate
from sooner.schedule.strikes import Strikes
from sooner.schedule.work import Policy, works_of


def mixed(count, seed=1):
    """A suite of mixed widths and log-normal seconds, the same for the same seed, without a random generator."""
    works = []
    for i in range(count):
        spread = (0.5 + (i + seed) * 0.6180339887) % 1.0
        width = (1, 1, 1, 1, 1, 1, 1, 2, 4, 8)[(i * 7 + seed) % 10]
        works.append(work(str(i), width, exp(NormalDist().inv_cdf(min(max(spread, 0.01), 0.99)))))
    return works


@pytest.mark.parametrize("seed", range(5))
def test_a_mixed_suite_with_known_durations_ends_close_to_the_bound(seed):
    works, devices = mixed(60, seed), fleet(8)
    seconds = assumed_seconds(works)
    placements = simulate(works, seconds, devices, ranks=ranks(works, devices))
    assert makespan(placements) <= 1.06 * lower_bound(works, seconds, devices)


def test_moving_what_ends_last_ahead_mends_what_no_first_order_does():
    works, devices = [unit for unit in mixed(8, 6) if unit.devices <= 2], fleet(2)
    seconds = assumed_seconds(works)
    orders = [ranks(works, devices, budget=budget) for budget in (8 * 4 * len(works), 12_000)]
    first, moved = (makespan(simulate(works, seconds, devices, ranks=order)) for order in orders)
    assert moved < first


@pytest.mark.parametrize("seed", range(5))
def test_packing_beats_waves(seed):
    works, devices = mixed(60, seed), fleet(8)
    seconds = assumed_seconds(works)
    packed = makespan(simulate(works, seconds, devices, ranks=ranks(works, devices)))
    assert packed < 0.8 * makespan(simulate(works, seconds, devices, policy=Policy.WAVES))


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([1, 2, 4]), st.floats(0.1, 9.0)), min_size=1, max_size=5), st.booleans())
def test_no_order_of_any_small_suite_ends_before_the_lower_bound(units, chained):
    works = [
        work(str(i), width, seconds, after=(str(i - 1),) if chained and i % 2 else ())
        for i, (width, seconds) in enumerate(units)
    ]
    seconds, devices = assumed_seconds(works), fleet(4)
    bound = lower_bound(works, seconds, devices)
    best = min(makespan(simulate(works, seconds, devices, ranks=order)) for order in permutations(range(len(works))))
    assert best >= bound - 1e-9


def test_the_bound_of_eight_devices_is_the_tight_one():
    works = [work("full", 8, 5.0), work("a", 4, 3.0), work("b", 4, 4.0), work("c", 4, 5.0)]
    assert lower_bound(works, assumed_seconds(works), fleet(8)) == pytest.approx(5.0 + 12.0 / 2)


def test_units_of_which_no_two_fit_beside_each_other_follow_each_other_in_the_bound():
    works = [work("a", 3, 4.0), work("b", 4, 4.0)]
    assert lower_bound(works, assumed_seconds(works), fleet(5)) == pytest.approx(8.0)


def test_the_bound_sees_the_longest_chain():
    works = [work("a", 1, 5.0), work("b", 1, 6.0, after=("x", "a")), work("c", 1, 1.0), work("x", 1, 1.0)]
    assert lower_bound(works, assumed_seconds(works), fleet(8)) == pytest.approx(11.0)


def test_only_a_shared_unit_counts_with_less_than_its_device():
    works = [work(str(i), 1, 4.0, memory_mib=25) for i in range(8)]
    assert lower_bound(works, assumed_seconds(works), fleet(2, memory_mib=100)) == pytest.approx(16.0)


def test_a_shared_unit_counts_with_its_share_of_memory():
    works = [work(str(i), 1, 4.0, memory_mib=25, shared=True) for i in range(8)]
    assert lower_bound(works, assumed_seconds(works), fleet(1, memory_mib=100)) == pytest.approx(8.0)


def test_what_is_settled_is_left_out_and_waited_for_no_longer():
    need = Need(devices=2, memory_mib=7)
    plan = Plan(
        source="",
        units=(
            Unit(name="a", command=("true",)),
            Unit(name="b", command=("true",), after=("a",), need=need, priority=3),
            Unit(name="c", command=("true",), after=("a", "b")),
        ),
    )
    b, c = works_of(plan, seconds={"b": 4.0}, failed={"b"}, settled={"a"}, attempts={"b": 2})
    assert b == work("b", 2, 4.0, memory_mib=7, priority=3, failed_before=True, attempts_before=2)
    assert c == work("c", after=("b",))


def test_priority_comes_before_length_and_a_failure_before_both_but_priority():
    works = [work("long", 1, 9.0), work("failed", 1, 1.0, failed_before=True), work("first", 1, 1.0, priority=5)]
    order = ranks(works, fleet(2))
    assert sorted(range(3), key=order.__getitem__) == [2, 1, 0]


def test_the_head_of_a_long_chain_comes_before_a_longer_unit():
    works = [work("other", 1, 5.0), work("head", 1, 1.0), work("middle", 1, 1.0, after=("head",))]
    works.append(work("tail", 1, 9.0, after=("middle",)))
    order = ranks(works, fleet(2), budget=0)
    assert sorted(range(4), key=order.__getitem__) == [1, 2, 3, 0]


def test_where_nothing_is_known_full_width_comes_first_and_then_the_narrow_ones():
    works = [work(str(i), width) for i, width in enumerate([2, 1, 4, 2, 1, 4])]
    order = ranks(works, fleet(4), budget=0)
    assert sorted(range(6), key=order.__getitem__) == [2, 5, 1, 4, 0, 3]


def test_unknown_durations_are_assumed_to_be_the_median_of_the_known():
    assert assumed_seconds([work("a", 1, 2.0), work("b", 1, 8.0), work("c", 1, 4.0), work("d")])["d"] == 4.0


@given(st.lists(st.tuples(st.integers(1, 4), st.floats(0.1, 50.0)), min_size=1, max_size=40), st.integers(1, 5))
def test_shards_are_a_partition(units, count):
    works = [work(str(i), *unit) for i, unit in enumerate(units)]
    seconds = assumed_seconds(works)
    parts = [shard(works, seconds, index=i, count=count) for i in range(1, count + 1)]
    assert sorted(key for part in parts for key in part) == sorted(work.key for work in works)


def test_shards_are_balanced_by_device_seconds():
    works = [work(str(i), 1, float(i)) for i in range(1, 101)]
    seconds = assumed_seconds(works)
    loads = [sum(seconds[key] for key in shard(works, seconds, index=i, count=4)) for i in (1, 2, 3, 4)]
    assert max(loads) <= 1.02 * min(loads)


def test_units_that_follow_each_other_stay_in_one_shard():
    works = [work("a", 1, 1.0), work("b", 1, 1.0, after=("a",)), work("c", 1, 5.0)]
    parts = [set(shard(works, assumed_seconds(works), index=i, count=2)) for i in (1, 2)]
    assert {"a", "b"} in parts


def test_three_units_in_a_row_that_crash_on_one_device_put_it_aside():
    strikes = Strikes(2)
    strikes.note("x", (0,), Outcome.CRASHED)
    strikes.note("ok", (1,), Outcome.PASSED)
    assert strikes.note("y", (0,), Outcome.CRASHED) == ()
    assert strikes.note("z", (0,), Outcome.CRASHED) == (0,)


def test_one_unit_that_crashes_again_and_again_says_nothing_about_the_device():
    strikes = Strikes(2)
    strikes.note("ok", (1,), Outcome.PASSED)
    assert [strikes.note("x", (0,), Outcome.CRASHED) for _ in range(9)] == [()] * 9


@pytest.mark.parametrize(("outcome", "devices"), [(Outcome.FAILED, (0,)), (Outcome.CRASHED, (0, 1))])
def test_failures_and_gangs_say_nothing_about_a_device(outcome, devices):
    strikes = Strikes(3)
    strikes.note("first", (0,), Outcome.CRASHED)
    strikes.note("ok", (2,), Outcome.PASSED)
    assert not any(strikes.note(str(i), devices, outcome) for i in range(9))
    strikes.note("second", (0,), Outcome.CRASHED)
    assert strikes.note("third", (0,), Outcome.CRASHED) == (0,)


def test_a_pass_elsewhere_before_the_first_crash_does_not_count():
    strikes = Strikes(2)
    strikes.note("ok", (1,), Outcome.PASSED)
    assert [strikes.note(name, (0,), Outcome.CRASHED) for name in "abc"] == [(), (), ()]


def test_a_suite_that_crashes_everywhere_puts_no_device_aside():
    strikes = Strikes(2)
    assert not any(strikes.note(str(i), (i % 2,), Outcome.CRASHED) for i in range(20))


def test_a_pass_on_the_device_clears_its_strikes():
    strikes = Strikes(2)
    for name in "ab":
        strikes.note(name, (0,), Outcome.CRASHED)
    strikes.note("ok", (0,), Outcome.PASSED)
    assert strikes.note("c", (0,), Outcome.CRASHED) == ()


def test_a_search_while_running_ranks_what_waits_and_nothing_else():
    works = mixed(20)
    found = new_ranks(works[5:], [(unit, 0.5) for unit in works[:5]], fleet(8))
    assert set(found) == {unit.key for unit in works[5:]}


def test_a_search_while_running_knows_what_has_ended_and_what_waits_for_what():
    waiting = [work("b", 1, 9.0, after=("a", "ended")), work("a", 1, 1.0), work("c", 1, 3.0, after=("ended",))]
    found = new_ranks(waiting, [(work("running", 1, 5.0, after=("ended",)), 1.0)], fleet(2))
    assert found["a"] < found["c"]


def test_a_search_while_running_is_left_out_where_it_would_tell_nothing():
    assert new_ranks(mixed(1000), [], fleet(8)) == {}
    assert new_ranks([work("a"), work("b")], [], fleet(8)) == {}
