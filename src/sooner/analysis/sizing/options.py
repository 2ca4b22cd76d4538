"""Which placements are worth a look. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from sooner.analysis.sizing.needs import Fate, fate
from sooner.analysis.sizing.placement import CURRENT, Lane, Option, Runner, Terms, Test, lane

_RUNS: Final = frozenset({Fate.FULL, Fate.FEWER_RANKS})
"""Worth running at a commit: at the full need, or on fewer ranks, and at the full need by the clock."""
_TELLS_NOTHING: Final = frozenset({Fate.SKIPPED, Fate.FAILS})


def options(
    tests: Sequence[Test], terms: Terms, *, periods_h: Sequence[float], current: tuple[Runner, int] | None = None
) -> list[Option]:
    """All options; the first is what there is now, where that is said.

    Args:
        tests: Of the job.
        terms: Runners, commits, targets.
        periods_h: Hours between runs of periodic lanes.
        current: Runner and number of shards of the job as it is.
    """
    able = [test for test in tests if not test.need.never_runs]
    found: dict[str, Option] = {}
    for one in _all(able, terms, periods_h, current):
        found.setdefault(one.name, one)
    return list(found.values())


def _all(
    tests: Sequence[Test], terms: Terms, periods_h: Sequence[float], current: tuple[Runner, int] | None
) -> Iterator[Option]:
    runners = sorted(terms.runners, key=lambda runner: runner.devices)
    if current is not None:
        yield Option(name=CURRENT, lanes=(lane(tests, current[0], terms, shards=current[1]),))
    useful = [runner for runner in runners if _runs_any(tests, runner)]
    for runner in useful:
        yield Option(name=f"all-on-{runner.devices}", lanes=(lane(tests, runner, terms),))
    yield Option(name="by-need", lanes=tuple(_by_need(tests, runners, terms, None)))
    largest = runners[-1]
    for runner in (one for one in useful if one is not largest):
        full = [test for test in tests if fate(test.need, runner.devices) is Fate.FULL]
        rest = [test for test in tests if fate(test.need, runner.devices) is not Fate.FULL]
        smaller = [one for one in runners if one.devices <= runner.devices]
        for hours in periods_h:
            clock = f"{hours:g}h"
            everything = lane(tests, largest, terms, every_h=hours)
            yield Option(
                name=f"all-on-{runner.devices}+all-every-{clock}", lanes=(lane(tests, runner, terms), everything)
            )
            if not rest or not full:
                continue
            moved = _by_need(rest, runners, terms, hours)
            yield Option(name=f"full-on-{runner.devices}+rest-every-{clock}", lanes=(lane(full, runner, terms), *moved))
            far = [test for test in tests if fate(test.need, runner.devices) in _RUNS]
            if len(far) > len(full):
                tiers = _by_need(far, smaller, terms, None)
                yield Option(name=f"as-far-as-{runner.devices}+rest-every-{clock}", lanes=(*tiers, *moved))
            if len(smaller) > 1:
                tiers = _by_need(full, smaller, terms, None)
                yield Option(name=f"by-need-to-{runner.devices}+rest-every-{clock}", lanes=(*tiers, *moved))


def _runs_any(tests: Sequence[Test], runner: Runner) -> bool:
    """Whether a run on it tells anything; the cheapest run of all is one that skips everything."""
    return not tests or any(fate(test.need, runner.devices) not in _TELLS_NOTHING for test in tests)


def _by_need(tests: Sequence[Test], runners: Sequence[Runner], terms: Terms, every_h: float | None) -> list[Lane]:
    """Each test on the smallest runner that gives it all it can use; what no runner satisfies, on the largest."""
    places: dict[int, list[Test]] = {}
    for test in tests:
        fits = (i for i, runner in enumerate(runners) if fate(test.need, runner.devices) is Fate.FULL)
        places.setdefault(next(fits, len(runners) - 1), []).append(test)
    return [lane(some, runners[index], terms, every_h=every_h) for index, some in sorted(places.items())]
