r"""Text that comes from tests, as data: made safe for XML, for terminals and for file names.

Sources: XML 1.0 section 2.2 (the characters a document may hold); ECMA-48 (escape sequences).
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor moves
    r"|\x1b[\]PX^_].*?(?:\x1b\\|\x07|$)"  # OSC, DCS, SOS, PM, APC strings
    r"|\x1b[@-Z\\-_]?",
    re.DOTALL,
)
_COLOUR: Final = re.compile(r"\x1b\[[0-9;:]*m")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters; also those by which a name turns round what stands behind it (UAX 9: embeddings, isolates)."""
_TEST: Final = re.compile(r"(?:.*?\.py::)?[^\[]*", re.DOTALL)
_MOST_NAMED: Final = 5
_UNSAFE_IN_NAME: Final = re.compile(r"[^A-Za-z0-9._+=-]+")
_LONGEST_NAME: Final = 120
"""File systems allow 255 bytes; the rest is for suffixes and temporary names."""


def decoded(data: bytes) -> str:
    r"""Bytes of a log as text: UTF-8, with `\xff` for what is not."""
    return data.decode("utf-8", "backslashreplace")


def printable(text: str) -> str:
    r"""Text without lone surrogates (bytes of a command line that are not UTF-8): they become `\xff`."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def xml_text(text: str) -> str:
    """Text that an XML document may hold: escape sequences removed, other forbidden characters as U+FFFD."""
    return _NOT_XML.sub("\ufffd", _ESCAPES.sub("", printable_or_replaced(text)))


def printable_or_replaced(text: str) -> str:
    """Text that can be encoded as UTF-8, whatever surrogates it holds."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def terminal_text(text: str, *, colour: bool) -> str:
    """Text that cannot move a terminal's cursor or retitle its window; colours stay where `colour` is true."""

    def keep(match: re.Match[str]) -> str:
        return match.group() if colour and _COLOUR.fullmatch(match.group()) else ""

    cleaned = _ESCAPES.sub(keep, printable_or_replaced(text))
    return "".join(
        part if _COLOUR.fullmatch(part) else _CONTROL.sub("", part)
        for part in re.split(f"({_COLOUR.pattern})", cleaned)
    )


def one_line(text: str) -> str:
    """Text for a progress line: no escape sequence, no line break, no `##[` (to GitHub a command anywhere)."""
    return disarmed(" ".join(terminal_text(text, colour=False).split())) or "(empty)"


def disarmed(text: str) -> str:
    """Text in which GitHub Actions finds no command of its older kind, which it obeys wherever it stands in a line."""
    return text.replace("##[", "## [")


def columns(text: str) -> int:
    """How many columns of a terminal a line takes: two for wide characters, none for those that combine (UAX 11)."""
    return len(text) if text.isascii() else sum(map(_columns_of, text))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def padded(text: str, width: int, *, right: bool = False) -> str:
    """A line of so many columns at least."""
    fill = " " * (width - columns(text))
    return fill + text if right else text + fill


def cut(text: str, most: int) -> str:
    """A line of at most so many columns; what is cut off is an ellipsis."""
    if columns(text) <= most:
        return text
    if text.isascii():
        return f"{text[: most - 1]}…"
    end, room = 0, most - 1
    while end < len(text) and (room := room - _columns_of(text[end])) >= 0:
        end += 1
    return f"{text[:end]}…"


def probability_text(probability: float) -> str:
    """`99.94 %`; what is more probable than two digits can say does not read as if it were certain."""
    rounded = f"{100 * probability:.2f} %"
    return "over 99.99 %" if rounded == "100.00 %" else rounded


def file_name(text: str) -> str:
    """A name that every file system takes; different texts that look alike stay different through a digest."""
    cleaned = _UNSAFE_IN_NAME.sub("_", text).strip("._") or "unit"
    if cleaned == text and len(text) <= _LONGEST_NAME:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{cleaned[: _LONGEST_NAME - 9]}-{digest}"


def test_of(node_id: str) -> str:
    """The test that a case of it belongs to: the id without its parameters; a file's path may hold brackets, too."""
    found = _TEST.match(node_id)
    return found[0] if found else node_id


def there_are(name: str, known: Iterable[str]) -> str:
    """`there are 'a', 'b' and 3 more`, those that are most like a name first."""
    others = sorted(known)
    near = get_close_matches(name, others, n=_MOST_NAMED)
    some = [*near, *(other for other in others if other not in near)][:_MOST_NAMED]
    if not some:
        return "there is none"
    more = f" and {len(others) - len(some):,} more" if len(others) > len(some) else ""
    return f"there {'is' if len(others) == 1 else 'are'} {', '.join(map(repr, some))}{more}"
