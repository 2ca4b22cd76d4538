"""JUnit XML of a run, as text: one testsuite a unit, every planned unit in it whatever happened.

Follows the common subset that Jenkins, GitLab and GitHub read (testsuites / testsuite / testcase with failure, error or
skipped). A coverage hole, and a unit that has no verdict yet, is an `error`: neither a pass nor a skip. What fails in
quarantine is `skipped`, so that CI stays green, with what it really came to as a property of the case.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import Final
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from sooner.model.events import Verdict
from sooner.model.outcomes import Outcome
from sooner.model.text import xml_text
from sooner.model.units import Unit

HOLE: Final = "coverage hole: "
"""Begins what is said of a test that was not started, for lack of devices."""
ENDED: Final = "the process of the test ended in its middle"
"""Begins what is said of a test that took its process with it."""
HUNG: Final = "no end after "
"""Begins what is said of a test that hung."""
QUARANTINED: Final = "quarantined: "
"""Begins what is said of a failure that the quarantine excuses."""
QUARANTINED_PROPERTY: Final = "sooner.quarantined"
"""The property of such a case: what it really came to. The type of its skip, too."""


class CaseFile(Struct, frozen=True, kw_only=True):
    """The cases of a JUnit file that a unit wrote itself."""

    cases: tuple[str, ...] = ()
    """Each `<testcase>` as XML text, valid on its own."""
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    excused: int = 0
    """Of these, failures and errors that the quarantine made skips."""


def junit_document(suites: Sequence["Suite"]) -> str:
    """The whole document; a suite is rendered once, however often it is part of one."""
    texts = "".join(suite.text for suite in suites)
    head = f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="sooner" {_totals(suites)}>\n'
    return f"{head}{texts}</testsuites>\n"


class Suite:
    """The testsuite of one unit.

    Args:
        unit: The unit.
        verdict: What is known of it by now; without one it is spelled as an error of type `not_run`.
        file: Cases that it wrote itself.
        tail: The end of its log, where it did not pass.
    """

    def __init__(
        self, unit: Unit, verdict: Verdict | None = None, file: CaseFile | None = None, tail: str = ""
    ) -> None:
        self._unit = unit
        self._verdict = verdict
        self._file = file or CaseFile()
        self._tail = tail
        self.seconds = verdict.duration_s if verdict else 0.0
        outcome = verdict.outcome if verdict else Outcome.NOT_RUN
        own = self._own_case_needed(outcome)
        self.tests = len(self._file.cases) + own
        excused = verdict is not None and verdict.is_excused
        self.failures = self._file.failures + (own and outcome is Outcome.FAILED and not excused)
        self.skipped = self._file.skipped + (own and (outcome is Outcome.SKIPPED or excused))
        plain = (Outcome.PASSED, Outcome.FAILED, Outcome.SKIPPED)
        self.errors = self._file.errors + (own and outcome not in plain and not excused)
        self._own = self._case(outcome) if own else ""

    def _own_case_needed(self, outcome: Outcome) -> bool:
        """A unit whose own cases tell its verdict needs no case of its own."""
        if not self._file.cases:
            return True
        told = self._file.failures + self._file.errors + self._file.excused > 0
        return not (outcome is Outcome.PASSED or (outcome is Outcome.FAILED and told))

    def _case(self, outcome: Outcome) -> str:
        cause = self._verdict.cause if self._verdict else "not run yet"
        head = f"<testcase classname={_attribute(self._unit.variant or 'sooner')} name={_attribute(self._unit.name)}"
        head += f' time="{self.seconds:.3f}"'
        if outcome is Outcome.PASSED:
            return f"{head}/>\n"
        message = _attribute(cause or outcome)
        if outcome is Outcome.SKIPPED:
            return f"{head}><skipped message={message}/></testcase>\n"
        text = escape(xml_text(self._tail))
        if self._verdict and self._verdict.is_excused:
            real = f'<properties><property name="{QUARANTINED_PROPERTY}" value="{outcome}"/></properties>'
            said = _attribute(f"{QUARANTINED}{cause or outcome}")
            skip = f'<skipped type="{QUARANTINED_PROPERTY}" message={said}>'
            return f"{head}>{real}{skip}{text}</skipped></testcase>\n"
        tag = "failure" if outcome is Outcome.FAILED else "error"
        return f'{head}><{tag} type="{outcome}" message={message}>{text}</{tag}></testcase>\n'

    @cached_property
    def text(self) -> str:
        """The suite as XML."""
        attempts = self._verdict.attempts if self._verdict else ()
        started = datetime.fromtimestamp(attempts[0].started_at if attempts else 0.0, UTC)
        stamp = started.isoformat(timespec="seconds").replace("+00:00", "Z")
        head = f'<testsuite name={_attribute(self._unit.key)} {_totals([self])} timestamp="{stamp}">\n'
        return "".join([head, self._properties(), *self._file.cases, self._own, "</testsuite>\n"])

    def _properties(self) -> str:
        verdict = self._verdict
        facts = {
            "sooner.outcome": verdict.outcome if verdict else Outcome.NOT_RUN,
            "sooner.variant": self._unit.variant,
        }
        if verdict:
            last = verdict.attempts[-1].devices if verdict.attempts else ()
            facts |= {
                "sooner.cause": verdict.cause,
                "sooner.devices": ",".join(last),
                "sooner.attempts": str(len(verdict.attempts)),
                "sooner.flaky": "true" if verdict.flaky else "",
                "sooner.log": verdict.log,
                QUARANTINED_PROPERTY: "true" if verdict.quarantined else "",
            }
        lines = "".join(
            f"<property name={_attribute(name)} value={_attribute(value)}/>" for name, value in facts.items() if value
        )
        return f"<properties>{lines}</properties>\n"


def _totals(suites: Sequence[Suite]) -> str:
    counts = (
        f'{name}="{sum(getattr(suite, name) for suite in suites)}"'
        for name in ("tests", "failures", "errors", "skipped")
    )
    return " ".join([*counts, f'time="{sum(suite.seconds for suite in suites):.3f}"'])


def _attribute(text: str) -> str:
    return quoteattr(xml_text(text), {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
