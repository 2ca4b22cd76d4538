"""From sources to needs: every test is judged at every size, and the profile is summed up."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from sooner.model.text import test_of
from sooner.plan.needs.cases import FEW, Picks, axes_of, named_together, parts, shared
from sooner.plan.needs.evaluator.comparisons import HOST_ERRORS
from sooner.plan.needs.evaluator.machine import Machine
from sooner.plan.needs.evaluator.state import ANY_OPTION, EVERYWHERE, TEST_FUEL, Refusal
from sooner.plan.needs.evaluator.values import Func, OutOfFuel, hard
from sooner.plan.needs.facts import (
    BETWEEN,
    BEYOND,
    SIZES,
    AtSize,
    Confidence,
    Evidence,
    TestNeeds,
    Verdict,
    described,
)
from sooner.plan.needs.judgement import Judge, Judged
from sooner.plan.needs.rules import Rules
from sooner.plan.needs.settings import PytestSettings
from sooner.plan.needs.sources import Sources
from sooner.plan.needs.testing.axes import NO_CASES
from sooner.plan.needs.testing.collection import Item, collect, taint
from sooner.plan.needs.testing.fixtures import underlying
from sooner.plan.needs.testing.hooks import is_left_out
from sooner.plan.needs.testing.listed import entries, needs_of_entries
from sooner.plan.needs.testing.parameterized_classes import text_of

_MOST_DISBELIEFS: Final = 6
_MOST_EVIDENCE: Final = 12
_MOST_FRUITLESS: Final = 8
"""A function of the library under test whose answer was not known so often in a row is not asked again."""
_SLOW: Final = 5_000
"""Steps of evaluation from which on a case is slow: twenty milliseconds."""
_DOUBTS: Final = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)
_ABSENT: Final = AtSize(verdict=Verdict.ABSENT, reason="not collected")


class OutOfTime(Exception):  # noqa: N818 - control flow
    """Whoever asked does not wait any longer."""


class Inference:
    """Evaluates test files, one after the other; modules that they share are evaluated once for each size.

    Args:
        sources: The project.
        rules: What is known of frameworks.
        settings: What pytest is configured to.
        is_over: Asked before each evaluation whether there is no time left.
    """

    def __init__(
        self,
        sources: Sources,
        rules: Rules,
        settings: PytestSettings | None = None,
        *,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.sources = sources
        self.rules = rules
        self.settings = settings or PytestSettings()
        self.is_over = is_over
        self.machines: dict[int, Machine] = {}

    def machine(self, size: int) -> Machine:
        """The machine with so many visible devices."""
        if size not in self.machines:
            self.machines[size] = Machine(size, self.sources, self.rules, self.machine, settings=self.settings)
        return self.machines[size]

    def of_files(self, paths: Iterable[str]) -> Iterator[TestNeeds]:
        """The needs of all tests of several files, in order."""
        for path in paths:
            yield from self.of_file(path)

    def of_file(self, path: str) -> list[TestNeeds]:
        """The needs of all tests of one file; a file that is not Python has none.

        Raises:
            OutOfTime: `is_over` has become true.
        """
        if self.sources.tree(path) is None:
            return []
        return [*self._otherwise(path, self.of_tests(path)), *self._entries(path)]

    def of_tests(self, path: str, among: Collection[str] | None = None) -> list[TestNeeds]:
        """Of the tests of one file; of those among the ones asked for."""
        self.sources.tests.add(path)
        seen = _File(self, path)
        stand_in = seen.stand_ins()
        known: dict[str, TestNeeds] = {}
        result = []
        for nodeid in seen.nodeids():
            if among is not None and nodeid not in among:
                continue
            other = stand_in.get(nodeid, nodeid)
            if other not in known:
                known[other] = seen.needs(other)
            result.append(known[other] if other == nodeid else seen.likewise(nodeid, known[other]))
        return result

    def _otherwise(self, path: str, found: list[TestNeeds]) -> list[TestNeeds]:
        """Tests that never run are looked at with the other value of what their file is run with, or asks.

        So are those of a file that is not collected anywhere.
        """
        other = self.rules.otherwise(self.sources.read(path) or "")
        never = {each.nodeid for each in found if each.min is None}
        if other is None or (found and not never):
            return found
        again = {each.nodeid: each for each in self._by(other).of_tests(path, never if found else None)}
        return [again.get(each.nodeid, each) for each in found] if found else list(again.values())

    def _by(self, rules: Rules) -> "Inference":
        return Inference(self.sources, rules, self.settings, is_over=self.is_over)

    def _entries(self, path: str) -> list[TestNeeds]:
        """The tests that are entries of a list of a framework's own runner."""
        tree, text = self.sources.tree(path), self.sources.read(path)
        found = entries(text, tree, self.rules) if tree is not None and text is not None else []
        return list(needs_of_entries(path, found, {size: self.machine(size) for size in SIZES})) if found else []


