"""Many signals weighed at once come to what each comes to by itself."""

import random

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import Commit, Event, Question, Rerun, Revert, Signal, Status
from sooner.analysis.trunk.posterior import BREAKS, Evidence, commit_steps, posterior, walk
from sooner.analysis.trunk.walks import WORTH_IT, posteriors, walks

COUNTS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=40)


def evidence(counts: list[tuple[int, int]], prior: tuple[float, float] | None = None) -> Evidence:
    failures, passes = (np.array(column, float) for column in zip(*counts, strict=True))
    runs = [(0.5 * i, 1.0, i) for i, n in enumerate(failures) for _ in range(int(n))]
    runs += [(0.5 * i + 0.1, 0.0, i) for i, n in enumerate(passes) for _ in range(int(n))]
    return Evidence(failures, passes, np.array(sorted(runs), float).reshape(-1, 3), prior, np.ones(len(counts)))


@given(st.lists(COUNTS, min_size=1, max_size=12))
@settings(max_examples=60)
def test_a_batch_of_walks_is_the_walks_one_by_one(many: list[list[tuple[int, int]]]) -> None:
    steps = [commit_steps(evidence(counts)) for counts in many]
    for one, found in zip(steps, walks(steps, BREAKS), strict=True):
        expected = walk(one, BREAKS)
        assert found.sound == pytest.approx(expected.sound, abs=1e-8)
        assert found.flake_rate == pytest.approx(expected.flake_rate, rel=1e-8)
        np.testing.assert_allclose(found.broken, expected.broken, atol=1e-8, rtol=1e-9)
        np.testing.assert_allclose(found.fixed, expected.fixed, atol=1e-8, rtol=1e-9)


@pytest.mark.parametrize(("failures", "passes"), [(90, 0), (0, 600), (90, 600), (300, 0), (300, 2000)])
def test_long_walks_are_as_good_as_short_ones(failures: int, passes: int) -> None:
    counts = [(0, 1)] * (passes // 2) + [(1, 0)] * failures + [(0, 1)] * (passes - passes // 2)
    known = [evidence(counts)] * WORTH_IT
    expected = posterior(known[0])
    found = posteriors(known)[0]
    np.testing.assert_allclose(found.broken, expected.broken, atol=1e-9)
    np.testing.assert_allclose(found.fixed, expected.fixed, atol=1e-9)


@given(st.lists(COUNTS, min_size=WORTH_IT, max_size=WORTH_IT + 4))
@settings(max_examples=30)
def test_posteriors_of_many_are_those_of_each(many: list[list[tuple[int, int]]]) -> None:
    known = [evidence(counts, prior=(1.0, 40.0)) for counts in many]
    for one, found in zip(known, posteriors(known), strict=True):
        expected = posterior(one)
        np.testing.assert_allclose(found.broken, expected.broken, atol=1e-9)
        np.testing.assert_allclose(found.fixed, expected.fixed, atol=1e-9)
        assert (found.none, found.burst_now, found.burst_over) == pytest.approx(
            (expected.none, expected.burst_now, expected.burst_over), abs=1e-9
        )


def test_a_commit_that_ran_a_hundred_times_is_weighed_by_itself() -> None:
    known = [evidence([(0, 3), (100, 0)]) for _ in range(WORTH_IT)]
    assert posteriors(known)[0].broken == pytest.approx(posterior(known[0]).broken)


@pytest.mark.parametrize("seed", range(4))
def test_decisions_about_many_signals_are_those_of_the_path_for_few(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = random.Random(seed)
    commits = tuple(Commit(sha=f"c{i}", time=1800.0 * i) for i in reversed(range(40)))
    signals = []
    for number in range(30):
        culprit = generator.randrange(20, 60)
        events = tuple(
            Event(
                sha=f"c{i}",
                status=Status.FAILURE if i >= culprit or generator.random() < 0.05 else Status.SUCCESS,
                started_at=1800.0 * i + 60 * generator.random(),
                ended_at=1800.0 * i + 900,
            )
            for i in range(38)
            for _ in range(generator.choice([1, 1, 1, 3]))
        )
        signals.append(Signal(key=f"s{number}", events=events))
    question = Question(now=1800.0 * 40, commits=commits, signals=tuple(signals))
    batched = decide(question)
    monkeypatch.setattr("sooner.analysis.trunk.walks.WORTH_IT", 10_000)
    alone = decide(question)
    plain = [[_rounded(one) for one in answer.decisions] for answer in (batched, alone)]
    assert plain[0] == plain[1]
    assert any(isinstance(one, Rerun | Revert) for one in batched.decisions)


def _rounded(decision: object) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(decision)
    probability = fields.get("probability")
    return {**fields, "probability": round(probability, 7) if isinstance(probability, float) else None}
