"""The number of visible devices notices what is asked of it, and one evaluation holds for as many sizes as it may."""

import operator as op

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sooner.plan.needs.counted import Counted, uncounted
from sooner.plan.needs.trace import COUNT

_SIZES = st.integers(0, 8)


def asked(size, question):
    told = []
    answer = question(Counted(size, told.append))
    return answer, max(told, default=0)


@given(_SIZES, st.integers(-1, 9), st.sampled_from([op.lt, op.le, op.gt, op.ge, op.eq, op.ne]))
def test_a_comparison_says_from_where_on_it_has_the_same_answer(size, limit, compare):
    def ask(number):
        return compare(number, limit)

    answer, fewest = asked(size, ask)
    assert all(ask(other) is answer for other in range(fewest, size + 1))


@pytest.mark.parametrize(
    "use",
    [
        lambda n: n + 1, lambda n: 8 // max(n, 1) + n, lambda n: n % 2 == 0, lambda n: [0] * n, lambda n: f"{n}", str,
        lambda n: -n, lambda n: {n: 1}, int, lambda n: list(range(uncounted(n))), lambda n: 3 - n,
    ],
)  # fmt: skip
def test_any_other_use_holds_for_this_number_only(use):
    assert asked(4, use)[1] == COUNT


def test_the_smaller_of_two_numbers_is_compared_only():
    assert asked(8, lambda n: min(4, n)) == (4, 4)
    assert asked(3, lambda n: min(4, n))[1] == 0


def test_it_is_the_number_that_it_stands_for():
    number = Counted(3, lambda _asked: None)
    assert (number, number + 1, list(range(number)), bool(number)) == (3, 4, [0, 1, 2], True)
    assert {3: "three"}[number] == "three"
