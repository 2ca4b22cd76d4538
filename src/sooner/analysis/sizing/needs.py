"""What each test needs, as `sooner needs --json` says it, and what becomes of a test on a runner of some size. Pure."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal

from msgspec import Struct

Answer = Literal["run", "skip", "fail", "absent", "unknown"]
PROBED: Final = (0, 1, 2, 3, 4, 8)
"""Numbers of visible devices that a profile knows."""


class TestNeed(Struct, frozen=True, kw_only=True):
    """One test's profile."""

    __test__ = False  # pytest, this is not one of yours

    nodeid: str
    path: str = ""
    profile: Mapping[str, Answer] = {}
    """At so many visible devices: run, skip, fail, absent or unknown."""
    min: int | str | None = "unknown"
    """Fewest visible devices at which it runs; None: it never does."""
    gpu_min: int | str | None = "unknown"
    """Fewest at which it runs on devices."""
    full: int | str | None = "unknown"
    """No coverage is lost above."""
    max: int | str | None = None
    adaptive: bool = False
    confidence: str = "high"

    @property
    def file(self) -> str:
        """The file that it is in."""
        return self.path or self.nodeid.split("::")[0]

    @property
    def never_runs(self) -> bool:
        """Whether no number of devices makes it run."""
        return self.min is None


class Fate(StrEnum):
    """What becomes of a test on a runner."""

    FULL = "full"
    FEWER_RANKS = "fewer_ranks"
    """It runs on devices, but covers less than it could."""
    FALLS_BACK = "falls_back"
    """It runs, on the CPU, in silence."""
    SKIPPED = "skipped"
    """It does not run: skipped, or not even there."""
    FAILS = "fails"
    UNKNOWN = "unknown"


def number(value: int | str | None) -> int | None:
    """A number of devices, None where nobody knows."""
    return value if isinstance(value, int) else None


def fate(need: TestNeed, devices: int) -> Fate:
    """What becomes of a test where so many devices are visible. "Unknown" is an answer: it is never taken for FULL."""
    answer = _answer(need, devices)
    if answer in {"skip", "absent"}:
        return Fate.SKIPPED
    if answer == "fail":
        return Fate.FAILS
    full, gpu_min = number(need.full), number(need.gpu_min)
    if answer == "unknown" or full is None:
        return Fate.UNKNOWN
    if devices >= full:
        return Fate.FULL
    if full > 0 and (gpu_min is None or devices < gpu_min):
        return Fate.FALLS_BACK
    return Fate.FEWER_RANKS


def _answer(need: TestNeed, devices: int) -> Answer:
    """The profile at a number that may not have been probed: where both neighbours agree, what they say."""
    if (known := need.profile.get(str(devices))) is not None:
        return known
    below = [n for n in PROBED if n < devices and str(n) in need.profile]
    above = [n for n in PROBED if n > devices and str(n) in need.profile]
    least, most = number(need.min), number(need.max)
    if below and not above:
        return _beyond(need.profile[str(below[-1])], below[-1], devices, least, most)
    if below and need.profile[str(below[-1])] == need.profile[str(above[0])]:
        return need.profile[str(below[-1])]
    if least is None:
        return "unknown"
    return "run" if devices >= least and (most is None or devices <= most) else "skip"


def _beyond(answer: Answer, probed: int, devices: int, least: int | None, most: int | None) -> Answer:
    """What holds above the largest number that was probed: its answer, unless the fewest or the most lie above it."""
    if most is not None and devices > most:
        return "skip" if answer == "run" else answer
    if answer in {"skip", "absent"} and least is not None and probed < least <= devices:
        return "run"
    return answer
