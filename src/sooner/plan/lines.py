"""Where things are in a TOML text: the lines of `[[unit]]` headers and of the keys below them.

tomllib reports no positions. This finds them well enough for an error message: a place that it cannot find
is the line of the header, then 0. Strings, multi-line strings and comments are blanked first, so that none
can look like a header or a key.
"""

import re
from bisect import bisect_right
from typing import Final

_NOT_STRUCTURE: Final = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}'
    r"|'''.*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|\#[^\n]*",
    re.DOTALL,
)
_UNIT: Final = re.compile(r"^[ \t]*\[\[[ \t]*unit[ \t]*\]\]", re.MULTILINE)
_TABLE: Final = re.compile(r"^[ \t]*\[[^\n]*\][ \t\r]*$", re.MULTILINE)


class Locator:
    """Finds the lines of one TOML text; built when an error has to say where it is."""

    def __init__(self, text: str) -> None:
        self._text = _blanked(text)
        self._breaks = [match.start() for match in re.finditer("\n", self._text)]
        self._units = [match.start() for match in _UNIT.finditer(self._text)]

    def unit(self, index: int) -> int:
        """Line of the header of the unit at `index` (0-based), 0 where it has none."""
        return self._line(self._units[index]) if index < len(self._units) else 0

    def key(self, index: int, key: str) -> int:
        """Line of a key of the unit at `index`; the line of its header where the key is not found."""
        if index >= len(self._units):
            return 0
        end = self._units[index + 1] if index + 1 < len(self._units) else len(self._text)
        return self._key_between(self._units[index], end, key) or self.unit(index)

    def table_key(self, table: str, key: str) -> int:
        """Line of a key of `[table]`; of the table where the key is not found; 0 without such a table."""
        header = re.search(rf"^[ \t]*\[[ \t]*{re.escape(table)}[ \t]*[].]", self._text, re.MULTILINE)
        if header is None:
            return 0
        after = _TABLE.search(self._text, header.end())
        while after and after.group().lstrip().startswith(f"[{table}."):
            after = _TABLE.search(self._text, after.end())
        end = after.start() if after else len(self._text)
        return self._key_between(header.start(), end, key) or self._line(header.start())

    def top_key(self, key: str) -> int:
        """Line of a key or table at the top of the text, 0 where it is not found."""
        return self._key_between(0, len(self._text), key)

    def _key_between(self, start: int, end: int, key: str) -> int:
        """Line of `key = ...`, `key.more = ...`, `[...key]` or, for inline tables, of `{ key = ...`."""
        last = re.escape(key.rpartition(".")[2])
        for pattern in (
            rf"^[ \t]*{last}[ \t]*[=.]",
            rf"^[ \t]*\[[^\n]*\b{last}[ \t]*\]",
            rf"\b{last}[ \t]*=",
        ):
            found = re.compile(pattern, re.MULTILINE).search(self._text, start, end)
            if found:
                return self._line(found.start())
        return 0

    def _line(self, position: int) -> int:
        return bisect_right(self._breaks, position - 1) + 1


def unit_lines(text: str, count: int) -> list[int]:
    """Lines of the `[[unit]]` headers of `count` units; all 0 where units are spelled otherwise."""
    if '"""' in text or "'''" in text:
        text = _blanked(text)
    lines = [
        number
        for number, line in enumerate(text.split("\n"), 1)
        if line.lstrip(" \t").startswith("[[") and _UNIT.match(line)
    ]
    return lines if len(lines) == count else [0] * count


def _blanked(text: str) -> str:
    """The text without the content of strings and comments; line breaks and single-line lengths stay."""
    return _NOT_STRUCTURE.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())
