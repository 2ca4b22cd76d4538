"""What a change asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.analysis.selection.gate import gate
from sooner.analysis.selection.request import (
    UnknownJobError,
    area_jobs,
    asked,
    in_sample,
    matching,
    only_documentation,
    path_matches,
)

JOBS = ["build", "linux_cuda_test", "linux_rocm_test", "integration (ozone)", "docs [fast]"]


def test_ci_all_asks_for_everything_in_any_commit_of_the_change():
    assert asked("Fix it\n\nmore\n[CI ALL]\n", JOBS).everything


def test_a_glob_asks_for_all_jobs_that_it_fits():
    assert list(asked("x [ci linux_*_test]", JOBS).added) == ["linux_cuda_test", "linux_rocm_test"]


def test_a_name_with_brackets_is_a_name():
    assert list(asked("[ci docs [fast]] [ci integration (ozone)]", JOBS).added) == [
        "docs [fast]",
        "integration (ozone)",
    ]


def test_what_is_asked_for_is_not_skipped():
    found = asked("[ci skip linux_*] [ci linux_cuda_test]", JOBS)
    assert list(found.skipped) == ["linux_rocm_test"]
    assert list(asked("[ci\tskip\tbuild]", JOBS).skipped) == ["build"]


def test_ci_skip_alone_skips_nothing_and_is_mentioned():
    found = asked("typo [ci skip]", JOBS)
    assert (found.skipped, found.added, found.ignored) == ({}, {}, ("[ci skip]",))


def test_an_unknown_name_is_an_error_that_names_the_nearest():
    with pytest.raises(UnknownJobError, match="did you mean 'linux_cuda_test'") as caught:
        asked("[ci linux_cuda_tset]", JOBS)
    assert caught.value.exit_code == 4


def test_other_brackets_are_not_for_us():
    assert asked("[cid all] [ ci all ] ci all (ci build) [skip ci]", JOBS).added == {}


@given(st.text())
def test_no_message_makes_it_crash_or_ask_for_something_unknown(text):
    try:
        found = asked(text, JOBS)
    except UnknownJobError:
        return
    assert set(found.added) | set(found.skipped) <= set(JOBS)


@pytest.mark.parametrize(
    ("path", "glob", "fits"),
    [
        ("src/a/b.py", "src/**", True),
        ("src/b.py", "src/**/b.py", True),
        ("src/a/c/b.py", "src/**/b.py", True),
        ("src/a/b.py", "src/*.py", False),
        ("a.md", "*.md", True),
        ("x/a.md", "*.md", False),
        ("x/a.md", "**/*.md", True),
        ("src/(a)+.py", "src/(a)+.py", True),
    ],
)
def test_paths_fit_globs(path, glob, fits):
    assert path_matches(path, glob) is fits


def test_an_area_brings_its_jobs():
    areas = {"torch/distributed/tensor/**": ["*cuda*"], "docs/**": ["docs [fast]"]}
    assert area_jobs(["setup.py", "torch/distributed/tensor/_op.py"], areas, JOBS) == {
        "linux_cuda_test": "area torch/distributed/tensor/**"
    }


def test_documentation_is_only_documentation_if_every_file_is():
    assert only_documentation(["docs/a.rst", "README.md"])
    assert not only_documentation(["docs/a.rst", "setup.py"])
    assert not only_documentation([])


def test_the_sample_is_the_same_for_the_same_change_and_of_its_size():
    drawn = [in_sample(f"{i:040x}", 0.03) for i in range(20_000)]
    assert drawn == [in_sample(f"{i:040x}", 0.03) for i in range(20_000)]
    assert 0.025 < sum(drawn) / len(drawn) < 0.035
    assert not in_sample("x", 0.0)
    assert in_sample("x", 1.0)


def test_a_name_wins_over_a_glob():
    assert matching("docs [fast]", JOBS, "x") == ["docs [fast]"]


def test_the_gate_passes_when_the_selected_jobs_passed_and_others_were_skipped():
    assert gate(["a"], {"a": "success", "b": "skipped"}).passed


@pytest.mark.parametrize("result", ["failure", "cancelled", "skipped", "timed_out"])
def test_the_gate_stays_shut_when_a_selected_job_did_not_pass(result):
    assert gate(["a"], {"a": result}).problems == (f"a: selected, and {result}",)


def test_the_gate_stays_shut_without_a_result_of_a_selected_job():
    assert not gate(["a"], {}).passed


def test_a_job_that_carries_the_matrix_answers_for_its_jobs():
    assert gate(["x", "y"], {"tests": "success"}, ["tests"]).passed
    assert not gate(["x", "y"], {"tests": "failure"}, ["tests"]).passed
    assert not gate(["x"], {}, ["tests"]).passed
    assert not gate(["x"], {"tests": "success", "x": "failure"}, ["tests"]).passed


def test_nothing_selected_passes():
    assert gate([], {"tests": "skipped"}, ["tests"]).passed


def test_a_failure_of_a_job_that_was_not_selected_is_a_failure():
    assert not gate(["a"], {"a": "success", "b": "failure"}).passed
