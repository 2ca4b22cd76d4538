"""JUnit XML as a stream of test attempts, whatever wrote it, in constant memory.

Understands pytest, unittest, Maven Surefire, gtest, CTest, Bazel, nextest and sooner itself. What they disagree on is
decided here: what a test is called, which of `failure` and `error` means what, how retries are spelled
(`rerunFailure`, `flakyFailure`, `rerun`).
"""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, tzinfo
from typing import Final

from sooner.history.fingerprints import digest_of
from sooner.history.ingest.junit_again import Again, Case
from sooner.history.ingest.junit_results import BROKEN, FLAKES, RERUNS, RESULTS, Result
from sooner.history.outcomes import HistoryOutcome, spelled
from sooner.history.tables import Epoch, TestRow
from sooner.model.junit import QUARANTINED, QUARANTINED_PROPERTY

_LONGEST_S: Final = 1e9
_YEAR_OF_NO_TIME: Final = 1970
"""No test ran then: the beginning of Unix's time, and of Go's in the year 1, stand for none. What sooner did not start
has the former."""
_YEAR_OF_NO_CALENDAR: Final = 9990
"""As for tables: most programs cannot show what lies beyond."""

_OUTPUTS: Final = frozenset({"system-out", "system-err"})
_ROOTS: Final = frozenset({"testsuites", "testsuite", "testcase"})

_STAMP: Final = re.compile(r"-20\d{12}$")
"""The time that unittest-xml-reporting puts behind the name of a suite: it would be another one in each run."""


class _Suite:
    """A `testsuite` that is open."""

    __slots__ = ("devices", "host", "started", "unit", "variant")

    def __init__(self, attributes: Mapping[str, str], started: Epoch | None) -> None:
        self.unit = _STAMP.sub("", attributes.get("name", ""))
        self.variant = ""
        self.host = attributes.get("hostname", "")
        self.started = started
        self.devices: tuple[str, ...] = ()

    def take_property(self, name: str, value: str) -> None:
        """Sooner's own files say in properties which unit and variant a suite is of."""
        if name == "sooner.variant":
            self.variant = value
            self.unit = self.unit.removesuffix(f"|{value}")
        elif name == "sooner.devices":
            self.devices = tuple(value.split(","))


class Cases:
    """A parser's target that hands out a row for each attempt of each test case as soon as its element ends.

    Attempts of one case are told in their order, all as attempt 1: numbers are given when they are committed, because
    some tools write another `testcase` for each attempt.

    Args:
        emit: Takes the rows.
        like: What all rows have in common: run, source, as_of.
        zone: What a time without a zone means.
    """

    def __init__(self, emit: Callable[[TestRow], None], like: TestRow, zone: tzinfo = UTC) -> None:
        self._emit = emit
        self._again = Again(emit)
        self._like = like
        self._zone = zone
        self._suites: list[_Suite] = []
        self._case: Mapping[str, str] | None = None
        self._node_id = ""
        self._real: HistoryOutcome | None = None
        """What a case in quarantine came to, which is spelled as a skip."""
        self._results: list[Result] = []
        self._open: Result | None = None
        self._last_time: tuple[str, Epoch | None] = "", None
        self._named: dict[tuple[str, str, str], tuple[str, str]] = {}
        self.root = ""
        self.cases = 0
        self.naive_times = 0
        self.unreadable_times = 0

    @property
    def is_junit(self) -> bool:
        """Whether the document is one of ours."""
        return self.root in _ROOTS or self.cases > 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if tag == "testcase":
            self._case = attributes
            self._results = []
            self._node_id = ""
            self._real = None
            return
        tag = _local(tag)
        self.root = self.root or tag
        if tag == "testsuite":
            self._suites.append(_Suite(attributes, self._time(attributes)))
        elif self._case is not None and tag in RESULTS:
            self._open = Result(tag, attributes)
            self._results.append(self._open)
        elif tag == "property":
            self._take_property(attributes.get("name", ""), attributes.get("value", ""))
        elif tag in _OUTPUTS:
            self._open = None
        elif tag == "testcase":
            self.start(tag, attributes)

    def data(self, text: str) -> None:
        """Text inside of an element."""
        if self._open is not None:
            self._open.add(text)

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag != "testcase":
            tag = _local(tag)
        if tag == "testcase":
            if self._case is not None:
                self._finish(self._case)
            self._case = self._open = None
        elif tag in RESULTS:
            self._open = None
        elif tag == "testsuite" and self._suites:
            self._suites.pop()
            self._again.close()

    def close(self) -> None:
        """The document ends, or what can be read of it does."""
        self._again.close()

    def _take_property(self, name: str, value: str) -> None:
        if self._case is not None:
            if name in ("nodeid", "node_id", "pytest.nodeid"):
                self._node_id = value
            elif name == QUARANTINED_PROPERTY:
                self._real = spelled(value)
        elif self._suites:
            self._suites[-1].take_property(name, value)

    def _time(self, attributes: Mapping[str, str]) -> Epoch | None:
        text = attributes.get("timestamp", "")
        if not text:
            return None
        if text != self._last_time[0]:
            self._last_time = text, self._epoch(text)  # neighbours often share their time
        return self._last_time[1]

    def _epoch(self, text: str) -> Epoch | None:
        try:
            time = datetime.fromisoformat(text.strip())
        except ValueError:
            self.unreadable_times += 1
            return None
        if not _YEAR_OF_NO_TIME < time.year < _YEAR_OF_NO_CALENDAR:
            return None
        if time.tzinfo is None:
            self.naive_times += 1
            time = time.replace(tzinfo=self._zone)
        return Epoch(time.timestamp())

    def _finish(self, case: Mapping[str, str]) -> None:
        self.cases += 1
        seconds = _seconds(case.get("time") or case.get("duration") or "")
        started = self._time(case)
        if not self._results:
            self._tell(self._row(case, _said(case) or HistoryOutcome.PASSED, seconds, started, ""))
            return
        plain = [result for result in self._results if result.tag in BROKEN or result.tag == "skipped"]
        before = [result for result in self._results if result.tag in FLAKES]
        after = [result for result in self._results if result.tag in RERUNS]
        for result in before:
            self._emit(self._row_of(case, result, None, started))
        if plain:
            self._tell(self._row_of(case, plain[0], seconds, started), has_result=True)
        elif not after:
            passed = self._row(case, HistoryOutcome.PASSED, seconds, started, "")
            self._tell(passed, tells_attempts=bool(before))
        for result in after:
            self._emit(self._row_of(case, result, None, started))

    def _tell(self, row: TestRow, *, has_result: bool = False, tells_attempts: bool = False) -> None:
        """What a case came to in the end."""
        if row.unit == _PYTEST or row.node_id.partition("::")[0].endswith(".py"):
            self._again.take(Case(row, has_result=has_result, tells_attempts=tells_attempts))
        else:
            self._emit(row)

    def _row_of(self, case: Mapping[str, str], result: Result, seconds: float | None, started: Epoch | None) -> TestRow:
        """A retry may have a time of its own."""
        own = _seconds(result.attributes.get("time", ""))
        began = self._time(result.attributes) or started
        outcome, message = result.outcome, result.message
        if self._real is not None and result.tag == "skipped":
            outcome, message = outcome if result.is_hole else self._real, message.removeprefix(QUARANTINED)
        elif outcome is HistoryOutcome.SKIPPED and _said(case) is HistoryOutcome.NOT_RUN:
            # CTest's: its program, a file or its fixture was not there, and the run is red. What skips itself says so.
            outcome = outcome if message.startswith("SKIP_") else HistoryOutcome.NOT_RUN
        return self._row(case, outcome, own if own is not None else seconds, began, message)

    @property
    def _suite(self) -> _Suite:
        return self._suites[-1] if self._suites else _NO_SUITE

    def _row(
        self,
        case: Mapping[str, str],
        outcome: HistoryOutcome,
        seconds: float | None,
        started: Epoch | None,
        message: str,
    ) -> TestRow:
        like, suite = self._like, self._suite
        unit, node_id = self._names(case, suite)
        return TestRow(
            run=like.run,
            unit=unit,
            node_id=node_id,
            variant=suite.variant,
            kind="case",
            outcome=outcome,
            seconds=seconds,
            started=started if started is not None else suite.started,
            devices=suite.devices,
            worker=suite.host,
            message=message,
            message_digest=digest_of(message) if message else "",
            source=like.source,
            as_of=like.as_of,
        )

    def _names(self, case: Mapping[str, str], suite: _Suite) -> tuple[str, str]:
        """Unit and node id."""
        if self._node_id:
            return self._node_id.partition("::")[0], self._node_id
        place = suite.unit, case.get("classname", ""), case.get("file", "")
        if place not in self._named:
            if len(self._named) >= _MOST_PLACES:
                self._named.clear()
            self._named[place] = _place(*place)
        unit, prefix = self._named[place]
        name = case.get("name", "")
        if unit == _PYTEST and not prefix and (file := _pytest_file(name)):
            return file, file  # what pytest could not collect is called by its module alone
        return unit, prefix + name


