"""Units of a plan from needs: each file's tests, apart by how many devices they need. Pure."""

from collections.abc import Callable, ItemsView, Iterable, Sequence

from msgspec import Struct

from sooner.model.text import test_of
from sooner.plan.needs.facts import TestNeeds


class NeededUnit(Struct, frozen=True, kw_only=True):
    """Tests of one file that need the same number of devices."""

    path: str
    tests: tuple[str, ...]
    """Node ids; the file itself where all of its tests are meant, a test without its cases where all of these are."""
    devices: int
    unknown: int = 0
    """Of how many tests the full need is not known: they are with those that need the most of what is known."""


def units_of(found: Sequence[TestNeeds], most: int | None = None) -> list[NeededUnit]:
    """One unit for each file and number of devices, files in their order, wide units first.

    A test that runs with no number of devices goes with the narrowest unit of its file, where its skip is seen.

    Args:
        found: The needs.
        most: Devices that there are: tests that adapt to fewer get so many at most.
    """
    units: list[NeededUnit] = []
    for path, tests in _by(found, lambda each: each.path):
        known = {each.nodeid: _width(each, most) for each in tests}
        narrow = min((each for each in known.values() if each is not None), default=1)
        widths = {nodeid: narrow if width is None else width for nodeid, width in known.items()}
        for width in sorted(set(widths.values()), reverse=True):
            chosen = [each for each in tests if widths[each.nodeid] == width]
            units.append(
                NeededUnit(
                    path=path,
                    tests=(path,) if len(chosen) == len(tests) else tuple(_short(chosen, tests)),
                    devices=width,
                    unknown=sum(each.full == "unknown" for each in chosen),
                )
            )
    return units


def _width(needs: TestNeeds, most: int | None) -> int | None:
    """Devices with which no coverage is lost, as far as is known; None where it never runs."""
    if isinstance(needs.full, int):
        least = needs.gpu_min if isinstance(needs.gpu_min, int) else needs.full
        return needs.full if most is None or not needs.adaptive else min(needs.full, max(most, least))
    numbers = [each for each in (needs.gpu_min, needs.min) if isinstance(each, int)]
    if numbers:
        return max(numbers)
    return 1 if needs.full == "unknown" or needs.min == "unknown" else None


def _short(chosen: Sequence[TestNeeds], tests: Sequence[TestNeeds]) -> Iterable[str]:
    """Node ids, cases of one test by the test's own id where all of them are chosen."""
    cases = {name: len(group) for name, group in _by(tests, lambda each: test_of(each.nodeid))}
    for name, group in _by(chosen, lambda each: test_of(each.nodeid)):
        if len(group) == cases[name]:
            yield name
        else:
            yield from (each.nodeid for each in group)


def _by(found: Iterable[TestNeeds], key: Callable[[TestNeeds], str]) -> ItemsView[str, list[TestNeeds]]:
    groups: dict[str, list[TestNeeds]] = {}
    for each in found:
        groups.setdefault(key(each), []).append(each)
    return groups.items()
