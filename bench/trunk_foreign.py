"""Trunks of another make than `sooner trunk simulate`'s: written apart from it, to see whether decisions carry over.

Everything goes through the text of `sooner trunk decide`: documents are encoded and read back. A trunk goes on after a
revert (the revert lands as a commit of its own), may hold several culprits of one signal, runs get lost or stay pending
for ever, queues have long tails, commits land in bursts with the same time, jobs fail with their tests, flake rates
differ by signal and drift, what is told of them may be wrong by a factor of three, and whoever drives the loop may look
every five minutes or once an hour.
"""

import argparse
import os
import random
import statistics
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

import msgspec

from figures import table
from sooner.analysis.trunk.decide import decide
from sooner.analysis.trunk.facts import Policy, Question, Rerun, Revert
from sooner.analysis.trunk.scores import reliability, wilson

HOURS: Final = 15.0
"""Of a trunk that are decided about, after twelve without a break."""
BEFORE: Final = 30.0


class World(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of trunk; hours, shares of runs."""

    name: str
    goal: float = 0.1
    """Most percent of trunks with a wrong revert."""
    rate: float = 2.0
    """Landings an hour; each of one commit, or of several at the same time."""
    together: int = 1
    every: int = 1
    tick: float = 0.25
    run: tuple[float, float] = (1.2, 2.0)
    """Shortest and longest run, uniform."""
    queue: tuple[float, float] = (0.25, 0.0)
    """Mean, and the share of runs that wait ten times as long."""
    lost: float = 0.0
    """Share of runs that stay pending for ever; as many leave no event at all."""
    flakes: tuple[float, ...] = (0.02,)
    """Of each signal."""
    drift_to: float | None = None
    """The first signal's flake rate from hour 0 on."""
    told: float | None = None
    """The flake rate that is told, as a factor of the real one; None tells nothing."""
    strength: float = 1.0
    breaks: tuple[tuple[int, float], ...] = ((0, 0.0),)
    """Signal, and the hour in which its culprit lands."""
    mended: float = 0.0
    """Somebody mends a break so long after its landing."""
    outage: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Begin, length, share of runs that fail."""
    has_job: bool = False
    """One signal more: a job that fails if any of the others' runs does."""
    tells_ends: bool = True
    window: float = 16.0
    hides_queue: bool = False
    """Runs that wait are not in the document yet."""


class Trunk:
    """The commits, the culprits, and what ran."""

    def __init__(self, world: World, seed: int) -> None:
        self.world, self.random = world, random.Random(f"{world.name} {seed}")
        self.landed: list[tuple[float, str]] = []
        self.runs: list[dict[str, Any]] = []
        self.culprits: list[tuple[int, str, float, float]] = []
        """Signal, sha, landed, mended."""
        at, want = -BEFORE, sorted(world.breaks, key=lambda one: one[1])
        while at < HOURS:
            at += self.random.expovariate(world.rate / world.together)
            for _ in range(self.random.randint(1, 2 * world.together - 1)):
                sha = f"{self.random.getrandbits(40):010x}"
                while want and at >= want[0][1]:
                    signal, _ = want.pop(0)
                    self.culprits.append((signal, sha, at, at + world.mended if world.mended else 1e9))
                self.landed.append((at, sha))
        self.place = {sha: i for i, (_, sha) in enumerate(self.landed)}
        self.told = [self._told(rate) for rate in world.flakes]
        self.started = 0

    def _told(self, rate: float) -> list[int] | None:
        if self.world.told is None:
            return None
        return [sum(self.random.random() < min(0.9, rate * self.world.told) for _ in range(300)), 300]

    def is_broken(self, signal: int, sha: str) -> bool:
        at = self.landed[self.place[sha]][0]
        own = [c for c in self.culprits if c[0] == signal]
        return any(self.place[sha] >= self.place[c[1]] and at < c[3] for c in own)

    def start(self, signal: int, sha: str, now: float) -> None:
        world, rng = self.world, self.random
        if rng.random() < world.lost:
            return
        wait = rng.expovariate(1 / world.queue[0]) * (10 if rng.random() < world.queue[1] else 1)
        begin = now + wait
        rate = world.flakes[signal]
        if world.drift_to is not None and signal == 0 and begin > 0:
            rate = world.drift_to
        chance = world.strength + (1 - world.strength) * rate if self.is_broken(signal, sha) else rate
        if world.outage[0] <= begin < world.outage[0] + world.outage[1]:
            chance = max(chance, world.outage[2])
        end = 1e9 if rng.random() < world.lost else begin + rng.uniform(*world.run)
        failed = rng.random() < chance
        self.runs.append({"signal": signal, "sha": sha, "asked": now, "begin": begin, "end": end, "failed": failed})

    def advance(self, now: float) -> None:
        """Start what runs by itself."""
        while self.started < len(self.landed) and self.landed[self.started][0] <= now:
            at, sha = self.landed[self.started]
            if self.started % self.world.every == 0:
                for signal in range(len(self.world.flakes)):
                    self.start(signal, sha, at)
            self.started += 1

    def document(self, now: float) -> dict[str, Any]:
        seen = [(at, sha) for at, sha in self.landed if now - self.world.window <= at <= now][::-1]
        known = {sha for _, sha in seen}
        signals: list[dict[str, Any]] = [
            {"key": f"t{k}", "kind": "test", "events": []} for k in range(len(self.world.flakes))
        ]
        for run in self.runs:
            shown = run["begin"] if self.world.hides_queue else run["asked"]
            if run["sha"] in known and shown <= now:
                signals[run["signal"]]["events"].append(self._event(run, now))
        for k, told in enumerate(self.told):
            if told is not None:
                signals[k]["flake_prior"] = told
        if self.world.has_job:
            signals.append({"key": "job", "kind": "job", "events": self._job(known, now)})
        commits = [{"sha": sha, "time": at * 3600} for at, sha in seen]
        return {"id": now, "now": now * 3600, "commits": commits, "signals": signals}

    def _event(self, run: dict[str, Any], now: float) -> dict[str, Any]:
        event = {"sha": run["sha"], "started_at": min(run["begin"], now) * 3600, "status": "pending"}
        if run["end"] <= now:
            event["status"] = "failure" if run["failed"] else "success"
            if self.world.tells_ends:
                event["ended_at"] = run["end"] * 3600
        return event

    def _job(self, known: set[str], now: float) -> list[dict[str, Any]]:
        """The job of a commit: its tests' first runs together."""
        first: dict[str, list[dict[str, Any]]] = {}
        for run in self.runs:
            mine = first.setdefault(run["sha"], [])
            if run["sha"] in known and run["asked"] <= now and all(one["signal"] != run["signal"] for one in mine):
                mine.append(run)
        return [
            self._event({**runs[0], "end": max(r["end"] for r in runs), "failed": any(r["failed"] for r in runs)}, now)
            for runs in first.values()
            if runs
        ]

    def mend(self, sha: str, now: float) -> None:
        """The revert lands half an hour later: what lands after it is sound."""
        self.culprits = [(s, c, at, min(m, now + 0.5) if c == sha else m) for s, c, at, m in self.culprits]


def judge(task: tuple[World, int, str]) -> dict[str, Any]:
    """Drive one trunk to its end."""
    world, seed, policy = task
    trunk = Trunk(world, seed)
    rng = random.Random(seed)
    now, reruns, wrong, stated, hours = -12 + rng.random() * world.tick, 0, 0, [], []
    wanted = {sha: at for _, sha, at, _ in trunk.culprits}
    done: set[str] = set()
    while now < HOURS:
        trunk.advance(now)
        text = msgspec.json.encode(trunk.document(now))
        for one in decide(msgspec.json.decode(text, type=Question), Policy(policy)).decisions:
            if isinstance(one, Revert) and one.culprit not in done:
                done.add(one.culprit)
                stated.append((one.probability or 1.0, one.culprit in wanted))
                if one.culprit not in wanted:
                    wrong += 1
                else:
                    hours.append(now - wanted[one.culprit])
                    trunk.mend(one.culprit, now)
            elif isinstance(one, Rerun):
                for again in one.reruns:
                    reruns += again.count
                    for _ in range(again.count):
                        signals = range(len(world.flakes)) if one.signal == "job" else [int(one.signal[1:])]
                        for signal in signals:
                            trunk.start(signal, again.sha, now)
        if wrong or (wanted and done >= wanted.keys()):
            break
        now += world.tick
    return {"wrong": wrong, "found": len(done & wanted.keys()) / max(1, len(wanted)), "reruns": reruns,
            "hours": hours, "stated": stated, "seed": seed}  # fmt: skip


MANY: Final = (0.005, 0.01, 0.02, 0.02, 0.05, 0.1)
WORLDS: Final = (
    World(name="plain, flakes .01", flakes=(0.01,)),
    World(name="plain, flakes .05", flakes=(0.05,)),
    World(name="plain, flakes .1", flakes=(0.1,)),
    World(name="every 6th commit runs", every=6, rate=4.0),
    World(name="every 6th runs, flakes .1", every=6, rate=4.0, flakes=(0.1,)),
    World(name="long queues", queue=(0.5, 0.15), flakes=(0.03,)),
    World(name="a tenth of the runs lost", lost=0.1, flakes=(0.03,)),
    World(name="two culprits of one signal, 7.5 h apart", breaks=((0, 0.0), (0, 7.5)), flakes=(0.03,)),
    World(name="mended after 3 h", mended=3.0, flakes=(0.03,)),
    World(name="flake rate .02 becomes .3, no break", flakes=(0.02,), drift_to=0.3, breaks=(), goal=0.5),
    World(name="one signal's .02 becomes .3, break of another", flakes=(0.02, 0.02), drift_to=0.3, breaks=((1, 0.0),)),
    World(name="told a third of the flakes, .1", flakes=(0.1,), told=0.33),
    World(name="told three times the flakes, .03", flakes=(0.03,), told=3.0),
    World(name="told the flakes, .05", flakes=(0.05,), told=1.0),
    World(name="job and six tests", flakes=MANY, has_job=True, breaks=((2, 0.0), (4, 1.0))),
    World(name="six tests, only flakes", flakes=MANY, has_job=True, breaks=()),
    World(name="looked at every 5 min", tick=1 / 12, flakes=(0.05,)),
    World(name="looked at once an hour", tick=1.0, flakes=(0.05,)),
    World(name="commits in groups of the same time", together=3, rate=3.0, flakes=(0.05,)),
    World(name="runs of 6 min", run=(0.05, 0.15), queue=(0.02, 0.0), rate=10.0, window=4.0, flakes=(0.05,)),
    World(name="runs of 4 h", run=(3.0, 5.0), flakes=(0.05,), window=24.0),
    World(name="ends not told", tells_ends=False, flakes=(0.05,)),
    World(name="queued runs hidden", hides_queue=True, flakes=(0.05,)),
    World(name="fails 80 %", strength=0.8, goal=0.5),
    World(name="fails 50 %", strength=0.5, goal=0.5),
    *(
        World(name=f"outage of {h} h, {s:.0%} of runs", outage=(0.0, h, s), breaks=(), goal=0.5, flakes=(0.02,))
        for h in (1.0, 2.0, 3.0, 6.0)
        for s in (1.0, 0.9, 0.7)
    ),
    *(
        World(name=f"outage of {h} h over a break", outage=(0.0, h, 0.95), breaks=((0, 0.5),), goal=0.5)
        for h in (1.0, 2.0, 3.0, 6.0)
    ),
    World(name="outage of 2 h just before a break", outage=(-2.2, 2.0, 0.95), goal=0.5),
    World(name="outage, six tests and a job", outage=(0.0, 2.0, 0.95), flakes=MANY, has_job=True, breaks=(), goal=0.5),
)  # fmt: skip


def rows(
    worlds: list[World], trunks: int, seed: int, policy: str, jobs: int
) -> tuple[list[list[str]], list[tuple[float, bool]]]:
    found, stated = [], []
    with ProcessPoolExecutor(jobs) as pool:
        for world in worlds:
            ends = list(pool.map(judge, [(world, seed + k, policy) for k in range(trunks)], chunksize=4))
            found.append(row(world, ends))
            print(*found[-1], sep="  ", file=sys.stderr, flush=True)
            stated += [pair for end in ends for pair in end["stated"]]
    return found, stated


def row(world: World, ends: list[dict[str, Any]]) -> list[str]:
    wrong = sum(end["wrong"] > 0 for end in ends)
    hours = sorted(h for end in ends for h in end["hours"])
    bad = " ".join(str(end["seed"]) for end in ends if end["wrong"])
    right = statistics.fmean(end["found"] for end in ends) if world.breaks else float("nan")
    return [
        world.name, f"{100 * right:.1f}" if world.breaks else "", f"{100 * wrong / len(ends):.2f}",
        f"{100 * wilson(wrong, len(ends))[0]:.2f}", f"{world.goal}",
        f"{statistics.median(hours):.1f}" if hours else "", f"{statistics.fmean(end['reruns'] for end in ends):.1f}",
        bad[:40],
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trunks", type=int, default=200, help="a row (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", metavar="TEXT", help="rows whose name holds this")
    parser.add_argument("--policy", choices=["bayes", "rules"], default="bayes")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: one a CPU)")
    arguments = parser.parse_args()
    worlds = [world for world in WORLDS if arguments.only in world.name]
    found, stated = rows(worlds, arguments.trunks, arguments.seed, arguments.policy, arguments.jobs)
    print(table(["world", "found %", "wrong %", "from", "goal", "hours", "reruns", "seeds"], found))
    for one in reliability(stated):
        bounds = f"{one.right_low:.4f} - {one.right_high:.4f}"
        print(f"stated {one.stated:.4f}: right {one.right:.4f} ({bounds}), {one.reverts} reverts")


if __name__ == "__main__":
    main()
