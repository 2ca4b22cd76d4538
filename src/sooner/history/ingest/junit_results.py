"""What an element inside of a JUnit case says of an attempt: how it ended, and in which words. Pure."""

import re
from collections.abc import Mapping
from typing import Final

from sooner.history.fingerprints import first_line
from sooner.history.ingest.junit_again import TEARDOWN
from sooner.history.outcomes import HistoryOutcome, of_skip, spelled
from sooner.model.junit import ENDED, HOLE, HUNG, QUARANTINED

_LONGEST_MESSAGE: Final = 500
_MOST_TEXT: Final = 4_000
"""Characters of a failure's text that are kept in memory: enough for its first line."""

BROKEN: Final = frozenset({"failure", "error"})
RERUNS: Final = frozenset({"rerunFailure", "rerunError"})
"""Surefire and nextest: another attempt after the one told by `failure`, which did not pass either."""
FLAKES: Final = frozenset({"flakyFailure", "flakyError", "rerun"})
"""Surefire and nextest: an attempt before the one that passed; PyTorch's pytest: before the one that counts."""
RESULTS: Final = BROKEN | RERUNS | FLAKES | {"skipped"}

_OWN_TYPES: Final = frozenset(HistoryOutcome) | {"worker_lost", "hole"}
"""sooner spells outcomes that are neither failure nor skip as the type of an error."""
_TIMED_OUT: Final = re.compile(r"time[ds]?[ _-]?out", re.IGNORECASE)
"""In the type of a result, where it is no word of the code under test."""
_TIMEOUT: Final = re.compile(
    r"\btime[ds] ?[ _-]?out\b|\btime[ _-]out\b|\bTimeout(?:Error|Exception|Expired)\b|deadline exceeded"
    r"|(?<![\'\"`.=(\[])\btimeout(?: ?[>(:]| \d| (?:of|after|at|expired|exceeded|reached|waiting|while)\b|$)"
    rf"|\b(?:exceed\w*|hit|reached) (?:the |its |a )?timeout\b|^{HUNG}\d",
    re.IGNORECASE,
)
"""A bare `timeout` may be an argument or an option: TypeError: unexpected keyword argument 'timeout'."""
_CRASH: Final = re.compile(
    rf"worker '?\w+'? crashed|core dumped|segmentation fault|\bSIG(SEGV|ABRT|BUS|ILL|FPE|KILL)\b|^{ENDED}",
    re.IGNORECASE,
)
_MEMORY: Final = re.compile(
    r"\bout of memory\b|OutOfMemory(?:Error|Exception)?\b|\bMemoryError\b|\bstd::bad_alloc\b|_STATUS_ALLOC_FAILED\b"
    r"|\b(?:CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorMemoryAllocation)\b|\bOOM[- ]?killed\b",
    re.IGNORECASE,
)
_JUDGED: Final = re.compile(r"assert\b|AssertionError\b|Failed: DID NOT RAISE\b")
"""How it begins where the test itself compared something: the words that it compared say nothing of its end."""
_PLACE: Final = re.compile(r"\S+:\d+")
_EXPECTED: Final = frozenset({"pytest.xfail", "XFAIL"})
"""Types of skips that are expected failures: pytest's, and unittest-xml-reporting's."""


class Result:
    """A `failure`, `error`, `skipped` or a retry inside of a test case."""

    __slots__ = ("attributes", "length", "tag", "texts")

    def __init__(self, tag: str, attributes: Mapping[str, str]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.texts: list[str] = []
        self.length = 0

    def add(self, text: str) -> None:
        """Take text in, as long as there is not too much of it."""
        if self.length < _MOST_TEXT:
            self.texts.append(text[:_MOST_TEXT])
            self.length += len(text)

    @property
    def text(self) -> str:
        """What stands in it."""
        return "".join(self.texts).strip()

    @property
    def headline(self) -> str:
        """Its first line."""
        return first_line(self.attributes.get("message", "") or self.text, _LONGEST_MESSAGE)

    @property
    def message(self) -> str:
        """Its first line; with the next one where it is a mere place (gtest), of its text where it is a word (Go)."""
        line = self.headline
        if _PLACE.fullmatch(line):
            more = first_line(self.attributes.get("message", "").partition(line)[2], _LONGEST_MESSAGE)
            return f"{line}: {more}"[:_LONGEST_MESSAGE] if more else line
        return (spelled(line) and first_line(self.text, _LONGEST_MESSAGE)) or line

    @property
    def outcome(self) -> HistoryOutcome:
        """What it says of the attempt."""
        kind = self.attributes.get("type", "")
        if self.is_hole:
            return HistoryOutcome.SKIPPED_NO_DEVICES
        if self.tag == "skipped":
            return _of_expected(self.message) if kind in _EXPECTED else of_skip(f"{self.message} {self.text}")
        if kind in _OWN_TYPES and (own := spelled(kind)) is not None:
            return own
        if (end := _end_of(kind, self.headline) or _end_of(kind, self.message)) is not None:
            return end
        if self.message.startswith(TEARDOWN) or kind == "UnexpectedSuccess":  # the test's body has run
            return HistoryOutcome.FAILED
        return HistoryOutcome.ERROR if self.tag.endswith(("error", "Error")) else HistoryOutcome.FAILED

    @property
    def is_hole(self) -> bool:
        """Whether the test was not even started, for lack of devices."""
        return self.message.removeprefix(QUARANTINED).startswith(HOLE)


def _end_of(kind: str, message: str) -> HistoryOutcome | None:
    """Of a failure that was the end of its test rather than its judgement, which end that was."""
    if _TIMED_OUT.search(kind):
        return HistoryOutcome.TIMED_OUT
    said = f"{kind} {message}".strip()
    if _JUDGED.match(said):
        return None
    ends = (
        (_TIMEOUT, HistoryOutcome.TIMED_OUT),
        (_CRASH, HistoryOutcome.CRASHED),
        (_MEMORY, HistoryOutcome.OUT_OF_MEMORY),
    )
    return next((outcome for pattern, outcome in ends if pattern.search(said)), None)


def _of_expected(message: str) -> HistoryOutcome:
    """What an expected failure came to: it did what was expected, unless it says that it did not run.

    What is in the quarantine did not do what was expected; where nothing says what it did, it counts as not run.
    """
    did_not = message.startswith(("[NOTRUN]", QUARANTINED)) or of_skip(message) is HistoryOutcome.SKIPPED_NO_DEVICES
    return HistoryOutcome.SKIPPED if did_not else HistoryOutcome.PASSED
