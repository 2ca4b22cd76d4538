"""Tells the controlling pytest's plugins what workers said, in the order in which plain pytest calls them."""

import builtins
import contextlib
import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pytest

from sooner.door.quarantine import Quarantined
from sooner.door.worker import SENT, suite_properties
from sooner.model.junit import ENDED
from sooner.run.classify import signal_name

_REPORTS: Final = ("plain", "report")
"""Kinds of messages that are a report of one phase of a test."""
_GIVEN_UP: Final = "_pytest.outcomes.XFailed: "
"""What `pytest.xfail(reason)` raises; without a reason it is unittest's `expectedFailure`, whose body ran."""


class Reporter:
    """Calls the reporting hooks of one session.

    Args:
        session: The session.
        quarantined: Makes failures of tests in quarantine expected ones.
    """

    def __init__(self, session: pytest.Session, quarantined: Quarantined) -> None:
        self._session = session
        self._quarantined = quarantined
        self._hook = session.config.hook
        self._properties = suite_properties(session.config)

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Write what the terminal is told meanwhile in one piece: pytest writes each dot by itself."""
        terminal: Any = self._session.config.pluginmanager.getplugin("terminalreporter")  # none with `-p no:terminal`
        writer: Any = getattr(terminal, "_tw", None)
        file = getattr(writer, "_file", None)
        if not isinstance(file, io.TextIOBase):
            yield
            return
        writer._file = text = io.StringIO()  # noqa: SLF001 - it has no public switch, and a write a test is a third of all
        try:
            yield
        finally:
            writer._file = file  # noqa: SLF001 - as above
            file.write(text.getvalue())
            file.flush()

    def item(self, number: int, messages: Sequence[tuple[str, Any]]) -> str:
        """Report all phases of an item; returns the outcome that pytest's summary gives it."""
        item = self._session.items[number]
        hook = item.ihook  # which is looked up anew each time
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        outcome = self.phases(number, messages)
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        return outcome

    def phases(self, number: int, messages: Sequence[tuple[str, Any]]) -> str:
        """Report what a worker sent of an item, without its start and its end."""
        item = self._session.items[number]
        hook = item.ihook
        outcome = "passed"
        for kind, value in messages:
            if kind == "warning":
                self._warn(value)
            elif kind == "property" and value not in self._properties:  # of a fixture that each worker sets up once
                self._properties.append(value)
        for kind, value in messages:
            if kind in _REPORTS:
                report = self._report(item, kind, value)
                self._quarantined.excuse(report)
                outcome = report.outcome if report.outcome != "passed" else outcome
                hook.pytest_runtest_logreport(report=report)
        return outcome

    def _report(self, item: pytest.Item, kind: str, value: Any) -> Any:
        if kind == "plain":
            keywords: Any = dict.fromkeys(item.keywords, 1)
            fields = dict(zip(SENT, value, strict=True))
            return pytest.TestReport(item.nodeid, item.location, keywords, longrepr=None, **fields)
        return self._hook.pytest_report_from_serializable(config=self._session.config, data=value)

    def _warn(self, value: tuple[Any, ...]) -> None:
        text, category, filename, line, when, nodeid, location = value
        kind = getattr(builtins, category, None) or type(category, (Warning,), {})
        message = warnings.WarningMessage(kind(text), kind, filename, line)
        arguments = {"warning_message": message, "when": when, "nodeid": nodeid, "location": location}
        self._hook.pytest_warning_recorded.call_historic(kwargs=arguments)

    def failure(self, number: int, text: str) -> None:
        """Report a failure that no test could report itself."""
        item = self._session.items[number]
        reports = self._quarantined.excuse_lost(_failed(item, "call", text))
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        for each in reports:
            item.ihook.pytest_runtest_logreport(report=each)
        item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)

    def late_failure(self, number: int, text: str) -> None:
        """Report what went wrong after an item was reported, as an error of its teardown."""
        item = self._session.items[number]
        report = _failed(item, "teardown", text)
        self._quarantined.excuse(report)
        item.ihook.pytest_runtest_logreport(report=report)


def _failed(item: pytest.Item, when: Any, text: str) -> pytest.TestReport:
    keywords: Any = dict.fromkeys(item.keywords, 1)
    return pytest.TestReport(item.nodeid, item.location, keywords, outcome="failed", longrepr=text, when=when)


def how_it_ended(status: int | None, stacks: str, *, where: str = ENDED) -> str:
    """What to say of a process that ended where it should not have."""
    how = "its process is gone"
    if status is not None:
        code = os.waitstatus_to_exitcode(status)
        how = signal_name(-code) if code < 0 else f"exit code {code}"
    text = f"{where}: {how}"
    return f"{text}\n{stacks}" if stacks else text


def outcome_of(messages: Sequence[tuple[str, Any]]) -> str:
    """The outcome of an item from its serialised reports."""
    outcomes = [_field(kind, value, "outcome") for kind, value in messages if kind in _REPORTS]
    return next((one for one in ("failed", "skipped") if one in outcomes), "passed")


def kept_of(messages: Sequence[tuple[str, Any]]) -> str:
    """The same as the history names it, where it matters whether the test's body ran.

    A set-up that failed is an error; a body that failed as its mark expects it to has passed. What gives itself up with
    `pytest.xfail(reason)`, or is not run (`run=False`), is skipped.
    """
    reports = [value for kind, value in messages if kind == "report"]
    if any(report["when"] == "setup" and report["outcome"] == "failed" for report in reports):
        return "error"
    outcome = outcome_of(messages)
    ran = [report for report in reports if report["when"] == "call" and report.get("wasxfail") is not None]
    if outcome == "skipped" and ran and not _crash_of(ran[0]).startswith(_GIVEN_UP):
        return "passed"
    return outcome


def seconds_of(messages: Sequence[tuple[str, Any]]) -> float:
    """How long all phases of an item took."""
    return float(sum(_field(kind, value, "duration") for kind, value in messages if kind in _REPORTS))


def message_of(messages: Sequence[tuple[str, Any]]) -> str:
    """The last line of what went wrong; empty where nothing did."""
    for kind, value in messages:
        if kind == "report" and value.get("outcome") == "failed":
            return (_crash_of(value) or str(value.get("longrepr") or "")).split("\n")[0]
    return ""


def _crash_of(report: Mapping[str, Any]) -> str:
    """What a serialised report says was raised."""
    longrepr = report.get("longrepr")
    crash = longrepr.get("reprcrash") if isinstance(longrepr, dict) else None
    return str((crash or {}).get("message") or "")


def _field(kind: str, value: Any, name: str) -> Any:
    return value[SENT.index(name)] if kind == "plain" else value[name]
