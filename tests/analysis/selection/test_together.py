"""Which jobs see each other's breakages."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from made import HOUR

from sooner.analysis.selection.facts import State, cells, record
from sooner.analysis.selection.flakes import judge
from sooner.analysis.selection.together import together, word_groups

JOBS = ["linux cuda / ops", "linux cuda / nn", "linux cpu / ops", "linux cpu / nn", "docs"]


def learned(broken):
    """What is known after 200 commits, of which these broke these jobs; every job runs three times."""
    attempts = [
        (c, j, State.FAILED if j in broken.get(c, ()) else State.PASSED, c * 8 * HOUR + i * HOUR, 10.0)
        for c in range(200)
        for j in range(len(JOBS))
        for i in range(3)
    ]
    known = cells(record([str(c) for c in range(200)], JOBS, attempts))
    return together(known, judge(known, len(JOBS)).began, len(JOBS), word_groups(JOBS))


def test_jobs_that_broke_together_see_each_other_and_others_hardly():
    found = learned(dict.fromkeys(range(10, 100, 10), (0, 2)))
    assert found.sees[0, 2] > 0.8
    assert found.sees[0, 4] < 0.1
    assert found.alone < 0.1


def test_a_job_that_breaks_by_itself_is_covered_by_nobody():
    found = learned(dict.fromkeys(range(10, 100, 10), (4,)))
    assert found.alone > 0.8
    assert found.sees[4].max() < 0.3


def test_what_a_word_of_the_name_tells_holds_for_jobs_that_never_broke():
    found = learned(dict.fromkeys(range(10, 60, 10), (0, 1)) | {5: (2,)})
    cuda = found.sees[0, 1]
    assert cuda > found.sees[2, 3]
    assert (1 - found.alone) * found.sees[3, 4] < 0.2


def test_no_job_sees_itself_and_shares_are_shares():
    found = learned({10: (0, 1, 2), 20: (3,), 30: (0, 4)})
    assert np.all(np.diag(found.sees) == 0)
    assert np.all((found.sees >= 0) & (found.sees < 1))
    assert 0 <= found.alone <= 1


def test_without_breakages_nothing_is_claimed():
    assert learned({}).sees.max() < 0.1


def test_words_group_jobs_and_the_same_jobs_only_once():
    groups = {tuple(group.tolist()) for group in word_groups(JOBS)}
    assert groups == {(0, 1, 2, 3), (0, 1), (2, 3), (0, 2), (1, 3)}
