"""Typed loaders: rows as structs for hundreds of thousands, columns as numpy arrays for hundreds of millions."""

import heapq
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from sooner.history.database import Database
from sooner.history.errors import HistoryError
from sooner.history.outcomes import HistoryOutcome
from sooner.history.statements import identifier, quoted, sql
from sooner.history.tables import Row, Table

Array = Any
"""A numpy array. Not typed closer, because numpy is only needed by those who ask for columns."""

R = TypeVar("R", bound=Row)

_CHANGES: Final[Mapping[str, str]] = {
    "repository": "VARCHAR", "commit": "VARCHAR", "file": "VARCHAR", "time": "TIMESTAMP",
}  # fmt: skip
"""Columns of the view `changes`: one row for each file of each commit."""


class Where(Struct, frozen=True, kw_only=True):
    """Which rows. What is left empty does not matter."""

    repository: str = ""
    workflow: str = ""
    branch: str = ""
    event: str = ""
    job: str = ""
    since: float | None = None
    """Epoch seconds, included."""
    until: float | None = None
    """Epoch seconds, not included."""


EVERYTHING: Final = Where()


class Texts(NamedTuple):
    """A column of text: a number for each row, and what the numbers stand for."""

    codes: Array
    """int32 for each row; -1 where nothing is known."""
    names: list[str]
    """By code, sorted; none is empty."""


class Columns:
    """Columns of equal length: `text(name)` for text, `number(name)` for numbers and times.

    Numbers are float64 with NaN where nothing is known; times are float64 epoch seconds.
    """

    def __init__(self, rows: int, texts: Mapping[str, Texts], numbers: Mapping[str, Array]) -> None:
        self._rows = rows
        self._texts = texts
        self._numbers = numbers

    def __len__(self) -> int:
        return self._rows

    def text(self, name: str) -> Texts:
        """A column of text."""
        return self._texts[name]

    def number(self, name: str) -> Array:
        """A column of numbers or times."""
        return self._numbers[name]


def condition(columns: Mapping[str, str], time: str, where: Where) -> str:
    """SQL for which rows.

    Raises:
        HistoryError: The table has no such column.
    """
    parts = []
    for name in ("repository", "workflow", "branch", "event", "job"):
        if value := getattr(where, name):
            if name not in columns:
                raise HistoryError(f"rows of this table have no {name} to select by")
            parts.append(f"{identifier(name)} = {quoted(value)}")
    if where.since is not None:
        parts.append(f"{time} >= at_epoch({float(where.since)!r})")
    if where.until is not None:
        parts.append(f"{time} < at_epoch({float(where.until)!r})")
    return " and ".join(parts) or "true"


def load_rows(database: Database, table: Table, row: type[R], where: Where) -> list[R]:
    """All rows as structs, in the order of their times."""
    columns = ", ".join(_value(name, kind) for name, kind in table.columns.items())
    places = {"table": identifier(table.name), "condition": condition(table.columns, table.time, where)}
    found = database.rows(sql("reading", "rows", columns=columns, order=_order(table), **places))
    names, lists = list(table.columns), [name for name, kind in table.columns.items() if kind.endswith("[]")]
    return [row(**_known(names, lists, values)) for values in found]


def _order(table: Table) -> str:
    """By time, attempts in their order, and always the same."""
    return f"{table.time} nulls first, {'attempt, ' if 'attempt' in table.columns else ''}key"


def _value(name: str, kind: str) -> str:
    column = identifier(name)
    return f"epoch_us({column}) / 1e6" if kind == "TIMESTAMP" else column


def _known(names: Sequence[str], lists: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    known = {name: value for name, value in zip(names, values, strict=True) if value is not None}
    for name in lists:
        if name in known:
            known[name] = tuple(known[name])
    if "outcome" in known:
        known["outcome"] = HistoryOutcome(known["outcome"])
    return known


def repositories(database: Database, table: Table, where: Where) -> list[str]:
    """Repositories that rows of a table are of."""
    places = {"table": identifier(table.name), "condition": condition(table.columns, table.time, where)}
    return [name for (name,) in database.rows(sql("reading", "repositories", **places))]


def load_columns(
    database: Database, table: Table | None, names: Sequence[str], where: Where, *, ordered: bool
) -> Columns:
    """Columns of a table (None: of the view `changes`) as numpy arrays.

    Raises:
        HistoryError: There is no such column, or it is a list.
    """
    kinds = table.columns if table else _CHANGES
    view, time = (table.name, table.time) if table else ("changes", '"time"')
    _check(names, kinds)
    places = {"table": identifier(view), "condition": condition(kinds, time, where)}
    texts = [name for name in names if kinds[name] == "VARCHAR"]
    for name in texts:
        database.run(sql("reading", "dictionary", name=_dictionary(name), column=identifier(name), **places))
    joins = [sql("reading", "coded_join", name=_dictionary(name), column=identifier(name)) for name in texts]
    values = ", ".join(_coded(name, kinds[name]) for name in names)
    order = f"order by {_order(table) if table else time}" if ordered else ""
    arrays = database.run(
        sql("reading", "coded", columns=values, joins=" ".join(joins), order=order, **places)
    ).fetchnumpy()
    found = {name: Texts(arrays[name], _names(database, name)) for name in texts}
    numbers = {name: arrays[name] for name in names if name not in found}
    return Columns(len(arrays[names[0]]), found, numbers)


def _check(names: Sequence[str], kinds: Mapping[str, str]) -> None:
    for name in names:
        if name not in kinds:
            raise HistoryError(f"there is no column {name!r}: the columns are {', '.join(kinds)}")
        if kinds[name].endswith("[]"):
            raise HistoryError(f"the column {name!r} holds lists: ask for rows, or for the columns of `changes`")


def _dictionary(name: str) -> str:
    return identifier(f"names_of_{name}")


def _coded(name: str, kind: str) -> str:
    column = f"t.{identifier(name)}"
    if kind == "VARCHAR":
        return f"coalesce({_dictionary(name)}.code, -1)::integer as {identifier(name)}"
    number = f"epoch_us({column}) / 1e6" if kind == "TIMESTAMP" else f"{column}::double"
    return f"coalesce({number}, 'nan'::double) as {identifier(name)}"


def _names(database: Database, name: str) -> list[str]:
    return [value for (value,) in database.rows(sql("reading", "dictionary_names", name=_dictionary(name)))]


def in_order(commits: Sequence[tuple[str, Sequence[str], int | None]]) -> list[str]:
    """Commits, parents before children, else by time: a clock that goes wrong moves nothing before its parent.

    Args:
        commits: sha, parents and time of each; parents that are not among them do not matter.
    """
    times = {sha: time if time is not None else 0 for sha, _, time in commits}
    children: dict[str, list[str]] = {}
    waiting: dict[str, int] = {}
    for sha, parents, _ in commits:
        known = {parent for parent in parents if parent in times and parent != sha}
        waiting[sha] = len(known)
        for parent in known:
            children.setdefault(parent, []).append(sha)
    ready = [(times[sha], sha) for sha, count in waiting.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, sha = heapq.heappop(ready)
        order.append(sha)
        for child in children.get(sha, ()):
            waiting[child] -= 1
            if not waiting[child]:
                heapq.heappush(ready, (times[child], child))
    left = set(times) - set(order)  # a circle: not git's, but nothing may get lost
    return order + sorted(left, key=lambda sha: (times[sha], sha))
