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
    like = workflow.slice(spot.span)
    return [Splice(spot.span, written(value, like) if like else f" {written(value)}")]


def row_splices(workflow: Workflow, row: Row, values: Mapping[str, Value]) -> list[Splice]:
    """Other values of a row; keys that it does not have come after its last one, and after that one's comment.

    Raises:
        WorkflowError: A key has a list or a mapping in this row.
    """
    if nested := sorted(set(values) & set(row.others)):
        problem = f"{nested[0]!r} is no single value in this row: it cannot be edited"
        raise WorkflowError(workflow.path, problem, line=workflow.line(row.span.begin))
    changes = [one for key in values if key in row.cells for one in value_splice(workflow, row.cells[key], values[key])]
    more = [
        (f"{row.quote}{key}{row.quote}", written(value, row.quote if isinstance(value, str) else ""))
        for key, value in values.items()
        if key not in row.cells
    ]
    if not more:
        return changes
    last = max((spot.span.end for spot in row.cells.values()), default=row.span.begin)
    if workflow.slice(row.span).startswith("{"):  # also in a list that is written as a block
        text = "".join(f", {key}: {value}" for key, value in more)
    else:
        start = workflow.text.rfind("\n", 0, row.span.begin) + 1
        indent = workflow.newline_at(last) + " " * (row.span.begin - start)
        text = "".join(f"{indent}{key}: {value}" for key, value in more)
        rest = _REST_OF_LINE.match(workflow.text, last)
        last = rest.end() if rest else last
    return [*changes, Splice(Span(last, last), text)]


def row_text(workflow: Workflow, row: Row, values: Mapping[str, Value]) -> str:
    """A row like another one, with other values."""
    base, length = row.span.begin, row.span.end - row.span.begin
    inner = [
        Splice(Span(min(one.span.begin - base, length), min(one.span.end - base, length)), one.text)
        for one in row_splices(workflow, row, values)
    ]
    return spliced(workflow.slice(row.span), inner)


def added(workflow: Workflow, after: Span, texts: Sequence[str], style: Style) -> list[Splice]:
    """More items of a list, behind one of them, laid out as it is."""
    if not texts:
        return []
    text = workflow.text
    start = text.rfind("\n", 0, after.begin) + 1
    prefix = text[start : after.begin]
    rest = _REST_OF_LINE.match(text, after.end)
    newline = workflow.newline_at(after.end)
    if style is Style.BLOCK:
        if prefix.strip() != "-":
            raise WorkflowError(
                workflow.path, "this list is laid out in a way that cannot be extended", line=workflow.line(after.begin)
            )
        end = rest.end() if rest else after.end
        return [Splice(Span(end, end), "".join(f"{newline}{prefix}{one}" for one in texts))]
    if prefix.strip() or rest is None:
        return [Splice(Span(after.end, after.end), "".join(f", {one}" for one in texts))]
    lines = f",{newline}".join(f"{prefix}{one}" for one in texts)
    end = rest.end()
    if rest["comma"]:
        return [Splice(Span(end, end), f"{newline}{lines},")]
    return [Splice(Span(after.end, after.end), ","), Splice(Span(end, end), f"{newline}{lines}")]


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
    newline = workflow.newline_at(rest.end()) if rest.end() < len(text) else ""
    return Span(start, rest.end() + len(newline))


def _runs(places: Sequence[int]) -> list[tuple[int, int]]:
    """The first and last of those that follow each other."""
    begins = [place for place in places if place - 1 not in places]
    ends = [place for place in places if place + 1 not in places]
    return list(zip(begins, ends, strict=True))
