import heapq

import pytest
from fleets import fleet, work
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sooner.model.outcomes import Outcome
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.work import (
    Away,
    Begin,
    Conclude,
    Ended,
    Policy,
    PutAside,
    Reorder,
    Returned,
    Start,
    Stop,
)


def starts(commands):
    return [(command.key, command.devices) for command in commands if isinstance(command, Start)]


def verdicts(commands):
    return {command.key: command.outcome for command in commands if isinstance(command, Conclude)}


def test_everything_that_fits_starts_at_once():
    scheduler = Scheduler([work("a", 2), work("b", 1), work("c", 1)], fleet(4))
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["a", "b", "c"]


def test_a_unit_gets_its_verdict_when_its_attempt_ends():
    scheduler = Scheduler([work("a")], fleet(2))
    scheduler.handle(Begin(0))
    assert scheduler.handle(Ended(1, "a", Outcome.PASSED)) == [Conclude("a", Outcome.PASSED)]
    assert scheduler.is_done


def test_a_lost_worker_returns_its_devices():
    scheduler = Scheduler([work("wide", 2), work("small", 2)], fleet(2))
    scheduler.handle(Begin(0))
    commands = scheduler.handle(Ended(1, "wide", Outcome.WORKER_LOST))
    assert starts(commands) == [("small", (0, 1))]


def test_a_narrow_unit_does_not_take_the_devices_kept_for_a_wide_one():
    works = [work("running", 1, 10.0), work("wide", 2, 1.0), work("narrow", 1, 20.0)]
    scheduler = Scheduler(works, fleet(2), ranks=[0, 1, 2])
    assert starts(scheduler.handle(Begin(0))) == [("running", (0,))]
    assert starts(scheduler.handle(Ended(10, "running", Outcome.PASSED))) == [("wide", (0, 1))]


def test_a_narrow_unit_that_ends_in_time_is_backfilled():
    works = [work("running", 1, 10.0), work("wide", 2, 1.0), work("short", 1, 5.0)]
    scheduler = Scheduler(works, fleet(2), ranks=[0, 1, 2])
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["running", "short"]


def test_a_wide_unit_waits_only_for_the_devices_that_are_free_soonest():
    works = [work("long", 1, 10.0), work("short", 1, 5.0), work("wide", 2, 1.0), work("narrow", 1, 8.0)]
    scheduler = Scheduler(works, fleet(3), ranks=range(4))
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["long", "short"]
    assert starts(scheduler.handle(Ended(5, "short", Outcome.PASSED))) == [("wide", (1, 2))]


def test_nothing_of_unknown_length_is_backfilled_onto_kept_devices():
    works = [work("running", 1, 10.0), work("wide", 2, 1.0), work("unknown", 1)]
    scheduler = Scheduler(works, fleet(2), ranks=[0, 1, 2])
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["running"]


def test_a_unit_starts_after_those_that_it_names():
    scheduler = Scheduler([work("a"), work("b", after=("a",))], fleet(2))
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["a"]
    assert [key for key, _ in starts(scheduler.handle(Ended(1, "a", Outcome.PASSED)))] == ["b"]


def test_a_unit_that_names_two_starts_after_both():
    scheduler = Scheduler([work("a"), work("b"), work("c", after=("a", "b"))], fleet(3))
    scheduler.handle(Begin(0))
    assert starts(scheduler.handle(Ended(1, "a", Outcome.PASSED))) == []
    assert [key for key, _ in starts(scheduler.handle(Ended(2, "b", Outcome.PASSED)))] == ["c"]


def test_what_follows_a_failure_is_skipped_along_the_whole_chain():
    chain = [work("0"), *(work(str(i), after=(str(i - 1),)) for i in range(1, 3000))]
    scheduler = Scheduler(chain, fleet(2))
    scheduler.handle(Begin(0))
    commands = scheduler.handle(Ended(1, "0", Outcome.FAILED))
    assert set(verdicts(commands).values()) == {Outcome.FAILED, Outcome.SKIPPED}
    assert len(verdicts(commands)) == 3000
    assert scheduler.is_done


def test_a_failure_is_retried_on_another_device_after_a_crash():
    scheduler = Scheduler([work("a")], fleet(2), retries=1)
    assert starts(scheduler.handle(Begin(0))) == [("a", (0,))]
    assert starts(scheduler.handle(Ended(1, "a", Outcome.CRASHED))) == [("a", (1,))]
    assert verdicts(scheduler.handle(Ended(2, "a", Outcome.PASSED))) == {"a": Outcome.PASSED}


