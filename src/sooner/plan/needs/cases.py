"""The many cases of one parametrised test: which parameters matter, from a few cases, and what follows for the rest.

A product of parameters has thousands of cases, and most parameters (shapes, types of numbers) have nothing to do with
devices. A parameter matters if changing it alone changes the answer at the first, a middle or the last case. Cases that
agree in all parameters that matter share their answer; it is tried on some that were not looked at, and where one of
these differs, every case is evaluated. Parameters that stand in one condition of the test are changed together, too.
Cases that take long (loops over types of numbers) are looked at in fewer places: where those that are spread over the
product agree, all do.
"""

import ast
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

Picks = tuple[int, ...]
"""Which case of each parametrisation."""
FEW: Final = 40
"""So many cases are all evaluated: it costs no more than finding out what matters."""
_TRIED: Final = 40
_TRIED_IF_SLOW: Final = 12
_MOST_TOGETHER: Final = 128
"""Values of parameters that stand in one condition, combined: of more only those that are tried anyway."""


def shared(
    cases: Sequence[Picks],
    answer: Callable[[Picks], object],
    is_slow: Callable[[], bool] = lambda: False,
    together: Collection[frozenset[int]] = (),
) -> Mapping[Picks, Picks]:
    """For each case the one whose answer it has.

    Args:
        cases: All of a full product of at least one parametrisation.
        answer: What is to be compared of a case's answer; asked for as few cases as possible.
        is_slow: Whether the case that was asked for last took long.
        together: Parametrisations that stand in one condition of the test.
    """
    sizes = [max(column) + 1 for column in zip(*cases, strict=True)]
    if len(cases) <= FEW or len(cases) != _product(sizes):
        return {each: each for each in cases}
    bases = [cases[0], cases[len(cases) // 2], cases[-1]]
    usual = answer(cases[0])
    if is_slow() and all(answer(case) == usual for case in (*_spread(cases, _TRIED_IF_SLOW), *bases)):
        return dict.fromkeys(cases, cases[0])
    matter = [any(_differs(base, axis, size, answer) for base in bases) for axis, size in enumerate(sizes)]
    first = cases[0]
    for axes in together:
        if not all(matter[axis] for axis in axes) and _differ(first, axes, sizes, matter, answer):
            matter = [counts or axis in axes for axis, counts in enumerate(matter)]
    stand_in = {case: _stand_in(case, first, matter) for case in cases}
    if any(answer(case) != answer(stand_in[case]) for case in _spread(cases, _TRIED)):
        return {each: each for each in cases}
    return stand_in


def _spread(cases: Sequence[Picks], count: int) -> Sequence[Picks]:
    step = max(1, len(cases) // count) | 1
    return cases[step // 2 :: step]


def parts(rows: Sequence[Sequence[str]]) -> list[Picks]:
    """For each of several cases, given by the texts of its values: which one of each independent part of them it has.

    A column is a part of its own if every value of it stands beside every combination of the others; columns that go
    together are one part. A product that somebody has written down as one list is a product again.
    """
    left = [tuple(row) for row in rows]
    picks: list[list[int]] = [[] for _ in rows]
    column = 0
    while left and column < len(left[0]) and len(left[0]) > 1:
        rest = [(*row[:column], *row[column + 1 :]) for row in left]
        values = {row[column] for row in left}
        if len(values) * len(set(rest)) == len(set(left)):
            _number([(row[column],) for row in left], picks)
            left = rest
        else:
            column += 1
    _number(left, picks)
    return [tuple(each) for each in picks]


def _number(values: list[tuple[str, ...]], picks: list[list[int]]) -> None:
    numbers: dict[tuple[str, ...], int] = {}
    for value, pick in zip(values, picks, strict=True):
        pick.append(numbers.setdefault(value, len(numbers)))


def _differs(base: Picks, axis: int, size: int, answer: Callable[[Picks], object]) -> bool:
    usual = answer(base)
    return any(answer((*base[:axis], pick, *base[axis + 1 :])) != usual for pick in range(size))


def _differ(
    base: Picks, axes: frozenset[int], sizes: Sequence[int], matter: Sequence[bool], answer: Callable[[Picks], object]
) -> bool:
    """Whether parameters that are changed together change the answer, where each alone does not."""
    if _product([sizes[axis] for axis in axes]) > _MOST_TOGETHER:
        return False
    picks = (range(size) if axis in axes else (base[axis],) for axis, size in enumerate(sizes))
    return any(answer(case) != answer(_stand_in(case, base, matter)) for case in itertools.product(*picks))


def _stand_in(case: Picks, base: Picks, matter: Sequence[bool]) -> Picks:
    return tuple(pick if counts else usual for pick, counts, usual in zip(case, matter, base, strict=True))


def named_together(function: ast.AST, names: Collection[str]) -> list[frozenset[str]]:
    """Which of some names stand in one condition of a function, two at least."""
    conditions = (each.test for each in ast.walk(function) if isinstance(each, ast.If | ast.IfExp | ast.Assert))
    found = [
        frozenset(each.id for each in ast.walk(test) if isinstance(each, ast.Name) and each.id in names)
        for test in conditions
    ]
    return [each for each in dict.fromkeys(found) if len(each) > 1]


def axes_of(values: Sequence[str], cases: Sequence[Picks]) -> frozenset[int]:
    """The parametrisations that a parameter's value follows from, each alone; none if it has one value only."""
    if len(set(values)) < 2:  # noqa: PLR2004
        return frozenset()
    return frozenset(
        axis
        for axis in range(len(cases[0]))
        if len(set(zip((case[axis] for case in cases), values, strict=True))) == len({case[axis] for case in cases})
    )


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for each in sizes:
        result *= each
    return result
