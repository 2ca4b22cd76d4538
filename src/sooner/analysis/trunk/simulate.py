"""Trunks whose culprit is known: commits land, runs queue and end, flakes and outages happen, a policy decides.

Pure: everything random follows from the seed. What it cannot show is how real breaks, flakes and outages are
distributed; the scenarios say what is assumed.
"""

import math
import random
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from sooner.analysis.trunk.facts import Answer, Commit, Event, Kind, Limits, Question, Rerun, Revert, Signal, Status

Decider = Callable[[Question], Answer]

WINDOW_H: Final = 16.0
"""What is looked at, as in PyTorch's auto-revert."""
TICK_H: Final = 0.25
"""How often somebody decides."""
AFTER_H: Final = 30.0
"""So long after the break a verdict counts."""
_MOST_ATTEMPTS: Final = 3
"""Of those that CI starts by itself."""
_HISTORY_H: Final = 30.0
"""What lies before the break."""


class Scenario(Struct, frozen=True, kw_only=True):
    """One kind of trunk. Times are hours, rates shares of runs."""

    name: str
    flake_rate: float = 0.01
    strength: float = 1.0
    """Share of its runs that the break fails."""
    burst_h: float = 0.0
    """An outage of this length instead of a break: nobody is to blame."""
    burst_strength: float = 0.95
    has_culprit: bool = True
    commits_per_h: float = 2.0
    batch: int = 1
    """Every so manyth commit runs by itself; the others only when they are asked for."""
    spread: float = 0.0
    """How much flake rates differ by signal: the standard deviation of their logarithms."""
    signals: int = 1
    """How many signals the culprit breaks; as many others only flake."""
    drift: float = 1.0
    """The flake rate is multiplied by this from the break on."""
    fixed_after_h: float = 0.0
    """Somebody mends the break so long after it landed; 0 is never."""
    culprits: int = 1
    """Several: each further one lands three hours after the one before, and breaks other signals."""
    run_h: float = 1.6
    queue_h: float = 0.25
    kind: Kind = Kind.TEST
    knows_rate: bool = False
    """The flake rate of 200 earlier runs is told, as `trunk verdicts` tells it from the history."""
    repeated: float = 0.0
    """Share of failed runs that CI starts again by itself as they end, up to twice."""


class Verdict(StrEnum):
    """What came of a trunk."""

    RIGHT = "right"
    WRONG = "wrong"
    NONE = "none"


class Ending(Struct, frozen=True, kw_only=True):
    """One simulated trunk."""

    verdict: Verdict
    hours: float | None
    """From the culprit's landing to the (last) right verdict."""
    reruns: int
    stated: tuple[tuple[float, bool], ...] = ()
    """The probability of each revert, and whether it was right."""


class _Run(Struct, frozen=True):
    place: int
    start: float
    end: float
    has_failed: bool
    attempt: int
    asked: float
    """When it was asked for."""


class _Series:
    """One signal of a trunk: its runs so far."""

    def __init__(self, trunk: "_Trunk", key: str, culprit: int | None, rng: random.Random) -> None:
        self.trunk, self.key, self.culprit = trunk, key, culprit
        self.runs: list[_Run] = []
        self.attempts: dict[int, int] = {}
        scenario = trunk.scenario
        own = math.exp(rng.gauss(0, scenario.spread)) if scenario.spread else 1.0
        self.rate = min(0.5, scenario.flake_rate * own)
        known = sum(rng.random() < self.rate for _ in range(200))
        self.prior = (float(known), 200.0) if scenario.knows_rate else None
        self._seed = rng.random()

    def start(self, place: int, at: float) -> None:
        """Run a commit.

        What comes of its k-th run is the same whatever a policy asked for before: policies are compared on equal luck.
        """
        scenario, attempt = self.trunk.scenario, self.attempts.get(place, 0) + 1
        rng = random.Random(f"{self._seed} {place} {attempt}")  # noqa: S311 - nothing secret
        begin = at + rng.lognormvariate(0, 0.6) * scenario.queue_h / 1.2
        length = rng.lognormvariate(0, 0.25) * scenario.run_h / 1.03
        self.attempts[place] = attempt
        has_failed = self._fails(place, begin, rng.random())
        self.runs.append(_Run(place, begin, begin + length, has_failed, attempt, at))
        if has_failed and attempt < _MOST_ATTEMPTS and rng.random() < scenario.repeated:
            self.start(place, begin + length)

    def _fails(self, place: int, begin: float, draw: float) -> bool:
        scenario = self.trunk.scenario
        rate = self.rate * (scenario.drift if begin > 0 else 1.0)
        chance = rate
        if self.culprit is not None and place >= self.culprit and place < self.trunk.fixed_at(self.culprit):
            chance = scenario.strength + (1 - scenario.strength) * rate
        if scenario.burst_h and 0 <= begin < scenario.burst_h:
            chance = max(chance, scenario.burst_strength)
        return draw < chance

    def signal(self, now: float, first: int, last: int) -> Signal:
        events = tuple(
            Event(
                sha=f"c{run.place}",
                status=(Status.FAILURE if run.has_failed else Status.SUCCESS) if run.end <= now else Status.PENDING,
                started_at=min(run.start, now) * 3600,
                ended_at=run.end * 3600 if run.end <= now else None,
                attempt=run.attempt,
            )
            for run in self.runs
            if first <= run.place <= last and run.asked <= now
        )
        return Signal(key=self.key, kind=self.trunk.scenario.kind, flake_prior=self.prior, events=events)


