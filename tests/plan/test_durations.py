"""Expected durations: read, merged and looked up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.model.errors import PlanError
from sooner.model.units import Plan, Unit, UnitKey
from sooner.plan.durations import expected, merge, read_durations

PLAN = Plan(
    source="p",
    units=tuple(
        Unit(name=name, variant=variant, command=("x",))
        for name, variant in (("a", ""), ("a", "M=1"), ("b", "M=1"), ("c", ""))
    ),
)


def test_durations_are_read_by_name_and_by_key() -> None:
    assert read_durations('{"a": 1, "a|M=1": 2.5}', source="d.json") == {"a": 1.0, "a|M=1": 2.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "d.json: this is not JSON: "),
        ("[]", "d.json: this is not an object ("),
        ('{\n "a": 1,\n "b": -1}', "d.json:3: b: -1 is no number of seconds ("),
        ('{"a": true}', "d.json:1: a: True is no number of seconds ("),
        ('{"a": "1"}', "d.json:1: a: '1' is no number of seconds ("),
        ('{"a": null}', "d.json:1: a: None is no number of seconds ("),
    ],
)
def test_bad_durations_are_refused_with_their_place(text: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        read_durations(text, source="d.json")
    assert str(caught.value).startswith(message)


def test_one_hang_does_not_change_what_is_expected() -> None:
    assert merge({UnitKey("a"): [10, 11, 3600], UnitKey("b"): [5, 900], UnitKey("c"): []}) == {
        "a": 11,
        "b": 5,
    }


@given(st.lists(st.floats(0, 1e6), min_size=3), st.floats(1e7, 1e9))
def test_a_merged_duration_is_one_of_the_samples_and_no_outlier(samples: list[float], outlier: float) -> None:
    (merged,) = merge({UnitKey("a"): [*samples, outlier]}).values()
    assert merged in samples


def test_durations_come_from_the_unit_then_its_name_then_its_siblings() -> None:
    assert expected(PLAN, {"a": 1.0, "a|M=1": 2.0}) == {"a": 1.0, "a|M=1": 2.0}
    assert expected(PLAN, {"a": 1.0, "b": 3.0}) == {"a": 1.0, "a|M=1": 1.0, "b|M=1": 3.0}
    assert expected(PLAN, {"b|M=2": 3.0, "b|M=3": 5.0}) == {"b|M=1": 4.0}