def test_retries_end_with_the_budget():
    scheduler = Scheduler([work("a")], fleet(1), retries=2)
    scheduler.handle(Begin(0))
    assert starts(scheduler.handle(Ended(1, "a", Outcome.FAILED)))
    assert starts(scheduler.handle(Ended(2, "a", Outcome.FAILED)))
    assert verdicts(scheduler.handle(Ended(3, "a", Outcome.FAILED))) == {"a": Outcome.FAILED}


def test_a_unit_wider_than_the_fleet_is_a_coverage_hole():
    scheduler = Scheduler([work("wide", 8), work("a")], fleet(4))
    commands = scheduler.handle(Begin(0))
    assert verdicts(commands) == {"wide": Outcome.HOLE}
    assert [key for key, _ in starts(commands)] == ["a"]


def test_a_device_put_aside_turns_waiting_units_that_need_it_into_holes():
    scheduler = Scheduler([work("a", 2), work("b", 2), work("late", 2, after=("b",))], fleet(2))
    scheduler.handle(Begin(0))
    scheduler.handle(PutAside(1, (0,)))
    commands = scheduler.handle(Ended(2, "a", Outcome.PASSED))
    assert verdicts(commands) == {"a": Outcome.PASSED}
    assert scheduler.is_done


def test_a_kept_device_that_is_put_aside_is_kept_no_longer():
    works = [work("running", 1, 10.0), work("wide", 2, 1.0), work("narrow", 1, 20.0)]
    scheduler = Scheduler(works, fleet(3), ranks=[0, 1, 2])
    scheduler.handle(Away(0, 2))
    scheduler.handle(Begin(0))
    assert verdicts(scheduler.handle(PutAside(1, (1,)))) == {}
    assert starts(scheduler.handle(Returned(2, 2))) == []  # kept for the wide one now
    assert starts(scheduler.handle(Ended(10, "running", Outcome.PASSED))) == [("wide", (0, 2))]


def test_a_unit_that_can_no_longer_be_retried_keeps_what_its_attempt_said():
    scheduler = Scheduler([work("a", 2)], fleet(2), retries=1)
    scheduler.handle(Begin(0))
    scheduler.handle(PutAside(1, (0,)))
    assert verdicts(scheduler.handle(Ended(2, "a", Outcome.CRASHED))) == {"a": Outcome.CRASHED}


def test_a_device_held_back_is_not_used_before_it_returns():
    scheduler = Scheduler([work("a"), work("b")], fleet(1))
    scheduler.handle(Begin(0))
    assert starts(scheduler.handle(Ended(1, "a", Outcome.PASSED, held_back=(0,)))) == []
    assert starts(scheduler.handle(Returned(2, 0))) == [("b", (0,))]


def test_a_device_that_is_away_is_not_used():
    scheduler = Scheduler([work("a")], fleet(2))
    scheduler.handle(Away(0, 0))
    assert starts(scheduler.handle(Begin(0))) == [("a", (1,))]


def test_nothing_starts_after_a_stop():
    scheduler = Scheduler([work("a"), work("b")], fleet(1))
    scheduler.handle(Begin(0))
    scheduler.handle(Stop(1))
    assert starts(scheduler.handle(Ended(2, "a", Outcome.PASSED))) == []
    assert scheduler.is_done


def test_waves_wait_for_the_whole_wave():
    works = [work(name) for name in "abcd"]
    scheduler = Scheduler(works, fleet(2), policy=Policy.WAVES)
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["a", "b"]
    assert starts(scheduler.handle(Ended(1, "a", Outcome.PASSED))) == []
    assert [key for key, _ in starts(scheduler.handle(Ended(2, "b", Outcome.PASSED)))] == ["c", "d"]


def test_sequential_runs_one_at_a_time_in_plan_order():
    scheduler = Scheduler([work("a"), work("b")], fleet(8), ranks=[1, 0], policy=Policy.SEQUENTIAL)
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["a"]
    assert starts(scheduler.handle(Away(1, 7))) == starts(scheduler.handle(Returned(2, 7))) == []


def test_one_device_behaves_like_sequential():
    scheduler = Scheduler([work("a"), work("cpu", 0), work("b")], fleet(1), ranks=[2, 1, 0])
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["a"]


def test_units_without_a_device_are_limited_by_the_host_alone():
    works = [work(f"cpu{i}", 0) for i in range(3)] + [work("gpu")]
    scheduler = Scheduler(works, fleet(2), host_slots=2)
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["cpu0", "cpu1", "gpu"]


