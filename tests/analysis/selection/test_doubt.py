"""What red is worth that nobody ran again."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from made import HOUR

from sooner.analysis.selection.doubt import doubted
from sooner.analysis.selection.facts import State, cells, record
from sooner.analysis.selection.flakes import judge

ALONE = 4
"""A job that is red on every 20th commit, by itself, for one commit."""


def judged(lasting=1, *, repeats=0):
    """Five jobs, of which four break together on every 20th commit, for so many commits; began before and after.

    Of the reds of the job that is red alone, so many were run again, and passed.
    """
    attempts, left = [], repeats
    for commit in range(400):
        for job in range(5):
            red = commit % 20 == 13 if job == ALONE else commit % 20 < lasting
            attempts.append((commit, job, State.FAILED if red else State.PASSED, commit * 8 * HOUR, 10.0))
            if red and job == ALONE and left:
                left -= 1
                attempts.append((commit, job, State.PASSED, commit * 8 * HOUR + HOUR, 10.0))
    known = cells(record([f"{i:040x}" for i in range(400)], [f"job{i}" for i in range(5)], attempts))
    found = judge(known, 5)
    alone = (known.job == ALONE) & (known.passes == 0)
    return found.began[alone], doubted(known, found, 5)[alone]


def test_a_job_that_is_red_alone_is_believed_where_breakages_do_not_last_either_and_nothing_is_repeated():
    before, after = judged()
    assert before.max() < 0.3
    assert after.min() > 0.3


def test_a_job_whose_repeats_pass_is_not_believed():
    before, after = judged(repeats=5)
    assert np.array_equal(before, after)


def test_red_that_is_over_at_once_is_not_believed_where_breakages_last():
    before, after = judged(lasting=6)
    assert np.array_equal(before, after)


def test_without_red_there_is_no_doubt():
    attempts = [(commit, 0, State.PASSED, commit * HOUR, 10.0) for commit in range(20)]
    known = cells(record([str(i) for i in range(20)], ["a"], attempts))
    assert not doubted(known, judge(known, 1), 1).any()


def test_a_job_that_is_red_for_good_breaks_no_sum():
    attempts = [(c, j, State.FAILED if j else State.PASSED, c * HOUR, 10.0) for c in range(3000) for j in range(2)]
    known = cells(record([f"{i:040x}" for i in range(3000)], ["a", "b"], attempts))
    assert np.isfinite(doubted(known, judge(known, 2), 2)).all()


def test_red_that_lasted_once_does_not_speak_for_the_flakes_of_its_job():
    word = {"f": [State.FAILED], "p": [State.PASSED], "r": [State.FAILED, State.PASSED], "d": [State.FAILED] * 2}
    flaky = "pprppprpfppprpppfppp" * 10
    series = [flaky[:100] + "f" + "d" * 19 + flaky[120:], "p" * 200]
    attempts = [
        (commit, job, state, commit * 8 * HOUR + at, 10.0)
        for job, letters in enumerate(series)
        for commit, letter in enumerate(letters)
        for at, state in enumerate(word[letter])
    ]
    known = cells(record([f"{i:040x}" for i in range(200)], ["flaky", "well"], attempts))
    found = judge(known, 2)
    single = (known.passes == 0) & ((known.commit < 100) | (known.commit >= 120))
    assert single.sum() > 8
    assert np.array_equal(doubted(known, found, 2)[single], found.began[single])
