"""A CI that drives the decisions in a loop: nothing is asked for twice, and nothing waits for ever."""

import random
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import (
    Answer,
    Commit,
    Event,
    Hold,
    Limits,
    Policy,
    Question,
    Reason,
    Rerun,
    Revert,
    Signal,
    Status,
)

HOUR = 3600.0
TICK_H = 0.5


class World(msgspec.Struct, kw_only=True):
    """A trunk that this test makes up: commit `place` breaks signal `key` from then on."""

    seed: int
    commits_per_h: float = 2.0
    run_h: float = 1.5
    batch: int = 1
    culprits: tuple[int | None, ...] = (10,)
    strength: float = 1.0
    flakes: float = 0.02
    outage: tuple[float, float] = (0.0, 0.0)
    fixed: int = 10_000
    tells_ends: bool = True
    policy: Policy = Policy.BAYES


class Loop:
    """Starts runs when commits land and when they are asked for; they end a run's length later."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.random = random.Random(world.seed)
        self.runs: dict[str, list[tuple[int, float, float, bool]]] = {f"s{k}": [] for k in range(len(world.culprits))}
        self.landed: list[float] = []
        self.reverted: set[str] = set()

    def land(self, now: float) -> None:
        place = len(self.landed)
        self.landed.append(now)
        if place % self.world.batch == 0:
            for key in self.runs:
                self.start(key, place, now)

    def start(self, key: str, place: int, now: float, length: float | None = None) -> None:
        world = self.world
        culprit = world.culprits[int(key[1:])]
        is_broken = culprit is not None and culprit <= place < world.fixed
        chance = max(world.flakes, world.strength if is_broken else 0.0)
        if world.outage[0] <= now < world.outage[1]:
            chance = 0.95
        length = self.random.uniform(0.7, 1.4) * world.run_h if length is None else length
        self.runs[key].append((place, now, now + length, self.random.random() < chance))

    def question(self, now: float) -> Question:
        first = max(0, len(self.landed) - 40)
        commits = tuple(
            Commit(sha=f"c{i}", time=self.landed[i] * HOUR) for i in range(len(self.landed) - 1, first - 1, -1)
        )
        signals = tuple(
            Signal(key=key, events=tuple(self.event(run, now) for run in runs)) for key, runs in self.runs.items()
        )
        return Question(now=now * HOUR, commits=commits, signals=signals)

    def event(self, run: tuple[int, float, float, bool], now: float) -> Event:
        place, start, end, failed = run
        if end > now:
            return Event(sha=f"c{place}", status=Status.PENDING, started_at=start * HOUR)
        status = Status.FAILURE if failed else Status.SUCCESS
        return Event(
            sha=f"c{place}",
            status=status,
            started_at=start * HOUR,
            ended_at=end * HOUR if self.world.tells_ends else None,
        )

    def decide(self, now: float) -> Answer:
        answer = decide(self.question(now), self.world.policy)
        told = Counter(
            key for one in answer.decisions for key in (one.signals if isinstance(one, Revert) else [one.signal])
        )
        assert told == Counter(self.runs.keys())
        return answer

    def obey(self, answer: Answer, now: float, length: float | None = None) -> int:
        count = 0
        for one in answer.decisions:
            if isinstance(one, Rerun):
                assert one.reruns
                for again in one.reruns:
                    assert again.count >= 1
                    count += again.count
                    for _ in range(again.count):
                        self.start(one.signal, int(again.sha[1:]), now, length)
            if isinstance(one, Revert):
                self.reverted.add(one.culprit)
        return count


def drive(world: World, hours: float = 14.0) -> Loop:
    """Let commits land and obey; after every answer the same question must not ask again for what was started."""
    loop, now, next_landing = Loop(world), 0.0, 0.0
    while now < hours:
        while next_landing <= now:
            loop.land(now)
            next_landing += loop.random.expovariate(world.commits_per_h)
        answer = loop.decide(now)
        asked = {(one.signal, again.sha) for one in answer.decisions if isinstance(one, Rerun) for again in one.reruns}
        loop.obey(answer, now)
        if asked:
            second = loop.decide(now)
            again = {
                (one.signal, each.sha) for one in second.decisions if isinstance(one, Rerun) for each in one.reruns
            }
            assert not asked & again
        now += TICK_H
    return loop


def settle(loop: Loop, now: float) -> Answer:
    """No more commits: everything that is asked for ends at once. It must come to an end, and wait for nothing."""
    for _ in range(80):
        now += 2.0
        answer = loop.decide(now)
        if not loop.obey(answer, now, length=0.5):
            return answer
    raise AssertionError("runs are asked for without end")


WORLDS = st.builds(
    World,
    seed=st.integers(0, 10_000),
    commits_per_h=st.sampled_from([0.5, 2.0, 5.0]),
    run_h=st.sampled_from([0.1, 1.5, 4.0]),
    batch=st.sampled_from([1, 1, 4]),
    culprits=st.lists(st.one_of(st.none(), st.integers(1, 25)), min_size=1, max_size=4).map(tuple),
    strength=st.sampled_from([1.0, 0.8, 0.5]),
    flakes=st.sampled_from([0.0, 0.02, 0.1, 0.3]),
    outage=st.sampled_from([(0.0, 0.0), (4.0, 6.0), (2.0, 9.0)]),
    fixed=st.sampled_from([10_000, 14, 20]),
    tells_ends=st.booleans(),
)


@given(WORLDS)
@settings(max_examples=15)
def test_nothing_is_asked_for_twice_and_nothing_waits_for_ever(world: World) -> None:
    loop = drive(world)
    last = settle(loop, 20.0)
    reverted = {one.culprit for one in last.decisions if isinstance(one, Revert)}
    waiting = [one for one in last.decisions if isinstance(one, Hold) and one.reason is Reason.WAITING]
    assert all(one.culprit in reverted for one in waiting), "only for a revert that is proposed"


@pytest.mark.parametrize("seed", range(4))
def test_several_signals_of_one_culprit_do_not_each_run_again(seed: int) -> None:
    alone = drive(World(seed=seed, culprits=(10,), flakes=0.0))
    many = drive(World(seed=seed, culprits=(10,) * 6, flakes=0.0))
    extra = [
        sum(len(runs) for runs in loop.runs.values()) - len(loop.landed) * len(loop.runs) for loop in (alone, many)
    ]
    assert many.reverted == {"c10"}
    assert extra[1] <= 3 * max(extra[0], 4)


@pytest.mark.parametrize("seed", range(3))
def test_a_break_beside_an_outage_is_found_when_the_outage_is_over(seed: int) -> None:
    loop = drive(World(seed=seed, culprits=(12,), flakes=0.0, outage=(5.0, 8.0)), hours=20.0)
    assert loop.reverted == {"c12"}


@pytest.mark.parametrize("seed", range(3))
def test_two_culprits_of_different_signals_are_both_found(seed: int) -> None:
    loop = drive(World(seed=seed, culprits=(10, 16), flakes=0.01), hours=18.0)
    assert loop.reverted == {"c10", "c16"}


def odd_question(seed: int) -> Question:
    """Times before all times, commits that nobody knows, priors and limits of nothing."""
    generator = random.Random(seed)
    size = generator.choice([0, 1, 2, 8, 30])
    signals = tuple(
        Signal(
            key=f"s{k}",
            events=tuple(
                Event(
                    sha=f"c{generator.randrange(size + 2)}",
                    status=generator.choice(list(Status)),
                    started_at=generator.choice([0.0, 1e9, 5.0, -1e5, generator.uniform(0, 1e5)]),
                    ended_at=generator.choice([None, 0.0, 2e5]),
                )
                for _ in range(generator.choice([0, 1, 3, 30, 120]))
            ),
            flake_prior=generator.choice([None, (0, 0), (5, 5), (1000, 1000), (0.5, 1e6)]),
            priors=generator.choice([{}, {"c1": 0.0}, {"c0": 1e9}]),
        )
        for k in range(generator.choice([1, 2, 9]))
    )
    limits = Limits(
        max_reruns_per_commit=generator.choice([0, 1, 12]),
        max_reruns_per_decision=generator.choice([0, 1, 8]),
        revert_probability=generator.choice([0.5, 0.999, 1.0]),
    )
    commits = tuple(Commit(sha=f"c{i}", time=float(i)) for i in range(size))
    return Question(now=generator.choice([0.0, 1e5, -5.0]), commits=commits, signals=signals, limits=limits)


@pytest.mark.parametrize("seed", range(60))
def test_odd_documents_have_one_decision_a_signal_within_limits(seed: int) -> None:
    question = odd_question(seed)
    answer = decide(question)
    told = [key for one in answer.decisions for key in (one.signals if isinstance(one, Revert) else [one.signal])]
    assert sorted(told) == sorted(signal.key for signal in question.signals)
    for one in answer.decisions:
        assert one.probability is None or 0 <= one.probability <= 1 + 1e-9
        if isinstance(one, Rerun):
            assert sum(again.count for again in one.reruns) <= question.limits.max_reruns_per_decision


@pytest.mark.parametrize(
    "world",
    [
        World(seed=0, flakes=0.1),
        World(seed=0, batch=6, commits_per_h=5.0, flakes=0.05),
        World(seed=0, run_h=0.1, commits_per_h=5.0, flakes=0.05),
        World(seed=0, tells_ends=False, strength=0.8),
        World(seed=0, culprits=(8, 14, None), flakes=0.05),
        World(seed=0, outage=(4.0, 6.0), culprits=(9,)),
        World(seed=0, outage=(4.0, 7.0), culprits=(None, None)),
        World(seed=0, fixed=14),
    ],
    ids=["flaky", "every sixth", "quick", "partial", "several", "outage over a break", "outage", "mended"],
)
@pytest.mark.parametrize("seed", range(4))
def test_nobody_else_is_reverted_in_worlds_of_another_make(world: World, seed: int) -> None:
    loop = drive(msgspec.structs.replace(world, seed=seed), hours=16.0)
    assert loop.reverted <= {f"c{culprit}" for culprit in world.culprits if culprit is not None}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 3, 1, 0)])
def test_of_signals_that_are_alike_the_same_one_runs_again_in_whatever_order_they_are_told(
    order: tuple[int, ...],
) -> None:
    events = tuple(
        Event(
            sha=f"c{i}",
            status=Status.FAILURE if i == 9 else Status.SUCCESS,
            started_at=i / 2 * HOUR,
            ended_at=(i / 2 + 1) * HOUR,
        )
        for i in range(10)
    )
    signals = tuple(Signal(key=f"s{k}", events=events) for k in order)
    commits = tuple(Commit(sha=f"c{i}", time=i / 2 * HOUR) for i in reversed(range(10)))
    answer = decide(Question(now=6 * HOUR, commits=commits, signals=signals))
    assert [one.signal for one in answer.decisions if isinstance(one, Rerun)] == ["s0"]
