"""Who fails with whom: counts, phi, the way of 2019."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")
sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from document_2019 import (
    COMBINED,
    COMBINED_CLUSTERS,
    RECOMMENDED,
    TEST_CLUSTERS,
    TESTS,
    blocks,
    history,
)
from made import HOUR, project
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist

from sooner.analysis.selection.clusters import correlation_2019, group_2019, matrix_2019
from sooner.analysis.selection.correlation import jaccard, pairs, phi, stands, tables
from sooner.analysis.selection.facts import State, record
from sooner.analysis.selection.lift import discoveries, folders, lifts
from sooner.analysis.selection.load import folded
from sooner.analysis.selection.related import by_2019, by_phi
from sooner.analysis.selection.settings import JobSettings


def random_matrices(seed, present, red):
    chance = np.random.default_rng(seed)
    ran = (chance.random((300, 12)) < present).astype(np.float32)
    return ran, (ran * (chance.random((300, 12)) < red)).astype(np.float32)


def pearson(ran, red, a, b):
    both = (ran[:, a] > 0) & (ran[:, b] > 0)
    x, y = red[both, a], red[both, b]
    return np.corrcoef(x, y)[0, 1] if len(set(x)) > 1 and len(set(y)) > 1 else np.nan


@pytest.mark.parametrize(("present", "red"), [(0.6, 0.2), (1.0, 0.1), (0.995, 0.01), (0.05, 0.5), (0.7, 0.01)])
def test_phi_is_pearsons_correlation_over_the_commits_that_both_have(present, red):
    ran, failed = random_matrices(1, present, red)
    counts = tables(ran, failed)
    found = phi(counts)
    for a in range(12):
        for b in range(12):
            assert found[a, b] == pytest.approx(pearson(ran, failed, a, b), abs=1e-5, nan_ok=True)
    assert counts.both_ran[3, 4] == ((ran[:, 3] > 0) & (ran[:, 4] > 0)).sum()


def test_jaccard_is_common_red_over_any_red():
    ran = np.ones((4, 2), np.float32)
    red = np.array([[1, 1], [1, 0], [0, 1], [0, 0]], np.float32)
    assert jaccard(tables(ran, red))[0, 1] == pytest.approx(1 / 3)


def test_jobs_that_never_ran_together_are_unknown_not_alike():
    ran = np.array([[1, 0]] * 5 + [[0, 1]] * 5, np.float32)
    assert np.isnan(phi(tables(ran, ran * 0))[0, 1])
    assert pairs(tables(ran, ran)) == []


def test_one_shared_outage_makes_no_pair():
    ran, red = np.ones((500, 3), np.float32), np.zeros((500, 3), np.float32)
    red[7] = 1
    assert pairs(tables(ran, red)) == []


def test_independent_flakes_make_hardly_any_pair():
    chance = np.random.default_rng(1)
    ran = np.ones((2000, 40), np.float32)
    red = (chance.random((2000, 40)) < 0.05).astype(np.float32)
    assert len(pairs(tables(ran, red))) <= 2


def test_independent_jobs_that_are_seldom_red_make_hardly_any_pair():
    chance = np.random.default_rng(1)
    ran = np.ones((1000, 200), np.float32)
    red = (chance.random((1000, 200)) < 0.01).astype(np.float32)
    assert len(pairs(tables(ran, red))) <= 2
    red[::50, :2] = 1
    assert (pairs(tables(ran, red))[0].a, pairs(tables(ran, red))[0].b) == (0, 1)


def test_a_stand_in_is_believed_as_far_as_there_are_breakages():
    broken = np.array([[True, True]] * 40 + [[False, True]] * 2)
    ran = np.ones_like(broken)
    (one, *_) = [s for s in stands(broken, ran, np.zeros(2, np.int64)) if s.stands == 0]
    assert (one.dropped, one.breakages, one.missed) == (1, 42, 2)
    assert one.low < 2 / 42 < one.high
    few = stands(broken[-4:], ran[-4:], np.zeros(2, np.int64))[0]
    assert few.high - few.low > 0.5


def test_discoveries_are_those_of_benjamini_and_hochberg():
    p = np.array([0.01, 0.02, 0.03, 0.04, 0.9])
    assert discoveries(p, 0.05).tolist() == [True, True, True, True, False]
    assert not discoveries(np.array([0.5, 0.06])).any()
    assert discoveries(p, 0.05, tried=10).tolist() == [False] * 5
    assert discoveries(np.array([0.004, 0.01, 0.2]), 0.05, tried=10).tolist() == [True, True, False]
    assert discoveries(np.array([])).tolist() == []


def test_the_way_of_2019_is_that_of_its_script():
    facts = history(COMBINED, COMBINED_CLUSTERS, commits=400)
    table, columns = matrix_2019(facts, COMBINED)
    wanted = np.corrcoef(table.T)
    found = correlation_2019(table)
    np.testing.assert_allclose(found, wanted, atol=1e-10)
    distance = pdist(wanted)
    idx = fcluster(linkage(distance, method="complete"), 0.1 * distance.max(), "distance")
    grouping = group_2019(found)
    assert list(grouping.cluster) == idx.tolist()
    assert list(grouping.order) == np.argsort(idx).tolist()
    assert columns == sorted(COMBINED)


@pytest.mark.parametrize(
    ("labels", "clusters"), [(COMBINED, COMBINED_CLUSTERS), (TESTS, TEST_CLUSTERS)], ids=["combined", "tests"]
)
@pytest.mark.parametrize("method", ["2019", "phi"])
def test_a_history_with_the_documents_structure_gives_the_documents_clusters(labels, clusters, method):
    facts = history(labels, clusters)
    # Nothing is folded: of the second chart each label is a job of its own.
    found = by_2019(facts, ()) if method == "2019" else by_phi(facts, JobSettings(), cut=0.5)
    wanted = {frozenset(labels[job] for job in block) for block in blocks(clusters, len(labels))}
    assert {frozenset(some) for some in found.clusters} == wanted


def test_the_recommended_jobs_are_one_of_each_cluster_and_the_ones_alone():
    covered = {
        name for name, (first, last) in COMBINED_CLUSTERS.items() if set(COMBINED[first : last + 1]) & set(RECOMMENDED)
    }
    assert set(RECOMMENDED) <= set(COMBINED)
    assert covered == set(COMBINED_CLUSTERS)


def test_constant_and_never_common_columns_do_not_stop_it():
    attempts = [(c, j, State.PASSED, c * HOUR, 5.0) for c in range(10) for j in (0, 1) if (c + j) % 2 or c == 9]
    facts = record([str(c) for c in range(10)], ["x", "y"], attempts)
    assert by_2019(facts, ()).matrix == ((1.0, 0.0), (0.0, 1.0))


def test_suffixes_are_stripped_one_after_the_other():
    assert folded("pytorch_linux_py3_multigpu_test") == "pytorch_linux_py3"
    assert folded("caffe2_py2_build") == "caffe2_py2"
    assert folded("test / linux (3, 5)", (r"/ \(\d+, \d+\)$/",)) == "test / linux"


def test_builds_and_tests_have_matrices_of_their_own():
    facts = record(
        ["a", "b"], ["x_build", "x_test"], [(c, j, State.PASSED, c * HOUR, 5.0) for c in (0, 1) for j in (0, 1)]
    )
    assert by_phi(facts, JobSettings(), "build", cut=0.5).jobs == ("x_build",)
    assert by_phi(facts, JobSettings(), "test", cut=0.5).jobs == ("x_test",)


def lifted(files, real, ran=None):
    """The lifts of jobs by name; they ran on all commits, or on these."""
    jobs = list(real)
    cells = [(c, j) for j, job in enumerate(jobs) for c in sorted(files if ran is None else ran[job])]
    commit, job = np.array(cells).T
    return lifts(files, jobs, commit, job, np.array([c in real[jobs[j]] for c, j in cells]))


def test_a_folder_that_breaks_a_job_is_found_and_chance_is_not():
    files = {c: ("dtensor/ops/a.py",) if c % 10 == 0 else ("core/b.py",) for c in range(300)}
    real = {"dtensor": frozenset(range(0, 300, 20)), "core": frozenset(range(0, 300, 37))}
    found = lifted(files, real)
    assert {(one.folder, one.job) for one in found} == {("dtensor", "dtensor"), ("dtensor/ops", "dtensor")}
    assert found[0].lift > 5
    assert folders("a/b/c/d.py") == ["a", "a/b", "a/b/c"]
    assert lifted({0: ("a.py",)}, {"x": frozenset({0})}) == lifted({0: ()}, {"x": frozenset()}) == []


def test_a_folder_without_which_a_job_does_not_run_does_not_predict_it():
    files = {c: ("docs/a.md",) if c % 5 == 0 else ("core/b.py",) for c in range(300)}
    real = {"docs": frozenset(range(0, 300, 25)), "core": frozenset(range(0, 300, 37))}
    ran = {"docs": frozenset(range(0, 300, 5)), "core": frozenset(range(300))}
    assert [one.job for one in lifted(files, real)] == ["docs"]
    assert lifted(files, real, ran) == []


def test_folders_that_have_nothing_to_do_with_jobs_predict_hardly_any():
    chance = np.random.default_rng(1)
    files = {c: [f"part{i}/a.py" for i in chance.choice(100, 5, replace=False)] for c in range(500)}
    real = {f"job{i}": frozenset(chance.choice(500, 12, replace=False).tolist()) for i in range(60)}
    assert len(lifted(files, real)) <= 2


def test_states_other_than_pass_and_fail_are_counted_apart():
    facts = record(
        ["a", "b", "c", "d"],
        ["x"],
        [(i, 0, s, i * HOUR, 5.0) for i, s in enumerate((State.PASSED, State.SKIPPED, State.BLOCKED, State.CANCELLED))],
    )
    (figures,) = by_phi(facts, JobSettings(), cut=0.5).figures
    assert figures.states == {"passed": 1, "skipped": 1, "blocked": 1, "cancelled": 1}
    assert (figures.cells, figures.red) == (1, 0)


def test_a_real_history_gives_figures_for_each_job():
    found = by_phi(project(seed=2, jobs=9, commits=300).facts, JobSettings(), cut=0.5)
    assert len(found.figures) == len(found.jobs) == len(found.matrix) == 9
    assert len(found.tree) == 8


def test_chance_is_the_hypergeometric_tail():
    from scipy.stats import hypergeom

    from sooner.analysis.selection.correlation import _upper_tail

    chance = np.random.default_rng(2)
    n = chance.integers(20, 400, 200)
    x, y = (chance.integers(1, n // 2) for _ in range(2))
    both = np.minimum(chance.integers(1, 8, 200), np.minimum(x, y))
    wanted = hypergeom.sf(both - 1, n, x, y)
    found = _upper_tail(*(values.astype(float) for values in (both, n, x, y)))
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-12)