def _said(case: Mapping[str, str]) -> HistoryOutcome | None:
    """What the attributes of a case say, as gtest and CTest have them; None where that is nothing."""
    if "status" not in case and "result" not in case:
        return None
    said = spelled(case.get("result", "")) or spelled(case.get("status", ""))
    return HistoryOutcome.NOT_RUN if said is HistoryOutcome.RUNNING else said


_PYTEST: Final = "pytest"
"""The suite of a session of pytest's, unless `junit_suite_name` calls it otherwise."""
_MOST_PLACES: Final = 10_000
_KNOWN: Final = _ROOTS | RESULTS | _OUTPUTS | {"property", "properties"}


def _local(tag: str) -> str:
    """A tag without its namespace, as expat (`ns:tag`) and lxml (`{uri}tag`) spell it."""
    return tag if tag in _KNOWN else tag.rpartition("}")[2].rpartition(":")[2]


def _place(suite: str, classname: str, file: str) -> tuple[str, str]:
    """The unit of a case, and what its node id begins with.

    pytest puts all of a session into one suite, and its class names are dotted paths: they are made node ids again.
    """
    module = file or _pytest_file(classname)
    if not module.endswith(".py"):
        return suite or file, f"{classname}::" if classname else ""
    inner = classname.removeprefix(module.removesuffix(".py").replace("/", ".")).strip(".").replace(".", "::")
    prefix = "".join(f"{part}::" for part in (module, inner) if part)
    return module if suite in (_PYTEST, "") else suite, prefix


_NO_SUITE: Final = _Suite({}, None)


def _pytest_file(classname: str) -> str:
    """The file of pytest's `tests.unit.test_x.TestA`; empty where it is another tool's class.

    The last part that is called like one: of 6,725 test files of 127 GPU projects, 259 lie in folders that are called
    like them too (tests/test_models/test_x.py), and 37 have classes that are.
    """
    parts = classname.split(".")
    for count in range(len(parts), 0, -1):
        if parts[count - 1].startswith("test_") or parts[count - 1].endswith("_test"):
            return "/".join(parts[:count]) + ".py"
    return ""


def _seconds(text: str) -> float | None:
    """A duration; Surefire writes `1,234.5`."""
    try:
        seconds = float(text.replace(",", "") if "," in text else text)
    except ValueError:
        return None
    return seconds if 0 <= seconds <= _LONGEST_S else None
