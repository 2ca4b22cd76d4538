"""Placements: what becomes of tests, prices, options, the proposal."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from sooner.analysis.sizing.decide import Limits, Objective, Priced, Waiting, decide
from sooner.analysis.sizing.facts import Steps
from sooner.analysis.sizing.needs import Fate, TestNeed, fate
from sooner.analysis.sizing.options import options
from sooner.analysis.sizing.placement import Option, Runner, Terms, Test, lane, price
from sooner.analysis.sizing.replay import Pool, waiting
from sooner.analysis.sizing.synthetic import Recipe, made
from sooner.analysis.sizing.tests import by_file, with_durations

RUNNERS = tuple(Runner(devices=n, label=f"gpu.{n}") for n in (1, 2, 4))
TERMS = Terms(runners=RUNNERS, commits_per_day=10, target_s=3600)


def need(name, full, *, least=None, gpu=None, **more):
    least = full if least is None else least
    profile = {str(n): "run" if n >= least else "skip" for n in (0, 1, 2, 3, 4, 8)}
    given = {"min": least, "gpu_min": gpu if gpu is not None else (least or None), "full": full, "profile": profile}
    return TestNeed(nodeid=name, path=name.split("::")[0], **(given | more))


def suite():
    """Half CPU, a third 2 devices, some adaptive, some wide."""
    tests = [Test(need=need(f"t/a.py::cpu{i}", 0), seconds=60) for i in range(50)]
    tests += [Test(need=need(f"t/b.py::two{i}", 2), seconds=60) for i in range(30)]
    tests += [Test(need=need(f"t/b.py::adapts{i}", 4, least=2, adaptive=True), seconds=60) for i in range(10)]
    tests += [Test(need=need(f"t/c.py::falls{i}", 4, least=0, gpu=4), seconds=60) for i in range(3)]
    return tests + [Test(need=need(f"t/c.py::four{i}", 4), seconds=60) for i in range(7)]


@pytest.mark.parametrize(
    ("one", "devices", "becomes"),
    [
        (need("t", 2), 2, Fate.FULL),
        (need("t", 2), 1, Fate.SKIPPED),
        (need("t", 4, least=2), 2, Fate.FEWER_RANKS),
        (need("t", 4, least=0, gpu=4), 2, Fate.FALLS_BACK),
        (need("t", 0), 0, Fate.FULL),
        (need("t", 4, profile={"2": "fail", "4": "run"}), 2, Fate.FAILS),
        (need("t", 4, profile={"2": "absent", "4": "run"}), 2, Fate.SKIPPED),
        (need("t", "unknown", least=0), 4, Fate.UNKNOWN),
        (need("t", 2, profile={"4": "unknown"}), 4, Fate.UNKNOWN),
        (need("t", 4), 6, Fate.FULL),
        (need("t", 8), 6, Fate.SKIPPED),
    ],
)
def test_what_becomes_of_a_test(one, devices, becomes):
    assert fate(one, devices) is becomes


@pytest.mark.parametrize(
    ("profile", "least", "most", "devices", "becomes"),
    [
        ({"4": "run", "8": "run"}, 8, None, 6, Fate.FULL),  # both neighbours say so, whatever the fewest is
        ({"4": "skip", "8": "skip"}, 2, None, 6, Fate.SKIPPED),
        ({"4": "run", "8": "skip"}, 2, 4, 6, Fate.SKIPPED),
        ({"4": "run", "8": "skip"}, 2, 6, 6, Fate.FULL),
        ({"4": "skip", "8": "run"}, 6, None, 6, Fate.FULL),
        ({"4": "skip", "8": "run"}, 7, None, 6, Fate.SKIPPED),
        ({"4": "skip", "8": "run"}, "unknown", None, 6, Fate.UNKNOWN),
        ({"8": "run"}, 2, None, 16, Fate.FULL),  # what the largest number says that was asked
        ({"8": "skip"}, 2, None, 16, Fate.SKIPPED),
        ({"8": "skip"}, 16, None, 16, Fate.FULL),  # unless the fewest lies above it
        ({"8": "absent"}, 10, None, 12, Fate.FULL),
        ({"8": "skip"}, 16, None, 12, Fate.SKIPPED),
        ({"8": "run"}, 2, 8, 16, Fate.SKIPPED),
        ({"8": "fail"}, 2, 8, 16, Fate.FAILS),
        ({"8": "run"}, 7, None, 6, Fate.SKIPPED),
    ],
)
def test_at_a_number_that_was_not_asked_neighbours_that_agree_count_else_the_fewest_and_most(
    profile, least, most, devices, becomes
):
    asked = TestNeed(nodeid="t", profile=profile, min=least, gpu_min=1, full=2, max=most)
    assert fate(asked, devices) is becomes


def test_a_test_that_runs_at_other_numbers_only_is_not_taken_to_run():
    even = need("t", 4, least=2, profile={"1": "skip", "2": "run", "3": "skip", "4": "run"})
    assert fate(even, 3) is Fate.SKIPPED
    assert fate(even, 2) is Fate.FEWER_RANKS


def test_the_price_of_smaller_runners_names_every_loss():
    small = Option(name="s", lanes=(lane(suite(), RUNNERS[1], TERMS),))
    cost = price(small, suite(), TERMS)
    assert cost.at_commit == {"full": 80, "fewer_ranks": 10, "falls_back": 3, "skipped": 7}
    assert len(cost.lost) == 20
    assert cost.device_minutes_per_commit == pytest.approx(2 * 93)  # the skipped ones take no time
    assert cost.device_minutes_per_day == pytest.approx(1860)


def test_a_periodic_lane_keeps_what_the_commit_does_not_at_its_delay():
    wide = [test for test in suite() if test.need.full == 4]
    lanes = (lane(suite(), RUNNERS[1], TERMS), lane(wide, RUNNERS[2], TERMS, every_h=3))
    cost = price(Option(name="p", lanes=lanes), suite(), TERMS)
    assert cost.lost == ()
    assert cost.moved == 20
    assert cost.delay_mean_h == pytest.approx(1.5 + 20 / 60)
    assert cost.delay_worst_h == pytest.approx(3 + 20 / 60)
    assert cost.device_minutes_per_day == pytest.approx(1860 + 8 * 80)


def test_a_test_that_leaves_the_commit_is_moved_also_where_its_full_need_is_met_nowhere():
    """One needs more devices than there are and makes do with four, of the other nobody knows what it needs."""
    tests = [
        Test(need=need("cpu", 0), seconds=1), Test(need=need("eight", 8, least=4), seconds=1),
        Test(need=need("unknown", "unknown", least=0, gpu="unknown"), seconds=1),
    ]  # fmt: skip
    moved = {one.name: price(one, tests, TERMS).moved for one in options(tests, TERMS, periods_h=[6])}
    assert (moved["by-need"], moved["all-on-4"], moved["full-on-1+rest-every-6h"]) == (0, 0, 2)


def test_no_option_loses_a_test_in_silence():
    tests = suite()
    for option in options(tests, TERMS, periods_h=(3, 24), current=(RUNNERS[2], 3)):
        cost = price(option, tests, TERMS)
        assert sum(cost.anywhere.values()) == len(tests), option.name
        assert cost.anywhere.get("full", 0) + len(cost.lost) == len(tests), option.name
        assert "absent" not in cost.anywhere, option.name


def test_what_no_runner_satisfies_is_listed_as_lost_in_every_option():
    tests = [*suite(), Test(need=need("t/d.py::eight", 8), seconds=1)]
    found = [price(one, tests, TERMS) for one in options(tests, TERMS, periods_h=(3,))]
    assert all("t/d.py::eight" in cost.lost for cost in found)


def test_no_option_has_a_runner_that_skips_everything():
    tests = [Test(need=need(f"t/b.py::two{i}", 2), seconds=60) for i in range(9)]
    tests += [Test(need=need("t/c.py::four", 4), seconds=60)]
    names = [one.name for one in options(tests, TERMS, periods_h=(3,))]
    assert not [name for name in names if name.startswith("all-on-1")]
    assert {"all-on-2", "all-on-4", "by-need", "full-on-2+rest-every-3h"} <= set(names)


def test_a_test_of_unknown_need_stays_on_the_largest_runner_and_counts_as_lost():
    tests = [*suite(), Test(need=need("t/d.py::who", "unknown", least=0), seconds=1)]
    by_need = next(one for one in options(tests, TERMS, periods_h=(3,)) if one.name == "by-need")
    assert "t/d.py::who" in by_need.lanes[-1].tests
    assert by_need.lanes[-1].runner.devices == 4
    assert price(by_need, tests, TERMS).lost == ("t/d.py::who",)


def test_a_test_that_can_never_run_is_in_no_lane_and_no_loss():
    tests = [*suite(), Test(need=TestNeed(nodeid="dead", min=None), seconds=1)]
    for one in options(tests, TERMS, periods_h=()):
        assert all("dead" not in each.tests for each in one.lanes)
        assert "dead" not in price(one, tests, TERMS).lost
        assert price(one, tests, TERMS).at_commit["never_runs"] == 1


@given(st.lists(st.floats(1, 600), min_size=1, max_size=80), st.integers(1, 6))
def test_shards_are_a_partition_of_about_equal_time(seconds, count):
    tests = [Test(need=need(f"t{i}", 1), seconds=s) for i, s in enumerate(seconds)]
    one = lane(tests, RUNNERS[0], TERMS, shards=count)
    assert sorted(name for part in one.shards for name in part) == sorted(test.name for test in tests)
    assert max(one.walls_s) <= sum(seconds) / count + max(seconds) + 1e-6


def test_there_are_as_many_shards_as_keep_each_within_its_time():
    assert len(lane(suite(), RUNNERS[2], Terms(runners=RUNNERS, commits_per_day=1, target_s=1800)).shards) == 4
    assert len(lane(suite(), RUNNERS[2], TERMS).shards) == 2


def test_no_shard_is_without_a_test_where_one_test_takes_longer_than_a_shard_should():
    one = lane([Test(need=need("long", 1), seconds=10_000)], RUNNERS[2], TERMS)
    assert one.shards == (("long",),)


def test_one_test_that_takes_longer_than_a_shard_should_does_not_let_others_do_so_too():
    seconds = [3700] + [2000] * 6
    one = lane([Test(need=need(f"t{i}", 1), seconds=s) for i, s in enumerate(seconds)], RUNNERS[0], TERMS)
    assert sorted(one.walls_s) == [2000] * 6 + [3700]


def test_a_lane_takes_as_long_as_its_slowest_shard():
    tests = [Test(need=need("t1", 1), seconds=600), Test(need=need("t2", 1), seconds=60)]
    one = lane(tests, RUNNERS[0], TERMS, shards=2)
    assert (sorted(one.walls_s), one.longest_s) == ([60, 600], 600)


def test_tests_beside_each_other_take_less_of_the_runner():
    packed = Terms(runners=RUNNERS, commits_per_day=10, target_s=3600, packed=True)
    sequence, beside = lane(suite(), RUNNERS[2], TERMS, shards=1), lane(suite(), RUNNERS[2], packed, shards=1)
    assert beside.walls_s[0] < 0.6 * sequence.walls_s[0]


# Durations.


def test_a_tests_own_duration_counts_then_its_files_then_the_usual_one():
    needs = [need(f"test/distributed/test_x.py::t{i}", 1) for i in range(3)] + [need("test/y.py::t", 1)]
    durations = {"test/distributed/test_x.py::t0": 10.0, "distributed/test_x": 30.0}
    tests, note = with_durations(needs, durations)
    assert [test.seconds for test in tests] == [10, 10, 10, 10]
    assert note == "1 of 4 tests have no known duration: 10.0 s is assumed"


def test_a_test_that_never_runs_takes_no_time_and_no_part_of_its_files():
    never = need("t/x.py::never", None, least=9, min=None)
    tests, note = with_durations([need("t/x.py::runs", 1), never], {"t/x.py": 30.0})
    assert ([test.seconds for test in tests], note) == ([30, 0], "")
    _, note = with_durations([need("t/x.py::runs", 1), never], {})
    assert note == "1 of 1 tests have no known duration: 1.0 s is assumed"


def test_a_file_is_meant_by_its_own_path_before_that_of_another_folder():
    needs = [need("test/x.py::t", 1), need("tests/x.py::t", 1), need("y.py::t", 1)]
    tests, _ = with_durations(needs, {"test/x.py": 10.0, "tests/x.py": 20.0, "tests/y": 5.0})
    assert [test.seconds for test in tests] == [10, 20, 5]


def test_a_file_needs_what_the_neediest_of_its_tests_needs():
    (a, b, c) = by_file(suite())
    assert (a.need.full, b.need.full, c.need.full) == (0, 4, 4)
    assert c.seconds == 600
    assert fate(c.need, 2) is Fate.FALLS_BACK or fate(c.need, 2) is Fate.FEWER_RANKS


def test_a_file_fails_where_one_of_its_tests_does():
    fails = need("t.py::a", 4, profile={str(n): "run" if n >= 4 else "fail" for n in (0, 1, 2, 3, 4, 8)})
    (file,) = by_file([Test(need=fails, seconds=1), Test(need=need("t.py::b", 0), seconds=1)])
    assert [fate(file.need, n) for n in (1, 2, 4, 8)] == [Fate.FAILS, Fate.FAILS, Fate.FULL, Fate.FULL]


@pytest.mark.parametrize("wide", [2, 4, 16])
def test_a_file_has_its_full_need_only_where_each_of_its_tests_has(wide):
    at_two = {str(n): "run" if n == 2 else "skip" for n in (0, 1, 2, 3, 4, 8)}
    only_at_two = need("t.py::exact", 2, max=2, profile=at_two)
    members = [Test(need=one, seconds=1) for one in (only_at_two, need("t.py::wide", wide), need("t.py::cpu", 0))]
    (file,) = by_file(members)
    for devices in (0, 1, 2, 3, 4, 6, 8, 16):
        is_whole = all(fate(one.need, devices) is Fate.FULL for one in members)
        assert (fate(file.need, devices) is Fate.FULL) is is_whole


def test_of_files_that_are_placed_the_tests_are_counted():
    (file,) = by_file([Test(need=need(f"t.py::t{n}", n), seconds=60) for n in (0, 1, 2, 4, 8)])
    on_two = price(Option(name="two", lanes=(lane([file], RUNNERS[1], TERMS),)), [file], TERMS)
    assert on_two.at_commit == {"full": 3, "skipped": 2}
    assert on_two.lost == ("t.py::t4", "t.py::t8")
    assert on_two.device_minutes_per_commit == 6


# The proposal.


def priced(name, minutes, longest, *, delay=0.0, lost=(), waits=None):
    cost = price(Option(name=name, lanes=()), [], TERMS)
    cost = type(cost)(
        **{
            **{field: getattr(cost, field) for field in cost.__struct_fields__},
            "device_minutes_per_day": minutes, "longest_s": longest, "delay_worst_h": delay, "lost": lost,
        }
    )  # fmt: skip
    wait = None if waits is None else Waiting(queue_p50=0, queue_p90=0, signal_p50=waits, signal_p90=waits)
    return Priced(
        option=Option(name=name, lanes=()), price=cost, waiting=wait, refused="" if wait else "pool x: 50% off"
    )


def test_the_best_keeps_every_test_within_the_delay():
    found = decide(
        [priced("loses", 1, 1, lost=("t",)), priced("late", 2, 1, delay=48), priced("good", 3, 1),
         priced("dear", 9, 1)],
        Objective.DEVICE_MINUTES, Limits(),
    )  # fmt: skip
    assert found.best.option.name == "good"
    assert set(found.frontier) == {"loses", "late", "good"}


def test_an_option_by_which_more_tests_fail_at_every_commit_is_not_proposed():
    red, green = priced("red", 1, 1), priced("green", 3, 1)
    red = structs.replace(red, price=structs.replace(red.price, at_commit={"fails": 2}))
    assert decide([red, green], Objective.DEVICE_MINUTES, Limits()).best.option.name == "green"
    now = structs.replace(red, option=structs.replace(red.option, name="current"))
    assert decide([red, now, green], Objective.DEVICE_MINUTES, Limits()).best.option.name == "red"
    late = structs.replace(green, price=structs.replace(green.price, delay_worst_h=99.0))
    found = decide([red, late], Objective.DEVICE_MINUTES, Limits())
    assert found.reason == "every option loses tests or tells later than 24 h or has tests fail at every commit"


def test_as_many_more_losses_are_taken_as_the_limit_allows():
    some = [priced("a", 1, 1, lost=("t", "u")), priced("b", 2, 1, lost=("t",)), priced("c", 3, 1, lost=("t", "u", "v"))]
    best = [decide(some, Objective.DEVICE_MINUTES, Limits(lost=lost)).best.option.name for lost in (0, 1)]
    assert best == ["b", "a"]


def test_of_options_that_cost_the_same_the_sooner_is_the_best():
    some = [priced("late", 1, 1, delay=9), priced("long", 1, 7), priced("good", 1, 3)]
    assert decide(some, Objective.DEVICE_MINUTES, Limits()).best.option.name == "good"


def test_options_are_not_ranked_by_queues_that_are_not_understood():
    some = [priced("a", 1, 1), priced("b", 2, 1)]
    found = decide(some, Objective.SIGNAL, Limits())
    assert found.best is None
    assert found.reason == "options cannot be ranked by time-to-signal: pool x: 50% off"
    found = decide([*some, priced("c", 9, 9, waits=5)], Objective.SIGNAL, Limits())
    assert found.best.option.name == "c"
    assert found.reason.endswith("2 more cannot be ranked by it: pool x: 50% off")


def test_the_best_by_time_to_signal_counts_the_queue():
    found = decide([priced("a", 1, 1, waits=50), priced("b", 2, 9, waits=20)], Objective.SIGNAL, Limits())
    assert found.best.option.name == "b"


def test_how_many_tests_may_be_moved_can_be_limited():
    moved = structs.replace(priced("moves", 1, 1).price, moved=5)
    some = [structs.replace(priced("moves", 1, 1), price=moved), priced("keeps", 2, 1)]
    assert decide(some, Objective.DEVICE_MINUTES, Limits(moved=4)).best.option.name == "keeps"
    assert decide(some, Objective.DEVICE_MINUTES, Limits(moved=5)).best.option.name == "moves"


def test_tests_that_run_on_fewer_ranks_may_run_at_the_commit_and_in_full_by_the_clock():
    tests = suite()
    (option,) = [one for one in options(tests, TERMS, periods_h=(3,)) if one.name == "as-far-as-2+rest-every-3h"]
    cost = price(option, tests, TERMS)
    assert cost.at_commit == {"full": 80, "fewer_ranks": 10, "absent": 10}
    assert cost.lost == ()
    assert cost.moved == 20


def test_where_every_option_is_beyond_the_limits_nothing_is_proposed():
    found = decide([priced("late", 1, 1, delay=48)], Objective.DEVICE_MINUTES, Limits(delay_h=3))
    assert found.best is None
    assert found.reason == "every option loses tests or tells later than 3 h"
    moves = priced("moves", 1, 1)
    moves = structs.replace(moves, price=structs.replace(moves.price, moved=5))
    found = decide([moves], Objective.DEVICE_MINUTES, Limits(delay_h=3, moved=4))
    assert found.reason == "every option loses tests or tells later than 3 h or moves more than 4 tests"


def test_more_load_on_a_full_pool_makes_its_queue_longer():
    queue, capacity = made(Recipe(days=14, load=0.8, machines=10, batch=6), 4)
    since, until = queue.created[0] + 7 * 86_400, queue.created[-1]
    pool = Pool(
        label="gpu.4", queue=queue, capacity=Steps(capacity.times, capacity.counts), delay_s=15,
        ours=queue.created * 0, since=since, until=until,
    )  # fmt: skip
    pushes = [since + 3600 * i for i in range(0, 160, 4)]
    tests = [Test(need=need(f"t{i}", 4), seconds=600) for i in range(20)]

    def signal(shards):
        return waiting(
            Option(name="x", lanes=(lane(tests, RUNNERS[2], TERMS, shards=shards),)), {"gpu.4": pool}, pushes
        )

    one, four = signal(1), signal(4)
    assert one.signal_p50 > 20 * 600
    assert four.signal_p50 < one.signal_p50
    assert four.queue_p90 > 0
    assert waiting(Option(name="x", lanes=(lane(tests, RUNNERS[1], TERMS),)), {"gpu.4": pool}, pushes) == (
        "the pool gpu.2 is not known or not understood"
    )
    theirs = {"linux.gpu.4": structs.replace(pool, label="linux.gpu.4", ours=queue.created * 0 + 1)}
    assert waiting(Option(name="x", lanes=(lane(tests, RUNNERS[1], TERMS),)), theirs, pushes) == (
        "the pool gpu.2 is not known or not understood; what is replaced ran on linux.gpu.4"
    )


def test_what_replaces_urgent_jobs_is_as_urgent():
    queue, capacity = made(Recipe(days=14, load=0.9, machines=10, batch=6), 4)
    since, until = queue.created[0] + 7 * 86_400, queue.created[-1]
    ours = (np.arange(len(queue)) % 50 == 0).astype(float)
    pushes = [since + 3600 * i for i in range(0, 160, 4)]
    tests = [Test(need=need(f"t{i}", 4), seconds=600) for i in range(20)]
    option = Option(name="x", lanes=(lane(tests, RUNNERS[2], TERMS, shards=4),))

    def waits(priority):
        pool = Pool(
            label="gpu.4", queue=structs.replace(queue, priority=priority),
            capacity=Steps(capacity.times, capacity.counts), delay_s=15, ours=ours, since=since, until=until,
        )  # fmt: skip
        return waiting(option, {"gpu.4": pool}, pushes).queue_p90

    assert waits(ours) < waits(None) / 3
    assert waits(-ours) > waits(None)
