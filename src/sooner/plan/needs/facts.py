"""What is said of a test: a profile over visible devices, and what follows from it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct, structs

from sooner.model.text import printable_or_replaced

SIZES: Final = (0, 1, 2, 3, 4, 8)
"""Numbers of visible devices of a profile: the sizes of runners, and 3 for needs that are not powers of two."""
BETWEEN: Final = (5, 6, 7)
"""Looked at only where a test runs on 8, and not on 4 or uses so many of the 8, or fails on 8 and runs on none."""
BEYOND: Final = (16, 32, 64)
"""Looked at only where a test does not run on 8."""

Count = int | None | Literal["unknown"]


class Verdict(StrEnum):
    """What a test does when so many devices are visible."""

    RUN = "run"
    SKIP = "skip"
    FAIL = "fail"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Confidence(StrEnum):
    """How sure the answer is."""

    HIGH = "high"
    """Every guard was evaluated."""
    MEDIUM = "medium"
    """A condition that has nothing to do with devices (a version, a package) was taken as met."""
    LOW = "low"
    """Something that decides was not known."""


class Evidence(Struct, frozen=True, kw_only=True, order=True):
    """A place in the source that decided."""

    path: str
    line: int
    text: str


class AtSize(Struct, frozen=True, kw_only=True):
    """What a test does with so many visible devices."""

    verdict: Verdict
    ranks: int | None = None
    """Processes that it starts; None where it starts none or the number is not known."""
    devices: int = 0
    """Devices that it touches, as far as can be seen."""
    reach: int = 0
    """Devices that must be visible for what it touches: `cuda:3` alone touches 1 and reaches 4."""
    backends: tuple[str, ...] = ()
    reason: str = ""
    vacuous: bool = False
    """It passes with zero workers."""
    parts: int = 0
    """Parts of it that run (`self.subTest`); those that are skipped are left out."""


class TestNeeds(Struct, frozen=True, kw_only=True):
    """The device need of one test.

    `min`, `gpu_min`, `full`, `max` count visible devices. None for `min`: never runs; for `gpu_min`: never on devices;
    for `max`: there is no upper limit.
    """

    __test__ = False  # no test class of pytest's

    nodeid: str
    path: str
    profile: dict[str, Verdict]
    min: Count
    gpu_min: Count
    full: Count
    max: Count
    adaptive: bool
    confidence: Confidence
    evidence: list[Evidence]
    ranks: dict[str, int | None] = {}
    devices: dict[str, int] = {}
    reach: dict[str, int] = {}
    """Devices that must be visible for those that it touches, where that is more: `cuda:3` touches 1 and reaches 4."""
    backend: list[str] = []
    vacuous: list[int] = []
    """Numbers of visible devices at which it passes without having started a worker."""
    reasons: dict[str, str] = {}
    """Why it does not run, by number of visible devices."""


class Derived(Struct, frozen=True, kw_only=True):
    """The numbers that follow from a profile."""

    min: Count
    gpu_min: Count
    full: Count
    max: Count
    adaptive: bool


def derived(at: Mapping[int, AtSize]) -> Derived:
    """From what happens at each size to the numbers; `unknown` wherever an unknown size could be the answer.

    A size at which the test passes without having started a worker, or though one has failed, is none at which it runs.
    `full` is the smallest size from which on nothing changes any more in verdict, ranks, devices and parts that run (up
    to the largest size of the profile); `adaptive` says that ranks or devices follow the number of visible devices.
    """
    sizes = sorted(at)
    runs = [n for n in sizes if at[n].verdict is Verdict.RUN]
    unknown = [n for n in sizes if at[n].verdict is Verdict.UNKNOWN]
    guarded = 0 in at and (at[0].vacuous or at[0].verdict in (Verdict.SKIP, Verdict.FAIL, Verdict.ABSENT))
    said = any(at[n].devices > 0 for n in runs)  # where it uses some, it uses none where none are said
    on_devices = [n for n in runs if n > 0 and (at[n].devices > 0 or (guarded and not said))]
    least: Count = _first([n for n in runs if not at[n].vacuous] or runs, unknown)
    gpu_least: Count = _first([n for n in on_devices if not at[n].vacuous] or on_devices, [n for n in unknown if n > 0])
    most: Count = None
    inside = [n for n in sizes if n <= SIZES[-1]]
    if runs and runs[-1] < inside[-1] and not any(n > runs[-1] for n in unknown):
        most = runs[-1]
    elif runs and any(n > runs[-1] for n in unknown):
        most = "unknown"
    return Derived(
        min=least, gpu_min=gpu_least, full=_full(at, runs, unknown), max=most, adaptive=_is_adaptive(at, runs)
    )


def described(
    nodeid: str,
    path: str,
    at: Mapping[int, AtSize],
    *,
    confidence: Confidence,
    evidence: list[Evidence],
    beyond: Mapping[int, AtSize] | None = None,
) -> TestNeeds:
    """Everything that is said of a test, from what it does at each size.

    Args:
        nodeid: pytest's.
        path: Its file.
        at: The profile.
        confidence: How sure it is.
        evidence: The places that decided.
        beyond: What it does at further sizes: the numbers follow from these too.
    """
    runs = {str(size): each for size, each in at.items() if each.verdict is Verdict.RUN}
    return TestNeeds(
        nodeid=nodeid,
        path=path,
        profile={str(size): each.verdict for size, each in at.items()},
        **structs.asdict(derived({**at, **(beyond or {})})),
        confidence=confidence,
        evidence=evidence,
        ranks={size: each.ranks for size, each in runs.items()},
        devices={size: each.devices for size, each in runs.items()},
        reach={size: each.reach for size, each in runs.items() if each.reach > each.devices},
        backend=sorted({name for each in runs.values() for name in each.backends}),
        vacuous=[int(size) for size, each in runs.items() if each.vacuous],
        reasons={
            str(size): printable_or_replaced(each.reason)
            for size, each in at.items()
            if each.verdict is not Verdict.RUN
        },
    )


def _is_adaptive(at: Mapping[int, AtSize], runs: list[int]) -> bool:
    """Whether ranks or devices follow the host; that a test falls back to the host itself is not enough."""
    shapes = {(at[n].ranks, at[n].devices) for n in runs if at[n].devices > 0 and not at[n].vacuous}
    ranks = {at[n].ranks for n in runs if at[n].ranks is not None and not at[n].vacuous}
    return len(shapes) > 1 or len(ranks) > 1


def _first(found: list[int], unknown: list[int]) -> Count:
    if unknown and (not found or unknown[0] < found[0]):
        return "unknown"
    return found[0] if found else None


def _full(at: Mapping[int, AtSize], runs: list[int], unknown: list[int]) -> Count:
    if not runs:
        return "unknown" if unknown else None
    best = max(runs, key=lambda n: (at[n].devices, at[n].ranks or 0, at[n].parts, -n))
    if any(n > best for n in unknown):
        return "unknown"
    return best
