"""Reads the JUnit files that units write themselves; never changes them."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, Final

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import iterparse

from sooner.model.junit import CaseFile
from sooner.model.text import xml_text
from sooner.run.folder import open_regular

_MOST_BYTES: Final = 256 * 1024 * 1024
"""A larger file is left alone: merging it would cost more memory than a CI runner should give."""
_CLOCK_SLACK_S: Final = 2.0
"""File systems round times; a file this much older than its unit is left from an earlier run."""
_WHOLE_SECONDS: Final = 10**9

Stamp = tuple[int, int, int, int]
"""What no write leaves as it is: inode, size, times of the last write and of the last change in ns."""


def stamp_of(source: Path) -> Stamp | None:
    """The stamp of a unit's own JUnit file before an attempt; None where there is none that tells a write."""
    try:
        return _stamp(source.stat())
    except OSError:
        return None


def _stamp(status: os.stat_result) -> Stamp | None:
    if status.st_mtime_ns % _WHOLE_SECONDS == 0:
        return None  # a file system that rounds that much cannot tell two writes in one second
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def keep_cases(source: Path, copy: Path, *, newer_than: float, before: Stamp | None = None) -> bool:
    """Copy a unit's own JUnit file into the run folder; says whether there was a whole one of this attempt.

    The copy is what reports are made from, now and later: the unit's path may hold another run's cases by then. A copy
    of an earlier attempt is removed. A file that still has the stamp from `before` was not written by this attempt.
    """
    copy.unlink(missing_ok=True)
    try:
        with open_regular(source) as file:
            status = os.fstat(file.fileno())
            if status.st_mtime < newer_than - _CLOCK_SLACK_S or status.st_size > _MOST_BYTES:
                return False
            if before is not None and _stamp(status) == before:
                return False
            data = file.read()
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(data)
    except OSError:
        return False
    return read_cases(copy) is not None


def read_cases(path: Path, excuse: Callable[[ET.Element], None] | None = None) -> CaseFile | None:
    """The cases in a JUnit file, or None where it is missing, broken, or not JUnit.

    Entity declarations are refused (defusedxml). The cases come back as they were written, one XML text each.

    Args:
        path: The file.
        excuse: May make a failure of a case a skip.
    """
    try:
        with open_regular(path) as file:
            return _read(file, excuse)
    except (OSError, ET.ParseError, DefusedXmlException, ValueError):
        return None


def _read(file: BinaryIO, excuse: Callable[[ET.Element], None] | None) -> CaseFile:
    cases = []
    excused = 0
    counts = {"failure": 0, "error": 0, "skipped": 0}
    for _, element in iterparse(file):
        if element.tag != "testcase":
            continue
        if excuse is not None and element.find("skipped") is None:
            excuse(element)
            excused += element.find("skipped") is not None
        for tag in counts:
            if element.find(tag) is not None:
                counts[tag] += 1
                break
        element.tail = "\n"
        _clean(element)
        cases.append(ET.tostring(element, encoding="unicode"))
        element.clear()
    return CaseFile(
        cases=tuple(cases),
        failures=counts["failure"],
        errors=counts["error"],
        skipped=counts["skipped"],
        excused=excused,
    )


def _clean(element: ET.Element) -> None:
    """Character references can smuggle in what the document that we write may not hold."""
    for part in element.iter():
        if part.text:
            part.text = xml_text(part.text)
        for name, value in part.attrib.items():
            part.set(name, xml_text(value))
