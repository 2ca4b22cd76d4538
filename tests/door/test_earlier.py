"""Which earlier tests a failure may need, on items made by hand."""

from types import SimpleNamespace

from sooner.door.earlier import Earlier
from sooner.door.units import DoorUnit, Level
from sooner.model.units import UnitKey


def earlier(parents, *, seconds=None, widths=None):
    """Items of these parents, each a unit of its own."""
    nodes = {name: object() for name in parents}
    items = [SimpleNamespace(parent=nodes[name]) for name in parents]
    units = [
        DoorUnit(
            key=UnitKey(str(i)), items=(i,), devices=(widths or {}).get(i, 1), level=Level.WARM, keeps_fixtures=False
        )
        for i in range(len(items))
    ]
    return Earlier(items, units, seconds or {})


def test_earlier_tests_of_the_same_class_that_ran_elsewhere_may_be_needed():
    assert earlier("AABAB").elsewhere(3, here=[1]) == [0]


def test_tests_of_another_width_are_not_run_again_for_a_failure():
    assert earlier("AAA", widths={0: 2}).elsewhere(2, here=[]) == [1]


def test_tests_that_take_long_are_not_run_again_for_a_failure():
    known = earlier("AAA", seconds={0: 3.0})
    known.took(1, 4.0)
    assert known.elsewhere(1, here=[]) == [0]
    assert known.elsewhere(2, here=[]) == []
    assert known.elsewhere(2, here=[1]) == [0]


def test_a_test_that_lost_its_process_is_not_run_again_for_a_failure():
    known = earlier("AA")
    known.took(0, float("inf"))
    assert known.elsewhere(1, here=[]) == []


def test_failures_of_a_class_that_were_failures_use_up_what_its_earlier_tests_may_take():
    known = earlier("AAAB", seconds={0: 3.0})
    known.was_futile(1, [0])
    assert known.elsewhere(2, here=[]) == []
    assert earlier("BAAB", seconds={0: 3.0}).elsewhere(3, here=[]) == [0]
