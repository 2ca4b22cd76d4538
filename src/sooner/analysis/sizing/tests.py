"""Tests with their durations, from needs and whatever durations there are: of tests, or of files. Pure."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from msgspec.structs import replace

from sooner.analysis.sizing.needs import PROBED, Answer, Fate, TestNeed, fate, number
from sooner.analysis.sizing.placement import Test

_UNKNOWN_S: Final = 1.0
"""For a test of which nobody knows how long it takes, where nobody knows it of any."""
_FILE_PREFIXES: Final = ("", "test/", "tests/")


def with_durations(needs: Sequence[TestNeed], durations: Mapping[str, float]) -> tuple[list[Test], str]:
    """Tests with their seconds, and a note on those of which they are not known.

    A test's own duration counts; else its file's, in equal parts over the file's tests whose own is not known; else the
    median of all that are known. A test that never runs takes no time, and no part of its file's.
    """
    able = [need for need in needs if not need.never_runs]
    own = {need.nodeid: durations[need.nodeid] for need in able if need.nodeid in durations}
    files = _by_file_name(durations)
    sharing: dict[str, int] = {}
    taken: dict[str, float] = {}
    for need in able:
        if need.nodeid in own:
            taken[need.file] = taken.get(need.file, 0.0) + own[need.nodeid]
        else:
            sharing[need.file] = sharing.get(need.file, 0) + 1
    known = dict(own)
    for need in able:
        total = durations.get(need.file, files.get(_stem(need.file)))
        if need.nodeid not in known and total is not None:
            known[need.nodeid] = max(0.0, total - taken.get(need.file, 0.0)) / sharing[need.file]
    usual = median(known.values()) if known else _UNKNOWN_S
    missing = sum(need.nodeid not in known for need in able)
    note = f"{missing} of {len(able)} tests have no known duration: {usual:.1f} s is assumed" if missing else ""
    seconds = {need.nodeid: known.get(need.nodeid, usual) for need in able}
    return [Test(need=need, seconds=seconds.get(need.nodeid, 0.0)) for need in needs], note


def _stem(path: str) -> str:
    """A file as durations may spell it: without its suffix, and without the folder that all tests are in."""
    stem = path.removesuffix(".py").removeprefix("./")
    for prefix in _FILE_PREFIXES[1:]:
        stem = stem.removeprefix(prefix)
    return stem


def _by_file_name(durations: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, seconds in durations.items():
        path = name.split("|")[0]
        if "::" not in path:
            found[_stem(path)] = found.get(_stem(path), 0.0) + seconds
    return found


def by_file(tests: Sequence[Test]) -> list[Test]:
    """Files as tests: a file needs what the neediest of its tests needs, and takes what they take together."""
    files: dict[str, list[Test]] = {}
    for test in tests:
        if not test.need.never_runs:
            files.setdefault(test.need.file, []).append(test)
    return [_file(path, members) for path, members in files.items()]


def _file(path: str, members: Sequence[Test]) -> Test:
    needs = [test.need for test in members]
    least = [one for one in (number(need.min) for need in needs) if one is not None]
    gpu = [one for one in (number(need.gpu_min) for need in needs) if one is not None]
    full = _full(needs)
    need = replace(
        needs[0],
        nodeid=path,
        path=path,
        profile={str(n): _answer(needs, n, full) for n in PROBED},
        min=min(least, default=0),
        gpu_min=min(gpu) if gpu else None,
        full="unknown" if full is None else full,
        max=None,
        adaptive=any(need.adaptive for need in needs),
    )
    return Test(need=need, seconds=sum(test.seconds for test in members), members=tuple(members))


def _full(needs: Sequence[TestNeed]) -> int | None:
    """The fewest devices at which all of a file's tests cover all that they can; None: at no known number."""
    known = [one for one in (number(need.full) for need in needs) if one is not None]
    if len(known) < len(needs):
        return None
    return next((n for n in sorted({*known, *PROBED}) if n >= max(known) and _is_whole(needs, n)), None)


def _is_whole(needs: Sequence[TestNeed], devices: int) -> bool:
    return all(fate(need, devices) is Fate.FULL for need in needs)


def _answer(needs: Sequence[TestNeed], devices: int, full: int | None) -> Answer:
    """What a file does at a number: it fails if a test of it does.

    Where a test of it runs only at fewer devices, that number is not known to be the file's full need.
    """
    if full is not None and devices > full and not _is_whole(needs, devices):
        return "unknown"
    fates = {fate(need, devices) for need in needs}
    if Fate.FAILS in fates:
        return "fail"
    return "skip" if fates == {Fate.SKIPPED} else "run"
