"""What the cells of a table look like, by its first thousand rows: enough to choose how they are read."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from sooner.history.database import Database
from sooner.history.ingest.sources import Source
from sooner.history.outcomes import spelled
from sooner.history.statements import identifier, sql

_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}(:?\d{2})?)?)?")
_ZONE: Final = re.compile(r"(Z|UTC|GMT|[+-]\d\d(:?\d\d)?)$", re.IGNORECASE)
_NOTHING: Final = frozenset({"", "nan", "none", "null", "nat", "n/a", "-"})


class Look(Struct, frozen=True):
    """What a column's cells look like."""

    kind: str
    """`status`, `number`, `text` or `empty`."""
    least: float = 0.0
    """Of numbers the smallest."""
    is_iso: bool = False
    """All are times as ISO 8601 spells them."""
    is_naive: bool = False
    """Some are times without a zone."""


def cells_of(database: Database, source: Source, columns: Sequence[str]) -> dict[str, Look]:
    """A look at each column."""
    names = ", ".join(f"{identifier(name)}::varchar" for name in columns)
    rows = database.rows(sql("tables", "sample", columns=names, source=source.relation))
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return {name: _look(set(found)) for name, found in zip(columns, cells, strict=True)}


def _look(cells: set[str | None]) -> Look:
    said = {cell.strip() for cell in cells if cell is not None and cell.strip().lower() not in _NOTHING}
    if not said:
        return Look("empty")
    if all(map(_is_number, said)):
        return Look("number", least=min(map(float, said)))
    if all(map(_ISO.fullmatch, said)):
        return Look("text", is_iso=True, is_naive=any(":" in cell and not _ZONE.search(cell) for cell in said))
    return Look("status" if all(spelled(cell) is not None for cell in said) else "text")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
