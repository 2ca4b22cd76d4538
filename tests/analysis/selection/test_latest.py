"""Of a long history, what is learned from."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from made import project

from sooner.analysis.selection.facts import State, latest, record
from sooner.analysis.selection.policy import Learner


def made(commits=100, *, seldom=()):
    """Job 0 runs on every commit, job 1 on some, twice on each."""
    attempts = [(commit, 0, State.PASSED, commit * 3600.0, 10.0) for commit in range(commits)]
    attempts += [(commit, 1, State.PASSED, commit * 3600.0 + again, 10.0) for commit in seldom for again in (1.0, 2.0)]
    return record([f"{i:040x}" for i in range(commits)], ["often", "seldom"], attempts)


def test_a_history_that_is_no_longer_than_asked_for_is_kept_as_it_is():
    facts = made(100)
    assert latest(facts, attempts=100, commits=10) is facts
    assert latest(facts, attempts=1, commits=100) is facts


def test_of_a_long_history_the_latest_commits_are_kept_and_all_keep_their_numbers():
    facts = made(400)
    kept = latest(facts, attempts=150, commits=10)
    assert kept.commits == facts.commits
    assert kept.commit.tolist() == list(range(250, 400))
    assert kept.decided.tolist() == facts.decided.tolist()


def test_so_many_commits_are_kept_however_many_attempts_they_have():
    assert latest(made(400), attempts=5, commits=60).commit.tolist() == list(range(340, 400))


def test_a_commit_is_kept_whole_or_not_at_all():
    kept = latest(made(400, seldom=range(390, 400)), attempts=31, commits=1)
    assert np.bincount(kept.commit, minlength=400)[[389, 390]].tolist() == [1, 3]
    assert kept.job[kept.commit < 389].tolist() == [0] * (50 - 11)  # what job 0 lacks of its 50


def test_a_job_that_runs_seldom_keeps_its_latest_attempts_however_old():
    facts = made(2000, seldom=range(0, 1500, 30))
    kept = latest(facts, attempts=200, commits=10)
    assert kept.commit[kept.job == 0].tolist() == list(range(1800, 2000))
    assert sorted(set(kept.commit[kept.job == 1].tolist())) == list(range(0, 1500, 30))[-25:]  # 50 attempts


def test_attempts_stay_in_the_order_in_which_they_were_known():
    kept = latest(made(2000, seldom=range(0, 1500, 30)), attempts=200, commits=10)
    assert (np.diff(kept.known) >= 0).all()


def test_a_job_that_runs_seldom_is_neither_new_nor_gone_after_it():
    facts = made(2000, seldom=range(0, 2000, 80))
    for known in (facts, latest(facts, attempts=100, commits=10)):
        learner = Learner(known)
        learner.learn(2000)
        view, ranking = learner.ranked(2000)
        assert view.alive.all()
        assert not ranking.first


def test_what_is_learned_from_the_latest_attempts_orders_the_jobs_nearly_as_everything_does():
    facts = project(3, commits=600).facts
    orders = []
    for known in (facts, latest(facts, attempts=len(facts.known) * 2 // 3, commits=10)):
        learner = Learner(known)
        learner.learn(600)
        orders.append(learner.ranked(600)[1].order)
    places = [np.argsort(order) for order in orders]
    assert np.corrcoef(*places)[0, 1] > 0.7
