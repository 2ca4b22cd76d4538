"""Columns that callers have in memory, as rows of a table: which column is which, and of what type."""

from typing import Final

from sooner.history.database import Database
from sooner.history.errors import HistoryError
from sooner.history.outcomes import HistoryOutcome
from sooner.history.statements import identifier, listed, sql
from sooner.history.tables import Table

_NUMBERS: Final = (
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "UINTEGER",
    "UBIGINT",
    "HUGEINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
)


def given_columns(database: Database, table: Table, view: str) -> dict[str, str]:
    """SQL expression by column of the table.

    Raises:
        HistoryError: A column is unknown, a needed one is missing, or an outcome is no outcome.
    """
    kinds = {name: kind for name, kind, *_ in database.rows(sql("batches", "describe", view=view))}
    if unknown := sorted(set(kinds) - set(table.columns)):
        raise HistoryError(f"{table.name} has no column {unknown[0]!r}: the columns are {', '.join(table.columns)}")
    if missing := sorted(table.required - set(kinds)):
        raise HistoryError(f"rows of {table.name} need a column {missing[0]!r}")
    if "outcome" in kinds:
        words = listed(HistoryOutcome)
        if found := database.rows(sql("batches", "foreign_outcomes", view=view, words=words)):
            raise HistoryError(f"{found[0][0]!r} is no outcome: the outcomes are {', '.join(HistoryOutcome)}")
    defaults = {name: default for name, default in table.defaults.items() if name not in kinds}
    return defaults | {name: _expression(name, kind, table.columns[name]) for name, kind in kinds.items()}


def _expression(name: str, kind: str, wanted: str) -> str:
    column = identifier(name)
    if wanted == "TIMESTAMP" and kind.startswith(_NUMBERS):
        return f"at_epoch({column})"
    if wanted == "TIMESTAMP" and kind == "TIMESTAMP WITH TIME ZONE":
        return f"make_timestamp(epoch_us({column}))"
    return column