def test_shared_units_share_a_device_within_its_memory():
    works = [work(name, memory_mib=40, shared=True) for name in "abc"]
    scheduler = Scheduler(works, fleet(2, memory_mib=100))
    assert starts(scheduler.handle(Begin(0))) == [("a", (0,)), ("b", (0,)), ("c", (1,))]


def test_an_exclusive_unit_never_meets_a_shared_one():
    works = [work("shared", memory_mib=10, shared=True), work("alone"), work("alone too")]
    scheduler = Scheduler(works, fleet(2, memory_mib=100))
    assert [devices for _, devices in starts(scheduler.handle(Begin(0)))] == [(0,), (1,)]


def test_a_shared_device_is_free_when_its_last_unit_has_ended_and_its_memory_with_each():
    works = [work(name, memory_mib=50, shared=True) for name in "ab"]
    works += [work("alone", priority=1), work("c", memory_mib=50, shared=True)]
    scheduler = Scheduler(works, [*fleet(2, memory_mib=100)], ranks=[0, 1, 3, 2])
    scheduler.handle(Away(0, 1))
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["a", "b"]
    assert [key for key, _ in starts(scheduler.handle(Ended(1, "a", Outcome.PASSED)))] == ["c"]
    assert starts(scheduler.handle(Ended(2, "b", Outcome.PASSED))) == []
    assert starts(scheduler.handle(Ended(3, "c", Outcome.PASSED))) == [("alone", (0,))]


def test_a_shared_unit_of_two_devices_starts_on_no_single_one():
    works = [work("a", memory_mib=10, shared=True), work("pair", 2, memory_mib=10, shared=True)]
    scheduler = Scheduler(works, fleet(2, memory_mib=100))
    scheduler.handle(Away(0, 1))
    assert starts(scheduler.handle(Begin(0))) == [("a", (0,))]
    assert starts(scheduler.handle(Returned(1, 1))) == [("pair", (0, 1))]


def test_a_device_of_unknown_memory_is_large_enough_one_of_known_memory_may_not_be():
    assert starts(Scheduler([work("a", memory_mib=50)], fleet(2)).handle(Begin(0))) == [("a", (0,))]
    small = Scheduler([work("a", memory_mib=50)], fleet(2, memory_mib=49)).handle(Begin(0))
    assert small == [Conclude("a", Outcome.HOLE, "needs 1 devices of 50 MiB, the run has 0")]


def test_what_may_be_wanted_beside_what_runs_is_the_widest_unit_that_may_run_again():
    scheduler = Scheduler([work("a", 3), work("b", 1)], fleet(4), retries=1)
    scheduler.handle(Begin(0))
    assert (scheduler.may_want, scheduler.has_waiting) == (3, False)
    scheduler.handle(Ended(1, "a", Outcome.FAILED))
    assert scheduler.may_want == 1
    scheduler.handle(Stop(2))
    assert scheduler.may_want == 0


def test_small_shared_units_do_not_starve_a_large_one():
    works = [work("first", memory_mib=60, shared=True), work("large", memory_mib=90, shared=True)]
    works += [work(f"small{i}", memory_mib=10, shared=True) for i in range(3)]
    scheduler = Scheduler(works, [*fleet(2, memory_mib=100)], ranks=range(5))
    scheduler.handle(Away(0, 1))
    assert [key for key, _ in starts(scheduler.handle(Begin(0)))] == ["first"]


def test_a_pair_is_taken_from_linked_devices():
    links = [[3], [2], [1], [0]]
    scheduler = Scheduler([work("pair", 2)], fleet(4, links=links))
    assert starts(scheduler.handle(Begin(0))) == [("pair", (0, 3))]


def test_of_several_pairs_the_closest_is_taken():
    links = [[1, 1], [0, 0], [3], [2]]
    assert starts(Scheduler([work("pair", 2)], fleet(4, links=links)).handle(Begin(0))) == [("pair", (0, 1))]


def test_a_single_unit_leaves_linked_devices_together():
    links = [[1], [0], []]
    scheduler = Scheduler([work("one"), work("pair", 2)], fleet(3, links=links))
    assert starts(scheduler.handle(Begin(0))) == [("one", (2,)), ("pair", (0, 1))]


def test_a_gang_stays_on_one_numa_node():
    scheduler = Scheduler([work("one"), work("gang", 2)], fleet(4, numa=[0, 1, 0, 1]))
    gang = dict(starts(scheduler.handle(Begin(0))))["gang"]
    assert gang in ((0, 2), (1, 3))


