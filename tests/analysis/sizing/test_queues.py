"""Pools: the replay, what the record shows, fits judged on later days."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from sooner.analysis.sizing.candidates import BLIND
from sooner.analysis.sizing.declared import begun, crowd_of, fitted, may_overtake, split_of
from sooner.analysis.sizing.events import Machines, Nodes, Task, play
from sooner.analysis.sizing.facts import Node, PoolSpec, Steps
from sooner.analysis.sizing.fifo import starts, starts_by_priority, starts_out_of_order, whole
from sooner.analysis.sizing.judge import _Judge, judge
from sooner.analysis.sizing.load import queue_of, ready
from sooner.analysis.sizing.seen import delays, disorder_of, load_of, look
from sooner.analysis.sizing.synthetic import Recipe, SharedRecipe, dispersion, made, shared_queues, shared_tasks

ALWAYS = 0.0


def flat(count):
    return Steps((ALWAYS,), (float(count),))


def test_jobs_take_the_machine_that_is_free_first():
    assert starts([0, 0, 0, 1], [10, 4, 5, 1], flat(2)) == [0, 0, 4, 9]


def test_a_machine_that_is_busy_at_the_begin_is_waited_for():
    assert starts([5], [1], flat(1), busy=[8]) == [8]


def test_a_pool_that_shrinks_never_stops_a_running_job_and_starts_no_other():
    capacity = Steps((0.0, 5.0), (2.0, 1.0))
    assert starts([0, 0, 6], [10, 20, 1], capacity) == [0, 0, 20]


def test_a_pool_that_grows_again_takes_back_machines_that_had_not_gone_yet():
    capacity = Steps((0.0, 5.0, 6.0), (2.0, 1.0, 2.0))
    assert starts([0, 0, 6], [10, 20, 1], capacity) == [0, 0, 10]


def test_a_pool_without_machines_starts_nothing_until_there_are_some():
    assert starts([0, 1], [1, 1], Steps((0.0, 7.0), (0.0, 1.0))) == [7, 8]
    assert starts([0], [1], flat(0)) == [float("inf")]


def test_a_job_that_is_given_up_takes_no_machine():
    assert starts([0, 1, 2], [10, 10, 1], flat(1), patience=[99, 5, 99]) == [0, float("inf"), 10]


def test_counts_are_rounded_so_that_their_mean_stays():
    steps = whole(Steps(tuple(map(float, range(100))), (2.3,) * 100))
    assert set(steps.counts) == {2.0, 3.0}
    assert np.mean(steps.counts) == pytest.approx(2.3, abs=0.01)


jobs = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 60)), min_size=1, max_size=60).map(sorted)
capacities = st.lists(st.tuples(st.integers(1, 500), st.integers(1, 5)), max_size=5).map(
    lambda changes: Steps(
        (0.0, *sorted({float(at) for at, _ in changes})), (3.0, *[float(n) for n in dict(sorted(changes)).values()])
    )
)


@given(jobs, st.integers(1, 6))
def test_the_fast_path_and_the_general_replay_agree(some, count):
    created, seconds = [float(at) for at, _ in some], [float(s) for _, s in some]
    tasks = [Task(label="p", created=at, seconds=s) for at, s in zip(created, seconds, strict=True)]
    general = play(tasks, {"p": Machines(capacity=flat(count))})
    assert starts(created, seconds, flat(count)) == general.started


@given(jobs, capacities)
def test_never_do_more_jobs_run_than_there_are_machines_unless_the_pool_has_just_shrunk(some, capacity):
    created, seconds = [float(at) for at, _ in some], [float(s) for _, s in some]
    begun = starts(created, seconds, capacity)
    assert all(start >= at for start, at in zip(begun, created, strict=True))
    for index, start in enumerate(begun):
        running = sum(b <= start < b + s for b, s in zip(begun, seconds, strict=True))
        now = capacity.counts[max(0, int(np.searchsorted(capacity.times, start, side="right")) - 1)]
        assert running <= now, index


@given(jobs, st.integers(1, 4))
def test_out_of_order_without_disorder_is_in_order(some, count):
    created, seconds = [float(at) for at, _ in some], [float(s) for _, s in some]
    chances = [0.5] * (2 * len(some) + 2)
    assert starts_out_of_order(created, seconds, flat(count), chances, disorder=0.0) == starts(
        created, seconds, flat(count)
    )


def test_the_newest_first_lets_the_oldest_wait():
    found = starts_out_of_order([0, 1, 2], [10, 10, 10], flat(1), [0.0] * 8, disorder=1.0)
    assert found == [0, 20, 10]


apart = st.lists(st.tuples(st.integers(0, 500), st.integers(1, 60)), min_size=1, unique_by=lambda one: one[0]).map(
    sorted
)
"""Of jobs that come at one moment the general replay hears one after the other: the first may be given a machine."""


@given(apart, st.integers(1, 6), st.data())
def test_by_priority_the_fast_path_and_the_general_replay_agree(some, count, data):
    created, seconds = [float(at) for at, _ in some], [float(s) for _, s in some]
    priority = data.draw(st.lists(st.integers(0, 2), min_size=len(some), max_size=len(some)))
    tasks = [
        Task(label="p", created=at, seconds=s, priority=first)
        for at, s, first in zip(created, seconds, priority, strict=True)
    ]
    general = play(tasks, {"p": Machines(capacity=flat(count))})
    assert starts_by_priority(created, seconds, flat(count), priority) == general.started
    assert starts_by_priority(created, seconds, flat(count), [0] * len(some)) == starts(created, seconds, flat(count))


def test_a_job_of_a_higher_priority_overtakes_and_one_that_is_given_up_takes_no_machine():
    found = starts_by_priority([0, 1, 2, 3], [10, 10, 10, 1], flat(1), [0, 0, 0, 5], patience=[99, 5, 99, 99])
    assert found == [0, float("inf"), 11, 10]


def test_a_job_that_comes_as_a_machine_becomes_free_is_not_taken_before_those_that_wait():
    tasks = [Task(label="p", created=at, seconds=10, priority=first) for at, first in ((0, 0), (1, 0), (10, 2))]
    assert play(tasks, {"p": Machines(capacity=flat(1))}).started == [0, 10, 20]
    assert starts_by_priority([0, 1, 10], [10, 10, 10], flat(1), [0, 0, 2]) == [0, 10, 20]


def test_a_job_that_needs_another_is_ready_when_that_one_has_ended():
    nan = float("nan")
    found = ready([0, 5, 6, 7], [20, 25, nan, 30], ["a", "b", "c", "d"], [[], ["a"], ["nobody", "a", "b"], ["c"]])
    assert found == [0, 20, 25, 7]


def test_a_job_waits_neither_for_itself_nor_for_what_ended_no_sooner_than_it():
    ended, needed = [20, 9, 30, float("nan")], [["a"], ["a", "c"], ["a", "c"], ["c"]]
    found = ready([0, 5, 6, 7], ended, ["a", "b", "c", "d"], needed)
    assert found == [0, 5, 20, 30]


def test_a_job_waits_for_the_attempt_that_had_ended_not_for_one_that_came_after_it():
    ended, ids = [100, 200, 500, 700, float("nan")], ["b", "t", "b", "u", "v"]
    found = ready([0, 0, 300, 0, 0], ended, ids, [[], ["b"], [], ["b"], ["b"]])
    assert found == [0, 100, 300, 500, 500]


# The general replay.


def test_of_jobs_that_waited_for_the_same_one_the_most_urgent_is_first():
    tasks = [Task(label="t", created=0, seconds=10)]
    tasks += [Task(label="t", created=0, seconds=10, after=(0,), priority=first) for first in (0, 2, 1)]
    assert play(tasks, {"t": Machines(capacity=flat(1))}).started == [0, 30, 10, 20]


@pytest.mark.parametrize("how", ["given up", "cancelled"])
def test_who_stood_behind_a_wide_job_that_is_gone_starts_at_once(how):
    widths = {"one": 1, "all": 4}
    pool = Nodes(nodes=(Node(count=1, devices=4, widths=widths),))
    gone = {"patience": 5} if how == "given up" else {"group": "g", "push": "1"}
    tasks = [
        Task(label="one", created=0, seconds=100),
        Task(label="all", created=1, seconds=10, **gone),
        Task(label="one", created=2, seconds=10),
        Task(label="elsewhere", created=5, seconds=1, group="g", push="2"),
    ]
    assert play(tasks, {"one": pool, "all": pool}).started[2] == 5


def test_a_job_that_is_given_up_in_the_queue_takes_no_machine_and_nobody_waits_for_it_longer():
    tasks = [
        Task(label="t", created=0, seconds=10),
        Task(label="t", created=1, seconds=10, patience=5),
        Task(label="t", created=2, seconds=10),
        Task(label="t", created=2, seconds=10, after=(1,)),
    ]
    played = play(tasks, {"t": Machines(capacity=flat(1))})
    assert played.started[2] == 10
    assert np.isnan([played.started[1], played.started[3]]).all()
    assert played.completed[1] == 5


def test_a_job_waits_for_those_that_it_needs():
    tasks = [Task(label="b", created=0, seconds=10), Task(label="t", created=0, seconds=5, after=(0,))]
    played = play(tasks, {"b": Machines(capacity=flat(1)), "t": Machines(capacity=flat(1))})
    assert played.ready == [0, 10]
    assert played.completed == [10, 15]


def test_a_newer_push_cancels_what_waits_and_what_runs_of_the_older_one():
    tasks = [
        Task(label="t", created=0, seconds=100, group="pr1", push="a"),
        Task(label="t", created=0, seconds=100, group="pr1", push="a"),
        Task(label="t", created=10, seconds=5, group="pr1", push="b"),
    ]
    played = play(tasks, {"t": Machines(capacity=flat(1))})
    assert played.completed == [10, 10, 15]
    assert np.isnan(played.started[1])


def test_what_an_older_push_comes_to_later_cancels_no_newer_one_and_does_not_run():
    tasks = [
        Task(label="t", created=0, seconds=10, group="pr1", push="a"),
        Task(label="t", created=60, seconds=10, after=(0,), group="pr1", push="a"),
        Task(label="t", created=50, seconds=100, group="pr1", push="b"),
    ]
    played = play(tasks, {"t": Machines(capacity=flat(1))})
    assert (played.completed[0], played.completed[2]) == (10, 150)
    assert np.isnan([played.ready[1], played.started[1], played.completed[1]]).all()


def test_higher_priority_is_first_in_the_queue():
    tasks = [
        Task(label="t", created=0, seconds=10),
        Task(label="t", created=1, seconds=10),
        Task(label="t", created=2, seconds=10, priority=1),
    ]
    assert play(tasks, {"t": Machines(capacity=flat(1))}).started == [0, 20, 10]


def test_machines_that_are_booted_when_needed_take_their_time_and_stay_warm_for_a_while():
    pool = Machines(capacity=flat(5), boot_s=60, idle_s=100)
    tasks = [Task(label="t", created=at, seconds=10) for at in (0, 100, 400)]
    assert play(tasks, {"t": pool}).started == [60, 100, 460]


def test_a_machine_that_idled_as_long_as_it_may_is_gone_whatever_sums_of_times_are_rounded_to():
    pool = Machines(capacity=flat(1), boot_s=5, idle_s=0.3)
    for sevenths in range(1, 200):
        tasks = [Task(label="t", created=0, seconds=sevenths / 7), Task(label="t", created=100, seconds=1)]
        assert play(tasks, {"t": pool}).started == [5, 105]


@pytest.mark.parametrize("at", [40, 90])
def test_machines_above_a_limit_that_fell_are_let_go_also_those_that_idle_or_boot(at):
    pool = Machines(capacity=Steps((0.0, float(at), 300.0), (2.0, 0.0, 1.0)), boot_s=60, idle_s=1000)
    tasks = [Task(label="t", created=created, seconds=10) for created in (0, 100, 200)]
    started = [60, 360, 370] if at == 90 else [360, 370, 380]
    assert play(tasks, {"t": pool}).started == started


def test_a_job_takes_a_machine_that_becomes_free_before_the_booted_one_is_there():
    pool = Machines(capacity=flat(5), boot_s=60, idle_s=100)
    tasks = [Task(label="t", created=0, seconds=10), Task(label="t", created=65, seconds=1)]
    assert play(tasks, {"t": pool}).started == [60, 70]


def test_a_node_splits_into_pieces_and_a_wide_job_is_not_starved():
    pool = Nodes(nodes=(Node(count=1, devices=8, widths={"one": 1, "eight": 8}),))
    tasks = [Task(label="one", created=0, seconds=10) for _ in range(8)]
    tasks += [Task(label="eight", created=1, seconds=5)]
    tasks += [Task(label="one", created=2, seconds=10) for _ in range(8)]
    played = play(tasks, {"one": pool, "eight": pool})
    assert played.started[8] == 10
    assert set(played.started[9:]) == {15}


def test_without_reservation_the_wide_job_waits_behind_all_narrow_ones():
    pool = Nodes(nodes=(Node(count=1, devices=2, widths={"one": 1, "two": 2}),), reserves=False)
    tasks = [Task(label="one", created=0, seconds=10), Task(label="one", created=0, seconds=15)]
    tasks += [Task(label="two", created=1, seconds=5), Task(label="one", created=2, seconds=10)]
    assert play(tasks, {"one": pool, "two": pool}).started == [0, 0, 20, 10]


def test_jobs_of_a_label_without_a_pool_start_at_once():
    assert play([Task(label="x", created=3, seconds=1)], {}).started == [3]


# What a record shows.


def test_while_jobs_wait_those_that_run_are_the_capacity():
    queue, _ = made(Recipe(machines=7, delay_s=0.001, days=7, load=0.9), 1)
    seen = look(queue, 1.0)
    busy = seen.busy_mean[seen.backlog_s > 60]
    assert np.median(busy) == pytest.approx(7, abs=0.05)


def test_the_delay_of_an_idle_pool_is_told_apart_from_queueing():
    queue, _ = made(Recipe(machines=10, delay_s=40, load=0.7), 2)
    found = delays(queue, load_of(queue), since=-np.inf, until=np.inf)
    assert np.median(found) == pytest.approx(40, rel=0.1)


def test_who_is_taken_next_is_seen():
    queue, _ = made(Recipe(days=14, load=0.9, machines=5, batch=5), 3)
    assert disorder_of(queue, since=-np.inf, until=np.inf, threshold_s=60) < 0.05
    chances = np.random.default_rng(1).random(2 * len(queue) + 2).tolist()
    begun = np.array(
        starts_out_of_order(queue.created.tolist(), queue.seconds.tolist(), flat(5), chances, disorder=1.0)
    )
    newest, _ = queue_of(queue.created, begun, begun + queue.seconds, queue.seconds)
    assert disorder_of(newest, since=-np.inf, until=np.inf, threshold_s=60) > 0.9


def test_jobs_of_one_moment_are_seen_alike_in_whatever_order_a_record_has_them():
    """Ten jobs of a matrix an hour on two machines: a pool without delay, first come first served."""
    rows = [(3600.0 * hour, 3600.0 * hour + i // 2 * 100.0) for hour in range(50) for i in range(10)]
    np.random.default_rng(1).shuffle(rows)
    created, started = np.array(rows).T
    queue, _ = queue_of(created, started, started + 100, np.full(len(rows), np.nan))
    found = delays(queue, load_of(queue), since=-np.inf, until=np.inf)
    assert np.median(found) == 0
    assert disorder_of(queue, since=-np.inf, until=np.inf, threshold_s=60) == 0


def test_arrivals_come_in_bursts_as_on_real_gpu_queues():
    queue, _ = made(Recipe(batch=12), 1)
    assert 14 <= dispersion(queue.created) <= 60


# Fits, judged on later days.


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(days=21),
        Recipe(days=21, load=0.9, machines=8, batch=6),
        Recipe(days=21, day_machines=0.5),
        Recipe(days=21, boot_s=240, load=0.5),
        Recipe(days=21, cron_every_h=3, cron_jobs=9),
    ],
    ids=["constant", "heavy", "day and night", "booted", "cron"],
)
def test_held_out_days_of_a_known_pool_are_predicted_within_a_tenth(recipe):
    queue, _ = made(recipe, 5)
    found = judge(queue, PoolSpec(label="p"))
    assert found.predicted.p90 == pytest.approx(found.observed.p90, rel=0.1)
    assert found.fits
    assert found.can_rank


def test_no_prediction_uses_anything_that_happened_later():
    queue, _ = made(Recipe(days=20, load=0.9), 1)
    cut = queue.created[0] + 17 * 86_400
    moved = np.where(queue.started > cut, queue.started + 90_000, queue.started)
    other, _ = queue_of(queue.created, moved, moved + queue.seconds, queue.seconds)

    def beliefs(one):
        found = _Judge(one, PoolSpec(label="p"), train=0.7, horizon_s=21_600, seed=1, most_jobs=10**9)
        found.judged()
        judged = [until for since, until in found._blocks if since >= found._split]
        return [belief.waits.tolist() for belief, until in zip(found._believed, judged, strict=True) if until <= cut]

    assert len(beliefs(queue)) > 5
    assert beliefs(queue) == beliefs(other)


def test_a_pool_whose_machines_vanish_is_said_not_to_fit():
    queue, _ = made(Recipe(days=20, load=0.6), 1)
    random = np.random.default_rng(1)
    late = queue.created > queue.created[0] + 14 * 86_400
    started = np.where(late, queue.created + random.exponential(60_000, len(queue)), queue.started)
    broken, _ = queue_of(queue.created, started, started + queue.seconds, queue.seconds)
    found = judge(broken, PoolSpec(label="p"))
    assert not found.fits
    assert "off" in found.reason


@pytest.fixture(scope="module")
def split_nodes():
    recipe = SharedRecipe(days=21, nodes=5, load=0.8)
    return recipe, shared_queues(recipe, shared_tasks(recipe, 3), 3)


def test_labels_that_share_nodes_are_predicted_together_within_a_tenth(split_nodes):
    recipe, queues = split_nodes
    crowd = crowd_of(queues, recipe.pool)
    for label, queue in queues.items():
        found = judge(queue, PoolSpec(label=label), crowd=crowd)
        assert found.model == "declared"
        assert found.predicted.p90 == pytest.approx(found.observed.p90, rel=0.1)
        assert abs(found.errors["declared"]) < 0.05
        assert abs(found.errors["calibrated"]) > 0.1


def test_the_number_of_nodes_is_fitted_where_nobody_says_it(split_nodes):
    recipe, queues = split_nodes
    nodes = Nodes(nodes=(Node(count=0, devices=8, widths=recipe.pool.nodes[0].widths),), handover_s=20)
    crowd = fitted(crowd_of(queues, nodes), split_of(queues["gpu.4"], 0.7))
    assert crowd.pool.nodes[0].count == recipe.nodes


def test_what_is_declared_wrongly_of_nodes_is_not_believed(split_nodes):
    recipe, queues = split_nodes
    wrong = SharedRecipe(nodes=4 * recipe.nodes).pool
    found = judge(queues["gpu.4"], PoolSpec(label="gpu.4"), crowd=crowd_of(queues, wrong))
    assert found.model != "declared"
    assert found.errors["declared"] < -0.5


def test_machines_that_are_booted_are_predicted_as_declared():
    queue, capacity = made(Recipe(days=21, boot_s=300, load=0.4, batch=4), 5)
    pool = Machines(capacity=capacity, boot_s=300, idle_s=600)
    found = judge(queue, PoolSpec(label="p", capacity=capacity), crowd=crowd_of({"p": queue}, pool))
    assert abs(found.errors["declared"]) < 0.1
    assert found.fits


def test_a_pool_full_of_others_jobs_has_no_delay_of_hours():
    queue, _ = made(Recipe(days=14, load=1.05, others=0.9, machines=30, batch=20), 3)
    found = delays(queue, load_of(queue), since=-np.inf, until=np.inf)
    assert np.quantile(queue.waits, 0.5) > 3600
    assert found.max() <= 1200


def test_jobs_with_priorities_are_predicted_in_their_order():
    recipe = Recipe(days=21, load=0.9, machines=8, batch=6)
    queue, capacity = made(recipe, 5)
    urgent = (np.arange(len(queue)) % 5 == 0).astype(float)
    begun = np.array(starts_by_priority(queue.created.tolist(), queue.seconds.tolist(), capacity, urgent.tolist()))
    told, _ = queue_of(queue.created, begun + 10, begun + 10 + queue.seconds, queue.seconds, urgent)
    blind, _ = queue_of(queue.created, begun + 10, begun + 10 + queue.seconds, queue.seconds)
    spec = PoolSpec(label="p", capacity=capacity)
    off, off_blind = (abs(judge(queue, spec).errors["declared"]) for queue in (told, blind))
    assert off < 0.03
    assert off_blind > off


def test_a_last_part_without_starts_is_predicted():
    queue, _ = made(Recipe(days=21), 7)
    hidden = queue.created > queue.created[0] + 16 * 86_400
    blank, _ = queue_of(
        queue.created, np.where(hidden, np.nan, queue.started), np.where(hidden, np.nan, queue.completed), queue.seconds
    )
    assert blank.to_predict.sum() == hidden.sum()
    found = judge(blank, PoolSpec(label="p"))
    assert found.observed.p90 is None
    assert found.predicted.p90 == pytest.approx(np.quantile(queue.waits[hidden], 0.9), rel=0.1)
    assert found.reason.startswith("before the part that is asked for: ")


def test_waits_that_come_from_others_alone_cannot_rank_options():
    random = np.random.default_rng(3)
    created = np.sort(random.uniform(0, 30 * 86_400, 3000))
    started = created + random.exponential(1800, 3000)
    queue, _ = queue_of(created, started, started + 600, np.full(3000, np.nan))
    found = judge(queue, PoolSpec(label="p"))
    assert found.fits
    assert found.model in BLIND
    assert not found.can_rank


def test_the_same_record_gives_the_same_answer():
    queue, _ = made(Recipe(days=10), 1)
    assert judge(queue, PoolSpec(label="p")) == judge(queue, PoolSpec(label="p"))


def test_rows_that_cannot_be_are_left_out_and_counted():
    nan = np.nan
    created = np.array([0.0, 1.0, nan, 3.0, 9.0])
    started = np.array([1.0, nan, 2.0, 4.0, 8.0])
    completed = np.array([2.0, nan, 5.0, 3.5, 12.0])
    queue, rows = queue_of(created, started, completed, np.full(5, nan))
    assert rows.tolist() == [0, 4]  # the others: ended before it began, no time, nothing but a creation
    assert queue.created.tolist() == [0.0, 9.0]
    assert queue.waits.tolist() == [1.0, 0.0]


def crowd_on_two_nodes(*jobs, **options):
    """Of jobs as (label, created, started, completed): `half` takes 4 of 8 devices, `all` takes 8."""
    nodes = Nodes(nodes=(Node(count=2, devices=8, widths={"half": 4, "all": 8}),), **options)
    queues = {
        label: queue_of(created, started, completed, completed - started)[0]
        for label in ("half", "all")
        for created, started, completed in [np.array([job[1:] for job in jobs if job[0] == label], float).T]
    }
    return crowd_of(queues, nodes)


def test_two_free_halves_of_nodes_are_no_node_that_is_free():
    crowd = crowd_on_two_nodes(
        ("half", 0, 0, 100), ("half", 1, 1, 500), ("half", 2, 2, 600), ("half", 3, 3, 100), ("all", 200, 500, 900)
    )
    assert begun(crowd, 150, 300)[crowd.position("all")].tolist() == [500]


def test_where_nodes_are_not_reserved_narrow_jobs_that_come_later_are_served_before_wide_ones():
    reserved = crowd_on_two_nodes(("half", 0, 0, 9), ("all", 0, 0, 9)).pool
    assert not may_overtake(reserved)
    assert may_overtake(structs.replace(reserved, reserves=False))


def test_a_job_that_ended_the_moment_it_began_keeps_no_devices():
    cancelled = [("half", at, at, at) for at in range(10)]
    crowd = crowd_on_two_nodes(*cancelled, ("all", 20, 20, 100), ("half", 21, 21, 400), ("all", 150, 400, 500))
    places = crowd.node[crowd.position("all")].tolist() + crowd.node[crowd.position("half")].tolist()
    assert places == [0, 0, *[-1] * 10, 1]
