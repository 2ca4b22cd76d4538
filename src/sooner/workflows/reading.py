"""Text to facts, with ruamel.yaml for positions. Needs `pip install 'sooner[workflows]'`."""

import re
from collections.abc import Iterator
from typing import Any, Final

from sooner.workflows.errors import WorkflowError
from sooner.workflows.facts import Job, Matrix, Row, Span, Spot, Style, Value, Where, Workflow

_EXPRESSION: Final = "${{"
_BLANK_LINES: Final = re.compile(r"(?:\r?\n[ \t]*)+\Z")
"""Lines at the end in which nothing stands."""
_REMARKS: Final = re.compile(r"(?:\r?\n[ \t]*(?:#[^\r\n]*)?)+\Z")
"""Lines at the end in which nothing stands, or a comment."""
_ALIAS: Final = re.compile(r"(?:[\s:?-]|(?<=\s)#[^\r\n]*)*\*[^\s,\[\]{}]+")
"""What comes up to the end of an alias: `: *common`."""
_COMMENTS: Final = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?\r?\n)*")
"""Lines at the begin in which nothing stands, or a comment."""
_COLON: Final = re.compile(r"\s*:")
_TABS: Final = re.compile(r"(?<=[:\-?])[ \t]++|(?<![ \t])[ \t]++(?=#|\r?$)", re.MULTILINE)
"""What is blank between a key and its value, and before comments and the ends of lines: tabs may be in it."""
_OF_ALL_JOBS: Final = frozenset(("permissions", "env", "defaults"))
_LONGEST: Final = 4_000_000
"""Characters; GitHub takes workflow files of half a megabyte at most."""


def read(text: str, path: str) -> Workflow:
    """A workflow file as facts.

    Args:
        text: Its text, line ends as they are in the file.
        path: For errors.

    Raises:
        WorkflowError: It is no YAML, or no workflow.
    """
    if len(text) > _LONGEST:
        raise WorkflowError(path, "is too large for a workflow file")
    root = _compose(text, path)
    if root is None or not _is_map(root):
        raise WorkflowError(path, "is no workflow: a mapping with `jobs` is expected")
    top = dict(_pairs(root))
    jobs = top.get("jobs")
    if jobs is None or not _is_map(jobs):
        raise WorkflowError(path, "has no `jobs`")
    _refuse_repeated_keys(root, path)
    triggers = top.get("on")
    aliases = _Aliases(root)
    schedule = dict(_pairs(triggers)).get("schedule") if triggers is not None and _is_map(triggers) else None
    return Workflow(
        path=path,
        text=text,
        name=_text(top.get("name")),
        crons=tuple(_crons(schedule)),
        schedule=Span(_span(schedule).begin, _last_end(schedule, 0)) if schedule is not None else None,
        triggers=_span(triggers) if triggers is not None else None,
        triggers_style=_style(triggers) if triggers is not None else Style.BLOCK,
        settings=tuple(_settings(root)),
        jobs={str(key.value): _job(key, node, text, aliases) for key, node in jobs.value if _is_scalar(key)},
        jobs_span=_span(jobs),
    )


def with_spaces(text: str) -> str:
    """A text with spaces for tabs that only separate: YAML and GitHub take these, ruamel does not."""
    return _TABS.sub(lambda found: " " * len(found[0]), text) if "\t" in text else text


class _Aliases:
    """The nodes of a document that stand in several places (`*alias`): who edits one of these edits all of them."""

    def __init__(self, root: Any) -> None:
        known: set[int] = set()
        self._ids: set[int] = set()
        self._spans: list[Span] = []
        for node in _below(root):
            if id(node) in known and id(node) not in self._ids:
                self._ids.add(id(node))
                self._spans.append(_span(node))
            known.add(id(node))

    def touch(self, node: Any) -> bool:
        """Whether a node lies in one of them, holds one, or holds a name (`&anchor`) that a copy would repeat."""
        span = _span(node)
        if any(one.begin <= span.begin and span.end <= one.end for one in self._spans):
            return True
        return any(id(one) in self._ids or one.anchor is not None for one in _below(node))


def _refuse_repeated_keys(root: Any, path: str) -> None:
    """GitHub does not take a file in which a mapping names a key twice; who edits one of these changes nothing."""
    for node in _below(root):
        known: set[str] = set()
        for key, _ in node.value if _is_map(node) else ():
            name = str(key.value)
            if _is_scalar(key) and name in known and name != "<<":
                raise WorkflowError(path, f"names {name!r} twice in one mapping", line=key.start_mark.line + 1)
            known.add(name)


