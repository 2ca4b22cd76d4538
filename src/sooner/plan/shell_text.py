"""The text of a shell script, read just far enough: logical lines, with quotes and comments told apart.

This is a scanner, no parser of the shell: it knows quotes, `$( )`, comments, here-documents and line
continuations.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

_ASSIGNED: Final = re.compile(r"(?<![\w$./=-])([A-Za-z_]\w*)\+?=")
_HEREDOC: Final = re.compile(r"<<(-?)\s*(?:\\?([\w.]+)|(['\"])(.+?)\3)")
_HIDDEN: Final = "_"


class LogicalLine(Struct, frozen=True):
    """One command line, which backslashes and open quotes may spread over several lines of the file."""

    first: int
    last: int
    text: str
    """As written, joined, without comments."""
    bare: str
    """The same, as long, with the inside of quotes blanked by `_`; not so `$( )` inside double quotes."""

    def assigned(self) -> frozenset[str]:
        """Variables that the line sets: `A=1 pytest x`, `env A=1 pytest x`, `export A=1`."""
        return frozenset(_ASSIGNED.findall(self.bare))


def logical_lines(script: str) -> list[LogicalLine]:
    """The command lines of a script, here-documents left out."""
    return list(_logical_lines(script.split("\n")))


def one_line(text: str) -> LogicalLine:
    """A single command as a logical line of its own."""
    found = logical_lines(text)
    joined = "; ".join(line.text for line in found)
    return LogicalLine(0, 0, joined, "; ".join(line.bare for line in found))


def _logical_lines(lines: list[str]) -> Iterator[LogicalLine]:
    index = 0
    while index < len(lines):
        first = index
        scan, index = _scanned(lines, index)
        yield LogicalLine(first + 1, index, "".join(scan.text).strip(), "".join(scan.bare).strip())
        for strip_tabs, end in _heredocs("".join(scan.bare), "".join(scan.text)):
            index = _after_heredoc(lines, index, end, strip_tabs=strip_tabs)


def _scanned(lines: list[str], first: int) -> tuple["_Scan", int]:
    """One logical line and the index behind it; a quote that never closes is not believed."""
    scan = _Scan()
    for index in range(first, len(lines)):
        if not scan.feed(lines[index]):
            return scan, index + 1
    alone = _Scan()
    alone.feed(lines[first])
    return alone, first + 1


def _heredocs(bare: str, text: str) -> list[tuple[bool, str]]:
    """Delimiters of the here-documents that a line opens; `<<<` is a string, `$((1 << 2))` a shift."""
    found = []
    for match in _HEREDOC.finditer(text):
        shift = bare.rfind("((", 0, match.start()) > bare.rfind("))", 0, match.start())
        if (
            bare[match.start() : match.start() + 2] == "<<"
            and "<" not in text[match.start() - 1 : match.start()]
            and not shift
        ):
            found.append((bool(match.group(1)), match.group(2) or match.group(4)))
    return found


def _after_heredoc(lines: list[str], index: int, end: str, *, strip_tabs: bool) -> int:
    """Index of the line behind a here-document; unchanged where its end is missing."""
    for position in range(index, len(lines)):
        if (lines[position].lstrip("\t") if strip_tabs else lines[position]) == end:
            return position + 1
    return index


class _Scan:
    """Collects one logical line; remembers what is still open."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.bare: list[str] = []
        self._open: list[str] = []
        """Innermost last: `'`, `"`, `$'`, or `(` for a `$(` inside double quotes."""

    def feed(self, line: str) -> bool:
        """Take one line of the file; true where the next one belongs to the same command."""
        position = 0
        while position < len(line):
            char = line[position]
            if char == "\\" and self._quote() != "'":
                if position + 1 == len(line):
                    self._put(" ", hidden=bool(self._quote()))
                    return True
                self._put(line[position : position + 2], hidden=True)
                position += 2
                continue
            if char == "#" and not self._quote() and (position == 0 or line[position - 1] in " \t;&|("):
                break
            self._take(char, line, position)
            position += 1
        if self._open:
            self._put("\n" if self._quote() else ";", hidden=bool(self._quote()))
        return bool(self._open)

    def _quote(self) -> str:
        """The quote that the next character stands in, empty for none."""
        return self._open[-1] if self._open and self._open[-1] != "(" else ""

    def _take(self, char: str, line: str, position: int) -> None:
        quote = self._quote()
        if quote:
            closes = char == quote[-1]
            opens = quote == '"' and char == "(" and position > 0 and line[position - 1] == "$"
            if opens:
                self.bare[-1] = "$"
            self._put(char, hidden=not closes and not opens)
            if closes:
                self._open.pop()
            elif opens:
                self._open.append("(")
            return
        self._put(char, hidden=False)
        if char in "'\"":
            self._open.append("$'" if char == "'" and line[:position].endswith("$") else char)
        elif self._open and char == "(":
            self._open.append("(")
        elif self._open and char == ")":
            self._open.pop()

    def _put(self, text: str, *, hidden: bool) -> None:
        for char in text:
            self.text.append(char)
            self.bare.append(_HIDDEN if hidden else char)