class _File:
    """One test file at all sizes."""

    def __init__(self, inference: Inference, path: str) -> None:
        self.inference = inference
        self.path = path
        self.judges: dict[int, Judge] = {}
        self.items: dict[int, dict[str, Item]] = {}
        self.last_key: tuple[str, int, frozenset[tuple[str, int]], frozenset[Refusal]] | None = None
        self.last_judged: Judged | None = None
        self.gists: dict[str, TestNeeds] = {}
        self.unsure: dict[str, Confidence] = {}
        """Of the cases of a test that were evaluated: how sure the least sure one is."""
        self.steps = 0
        """Of evaluation, for the case that was compared last."""
        self.given_up: frozenset[int] = frozenset()
        self.doubted: frozenset[tuple[str, int]] = frozenset()
        """Places of failures of the test before that were not believed."""
        self.refused: frozenset[Refusal] = frozenset()
        self.is_switched = False
        """Whether a skip of the test at hand was not believed."""
        left_out = {size for size in SIZES if is_left_out(self.inference.machine(size), path)}
        self.left_out = left_out if len(left_out) < len(SIZES) else set()
        """Numbers of devices with which a conftest.py leaves the file out; with all of them, somebody asks for it."""
        for size in SIZES:
            self._collect(size)

    def _collect(self, size: int) -> None:
        self._hurry()
        machine = self.inference.machine(size)
        try:
            items = collect(machine, self.path) if size not in self.left_out else []
        except (OutOfFuel, *HOST_ERRORS):
            items = []
        self.items[size] = {item.nodeid: item for item in items}
        self.judges[size] = Judge(machine, self.path)

    def nodeids(self) -> list[str]:
        """All node ids that exist at any size; an empty list of cases is a test where it is empty at every size."""
        found = dict.fromkeys(nodeid for size in reversed(SIZES) for nodeid in self.items[size])
        empty = [nodeid for nodeid in found if NO_CASES in nodeid]
        gone = {nodeid for nodeid in empty if any(nodeid not in self.items[size] for size in SIZES)}
        return [nodeid for nodeid in found if nodeid not in gone]

    def stand_ins(self) -> dict[str, str]:
        """For tests of many cases: the case whose needs each has."""
        groups: dict[str, list[Item]] = {}
        for nodeid, item in self.items[SIZES[-1]].items():
            if item.has_cases and (item.params or item.family):
                groups.setdefault(item.family or test_of(nodeid), []).append(item)
        result: dict[str, str] = {}
        for items in groups.values():
            if len(items) > FEW and self._come_together(each.nodeid for each in items):
                cases = _parts(items)
                by_picks = dict(zip(cases, (each.nodeid for each in items), strict=True))
                found = shared(
                    list(by_picks),
                    lambda picks, ids=by_picks: self._gist(ids[picks]),  # type: ignore[misc]
                    lambda: self.steps > _SLOW,
                    _together(items, cases),
                )
                result |= {by_picks[picks]: by_picks[other] for picks, other in found.items()}
        return result

    def _come_together(self, nodeids: Iterable[str]) -> bool:
        """Whether at each size all of these are collected, or none."""
        ids = set(nodeids)
        return all(len(ids & items.keys()) in (0, len(ids)) for size, items in self.items.items() if size in SIZES)

    def _gist(self, nodeid: str) -> TestNeeds:
        """What a case must have in common with another one."""
        if nodeid not in self.gists:
            self.steps = 0
            found = self.needs(nodeid)
            family = self.items[SIZES[-1]][nodeid].family or test_of(nodeid)
            self.unsure[family] = max(found.confidence, self.unsure.get(family, Confidence.HIGH), key=_DOUBTS.index)
            self.gists[nodeid] = replace(found, nodeid="", evidence=[], reasons={}, confidence=Confidence.HIGH)
        return self.gists[nodeid]

    def likewise(self, nodeid: str, other: TestNeeds) -> TestNeeds:
        """What is said of a case that was not evaluated, as its stand-in was; no surer than any that was."""
        item = self.items[SIZES[-1]][nodeid]
        family = item.family or test_of(nodeid)
        return replace(other, nodeid=nodeid, confidence=self.unsure.get(family, other.confidence))

    def at(self, nodeid: str, size: int, ignored: frozenset[tuple[str, int]]) -> Judged | None:
        """What a test does at a size; None where it is not collected."""
        key = (nodeid, size, ignored, self.refused)
        if key != self.last_key:
            self.last_key, self.last_judged = key, self._judged(nodeid, size, ignored)
        return self.last_judged

    def _hurry(self) -> None:
        if self.inference.is_over():
            raise OutOfTime

    def _judged(self, nodeid: str, size: int, ignored: frozenset[tuple[str, int]]) -> Judged | None:
        self._hurry()
        if size not in self.items:
            self._collect(size)
            self._tell_given_up(self.judges[size].machine)
        judge, item = self.judges[size], self.items[size].get(nodeid)
        judge.machine.refused = self.refused
        if size in self.left_out:
            return None
        if item is None:
            failed = judge.module.failed
            lost = next((each[nodeid] for each in self.items.values() if nodeid in each), None)
            return judge.judge(lost, ignored) if failed is not None and lost is not None else None
        judged = judge.judge(item, ignored)
        for other in item.also:
            judged = judged.beside(judge.judge(other, ignored))
        self.steps += TEST_FUEL - judge.machine.fuel
        return judged

    def needs(self, nodeid: str) -> TestNeeds:
        """Everything that is said of a test."""
        self._give_up()
        judged = _without_workers(_with_counted(self._with_refusals(nodeid)))
        at = {size: each.at if each is not None else _ABSENT for size, each in judged.items()}
        more = self._between(nodeid, at, judged)
        return described(
            nodeid,
            self.path,
            at,
            confidence=_confidence(judged.values(), is_doubted=self.is_switched),
            evidence=self._evidence(judged.values()),
            beyond=more,
        )

    def _give_up(self) -> None:
        """Functions that have given nothing so far are asked no more, with any number of devices."""
        counts = self.judges[SIZES[-1]].machine.fruitless
        self.given_up = frozenset(func for func, count in counts.items() if count >= _MOST_FRUITLESS)
        for judge in self.judges.values():
            self._tell_given_up(judge.machine)

    def _tell_given_up(self, machine: Machine) -> None:
        """Which functions are not asked, and what they were seen to make: the same with any number of devices."""
        machine.given_up = self.given_up
        if SIZES[-1] in self.judges:
            machine.made_by_itself = self.judges[SIZES[-1]].machine.made_by_itself

    def _with_refusals(self, nodeid: str) -> dict[int, Judged | None]:
        """The profile; what the library raises with some numbers of devices, and not with others, follows from them."""
        self.refused = frozenset()
        judged = self._believable(nodeid)
        for _ in range(_MOST_DISBELIEFS):
            more = self._refusals(nodeid, judged) - self.refused
            if not more:
                break
            self.refused |= more
            judged = self._believable(nodeid)
        return judged

    def _refusals(self, nodeid: str, judged: dict[int, Judged | None]) -> frozenset[Refusal]:
        """What the library under test raises with some numbers of devices where it ends well with another.

        Nothing refuses to work where there is a device: what is said to has been followed further than without one.
        """
        last = judged[SIZES[-1]]
        if last is None or last.at.verdict is not Verdict.RUN:
            return frozenset()
        most = last
        if last.trace.questions and any(last.ended.values()):
            most = self.at(nodeid, BEYOND[-1], self.ignored) or last
        seen = [each.ended for each in (*judged.values(), most) if each is not None]
        on_devices = [each.ended for size, each in judged.items() if size and each is not None]
        well = {place for ended in (*on_devices, most.ended) for place, stop in ended.items() if stop is None}
        return frozenset(
            (place, (stop.path, stop.line))
            for ended in seen
            for place, stop in ended.items()
            if stop is not None and place in well
        )

    def _believable(self, nodeid: str) -> dict[int, Judged | None]:
        """The profile; what would keep the test from ever running, and is not about devices, is taken as met."""
        self.is_switched = False
        judged, ignored = self._settled(nodeid, frozenset())
        if self.is_switched and any(each is not None and each.trace.is_another for each in judged.values()):
            others, more = self._settled(nodeid, frozenset((ANY_OPTION,)))  # rather than a skip that is not believed
            judged, ignored = (others, more) if _runs(others) else (judged, ignored)
        is_opted = not _runs(judged) and any(each is not None and each.trace.opted for each in judged.values())
        if is_opted and not self._runs_beyond(nodeid, BEYOND[0], ignored):
            others, more = self._settled(nodeid, frozenset((ANY_OPTION,)))
            if _runs(others):
                self.is_switched, judged, ignored = True, others, more
        self.ignored = ignored
        return judged

    def _settled(
        self, nodeid: str, ignored: frozenset[tuple[str, int]]
    ) -> tuple[dict[int, Judged | None], frozenset[tuple[str, int]]]:
        """The profile, and the places that are not believed any more, beside those that are not from the beginning."""
        ignored = self._without_failures(nodeid, ignored)
        judged = self._everywhere(nodeid, ignored)
        for _ in range(_MOST_DISBELIEFS):
            last = judged[SIZES[-1]]
            if last is None or not last.soft or not last.place[1] or last.place in ignored:
                break
            if _runs(judged) or self._runs_beyond(nodeid, BEYOND[0], ignored):
                break
            self.is_switched = True
            ignored = self._without_failures(nodeid, ignored | {last.place})
            judged = self._everywhere(nodeid, ignored)
        return self._where_it_may_run(nodeid, judged, ignored)

    def _where_it_may_run(
        self, nodeid: str, judged: dict[int, Judged | None], ignored: frozenset[tuple[str, int]]
    ) -> tuple[dict[int, Judged | None], frozenset[tuple[str, int]]]:
        """A test that is skipped with many devices and never runs: what fails with fewer is not for lack of them."""
        for count in range(2 * _MOST_DISBELIEFS):
            if _runs(judged):
                break
            failed = [each for each in judged.values() if each is not None and each.at.verdict is Verdict.FAIL]
            if not failed or not failed[-1].soft or not failed[-1].place[1] or failed[-1].place in ignored:
                break
            if self._asks_for_more(nodeid, failed[-1], ignored):
                break
            ignored |= {failed[-1].place} if count < _MOST_DISBELIEFS else {failed[-1].place, EVERYWHERE}
            judged = self._everywhere(nodeid, ignored)
        return judged, ignored

    def _without_failures(
        self, nodeid: str, ignored: frozenset[tuple[str, int]] = frozenset()
    ) -> frozenset[tuple[str, int]]:
        """Places of failures with the most devices: those are not for lack of them, whatever happens with fewer."""
        for count in range(2 * _MOST_DISBELIEFS):
            last = self.at(nodeid, SIZES[-1], ignored)
            if last is None or last.at.verdict is not Verdict.FAIL or not last.soft or last.place in ignored:
                break
            if self._holds_for_one_number(nodeid, last, ignored):
                break
            if self._asks_for_more(nodeid, last, ignored):
                break
            ignored |= {last.place} if count < _MOST_DISBELIEFS else {last.place, EVERYWHERE}
            if last.place in self.doubted:  # as the case before it
                ignored |= self.doubted
        self.doubted = ignored - {ANY_OPTION}
        return ignored

    def _asks_for_more(self, nodeid: str, failed: Judged, ignored: frozenset[tuple[str, int]]) -> bool:
        """Whether what fails with the usual numbers of devices runs with more (`assert device_count() >= 16`)."""
        return failed.trace.questions > 0 and self._runs_beyond(nodeid, BEYOND[0], ignored)

    def _holds_for_one_number(self, nodeid: str, last: Judged, ignored: frozenset[tuple[str, int]]) -> bool:
        """Whether what fails with the most devices fails with any but one number of some (`assert world_size == 2`)."""
        others = self._among(SIZES[1:], nodeid, ignored)
        running = [size for size, each in others.items() if each is not None and each.at.verdict is Verdict.RUN]
        failing = [each for each in others.values() if each is not None and each.place == last.place]
        return len(running) == 1 and running[0] > 1 and len(failing) == len(others) - 1

    def _everywhere(self, nodeid: str, ignored: frozenset[tuple[str, int]]) -> dict[int, Judged | None]:
        """What a test does at each size."""
        return self._among(SIZES, nodeid, ignored)

    def _among(
        self, sizes: Sequence[int], nodeid: str, ignored: frozenset[tuple[str, int]]
    ) -> dict[int, Judged | None]:
        """What a test does at some sizes, from the largest on; one evaluation holds as far down as nothing differs."""
        found: dict[int, Judged | None] = {}
        least = sizes[-1] + 1
        for size in reversed(sizes):
            if size < least:
                judged = self.at(nodeid, size, ignored)
                least = size if judged is None else self._same_from(nodeid, judged, size)
            found[size] = judged
        return {size: found[size] for size in sizes}

    def _same_from(self, nodeid: str, judged: Judged, most: int) -> int:
        """The fewest devices from which up to `most` nothing differs, by what the test and what makes it ask for."""
        item, judge = self.items[most].get(nodeid), self.judges[most]
        least = most if item is None else max(judged.trace.asked, taint(item, judge.modules), judged.trace.reach)
        if least >= most:
            return most
        between = [judge.module for size, judge in self.judges.items() if least <= size <= most]
        if any(each.failed is not None or each.doubted is not judge.module.doubted for each in between):
            return most
        if any(nodeid not in items for size, items in self.items.items() if least <= size <= most):
            return most
        return least

    def _runs_beyond(self, nodeid: str, size: int, ignored: frozenset[tuple[str, int]]) -> bool:
        found = self.at(nodeid, size, ignored)
        return found is not None and found.at.verdict is Verdict.RUN

    def _between(self, nodeid: str, at: dict[int, AtSize], judged: dict[int, Judged | None]) -> dict[int, AtSize]:
        """Further sizes where the least one, or the best, is not among the usual: 5 to 7, or more than 8."""
        running = [size for size, each in at.items() if each.verdict is Verdict.RUN and size]
        extra: Sequence[int] = ()
        if running == [SIZES[-1]] or (running[-1:] == [SIZES[-1]] and at[SIZES[-1]].devices in BETWEEN):
            extra = BETWEEN
        elif not running and self._might_run_beyond(judged):
            extra = (*BETWEEN, *BEYOND) if at[SIZES[-1]].verdict is Verdict.FAIL else BEYOND
        found = self._among(extra, nodeid, self.ignored) if extra else {}
        return {size: each.at for size, each in found.items() if each is not None}

    def _might_run_beyond(self, judged: dict[int, Judged | None]) -> bool:
        last = judged[SIZES[-1]]
        return last is not None and (last.trace.asked > 0 or last.trace.questions > 0 or not last.soft)

    def _evidence(self, judged: Iterable[Judged | None]) -> list[Evidence]:
        places: dict[tuple[str, int], str] = {}
        for each in judged:
            if each is not None:
                places |= each.trace.places
        found = [
            Evidence(path=path, line=line, text=self.inference.sources.line(path, line)[:160])
            for path, line in places
            if self.inference.sources.line(path, line)
        ]
        return found[:_MOST_EVIDENCE]