def _below(node: Any) -> Iterator[Any]:
    """A node and all below it, each as often as it is named; below one that was named before nothing comes again."""
    known: set[int] = set()
    left = [node]
    while left:
        one = left.pop()
        yield one
        if id(one) in known or _is_scalar(one):
            continue
        known.add(id(one))
        left += [part for pair in one.value for part in pair] if _is_map(one) else one.value


def _compose(text: str, path: str) -> Any:
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ModuleNotFoundError as error:
        raise WorkflowError(
            path, "reading workflow files needs ruamel.yaml: install it with `pip install 'sooner[workflows]'`"
        ) from error
    try:
        return YAML(typ="safe", pure=True).compose(with_spaces(text))
    except (YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise WorkflowError(path, f"is no YAML: {problem}", line=mark.line + 1 if mark else 0) from error


def _is_map(node: Any) -> bool:
    return str(getattr(node, "id", "")) == "mapping"


def _is_list(node: Any) -> bool:
    return str(getattr(node, "id", "")) == "sequence"


def _is_scalar(node: Any) -> bool:
    return str(getattr(node, "id", "")) == "scalar"


def _pairs(node: Any) -> Iterator[tuple[str, Any]]:
    for key, value in node.value:
        if _is_scalar(key):
            yield str(key.value), value


def _span(node: Any, base: int = 0) -> Span:
    begin, end = node.start_mark.index, node.end_mark.index
    if _is_scalar(node) and node.style in {"|", ">"}:  # its end mark lies behind the blank lines that follow, alone
        end = begin + len(_BLANK_LINES.sub("", node.start_mark.buffer[begin:end]))
    return Span(base + begin, base + end)


def _style(node: Any) -> Style:
    return Style.FLOW if getattr(node, "flow_style", False) else Style.BLOCK


def _text(node: Any) -> str:
    return str(node.value) if node is not None and _is_scalar(node) else ""


def _spot(node: Any, base: int = 0) -> Spot:
    return Spot(value=_value(node), span=_span(node, base))


def _value(node: Any) -> Value:
    """A scalar as YAML 1.2 means it: quoted is text."""
    kind, text = str(node.tag).rpartition(":")[2], str(node.value)
    if node.style in {"'", '"', "|", ">"}:
        return text
    try:
        if kind == "int":
            return int(text.replace("_", ""), 0)
        if kind == "float":
            return float(text)
    except ValueError:
        return text
    if kind == "bool":
        return text.lower() == "true"
    return None if kind == "null" else text


def _settings(root: Any) -> Iterator[Span]:
    for key, value in root.value:
        if _is_scalar(key) and key.value in _OF_ALL_JOBS and value.start_mark.index < value.end_mark.index:
            yield Span(key.start_mark.index, _last_end(value, 0))


def _crons(schedule: Any) -> Iterator[Spot]:
    if schedule is None or not _is_list(schedule):
        return
    for item in schedule.value:
        if _is_map(item):
            cron = dict(_pairs(item)).get("cron")
            if cron is not None and _is_scalar(cron):
                yield _spot(cron)


def _job(key: Any, node: Any, text: str, aliases: _Aliases) -> Job:
    begin = int(key.start_mark.index)
    if not _is_map(node):
        return Job(id=str(key.value), begin=begin, span=_span(node))
    parts = dict(_pairs(node))
    matrices: list[Matrix] = []
    unreadable: list[str] = []
    shared: list[str] = []
    inputs = parts.get("with")
    if inputs is not None and _is_map(inputs):
        for name, value in _pairs(inputs):
            if name == "test-matrix":
                is_shared = aliases.touch(value)
                matrix = None if is_shared else _test_matrix(value, text)
                (shared if is_shared else unreadable).extend([] if matrix else ["with.test-matrix"])
                matrices += [matrix] if matrix else []
    strategy = parts.get("strategy")
    inner = dict(_pairs(strategy)).get("matrix") if strategy is not None and _is_map(strategy) else None
    if inner is not None:
        runs_on = parts.get("runs-on")
        is_shared = aliases.touch(inner) or (runs_on is not None and aliases.touch(runs_on))
        matrix = None if is_shared else _matrix(inner, Where.STRATEGY, 0)
        (shared if is_shared else unreadable).extend([] if matrix else ["strategy.matrix"])
        matrices += [matrix] if matrix else []
    return Job(
        id=str(key.value),
        begin=begin,
        name=_text(parts.get("name")),
        needs=tuple(str(spot.value) for spot in _scalars(parts.get("needs"))),
        uses=_text(parts.get("uses")),
        condition=_text(parts.get("if")),
        runs_on=tuple(_scalars(parts.get("runs-on"))),
        matrices=tuple(matrices),
        unreadable=tuple(unreadable),
        shared=tuple(shared),
        span=_span(node),
    )


def _scalars(node: Any) -> Iterator[Spot]:
    if node is None:
        return
    if _is_scalar(node):
        yield _spot(node)
    elif _is_list(node):
        yield from (_spot(item) for item in node.value if _is_scalar(item))
    elif _is_map(node):
        yield from _scalars(dict(_pairs(node)).get("labels"))


def _test_matrix(node: Any, text: str) -> Matrix | None:
    """The rows in a string that is YAML itself; None where it is computed, or cannot be read in place."""
    if not _is_scalar(node) or str(node.value).lstrip().startswith(_EXPRESSION):
        return None
    span = _span(node)
    raw = text[span.begin : span.end]
    head = _COMMENTS.match(raw, max(raw.find("\n"), 0)) if node.style in {"|", ">"} else None
    opening = raw.find("{", head.end() if head else 0)
    if opening < 0 or (node.style == '"' and "\\" in raw) or (node.style == "'" and "''" in raw[1:-1]):
        return None
    closing = raw.rfind("}")
    try:
        inner = _compose(raw[opening : closing + 1], "test-matrix")
    except WorkflowError:
        return None
    if inner is not None and _Aliases(inner).touch(inner):
        return None
    return _matrix(inner, Where.TEST_MATRIX, span.begin + opening)


def _matrix(node: Any, where: Where, base: int) -> Matrix | None:
    if node is None or not _is_map(node):
        return None
    parts = dict(_pairs(node))
    include = parts.get("include")
    lists = {
        key: tuple(_spot(item, base) for item in value.value if _is_scalar(item))
        for key, value in parts.items()
        if key not in {"include", "exclude"} and _is_list(value)
    }
    is_cut = "exclude" in parts
    if include is None and not lists:
        return None
    lists |= {key: () for key, value in parts.items() if key not in {"include", "exclude"} and _is_scalar(value)}
    if include is None:
        return Matrix(where=where, style=_style(node), rows=(), span=_span(node, base), lists=lists, is_cut=is_cut)
    if not _is_list(include) or not all(_is_map(item) for item in include.value):
        return None
    rows = tuple(_row(item, base) for item in include.value)
    return Matrix(where=where, style=_style(include), rows=rows, span=_span(include, base), lists=lists, is_cut=is_cut)


def _row(node: Any, base: int) -> Row:
    text = node.start_mark.buffer
    cells: dict[str, Spot] = {}
    others: dict[str, str] = {}
    quote = ""
    for key, value in node.value:
        if not _is_scalar(key):
            continue
        name, quote = str(key.value), key.style or ""
        spot = _cell(key, value, base) if _is_scalar(value) else None
        if spot is not None:
            cells[name] = spot
        else:
            others[name] = text[value.start_mark.index : value.end_mark.index]
    end = base + node.end_mark.index if node.flow_style else _last_end(node, base)
    return Row(cells=cells, span=Span(base + node.start_mark.index, end), others=others, quote=quote)


def _cell(key: Any, value: Any, base: int) -> Spot | None:
    """A value of a row; one that is not written (`shard:`) stands behind its colon, None where there is no colon."""
    if value.start_mark.index < value.end_mark.index:
        return _spot(value, base)
    found = _COLON.match(key.start_mark.buffer, key.end_mark.index)
    return Spot(value=_value(value), span=Span(base + found.end(), base + found.end())) if found else None


def _last_end(node: Any, base: int) -> int:
    """Where the last thing in a node ends: a block's own end mark lies behind blank lines and comments."""
    begin, text = node.start_mark.index, node.start_mark.buffer
    while not _is_scalar(node) and not node.flow_style and node.value:
        *before, last = node.value
        key, value = last if _is_map(node) else (before[-1] if before else None, last)
        after = key.end_mark.index if key is not None else node.start_mark.index
        if value.start_mark.index < after and (alias := _ALIAS.match(text, after)):  # its marks are its anchor's
            return base + alias.end()
        node = value
    end = _span(node).end
    if not node.end_mark.index - node.start_mark.index:  # not written: its mark lies where the next thing begins
        end = begin + len(_REMARKS.sub("", text[begin:end]))
    return int(base + end)
