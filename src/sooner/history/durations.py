"""How long things take, by all that is recorded: one number each, which no outlier moves."""

from enum import StrEnum
from typing import Final

from sooner.history.database import Database
from sooner.history.statements import sql

_MOST: Final = 20
"""Attempts that are looked at: what a unit took a hundred runs ago says nothing of today."""
_HALF_LIFE: Final = 4.0
"""Attempts after which one counts half: a unit that became slower is known as slower after five runs, while up to four
contended ones in a row change nothing (PennyLane #9519: 13 s became 627 s)."""
_QUANTILE: Final = 0.45
"""Of two attempts the smaller is taken, as `sooner.plan.durations.merge` does: outliers lie above."""


class Subject(StrEnum):
    """Of what durations are asked for."""

    UNITS = "units"
    CASES = "cases"


def expected(database: Database, condition: str, of: Subject) -> dict[tuple[str, str], float]:
    """Expected seconds by (name, variant)."""
    is_unit = of is Subject.UNITS
    statement = sql(
        "durations",
        "expected",
        name="unit" if is_unit else "node_id",
        which="node_id is null and unit is not null" if is_unit else "node_id is not null",
        condition=condition,
        most=str(_MOST),
        half_life=str(_HALF_LIFE),
        quantile=str(_QUANTILE),
    )
    return {(name, variant): seconds for name, variant, seconds in database.rows(statement)}