def _runs(judged: dict[int, Judged | None]) -> bool:
    return any(each is not None and each.at.verdict is Verdict.RUN for each in judged.values())


def _parts(items: Sequence[Item]) -> list[Picks]:
    """For each case of a test which value of each independent part of its parameters it has."""
    rows: list[dict[str, str]] = []
    for item in items:
        row = {"marks": " ".join(str(id(each)) for each in item.marks)}
        for name, value in item.params.items():
            inner = hard(value)
            several = inner if isinstance(inner, dict) else {"": inner}
            row |= {f"{name} {key}": text_of(each) or str(id(each)) for key, each in several.items()}
        rows.append(row | {str(index): str(pick) for index, pick in enumerate(item.class_picks)})
    columns = sorted({column for row in rows for column in row})
    found = parts([[row.get(column, "") for column in columns] for row in rows])
    # Cases whose parameters are alike are told apart by their place.
    return found if len(set(found)) == len(found) else [(index,) for index in range(len(items))]


def _together(items: Sequence[Item], cases: Sequence[Picks]) -> list[frozenset[int]]:
    """Parts of parameters that stand in one condition of the test."""
    func = underlying(items[0].func)
    if not isinstance(func, Func):
        return []
    known = [name for name in items[0].params if all(name in each.params for each in items)]
    axes = {name: axes_of([text_of(each.params[name]) or "" for each in items], cases) for name in known}
    groups = (frozenset(axis for name in names for axis in axes[name]) for names in named_together(func.node, known))
    return [each for each in dict.fromkeys(groups) if len(each) > 1]


