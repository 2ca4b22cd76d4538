"""Changes that touch the same folders: where these foretell breakages, they say which jobs to run."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from made import HOUR

from sooner.analysis.selection.alike import Resemblance
from sooner.analysis.selection.backtest import Backtest, Plan
from sooner.analysis.selection.decide import choose, reasons
from sooner.analysis.selection.facts import State, record
from sooner.analysis.selection.hazard import SPANS, Counts
from sooner.analysis.selection.policy import Goal, Learner

ALIKE = [span.counts is Counts.ALIKE for span in SPANS]
COMMITS, JOBS = 500, 10


def history(seed=1, *, tells=True):
    """Ten folders, ten jobs; a change of a folder breaks its job, or any job. Facts, files, and what broke."""
    chance, attempts, files, broke = np.random.default_rng(seed), [], {}, {}
    for commit in range(COMMITS):
        folder = int(chance.integers(JOBS))
        files[commit] = (f"src/part{folder}/{chance.integers(9)}.py", "README")
        if chance.random() < 0.15:
            broke[commit] = folder if tells else int(chance.integers(JOBS))
        for job in range(JOBS):
            state = State.FAILED if broke.get(commit) == job else State.PASSED
            attempts += [(commit, job, state, commit * 8 * HOUR + again * HOUR, 20.0) for again in (0, 1)]
    return record([f"{i:040x}" for i in range(COMMITS)], [f"job{i}" for i in range(JOBS)], attempts), files, broke


def selections(facts, files, budget=0.2):
    done = Backtest.run(facts, Plan(goal=Goal(budget=budget), train=0.5), files=files)
    return {step.commit: step.selected for step in done.steps}


def caught(chosen, broke):
    return sum(broke[commit] in jobs for commit, jobs in chosen.items() if commit in broke)


def learned(facts, files):
    learner = Learner(facts, files=files)
    learner.warm_up(COMMITS)
    learner.learn(COMMITS)
    return learner


def test_a_change_resembles_those_of_its_folders_and_most_those_of_folders_that_few_touch():
    files = dict.fromkeys(range(8), ("src/a/x.py",)) | {8: ("src/b/y.py",), 9: ("src/a/z.py",), 10: ("src/b/z.py",)}
    found = Resemblance(files, 11)
    found.learn(9)
    common, rare = found.to(9), found.to(10)
    assert common[0] > 1 > common[8]
    assert rare[8] > common[0]
    assert rare[8] > 1 > rare[0]


def test_nothing_resembles_a_change_whose_files_are_not_known():
    found = Resemblance({0: ("src/a/x.py",), 1: ("src/b/x.py",)}, 4)
    found.learn(3)
    assert found.to(3).tolist() == [1.0] * 4  # no files
    assert found.to(4, ("new/place/x.py",)).tolist() == [1.0] * 4  # a folder that nobody knows
    assert found.to(4, ("src/a/y.py",))[:3].tolist() == found.to(0)[:3].tolist()
    assert found.to(0)[2] == 1.0


def test_a_change_resembles_the_commits_that_it_would_resemble_as_a_commit():
    files = {0: ("src/a/x.py",), 1: ("src/b/x.py",), 2: ("src/b/y.py", "new/c/x.py")}
    as_commit, as_change = Resemblance(files, 3), Resemblance({0: files[0], 1: files[1]}, 3)
    for one in (as_commit, as_change):
        one.learn(2)
    assert as_change.to(3, files[2]).tolist() == pytest.approx(as_commit.to(2).tolist())


@pytest.mark.parametrize("seed", [1, 2])
def test_where_folders_foretell_breakages_more_of_them_are_caught_for_the_same_cost(seed):
    facts, files, broke = history(seed)
    with_files, without = selections(facts, files), selections(facts, None)
    assert caught(with_files, broke) >= 1.5 * caught(without, broke)
    count = [sum(map(len, chosen.values())) for chosen in (with_files, without)]
    assert count[0] == pytest.approx(count[1], rel=0.05)


def test_files_that_foretell_nothing_change_no_decision():
    facts, files, _ = history(tells=False)
    learner = learned(facts, files)
    assert learner.mixture[ALIKE] == 0.0
    assert not learner.listens_to_files
    assert selections(facts, files) == selections(facts, None)


def test_files_of_later_commits_change_no_earlier_decision():
    facts, files, _ = history(3)
    cut = 400
    other = {commit: files[commit] if commit <= cut else (f"src/part{commit % 3}/q.py",) for commit in files}
    one, two = selections(facts, files), selections(facts, other)
    assert all(one[commit] == two[commit] for commit in range(COMMITS // 2, cut + 1))
    assert one != two


def test_a_change_is_told_which_jobs_changes_like_it_break():
    facts, files, _ = history(1)
    learner = learned(facts, files)
    for folder in (2, 7):
        view, ranking = learner.ranked(COMMITS, files=(f"src/part{folder}/new.py",))
        choice = choose(ranking, 0.2)
        assert folder in choice.selected
        assert "changes like this one break it" in reasons(view, ranking, choice)[folder]


def test_a_change_without_files_is_decided_as_if_none_were_known():
    facts, files, _ = history(1)
    view, ranking = learned(facts, files).ranked(COMMITS)
    assert view.lift.tolist() == [1.0] * JOBS
    assert "like this one" not in " ".join(reasons(view, ranking, choose(ranking, 0.5)).values())
