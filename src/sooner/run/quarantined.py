"""What the quarantine of a run excuses: units by name, and the cases of JUnit files that units write themselves.

The quarantine is a file of the run's folder, so that a run which is resumed, completed by its guardian or replayed is
judged by what it began with.
"""

import contextlib
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

from sooner.model.events import Attempt
from sooner.model.junit import QUARANTINED, QUARANTINED_PROPERTY, CaseFile
from sooner.model.outcomes import BROKEN, Outcome
from sooner.model.quarantine import Entry, Excuses, Quarantine, QuarantineError, read_quarantine
from sooner.model.units import Unit
from sooner.run.folder import RunFolder
from sooner.run.junit_files import read_cases

_NOT_OF_TESTS: Final = frozenset({2, 3, 4, 5})
"""Exit codes by which pytest says that more went wrong than a test: interrupted, internal error, usage, no tests."""


class Quarantined:
    """Judges units and cases of one run.

    Args:
        folder: The run's folder.
    """

    def __init__(self, folder: RunFolder) -> None:
        quarantine = Quarantine()
        with contextlib.suppress(OSError, UnicodeDecodeError, QuarantineError):  # it was checked before
            text = folder.quarantine.read_text(encoding="utf-8")
            quarantine = read_quarantine(text, source=str(folder.quarantine))
        self._excuses = Excuses(quarantine)

    def holds(self, unit: Unit, outcome: Outcome, attempts: tuple[Attempt, ...], cases: Path) -> bool:
        """Whether a unit is in quarantine, or failed by nothing but cases that are.

        Args:
            unit: The unit.
            outcome: What it came to.
            attempts: Its attempts.
            cases: The copy of the JUnit file that it wrote.
        """
        if not self._excuses:
            return False
        if self._excuses.holds_unit(unit.name, unit.variant):
            return True
        failed = outcome is Outcome.FAILED and bool(attempts) and attempts[-1].exit_code not in _NOT_OF_TESTS
        if not (failed and unit.junit):
            return False
        file = self.cases_of(unit, cases)
        return file is not None and file.excused > 0 and not file.failures + file.errors

    def cases_of(self, unit: Unit, path: Path) -> CaseFile | None:
        """The cases of a unit's own JUnit file; None where it has none that can be read."""
        if not self._excuses:
            return read_cases(path)
        whole = self._excuses.holds_unit(unit.name, unit.variant)

        def excuse(case: ET.Element) -> None:
            held = self._excuses.holds_test(_node_id(case), unit.variant)
            if held or whole:
                _excuse(case)

        return read_cases(path, excuse)

    def knows(self, unit: Unit, cases: Path | None) -> None:
        """Look which entries are about a unit, or about a case of its own JUnit file."""
        self._excuses.holds_unit(unit.name, unit.variant)
        if unit.junit and cases is not None:
            read_cases(cases, lambda case: self._look_at(case, unit))

    def _look_at(self, case: ET.Element, unit: Unit) -> None:
        self._excuses.holds_test(_node_id(case), unit.variant)

    def unknown(self) -> list[Entry]:
        """Entries of which this run had nothing, as far as was asked."""
        return self._excuses.unknown()


def _node_id(case: ET.Element) -> str:
    for each in case.iterfind("properties/property"):
        if each.get("name") in ("nodeid", "node_id", "pytest.nodeid"):
            return each.get("value", "")
    return "::".join(filter(None, (case.get("classname", ""), case.get("name", ""))))


def _excuse(case: ET.Element) -> None:
    """Make a failure a skip that tells of it: message, text and outcome stay to be read."""
    problem = next((part for tag in ("failure", "error") if (part := case.find(tag)) is not None), None)
    if problem is None:
        return
    outcome = Outcome.FAILED.value if problem.tag == "failure" else _outcome_of_error(problem)
    properties = case.find("properties")
    if properties is None:
        properties = ET.Element("properties")
        case.insert(0, properties)
    ET.SubElement(properties, "property", name=QUARANTINED_PROPERTY, value=outcome)
    message = problem.get("message") or (problem.text or "").strip().partition("\n")[0]
    problem.tag = "skipped"
    problem.attrib = {"type": QUARANTINED_PROPERTY, "message": f"{QUARANTINED}{message}"}
    for other in [part for part in case if part.tag in ("failure", "error")]:
        case.remove(other)


def _outcome_of_error(problem: ET.Element) -> str:
    kind = problem.get("type", "")
    return kind if kind in BROKEN else "error"