def _with_counted(judged: dict[int, Judged | None]) -> dict[int, Judged | None]:
    """The same; where no device is used with any number of them, one that was woken by counting is."""
    present = [each for each in judged.values() if each is not None]
    if not any(each.at.devices for each in present):
        for each in present:
            if each.trace.counted:
                each.at = replace(each.at, devices=1, reach=max(1, each.at.reach))
    return judged


def _without_workers(judged: dict[int, Judged | None]) -> dict[int, Judged | None]:
    """The same; a loop that starts workers with some devices, and has no turn without any, has started none."""
    host = judged[0]
    if host is not None and host.at.verdict is Verdict.RUN and not host.at.ranks:
        starting = {each for other in judged.values() if other is not None for each in other.trace.starts.in_loops}
        if starting & host.trace.starts.without_a_turn:
            host.at = replace(host.at, ranks=0, vacuous=True)
    return judged


def _confidence(judged: Iterable[Judged | None], *, is_doubted: bool) -> Confidence:
    """How sure a profile is.

    Args:
        judged: What the test does at each size.
        is_doubted: Whether a skip was not believed: a switch was taken as on. That assertions hold is no doubt.
    """
    present = [each for each in judged if each is not None]
    if not present or any(not each.complete or each.at.verdict is Verdict.UNKNOWN for each in present):
        return Confidence.LOW
    return Confidence.MEDIUM if is_doubted or any(each.guesses for each in present) else Confidence.HIGH
