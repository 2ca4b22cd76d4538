"""JSON as CI systems dump it, item by item, in bounded memory.

`gh api --paginate` prints one document after the other; `--slurp` makes a list of them; databases write one object a
line; others one endless list. All of them are streams of items: objects in lists, in pages (`{"total_count": ...,
"jobs": [...]}`) or on their own. What is broken is told with its line, and reading goes on at the next line that
begins an object.
"""

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

from msgspec import Struct

_CHUNK: Final = 1 << 20
_DEEPEST: Final = 8
"""Lists in lists in lists: nobody nests pages deeper."""
_PAGE: Final = re.compile(
    r'\{\s*"(?:total_count|incomplete_results|jobs|workflow_runs|builds|check_runs|items|events|hits|data)"\s*:'
)
"""An object that begins like this is a page around a list of items."""
_LISTS: Final = frozenset({"jobs", "workflow_runs", "builds", "check_runs", "items", "events", "hits", "data"})
_SPACE: Final = re.compile(r"[\s,\x1e\ufeff]*")
"""Also what RFC 7464 puts before each text, and a byte order mark."""
_NEXT: Final = re.compile(r"\n\s*(?=[{\[])")
_MARGIN: Final = 16
"""An error this close to the end of what has been read means: read on."""


class Item(Struct, frozen=True):
    """One item and where it began."""

    line: int
    value: Any


class Broken(Struct, frozen=True):
    """A place where the JSON cannot be read."""

    line: int
    reason: str


class _Malformed(Exception):  # noqa: N818 - what the text is
    """The text from here on is no JSON value."""


def items(stream: BinaryIO) -> Iterator[Item | Broken]:
    """Every item of a stream of JSON documents."""
    yield from _Items(stream).all()


class _Items:
    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._raw = json.JSONDecoder(strict=False).raw_decode
        self._text = ""
        self._at = 0
        self._ended = False
        self._line = 1
        self._counted = 0
        """Up to which character of the text lines have been counted."""

    def all(self) -> Iterator[Item | Broken]:
        mended = False
        while character := self._peek():
            if mended and character not in "[{":
                # What is left of the list or page in which something was broken.
                self._at += 1
                continue
            try:
                yield from self._value(0)
            except _Malformed as error:
                yield Broken(self._here(), str(error))
                self._to_next_object()
                mended = True

    def _value(self, depth: int) -> Iterator[Item | Broken]:
        if depth > _DEEPEST:
            raise _Malformed(f"lists nested more than {_DEEPEST} deep")
        character = self._peek()
        if character == "[":
            yield from self._list(depth)
        elif character == "{" and self._is_page():
            yield from self._page(depth)
        else:
            line = self._here()
            yield Item(line, self._decoded())

    def _list(self, depth: int) -> Iterator[Item | Broken]:
        self._at += 1
        while (character := self._peek()) != "]":
            if not character:
                raise _Malformed("the file ends in the middle of a list")
            yield from self._value(depth + 1)
        self._at += 1

    def _is_page(self) -> bool:
        while len(self._text) - self._at < 64 and self._read():  # noqa: PLR2004 - long enough for the longest key
            pass
        return _PAGE.match(self._text, self._at) is not None

    def _page(self, depth: int) -> Iterator[Item | Broken]:
        self._at += 1
        while (character := self._peek()) != "}":
            if character != '"':
                raise _Malformed("the file ends in the middle of a page" if not character else "a page without keys")
            key = self._decoded()
            if self._peek() != ":":
                raise _Malformed(f"no value after {key!r}")
            self._at += 1
            if key in _LISTS and self._peek() == "[":
                yield from self._list(depth + 1)
            else:
                self._peek()
                self._decoded()
        self._at += 1

    def _decoded(self) -> Any:
        """The value that begins here; reads on for as long as it takes."""
        while True:
            try:
                value, end = self._raw(self._text, self._at)
            except json.JSONDecodeError as error:
                is_cut = error.msg.startswith("Unterminated") or error.pos >= len(self._text) - _MARGIN
                if is_cut and self._read(at_least=len(self._text) - self._at):
                    continue
                raise _Malformed(
                    f"no JSON: {error.msg}" if not is_cut else "the file ends in the middle of a value"
                ) from None
            except RecursionError:
                raise _Malformed("values nested too deep") from None
            if end == len(self._text) and self._text[end - 1] not in '}]"' and self._read():
                continue
            self._at = end
            return value

    def _peek(self) -> str:
        """The next character that means something; empty at the end."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read():
                return ""

    def _read(self, at_least: int = 0) -> bool:
        """Read on, forgetting what has been consumed; a value that is still cut doubles what is read."""
        if self._ended:
            return False
        self._here()
        self._text, self._at, self._counted = self._text[self._at :], 0, 0
        data = self._stream.read(max(_CHUNK, at_least))
        self._ended = not data
        self._text += self._decode(data, final=self._ended)
        return bool(data)

    def _here(self) -> int:
        self._line += self._text.count("\n", self._counted, self._at)
        self._counted = max(self._at, self._counted)
        return self._line

    def _to_next_object(self) -> None:
        while not (found := _NEXT.search(self._text, self._at)):
            self._at = max(self._at, len(self._text) - 1)
            if not self._read():
                self._at = len(self._text)
                return
        self._at = found.end()
