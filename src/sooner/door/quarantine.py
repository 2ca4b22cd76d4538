"""The quarantine in pytest: what fails in it is reported as an expected failure, with what it really came to.

An expected failure is the one outcome that all reporters of pytest show and that fails no run. What it really was stays
in the report's properties (and so in junit.xml), and the history is told by the loop, not by these reports.
"""

from pathlib import Path

import pytest

from sooner.model.junit import QUARANTINED, QUARANTINED_PROPERTY
from sooner.model.quarantine import Excuses, Quarantine, QuarantineError, read_quarantine, unknown_note
from sooner.model.text import one_line


class Quarantined:
    """Excuses reports of tests in quarantine.

    Args:
        setting: `--quarantine`: a file, or `none`.

    Raises:
        pytest.UsageError: The file cannot be read, or is broken.
    """

    def __init__(self, setting: str) -> None:
        self._source = setting
        self._excuses = Excuses(_read(setting))
        self._failed: dict[str, str] = {}
        """First lines of what went wrong, by node id."""

    def excuse(self, report: pytest.TestReport) -> None:
        """Make a failure an expected one if its test is in quarantine; all later reports of the test tell of it."""
        if not self._excuses or not self._excuses.holds_test(report.nodeid):
            return
        if report.outcome == "failed":
            self._failed.setdefault(report.nodeid, _first_line(report))
            report.outcome = "skipped"
            report.wasxfail = f"{QUARANTINED}{self._failed[report.nodeid]}"
        if report.nodeid in self._failed:
            report.user_properties = [*report.user_properties, (QUARANTINED_PROPERTY, "failed")]

    def excuse_lost(self, report: pytest.TestReport) -> list[pytest.TestReport]:
        """The same for a test whose process is gone: its properties need the report of a tear-down that never was."""
        self.excuse(report)
        if report.nodeid not in self._failed:
            return [report]
        ended = pytest.TestReport(
            nodeid=report.nodeid,
            location=report.location,
            keywords=report.keywords,
            outcome="passed",
            longrepr=None,
            when="teardown",
            user_properties=[(QUARANTINED_PROPERTY, "crashed")],
        )
        return [report, ended]

    def show(self, terminal: "pytest.TerminalReporter") -> None:
        """List what failed in quarantine, and entries that this session had nothing of."""
        note = unknown_note(self._excuses.unknown(), self._source)
        if self._failed or note:
            terminal.section("quarantine")
        for nodeid, line in self._failed.items():
            terminal.line(f"{QUARANTINED}{one_line(nodeid)} failed: {line}")
        if self._failed:
            terminal.line(f"{len(self._failed)} failed in quarantine, which fails no run")
        if note:
            terminal.line(f"note: {one_line(note)}")


def _read(setting: str) -> Quarantine:
    if setting in ("", "none"):
        return Quarantine()
    try:
        return read_quarantine(Path(setting).read_text(encoding="utf-8-sig"), source=setting)
    except QuarantineError as error:
        raise pytest.UsageError(str(error)) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise pytest.UsageError(f"the quarantine {setting} cannot be read: {reason}") from None


def _first_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(getattr(crash, "message", "") or report.longrepr or "")
    return one_line(text.split("\n", maxsplit=1)[0])