class _Trunk:
    """All commits of a trunk and the series over them. Hour 0 is when the first culprit lands."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario = scenario
        rng = random.Random(f"{scenario.name} {seed}")  # noqa: S311 - nothing secret; each scenario has luck of its own
        self.times = sorted([*_arrivals(rng, scenario), *([0.0] if scenario.has_culprit else [])])
        self.culprits: list[int] = []
        if scenario.has_culprit:
            first = self.times.index(0.0)
            self.culprits = [self._at_least(3.0 * k, first) for k in range(scenario.culprits)]
        breaks: list[int | None] = [culprit for culprit in self.culprits for _ in range(scenario.signals)]
        breaks = breaks or [None] * scenario.signals
        quiet: list[int | None] = [None] * (scenario.signals if scenario.signals > 1 else 0)
        self.series = [
            _Series(self, f"signal-{k}", culprit, _generator(rng.random()))
            for k, culprit in enumerate([*breaks, *quiet])
        ]
        for place, time in enumerate(self.times):
            if place % scenario.batch == 0:
                for one in self.series:
                    one.start(place, time)

    def _at_least(self, hour: float, default: int) -> int:
        return next((i for i, time in enumerate(self.times) if time >= hour), default)

    def fixed_at(self, culprit: int) -> int:
        after = self.scenario.fixed_after_h
        return self._at_least(self.times[culprit] + after, len(self.times)) if after else len(self.times)

    def question(self, now: float) -> Question:
        first = next(i for i, time in enumerate(self.times) if time >= now - WINDOW_H)
        last = max(i for i, time in enumerate(self.times) if time <= now)
        commits = tuple(Commit(sha=f"c{i}", time=self.times[i] * 3600) for i in range(last, first - 1, -1))
        signals = tuple(one.signal(now, first, last) for one in self.series)
        return Question(now=now * 3600, commits=commits, signals=signals, limits=Limits())

    def run_again(self, decision: Rerun, now: float) -> int:
        series = next(one for one in self.series if one.key == decision.signal)
        for again in decision.reruns:
            for _ in range(again.count):
                series.start(int(again.sha[1:]), now)
        return sum(again.count for again in decision.reruns)


def _generator(seed: float) -> random.Random:
    return random.Random(seed)  # noqa: S311 - nothing secret


def _arrivals(rng: random.Random, scenario: Scenario) -> list[float]:
    found, at = [], -_HISTORY_H
    while at < AFTER_H:
        at += rng.expovariate(scenario.commits_per_h)
        found.append(at)
    return found


def simulate(scenario: Scenario, decider: Decider, seed: int) -> Ending:
    """Let a policy decide about one trunk until every culprit is reverted, one revert is wrong, or time is up."""
    trunk = _Trunk(scenario, seed)
    wanted, hours, reruns = {f"c{i}": trunk.times[i] for i in trunk.culprits}, 0.0, 0
    stated: list[tuple[float, bool]] = []
    reverted: set[str] = set()
    now = -12.0 + _generator(seed).random() * TICK_H
    while now < AFTER_H:
        for decision in decider(trunk.question(now)).decisions:
            match decision:
                case Revert(culprit=sha) if sha not in reverted:
                    reverted.add(sha)
                    stated.append((decision.probability or 1.0, sha in wanted))
                    if sha not in wanted:
                        return Ending(verdict=Verdict.WRONG, hours=None, reruns=reruns, stated=tuple(stated))
                    hours = max(hours, now - wanted[sha])
                case Rerun():
                    reruns += trunk.run_again(decision, now)
                case _:
                    pass
        if wanted and reverted >= wanted.keys():
            return Ending(verdict=Verdict.RIGHT, hours=hours, reruns=reruns, stated=tuple(stated))
        now += TICK_H
    verdict = Verdict.NONE if wanted else Verdict.RIGHT
    return Ending(verdict=verdict, hours=None, reruns=reruns, stated=tuple(stated))


SCENARIOS: Final[Sequence[Scenario]] = (
    *(Scenario(name=f"flakes {rate:g}", flake_rate=rate) for rate in (0.01, 0.05, 0.1, 0.3)),
    *(Scenario(name=f"flakes {rate:g}, rate told", flake_rate=rate, knows_rate=True) for rate in (0.01, 0.05)),
    Scenario(name="fails 80 % of its runs", strength=0.8),
    *(Scenario(name=f"outage of {h} h, nobody's fault", burst_h=h, has_culprit=False) for h in (1, 3, 6)),
    Scenario(name="outage of 3 h, ten signals, reds again", burst_h=3, has_culprit=False, signals=5, repeated=0.4),
    Scenario(name="flakes 0.05, every 4th commit runs", flake_rate=0.05, batch=4),
    *(Scenario(name=f"outage of {h} h over a break", flake_rate=0.02, burst_h=h) for h in (1, 2, 3, 6)),
    Scenario(name="flake rate 0.02 becomes 0.1", flake_rate=0.02, drift=5),
    Scenario(name="three signals, two culprits", flake_rate=0.02, signals=3, culprits=2),
    Scenario(name="four signals that flake differently", flake_rate=0.03, spread=1.0, signals=4),
    Scenario(name="only flakes 0.1", flake_rate=0.1, has_culprit=False),
)
"""Rows of the table of policies."""
