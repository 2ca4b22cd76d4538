"""How a suite without wider fixtures is cut into units once durations are known."""

import json

import pytest

from sooner.door.units import _pieces


def test_a_long_test_is_a_piece_of_its_own():
    seconds = {0: 0.1, 1: 0.1, 2: 5.0, 3: 0.1, 4: 0.1}
    assert list(_pieces(range(5), 10, seconds, 1.0)) == [(0, 1), (2,), (3, 4)]


def test_a_piece_has_no_more_items_and_time_than_its_share():
    seconds = dict.fromkeys(range(10), 0.25)
    assert list(_pieces(range(10), 3, seconds, 10.0)) == [(0, 1, 2), (3, 4, 5), (6, 7, 8), (9,)]
    assert list(_pieces(range(4), 10, seconds, 0.5)) == [(0, 1), (2, 3)]


def test_without_durations_pieces_have_equal_numbers_of_items():
    assert list(_pieces(range(5), 2, {}, 0.0)) == [(0, 1), (2, 3), (4,)]


def test_a_test_of_unknown_duration_adds_nothing():
    assert list(_pieces(range(3), 10, {0: 1.0}, 1.0)) == [(0, 1, 2)]


CUTS = """
import json
from sooner.door.units import units_of
def pytest_collection_finish(session):
    units = units_of(session.items, how="auto", isolation="auto", reuse=True, devices=2)
    with open("cuts.json", "w") as file: json.dump([len(unit.items) for unit in units], file)
"""


@pytest.mark.parametrize(
    ("mark", "cuts"), [("dependency", [81]), ("incremental", [80, 1]), ("unknown", [2] * 40 + [1])]
)
def test_tests_that_depend_on_others_are_one_piece_with_them(suite, mark, cuts):
    text = f"""
import pytest
class TestSteps:
    @pytest.mark.{mark}
    @pytest.mark.parametrize("i", range(80))
    def test_step(self, i): pass
def test_other(): pass
"""
    suite.write(conftest=CUTS, test_steps=text)
    suite.pytest("--collect-only")
    assert json.loads((suite.folder / "cuts.json").read_text()) == cuts
