"""What is real: repeats and neighbours tell."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from made import project, series

from sooner.analysis.selection.facts import State, cells, record
from sooner.analysis.selection.flakes import judge
from sooner.analysis.selection.truth import lasting
from sooner.analysis.selection.validate import held_out_repeats, on_commits


def judged(text):
    known = cells(series(text))
    return known, judge(known, 1)


GREEN = " p" * 200


def test_a_failure_that_passes_when_repeated_is_a_flake():
    known, found = judged("p p fp p" + GREEN)
    assert found.broken[known.commit == 2] == 0.0


def test_a_failure_that_stays_red_when_repeated_is_real_in_a_job_that_hardly_flakes():
    known, found = judged("p p fff p" + GREEN)
    assert found.began[known.commit == 2] > 0.9


def test_a_single_failure_between_passes_of_a_flaky_job_is_hardly_believed():
    known, found = judged(" ".join(["p p p p fp p p p p fp"] * 20) + " p p f p p")
    assert found.broken[-3] < 0.3
    assert known.failures[-3] == 1


def test_two_reds_in_a_row_amid_a_spell_of_flakes_are_believed_less_than_amid_passes():
    calm, spell = "pp " * 100, "p fp p pffp p p fp p ffp p " * 2
    known, quiet = judged(calm + "f f " + calm + spell)
    before = len(calm.split())
    alone = quiet.broken[known.commit == before]
    known, noisy = judged(calm + spell + "f f " + spell + calm)
    assert noisy.broken[known.commit == before + len(spell.split())] < alone / 2


def test_red_beside_many_flakes_of_its_commit_is_believed_less():
    def believed(others):
        words = [["p"] * 200 for _ in range(12)]
        for job in range(12):
            words[job][15 * job + 5] = "fp"
        words[0][100:102] = ["f", "f"]
        for job in range(1, 12):
            words[job][100] = others
        attempts = [
            (commit, job, State.FAILED if letter == "f" else State.PASSED, 28_800.0 * commit + 600.0 * i, 5.0)
            for job, some in enumerate(words)
            for commit, word in enumerate(some)
            for i, letter in enumerate(word)
        ]
        known = cells(record([f"{i:040x}" for i in range(200)], [f"job{i}" for i in range(12)], attempts))
        return float(judge(known, 12).began[(known.commit == 100) & (known.job == 0)][0])

    assert believed("fp") < believed("p") / 2


def test_breakages_that_follow_each_other_soon_are_no_spell_of_flakes():
    known, found = judged("ppp " * 50 + "fff ppp ppp ppp ppp " * 6 + "ppp " * 50)
    assert np.all(found.began[known.failures == 3] > 0.9)


def test_inherited_red_is_broken_but_did_not_begin_there():
    known, found = judged("p p ff ff ff p" + GREEN)
    at = {commit: i for i, commit in enumerate(known.commit.tolist())}
    assert found.began[at[2]] > 0.9
    assert found.broken[at[3]] > 0.9
    assert found.began[at[3]] < 0.05
    assert found.began[at[4]] < 0.05


def test_skips_and_cancellations_are_no_cells():
    known, _ = judged("p s c cs p")
    assert known.commit.tolist() == [0, 4]


def test_probabilities_stay_probabilities_whatever_comes():
    chance = np.random.default_rng(3)
    for _ in range(20):
        words = ["".join(chance.choice(list("pfsc"), size=chance.integers(1, 4))) for _ in range(60)]
        _, found = judged(" ".join(words))
        for values in (found.broken, found.began):
            assert np.all((values >= -1e-12) & (values <= 1 + 1e-9))
        assert np.all(found.began <= found.broken + 1e-9)


def test_most_breakages_are_found_and_few_flakes_are_taken_for_one():
    made = project(seed=5, jobs=20, commits=1000, rate=0.05, flake=0.01, repeats=1.0)
    known = cells(made.facts)
    found = judge(known, 20)
    said = {(c, j) for c, j, p in zip(known.commit, known.job, found.began, strict=True) if p >= 0.5}
    true = {(c, j) for c, jobs in made.broke.items() for j in jobs}
    assert len(said & true) / len(true) > 0.7
    assert len(said - true) / len(said) < 0.15


def test_a_job_that_fails_by_chance_most_of_the_time_is_not_said_to_break_all_the_time():
    flake = np.array([0.6] + [0.01] * 19)
    made = project(seed=5, jobs=20, commits=1000, rate=0.05, flake=flake, repeats=0.3)
    known = cells(made.facts)
    found = judge(known, 20)
    true = sum(0 in jobs for jobs in made.broke.values())
    assert found.began[known.job == 0].sum() < 2 * true


def test_held_out_repeats_agree():
    made = project(seed=8, jobs=20, commits=1200, rate=0.04, flake=0.02, repeats=0.7)
    result = held_out_repeats(made.facts)
    assert result.cells > 100
    assert result.agreement >= 0.9
    assert result.all_agreement >= 0.95
    assert result.verdict_agreement >= 0.95


def test_commits_that_cannot_break_anything_come_out_flat():
    made = project(seed=2, jobs=10, commits=800, rate=0.05)
    quiet = [commit for commit in range(800) if commit not in made.broke and commit % 3 == 0]
    control = on_commits(made.facts, quiet)
    assert control.rate < 0.3 * control.others


def test_nothing_at_all_is_judged_without_an_error():
    known = cells(series("s c s"))
    found = judge(known, 1)
    assert not len(found.broken)


def test_red_lasts_where_no_repeat_passed_or_the_next_commit_is_red_too_and_is_new_there():
    known = cells(series("p ff p f f f p f p fp ff s f p f"))
    assert known.commit[lasting(known)].tolist() == [1, 3, 10]
