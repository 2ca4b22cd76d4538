"""What a change asks for."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("numpy")
pytest.importorskip("scipy")

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sooner.analysis.selection.calibrate import Past
from sooner.analysis.selection.change import Wish, answer, drift, unmet_floors, without_needs
from sooner.analysis.selection.cover import Constraints, Floor
from sooner.analysis.selection.decide import Ranking
from sooner.analysis.selection.facts import FLOOR_MIN, State, record
from sooner.analysis.selection.gate import gate
from sooner.analysis.selection.lift import Lift
from sooner.analysis.selection.request import (
    Asked,
    UnknownJobError,
    area_jobs,
    asked,
    drawn_part,
    in_sample,
    matching,
    only_documentation,
    path_pattern,
)
from sooner.analysis.selection.settings import JobSettings, constraints, idle, prices, terms

JOBS = ["build", "linux_cuda_test", "linux_rocm_test", "integration (ozone)", "docs [fast]"]


def test_ci_all_asks_for_everything_in_any_commit_of_the_change():
    assert asked("Fix it\n\nmore\n[CI ALL]\n", JOBS).everything


def test_a_glob_asks_for_all_jobs_that_it_fits():
    assert list(asked("x [ci linux_*_test]", JOBS).added) == ["linux_cuda_test", "linux_rocm_test"]


def test_a_glob_may_begin_with_a_bracket():
    assert list(asked("x [ci [b]uild] [ci skip [a-l]inux_*_test]", JOBS).added) == ["build"]
    assert list(asked("x [ci skip [a-l]inux_*_test]", JOBS).skipped) == ["linux_cuda_test", "linux_rocm_test"]
    with pytest.raises(UnknownJobError, match="no job"):
        asked("x [ci [all]]", JOBS)


TWICE = ["linux / build", "linux / test", "mac / build", "mac / test", "lint"]


def test_a_name_that_several_workflows_have_means_the_jobs_of_all():
    assert list(asked("x [ci build] [ci skip T*]", TWICE).added) == ["linux / build", "mac / build"]
    assert list(asked("x [ci skip t*t]", TWICE).skipped) == ["linux / test", "mac / test"]
    assert list(area_jobs(["a.py"], {"*.py": ["mac / build", "lint"]}, TWICE)) == ["mac / build", "lint"]
    with pytest.raises(UnknownJobError, match="did you mean 'build'"):
        asked("x [ci buidl]", TWICE)


def test_a_job_needs_that_of_its_own_workflow():
    rules = constraints(TWICE, JobSettings(needs={"test": ("build", "lint")}), frozenset())
    assert rules.needs == {1: (0, 4), 3: (2, 4)}
    assert constraints(TWICE, JobSettings(needs={"lint": ("build",)}), frozenset()).needs == {4: (0, 2)}


def test_prices_are_of_jobs_and_runners_by_name_or_glob_in_any_case_the_first_that_fits():
    runners = ["Linux.GPU", "mac", "mac", "mac", "mac"]
    facts = record(["c"], JOBS, [], runner=runners)
    table = {"linux.gpu": 9.0, "DOCS [fast]": 2.0, "*(Ozone)": 3.0, "l*": 4.0, "mac": 5.0, "x": 6.0}
    assert prices(facts, JobSettings(price=table)).tolist() == [9.0, 4.0, 4.0, 3.0, 2.0]
    assert idle(JOBS, JobSettings(price=table), runners) == ("price: 'x' fits no job and no runner",)


def test_jobs_that_take_no_time_cost_their_queue_and_no_more():
    attempts = [(0, job, State.PASSED, 0.0, minutes) for job, minutes in ((0, 0.0), (1, 0.1), (2, 10.0))]
    facts = replace(record(["c"], JOBS[:3], attempts), wait_min=np.full(3, 2.0))
    price = terms(facts, JobSettings(queue_weight=0.5)).prices(facts)
    cost = np.array([FLOOR_MIN, 0.1, 10.0]) * price
    assert cost.tolist() == pytest.approx([FLOOR_MIN + 1.0, 1.1, 11.0])


def test_a_name_with_brackets_is_a_name():
    assert list(asked("[ci docs [fast]] [ci integration (ozone)]", JOBS).added) == [
        "docs [fast]",
        "integration (ozone)",
    ]


def test_a_name_with_brackets_is_a_name_in_any_case_and_behind_its_workflow():
    assert list(asked("[ci DOCS [Fast]]", JOBS).added) == ["docs [fast]"]
    assert list(asked("[ci docs [fast]]", ["docs f", "Docs [FAST]"]).added) == ["Docs [FAST]"]
    both = ["linux / docs [fast]", "mac / docs [fast]", "docs f"]
    assert list(asked("[ci docs [fast]]", both).added) == both[:2]
    assert list(asked("[ci docs [a-f]]", both).added) == ["docs f"]
    with pytest.raises(UnknownJobError):
        matching("", both, "area")


def test_what_is_asked_for_is_not_skipped():
    found = asked("[ci skip linux_*] [ci linux_cuda_test]", JOBS)
    assert list(found.skipped) == ["linux_rocm_test"]
    assert list(asked("[ci\tskip\tbuild]", JOBS).skipped) == ["build"]


def test_a_message_that_is_nearly_a_directive_for_very_long_is_read_once():
    assert asked("[ci" + " \t" * 500_000, JOBS) == Asked()
    assert list(asked("[ci" + " \t" * 500_000 + "build ]", JOBS).added) == ["build"]


def test_ci_skip_alone_skips_nothing_and_is_mentioned():
    found = asked("typo [ci skip]", JOBS)
    assert (found.skipped, found.added, found.ignored) == ({}, {}, ("[ci skip]",))


@pytest.mark.parametrize("words", ["[ci docs [fast]", "[ci all", "[CI skip build [x", "[ci [all"])
def test_a_directive_that_is_not_closed_is_mentioned(words):
    found = asked(f"fix {words}\n\n[ci build]", JOBS)
    assert (list(found.added), found.everything, found.skipped, found.ignored) == (["build"], False, {}, (words,))


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
    assert bool(path_pattern(glob).fullmatch(path)) is fits


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


def test_what_is_drawn_for_the_budget_is_the_same_for_the_same_change_and_nothing_to_do_with_the_sample():
    parts = [drawn_part(f"{i:040x}") for i in range(2000)]
    assert parts == [drawn_part(f"{i:040x}") for i in range(2000)]
    assert all(0.0 < part <= 1.0 for part in parts)
    assert 0.48 < sum(parts) / 2000 < 0.52
    sampled = [part for i, part in enumerate(parts) if in_sample(f"{i:040x}", 0.3)]
    assert 0.45 < sum(sampled) / len(sampled) < 0.55


def test_a_name_wins_over_a_glob():
    assert matching("docs [fast]", JOBS, "x") == ["docs [fast]"]


def test_the_gate_passes_when_the_selected_jobs_passed_and_others_were_skipped():
    assert gate(["a"], {"a": "success", "b": "skipped"}).passed


@pytest.mark.parametrize("result", ["failure", "cancelled", "skipped", "timed_out", "neutral"])
def test_the_gate_stays_shut_when_a_selected_job_did_not_pass(result):
    assert gate(["a"], {"a": result}).problems == (f"a: selected, and {result}",)


@pytest.mark.parametrize("results", [{}, {"a": ""}])
def test_the_gate_stays_shut_without_a_result_of_a_selected_job(results):
    assert gate(["a"], results).problems == ("a: selected, but there is no result of it",)


def test_a_job_that_carries_the_matrix_answers_for_its_jobs():
    assert gate(["x", "y"], {"tests": "success"}, ["tests"]).passed
    assert not gate(["x", "y"], {"tests": "failure"}, ["tests"]).passed
    assert not gate(["x"], {}, ["tests"]).passed
    assert not gate(["x"], {"tests": "success", "x": "failure"}, ["tests"]).passed


def test_nothing_selected_passes():
    assert gate([], {"tests": "skipped"}, ["tests"]).passed


def test_a_failure_of_a_job_that_was_not_selected_is_a_failure():
    assert not gate(["a"], {"a": "success", "b": "failure"}).passed


# What is said about a job, in its order.

ALL = Wish(asked=Asked(everything=True))


def told(wish=Wish(asked=Asked()), *, level=0.0, rules=Constraints(), lifts=(), gone=()):  # noqa: B008 - facts are frozen
    """The answer about six jobs of ten minutes, in their order; those that are gone exist no more."""
    order = [job for job in range(6) if job not in gone]
    ranking = Ranking(
        order=order, share=np.array([2.0 if job in gone else job / 6 for job in range(6)]), width=np.full(6, 1 / 6),
        cost=np.full(6, 10.0),
        total=10.0 * len(order), score=np.full(6, 1 / 6), first={}, rules=rules,
    )  # fmt: skip
    view = SimpleNamespace(red_job=np.array([], int), red_commit=np.array([], int), commit=9, minutes=np.full(6, 10.0))
    past = Past(commit=np.array([], int), real=np.array([]), level=np.array([]), width=np.array([]))
    return answer(list("abcdef"), view, ranking, level=level, past=past, wish=wish, rules=rules, lifts=lifts)


def whys(lines):
    return {line.job: line.why for line in lines}


def test_the_rule_chooses_and_says_why_not_of_all_others():
    found = told(level=0.3)
    assert (set(whys(found.jobs)), set(whys(found.dropped))) == (set("ab"), set("cdef"))
    assert found.would_drop == tuple("cdef")


def test_areas_folders_that_predict_and_what_is_asked_for_add_jobs_with_what_these_need():
    lift = Lift(folder="src/gpu", job="c", lift=3.2, p=0.001, breakages=4)
    wish = Wish(asked=Asked(added={"e": "[ci e]"}), areas={"b": "area docs/**"}, files=("src/gpu/a.py",))
    found = told(wish, rules=Constraints(needs={1: (3,), 3: (5,)}), lifts=[lift])
    assert whys(found.jobs) == {
        "c": "changes in src/gpu/ break it 3.2 times as often (p = 0.001)", "b": "area docs/**", "e": "[ci e]",
        "d": "b needs it", "f": "d needs it",
    }  # fmt: skip
    assert found.would_drop == ("a", "e")


def test_what_a_job_needs_and_exists_no_more_is_not_selected():
    wish = Wish(asked=Asked(), areas={"b": "area docs/**"})
    assert set(whys(told(wish, rules=Constraints(needs={1: (3, 4)}), gone={3}).jobs)) == {"b", "e"}


def test_a_floor_holds_for_a_change_of_documentation_too():
    rules = Constraints(floors=(Floor(name="gpu", jobs=frozenset({2, 3, 5}), least=2),))
    found = told(Wish(asked=Asked(), quiet=frozenset({2, 3, 4, 5})), rules=rules)
    assert whys(found.jobs) == dict.fromkeys("cd", "floor: at least 2 of gpu")
    assert whys(found.dropped)["e"] == "the change touches only documentation, which has never broken it"


def test_everything_runs_where_it_is_asked_for_or_drawn_but_for_what_is_skipped():
    found = told(ALL)
    assert (found.run_all, found.sampled, whys(found.jobs)) == (True, False, dict.fromkeys("abcdef", "[ci all]"))
    drawn = told(Wish(asked=Asked(), sampled=True))
    assert (drawn.run_all, drawn.sampled, len(drawn.jobs)) == (True, True, 6)
    skipping = told(Wish(asked=Asked(everything=True, skipped={"c": "[ci skip c]"}), sampled=True))
    assert (skipping.run_all, skipping.sampled, whys(skipping.dropped)) == (False, False, {"c": "[ci skip c]"})
    assert "c" not in whys(skipping.jobs)


def test_what_is_skipped_is_dropped_with_the_words_that_ask_for_it():
    found = told(Wish(asked=Asked(skipped={"a": "[ci skip a]", "x": "[ci skip x]"})), level=0.3)
    assert whys(found.jobs).keys() == {"b"}
    assert whys(found.dropped)["a"] == "[ci skip a]"
    assert "x" not in whys(found.dropped)


def test_a_floor_whose_job_is_skipped_takes_another_one_with_what_it_needs_and_is_named_where_there_is_none():
    rules = Constraints(floors=(Floor(name="gpu", jobs=frozenset({2, 3, 5}), least=1),), needs={3: (0, 1)})
    wish = Wish(asked=Asked(skipped={"b": "[ci skip b]", "c": "[ci skip c]"}))
    found = told(wish, rules=rules)
    assert whys(found.jobs) == {"d": "floor: at least 1 of gpu", "a": "d needs it"}
    assert unmet_floors(found, wish, list("abcdef"), rules) == []
    wish = Wish(asked=Asked(skipped=dict.fromkeys("cdf", "[ci skip *]")))
    found = told(wish, rules=rules)
    assert whys(found.dropped)["d"] == "[ci skip *]"
    assert unmet_floors(found, wish, list("abcdef"), rules) == [("gpu", "[ci skip *]")]


def test_what_runs_without_a_job_that_it_needs_is_named_with_that_job():
    wish = Wish(asked=Asked(added={"b": "[ci b]"}, skipped={"a": "[ci skip a]"}))
    rules = Constraints(needs={1: (0, 3), 2: (0,)})
    found = told(wish, rules=rules)
    assert without_needs(found, wish, list("abcdef"), rules) == [("b", "a")]


@pytest.mark.parametrize(
    ("old", "late", "says"), [("." * 15, "xxx.x", True), ("x" * 15, "xxxxx", False), ("....", "xxxxx", False)]
)
def test_drift_is_said_where_the_latest_breakages_are_missed_more_often(old, late, says):
    levels = np.array([0.9 if letter == "x" else 0.1 for letter in old + late])
    count = len(levels)
    # Of a commit's jobs the first that sees it counts; doubtful ones do not.
    commit, real = np.tile(np.arange(count), 3), np.repeat([1.0, 1.0, 0.4], count)
    past = Past(
        commit=commit,
        real=real,
        level=np.concatenate([levels, levels + 1, levels * 0]),
        width=np.zeros(3 * count),
    )
    found = drift(past, 0.5)
    assert bool(found) is says
    if says:
        assert found.startswith("drift: of the last 6 breakages this level would have missed 4, of the 14 before 0")
