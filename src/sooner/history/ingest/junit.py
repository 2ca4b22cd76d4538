"""JUnit files: read in one pass; broken ones as far as they go, or whole with lxml's help; entity bombs refused."""

import codecs
import hashlib
import importlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn
from xml.parsers import expat

from sooner.history.commit import Added, Repeats
from sooner.history.ingest.intake import Intake
from sooner.history.ingest.junit_events import Cases
from sooner.history.ingest.opening import opened
from sooner.history.ingest.sources import WINDOWS
from sooner.history.outcomes import HistoryOutcome
from sooner.history.tables import TABLES, Epoch, TestRow

_CHUNK: Final = 1 << 18
_FORBIDDEN: Final = bytes(code for code in range(32) if code not in b"\t\n\r")
"""Control characters that XML does not allow and that tests print: escape sequences of terminals above all."""
_ENTITY: Final = b"<!ENTITY"
_WIDE: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, b"<\0", b"\0")
"""How documents in UTF-16 and UTF-32 begin."""
_OTHER_ENCODING: Final = re.compile(rb"""\s*<\?xml[^>]*\bencoding\s*=\s*["'](?!utf-?8["'])""", re.IGNORECASE)


def take_junit(path: Path, intake: Intake) -> None:
    """Read a JUnit file. The run of its cases is the file itself (its digest), unless `--set run=ID` says which.

    An equal one that was read by the same call is a copy of it, and all of its rows are known.

    Raises:
        IngestError: It cannot be opened.
    """
    digest = _digest(path)
    if (known := intake.seen.get(digest)) is not None:  # by another name, or a link: no test ran once more
        intake.report.add("tests", Added(known))
        return
    like = TestRow(
        run=intake.options.constants.get("run") or f"junit-{digest}",
        outcome=HistoryOutcome.PASSED,
        source=f"junit:{path.name}",
        as_of=Epoch(path.stat().st_mtime),
    )
    rows = intake.row_file(TABLES["tests"], Repeats.ATTEMPTS)
    mark = rows.mark()
    cases = Cases(rows.add, like, intake.options.timezone)
    problem = _read(path, cases)
    if problem is not None and problem.is_mendable:
        mended = Cases(rows.add, like, intake.options.timezone)
        if _lxml() is not None:
            rows.back_to(mark)
            _read_broken(path, mended)
            cases = mended
            problem = problem.because(f"{cases.cases} cases were recovered")
        else:
            problem = problem.because(
                f"{cases.cases} cases before it were kept; `pip install 'sooner[xml]'` may recover the rest"
            )
    cases.close()
    intake.seen[digest] = rows.rows - mark[1]
    if problem is None and not cases.is_junit:
        problem = _Problem(1, f"<{cases.root}> is no JUnit XML")
    if problem is not None:
        intake.report.reject(str(path), problem.line, problem.reason)
    if cases.naive_times and intake.options.zone == "UTC":
        intake.report.note("JUnit times without a zone were read as UTC", cases.naive_times)
    if cases.unreadable_times:
        intake.report.note("JUnit times that are not ISO 8601 were left out", cases.unreadable_times)
    intake.flush_if_full()


def read_cases(path: Path, emit: Callable[[TestRow], None], like: TestRow) -> None:
    """Hand out the cases of a JUnit file that is known to be good; of a broken one, those before the break.

    Raises:
        IngestError: It cannot be opened.
    """
    cases = Cases(emit, like)
    _read(path, cases)
    cases.close()


class _Problem:
    """Why a document could not be read to its end."""

    def __init__(self, line: int, reason: str, *, is_mendable: bool = False) -> None:
        self.line = line
        self.reason = reason
        self.is_mendable = is_mendable

    def because(self, more: str) -> "_Problem":
        return _Problem(self.line, f"{self.reason}; {more}")


def _read(path: Path, cases: Cases) -> _Problem | None:
    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = cases.start
    parser.EndElementHandler = cases.end
    parser.CharacterDataHandler = cases.data
    # What defusedxml does; its own parser is written in Python and takes three times as long.
    parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = parser.ExternalEntityRefHandler = _refuse
    try:
        with opened(path) as stream:
            for chunk in _chunks(stream):
                parser.Parse(chunk, False)
        parser.Parse(b"", True)
    except _EntityError:
        return _Problem(parser.CurrentLineNumber, "entity declarations are refused: JUnit needs none")
    except expat.ExpatError as error:
        return _Problem(error.lineno, f"the XML is broken: {expat.ErrorString(error.code)}", is_mendable=True)
    except (LookupError, ValueError) as error:
        if cases.root:
            raise
        # Told by the first line: GBK, say, or what is no encoding's name.
        return _Problem(1, f"its encoding cannot be read: {error}", is_mendable=True)
    return None


class _EntityError(Exception):
    """The document declares entities, by which a small file can become gigabytes or read other files."""


def _refuse(*_: object) -> NoReturn:
    raise _EntityError


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a document, without those that no document may hold."""
    first = stream.read(_CHUNK)
    is_wide = first[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in first[:4]  # UTF-16 and UTF-32 are full of NULs
    while first:
        yield first if is_wide else first.translate(None, _FORBIDDEN)
        first = stream.read(_CHUNK)


def _lxml() -> Any:
    try:
        return importlib.import_module("lxml.etree")
    except ModuleNotFoundError:
        return None


def _read_broken(path: Path, cases: Cases) -> None:
    """Read what can be read: libxml2 closes what is open, and goes on behind what it does not understand."""
    etree = _lxml()
    parser = etree.XMLParser(
        target=cases, recover=True, huge_tree=True, resolve_entities=False, no_network=True, load_dtd=False
    )
    try:
        with opened(path) as stream:
            etree.parse(_Guarded(stream), parser)
    except etree.XMLSyntaxError:
        return


class _Guarded:
    """A stream that ends before the first entity declaration: a broken document can hold one anywhere.

    What is to be UTF-8 and is not is read as Windows-1252: names that differ stay different.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._chunks = _chunks(stream)
        self._tail = b""
        self._decoder = codecs.getincrementaldecoder("utf-8")(WINDOWS)
        self._is_utf_8: bool | None = None

    def read(self, _size: int = -1) -> bytes:
        """The next bytes."""
        chunk = next(self._chunks, b"")
        if _ENTITY in self._tail + chunk:
            self._chunks = iter(())
            return b""
        self._tail = chunk[-len(_ENTITY) :]
        if self._is_utf_8 is None:
            self._is_utf_8 = not chunk.startswith(_WIDE) and not _OTHER_ENCODING.match(chunk)
        return self._decoder.decode(chunk, final=not chunk).encode() if self._is_utf_8 else chunk


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()[:16]
