"""Changes of a text at known positions. Everything outside of them stays, byte for byte. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from sooner.workflows.errors import WorkflowError
from sooner.workflows.facts import Row, Span, Spot, Style, Value, Workflow

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./+-]*")
"""Text that needs no quotes anywhere; all else gets them."""
_NEEDS_ESCAPE: Final = re.compile(
    "[^\\x20-\\x7e\\xa0-\\u2027\\u202a-\\ud7ff\\ue000-\\ufefe\\uff00-\\ufffd\\U00010000-\\U0010ffff]"
)
"""Characters that YAML does not take as they are, and those that break lines or mark byte orders."""
_WORDS: Final = frozenset({"true", "false", "null", "yes", "no", "on", "off", "~", "y", "n"})
_REST_OF_LINE: Final = re.compile(r"(?P<comma>[ \t]*,)?(?P<rest>[ \t]*(?:#[^\r\n]*)?)(?=\r?\n|\Z)")


class Splice(Struct, frozen=True):
    """Text in the place of a span; an empty span inserts."""

    span: Span
    text: str


def spliced(text: str, splices: Iterable[Splice]) -> str:
    """The text with all changes made; they must not overlap."""
    parts, at = [], 0
    for one in sorted(splices, key=lambda splice: (splice.span.begin, splice.span.end)):
        if one.span.begin < at:
            raise AssertionError("splices overlap")
        parts += [text[at : one.span.begin], one.text]
        at = one.span.end
    return "".join([*parts, text[at:]])


def written(value: Value, like: str = "") -> str:
    """A value as YAML, quoted as its model is.

    Args:
        value: What to write.
        like: How the value that it replaces, or one beside it, is written.
    """
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float) and like[:1] not in {"'", '"'}:
        return str(value)
    text = str(value)
    if like[:1] == "'" and not _NEEDS_ESCAPE.search(text):
        return "'" + text.replace("'", "''") + "'"
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS
    if like[:1] != '"' and is_plain:
        return text
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = _NEEDS_ESCAPE.sub(lambda found: f"\\U{ord(found[0]):08x}", quoted)
    return f'"{escaped}"'


def value_splice(workflow: Workflow, spot: Spot, value: Value) -> list[Splice]:
    """Another value in the place of one; nothing where it is the same."""
    if spot.value == value and type(spot.value) is type(value):
        return []
    return [Splice(spot.span, written(value, workflow.slice(spot.span)))]


def row_text(workflow: Workflow, row: Row, values: Mapping[str, Value]) -> str:
    """A row like another one, with other values; keys that the model does not have come after its last one."""
    base = row.span.begin
    inner: list[Splice] = []
    for key, value in values.items():
        if key in row.cells:
            inner += [
                Splice(Span(one.span.begin - base, one.span.end - base), one.text)
                for one in value_splice(workflow, row.cells[key], value)
            ]
    extra = {key: value for key, value in values.items() if key not in row.cells}
    if extra:
        last = max(spot.span.end for spot in row.cells.values()) - base
        inner.append(Splice(Span(last, last), _more_cells(workflow, row, extra)))
    return spliced(workflow.slice(row.span), inner)


def _more_cells(workflow: Workflow, row: Row, extra: Mapping[str, Value]) -> str:
    if workflow.slice(row.span).startswith("{"):  # also in a list that is written as a block
        return "".join(f", {key}: {written(value)}" for key, value in extra.items())
    start = workflow.text.rfind("\n", 0, row.span.begin) + 1
    indent = workflow.newline + " " * (row.span.begin - start)
    return "".join(f"{indent}{key}: {written(value)}" for key, value in extra.items())


def added(workflow: Workflow, after: Span, texts: Sequence[str], style: Style) -> list[Splice]:
    """More items of a list, behind one of them, laid out as it is."""
    if not texts:
        return []
    text = workflow.text
    start = text.rfind("\n", 0, after.begin) + 1
    prefix = text[start : after.begin]
    rest = _REST_OF_LINE.match(text, after.end)
    if style is Style.BLOCK:
        if prefix.strip() != "-":
            raise WorkflowError(
                workflow.path, "this list is laid out in a way that cannot be extended", line=workflow.line(after.begin)
            )
        end = rest.end() if rest else after.end
        return [Splice(Span(end, end), "".join(f"{workflow.newline}{prefix}{one}" for one in texts))]
    if prefix.strip() or rest is None:
        return [Splice(Span(after.end, after.end), "".join(f", {one}" for one in texts))]
    lines = f",{workflow.newline}".join(f"{prefix}{one}" for one in texts)
    end = rest.end()
    if rest["comma"]:
        return [Splice(Span(end, end), f"{workflow.newline}{lines},")]
    return [Splice(Span(after.end, after.end), ","), Splice(Span(end, end), f"{workflow.newline}{lines}")]


def removed(workflow: Workflow, items: Sequence[Span], gone: Sequence[int], style: Style) -> list[Splice]:
    """Fewer items of a list; what stands on lines of their own goes with its line.

    Args:
        workflow: The text.
        items: All items, in order.
        gone: Positions of those to remove; not all of them.
        style: How they are written.
    """
    if not gone:
        return []
    if len(gone) == len(items):
        raise WorkflowError(workflow.path, "a matrix without rows would remain", line=workflow.line(items[0].begin))
    lines = {index: line for index in gone if (line := _own_line(workflow, items[index], style)) is not None}
    left = set(range(len(items))).difference(gone)
    found = list(lines.values())
    for first, last in _runs(sorted(set(gone).difference(lines))):
        if last + 1 in left:
            span = Span(items[first].begin, items[last + 1].begin)
        elif first - 1 in left:
            span = Span(items[first - 1].end, items[last].end)
        else:
            span = Span(items[first].begin, lines[last + 1].begin if last + 1 in lines else items[last].end)
        found.append(span)
    return [Splice(span, "") for span in found]


def _own_line(workflow: Workflow, item: Span, style: Style) -> Span | None:
    """The lines of an item that shares them with no other one."""
    text = workflow.text
    start = text.rfind("\n", 0, item.begin) + 1
    rest = _REST_OF_LINE.match(text, item.end)
    if rest is None or text[start : item.begin].strip() != ("-" if style is Style.BLOCK else ""):
        return None
    newline = len(workflow.newline) if text.startswith(workflow.newline, rest.end()) else 0
    return Span(start, rest.end() + newline)


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """The first and last of those that follow each other."""
    begins = [place for place in places if place - 1 not in places]
    ends = [place for place in places if place + 1 not in places]
    return list(zip(begins, ends, strict=True))
