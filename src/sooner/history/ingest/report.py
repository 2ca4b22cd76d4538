"""What became of everything that was read: added, known already, or rejected with its place and reason."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct

from sooner.history.commit import Added
from sooner.history.errors import IngestError
from sooner.model.text import printable, printable_or_replaced

MOST_REJECTED: Final = 10_000
"""So many places are kept; all are counted."""
_CONTRADICTED: Final = (
    "what was known of an attempt was kept, though a row tells another outcome of it: ingest all files of a run in one"
    " call, or name each run (--set run=ID)"
)


class Rejected(Struct, frozen=True, omit_defaults=True):
    """A row, an item or a whole source of which nothing could be made."""

    path: str
    line: int
    """1-based line, or index where the source has no lines; 0 where the whole source is meant."""
    reason: str


class Report:
    """Collects what became of the rows.

    Args:
        strict: Whether the first rejected row stops everything.
    """

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.tables: dict[str, Added] = {}
        self.rejected: list[Rejected] = []
        self.rejected_count = 0
        self.notes: Counter[str] = Counter()

    def add(self, table: str, added: Added) -> None:
        """Rows of a table went through."""
        self.tables[table] = self.tables.get(table, Added()) + added
        if added.contradicted:
            self.note(_CONTRADICTED, added.contradicted)

    def reject(self, path: str, line: int, reason: str) -> None:
        """Something could not be read.

        Raises:
            IngestError: If nothing may be rejected.
        """
        if self.strict:
            raise IngestError(path, f"{reason} (leave out --strict to go on without it)", line=line)
        self.rejected_count += 1
        if len(self.rejected) < MOST_REJECTED:
            self.rejected.append(Rejected(printable(path), line, printable_or_replaced(reason)))

    def reject_more(self, count: int) -> None:
        """More of the same that was not located."""
        self.rejected_count += count

    def note(self, text: str, count: int = 1) -> None:
        """Something that whoever reads the result should know, and how often."""
        self.notes[printable(text)] += count

    @property
    def added(self) -> Added:
        """All tables together."""
        return sum(self.tables.values(), Added())

    def as_json(self) -> dict[str, Any]:
        """The documented object: rows = added + duplicates + rejected."""
        added = self.added
        return {
            "rows": added.rows + self.rejected_count,
            "added": added.added,
            "duplicates": added.duplicates,
            "rejected": msgspec.to_builtins(self.rejected),
            "rejected_count": self.rejected_count,
            "tables": {name: found.added for name, found in self.tables.items()},
            "notes": list(self.note_lines()),
        }

    def note_lines(self) -> Iterable[str]:
        """Notes as sentences."""
        return (f"{text} ({count:,} times)" if count > 1 else text for text, count in self.notes.items())
