"""The SQL files beside this module: each holds statements under names, with `@places` for identifiers and lists."""

import functools
import importlib.resources
import re
import string
from collections.abc import Iterable, Mapping
from typing import Final

_PATTERN: Final = re.compile(r"[*?\[]")
_HEADING: Final = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


class _Statement(string.Template):
    """`@` instead of `$`, which is DuckDB's own mark of a parameter."""

    delimiter = "@"


@functools.cache
def _statements(topic: str) -> Mapping[str, _Statement]:
    text = importlib.resources.files("sooner.history").joinpath("sql", f"{topic}.sql").read_text(encoding="utf-8")
    parts = _HEADING.split(text)
    return {name: _Statement(body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def sql(topic: str, statement: str, /, **places: str) -> str:
    """A statement of `sql/TOPIC.sql` with its places filled in."""
    return _statements(topic)[statement].substitute(places)


def quoted(text: str) -> str:
    """Text as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A column's or table's name, whatever it is."""
    return '"' + name.replace('"', '""') + '"'


def path_literal(path: object) -> str:
    """A path of a file as an SQL string for DuckDB's readers, which would take `*`, `?` and `[` for patterns."""
    return quoted(_PATTERN.sub(r"[\g<0>]", str(path)))


def listed(texts: Iterable[str]) -> str:
    """Texts as an SQL list of strings."""
    return "[" + ", ".join(map(quoted, texts)) + "]"
