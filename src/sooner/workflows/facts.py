"""A workflow file as facts: each value knows where in the text it stands."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

Value = str | int | float | bool | None


class Span(Struct, frozen=True):
    """Characters of the text, from `begin` up to `end`."""

    begin: int
    end: int


class Spot(Struct, frozen=True, kw_only=True):
    """A scalar, and where it is written, quotes included."""

    value: Value
    span: Span


class Style(StrEnum):
    """How rows are written."""

    FLOW = "flow"
    """`{ config: "default", shard: 1 }`."""
    BLOCK = "block"
    """`- config: default`, a key a line."""


class Row(Struct, frozen=True, kw_only=True):
    """One entry of a matrix."""

    cells: Mapping[str, Spot]
    span: Span
    """The entry itself: from `{` to `}`, or from its first key to the end of its last value."""
    others: Mapping[str, str] = {}
    """Keys whose values are no scalars (`owners: ["m:rocm"]`), and how these are written: they are only copied."""
    quote: str = ""
    """The quote around its last key, as in JSON."""

    @property
    def values(self) -> dict[str, Value]:
        """What it says."""
        return {key: spot.value for key, spot in self.cells.items()}

    def text(self, key: str) -> str:
        """A value as text, empty where there is none."""
        spot = self.cells.get(key)
        return "" if spot is None or spot.value is None else str(spot.value)


class Where(StrEnum):
    """What a matrix is part of."""

    TEST_MATRIX = "test-matrix"
    """A string input of a called workflow, in PyTorch's style."""
    STRATEGY = "strategy"


class Matrix(Struct, frozen=True, kw_only=True):
    """The rows of an `include`, and lists beside it."""

    where: Where
    style: Style
    rows: tuple[Row, ...]
    span: Span
    """Of the list of rows."""
    lists: Mapping[str, tuple[Spot, ...]] = {}
    """Other keys of a `strategy.matrix`: each of their values is run. Empty where these are computed, or no scalars."""
    is_cut: bool = False
    """Whether an `exclude` leaves out some of what is multiplied."""

    def of(self, config: str | None) -> tuple[Row, ...]:
        """Rows of a config; None: all."""
        return tuple(row for row in self.rows if config is None or row.text("config") == config)


class Job(Struct, frozen=True, kw_only=True):
    """One job of a workflow."""

    id: str
    begin: int
    """Where its id is written."""
    name: str = ""
    needs: tuple[str, ...] = ()
    uses: str = ""
    condition: str = ""
    """Its `if`."""
    runs_on: tuple[Spot, ...] = ()
    matrices: tuple[Matrix, ...] = ()
    unreadable: tuple[str, ...] = ()
    """Matrices that are computed when the workflow runs, or that are no YAML: nobody can say what is in them."""
    shared: tuple[str, ...] = ()
    """Matrices that YAML anchors are in, or that are part of one: an edit would reach further than its place."""
    span: Span
    """Its lines, comments above it not included."""


class Workflow(Struct, frozen=True, kw_only=True):
    """One file."""

    path: str
    text: str
    name: str = ""
    crons: tuple[Spot, ...] = ()
    schedule: Span | None = None
    """The list of crons."""
    triggers: Span | None = None
    """The value of `on`."""
    triggers_style: Style = Style.BLOCK
    settings: tuple[Span, ...] = ()
    """What holds for all jobs, keys included: `permissions`, `env`, `defaults`."""
    jobs: Mapping[str, Job] = {}
    jobs_span: Span = Span(0, 0)

    @property
    def newline(self) -> str:
        """How its lines end."""
        return "\r\n" if "\r\n" in self.text else "\n"

    def newline_at(self, at: int) -> str:
        """How the line of a position ends, which a file may do now in one way and now in another."""
        end = self.text.find("\n", at)
        return self.newline if end < 0 else "\r\n" if self.text[end - 1 : end] == "\r" else "\n"

    def slice(self, span: Span) -> str:
        """What stands in a span."""
        return self.text[span.begin : span.end]

    def line(self, at: int) -> int:
        """The line of a position, 1-based."""
        return self.text.count("\n", 0, at) + 1
