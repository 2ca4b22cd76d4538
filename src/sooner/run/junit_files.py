"""Reads the JUnit files that units write themselves; never changes them."""

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Final

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from sooner.model.junit import CaseFile
from sooner.model.text import xml_text

_MOST_BYTES: Final = 256 * 1024 * 1024
"""A larger file is left alone: merging it would cost more memory than a CI runner should give."""
_CLOCK_SLACK_S: Final = 2.0
"""File systems round times; a file this much older than its unit is left from an earlier run."""


def read_cases(path: Path, *, newer_than: float) -> CaseFile | None:
    """The cases in a unit's own JUnit file, or None where it is missing, stale, broken, or not JUnit.

    Entity declarations are refused (defusedxml). The cases come back as they were written, one XML text each.
    """
    try:
        status = path.stat()
        if status.st_mtime < newer_than - _CLOCK_SLACK_S or status.st_size > _MOST_BYTES:
            return None
        return _read(path)
    except (OSError, ET.ParseError, DefusedXmlException, ValueError):
        return None


def _read(path: Path) -> CaseFile:
    cases = []
    counts = {"failure": 0, "error": 0, "skipped": 0}
    for _, element in iterparse(path):
        if element.tag != "testcase":
            continue
        for tag in counts:
            if element.find(tag) is not None:
                counts[tag] += 1
                break
        element.tail = "\n"
        _clean(element)
        cases.append(ET.tostring(element, encoding="unicode"))
        element.clear()
    return CaseFile(cases=tuple(cases), failures=counts["failure"], errors=counts["error"], skipped=counts["skipped"])


def _clean(element: ET.Element) -> None:
    """Character references can smuggle in what the document that we write may not hold."""
    for part in element.iter():
        if part.text:
            part.text = xml_text(part.text)
        for name, value in part.attrib.items():
            part.set(name, xml_text(value))