units = st.lists(
    st.tuples(
        st.integers(0, 4),  # devices
        st.floats(0.1, 10.0),  # real seconds
        st.one_of(st.none(), st.floats(0.01, 20.0)),  # expected seconds, however wrong
        st.booleans(),  # fails
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=150)
@given(units=units, retries=st.integers(0, 2), policy=st.sampled_from(Policy), data=st.data())
def test_every_unit_gets_one_verdict_and_no_device_serves_two(units, retries, policy, data):
    works = [work(str(i), devices, expected) for i, (devices, _, expected, _) in enumerate(units)]
    ranks = data.draw(st.permutations(range(len(works))))
    scheduler = Scheduler(works, fleet(4), ranks=ranks, policy=policy, retries=retries, host_slots=2)
    busy, running, said, ends = set(), {}, [], []

    def carry_out(commands, now):
        for command in commands:
            if isinstance(command, Start):
                assert not busy & set(command.devices)
                busy.update(command.devices)
                running[command.key] = command.devices
                heapq.heappush(ends, (now + units[int(command.key)][1], command.key))
            else:
                said.append(command.key)

    carry_out(scheduler.handle(Begin(0)), 0.0)
    while ends:
        now, key = heapq.heappop(ends)
        busy.difference_update(running.pop(key))
        outcome = Outcome.FAILED if units[int(key)][3] else Outcome.PASSED
        carry_out(scheduler.handle(Ended(now, key, outcome)), now)
    assert sorted(said, key=int) == [str(i) for i in range(len(works))]
    assert scheduler.is_done


@settings(max_examples=150)
@example(narrow=[(1.0, 1.0)] * 3 + [(1.0, 3.0)] + [(1.0, 1.0)] * 5, width=4)
@given(
    narrow=st.lists(st.tuples(st.floats(0.5, 5.0), st.floats(0.01, 10.0)), min_size=8, max_size=60),
    width=st.integers(2, 4),
)
def test_a_wide_unit_waits_at_most_for_what_ran_and_one_overrunning_backfill(narrow, width):
    """However wrong the estimates of the narrow units are: (real seconds, expected seconds)."""
    works = [work("wide", width, 1.0), *(work(str(i), 1, expected) for i, (_, expected) in enumerate(narrow))]
    ranks = [4, 0, 1, 2, 3, *range(5, len(works))]
    scheduler = Scheduler(works, fleet(4), ranks=ranks)
    ends = []
    started_at = {}

    def carry_out(commands, now):
        for command in commands:
            if isinstance(command, Start):
                started_at[command.key] = now
                seconds = 1.0 if command.key == "wide" else narrow[int(command.key)][0]
                heapq.heappush(ends, (now + seconds, command.key))

    carry_out(scheduler.handle(Begin(0)), 0.0)
    while ends:
        now, key = heapq.heappop(ends)
        carry_out(scheduler.handle(Ended(now, key, Outcome.PASSED)), now)
    longest = max(real for real, _ in narrow)
    assert started_at["wide"] <= 2 * longest + 1e-6


def test_decisions_do_not_depend_on_anything_but_the_input():
    works = [work(str(i), 1 + i % 3, 1.0 + i % 5) for i in range(30)]
    first = Scheduler(works, fleet(4)).handle(Begin(0))
    assert first == Scheduler(works, fleet(4)).handle(Begin(0))


@pytest.mark.parametrize("policy", Policy)
def test_an_empty_plan_is_done(policy):
    scheduler = Scheduler([], fleet(2), policy=policy)
    assert scheduler.handle(Begin(0)) == []
    assert scheduler.is_done


def test_units_that_wait_can_be_given_another_order():
    scheduler = Scheduler([work("running"), work("a"), work("b"), work("x")], fleet(2), ranks=[0, 1, 2, 3])
    scheduler.handle(Begin(0))
    scheduler.handle(Reorder(1, {"b": 9, "x": 1}))
    assert [key for key, _ in starts(scheduler.handle(Ended(2, "running", Outcome.PASSED)))] == ["x"]


def test_another_order_does_not_overtake_a_reservation():
    works = [work("running", 1, 10.0), work("wide", 2, 1.0), work("narrow", 1, 20.0)]
    scheduler = Scheduler(works, fleet(2), ranks=[0, 1, 2])
    scheduler.handle(Begin(0))
    assert starts(scheduler.handle(Reorder(1, {"narrow": 0, "wide": 5}))) == []
    assert starts(scheduler.handle(Ended(10, "running", Outcome.PASSED))) == [("wide", (0, 1))]
