"""Needs against labels: every idiom and trap of the fixture projects."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from labelled_projects import inferred, labels, names, said


@pytest.mark.parametrize("name", names())
def test_every_label_of_a_project_is_met(name):
    found, wanted = inferred(name), labels(name)
    assert set(wanted) <= set(found)
    wrong = {nodeid: said(found[nodeid]) for nodeid, label in wanted.items() if said(found[nodeid]) != label}
    assert wrong == {}


def test_there_are_enough_labels():
    assert sum(len(labels(name)) for name in names()) >= 150


def test_a_pass_without_workers_is_said_to_be_one():
    needs = inferred("needs_pytorch")["test/distributed/test_guards.py::AllDevices::test_nobody_comes"]
    assert needs.vacuous == [0]
    assert needs.adaptive
    assert needs.ranks == {"0": 0, "1": 1, "2": 2, "3": 3, "4": 4, "8": 8}


def test_ranks_are_not_devices():
    needs = inferred("needs_pytorch")
    two = needs["test/distributed/test_guards.py::GlooRing::test_two_devices_are_enough_for_four_ranks"]
    assert (two.min, two.ranks["2"], two.backend) == (2, 4, ["gloo"])


def test_touched_and_visible_are_told_apart():
    needs = inferred("needs_traps")["tests/test_traps.py::test_touches_two_needs_four"]
    assert (needs.min, needs.devices["4"]) == (4, 2)


def test_a_limit_from_above_is_kept():
    needs = inferred("needs_traps")
    assert needs["tests/test_traps.py::test_one_only"].max == 1
    assert needs["tests/test_traps.py::test_host_only"].max == 0
    assert needs["tests/test_traps.py::test_decorator_of_the_project"].max is None


def test_evidence_is_the_line_that_decides():
    needs = inferred("needs_traps")["tests/test_traps.py::test_hook_of_conftest"]
    assert any(each.path == "tests/conftest.py" and "pytest.skip" in each.text for each in needs.evidence)
