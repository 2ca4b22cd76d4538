"""Which runner and which shard the rows of a matrix are, and whether they are shards at all. Pure."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from sooner.workflows.errors import ByHandError
from sooner.workflows.facts import Job, Matrix, Row, Workflow

OF_MATRIX: Final = re.compile(r"\$\{\{\s*matrix\.([\w-]+)\s*\}\}")
_EVERYWHERE: Final = frozenset(("self-hosted", "linux", "windows", "macos", "x64", "arm", "arm64"))
"""Labels that GitHub gives to every runner of one's own, in small letters."""
BY_HAND: Final = "say what there is with --current LABEL:SHARDS, and edit it by hand"
_PIECE: Final = "(?:shard|group|split|part|partition|chunk)"
_SHARD_KEY: Final = re.compile(rf"{_PIECE}s?(?:[_-]?(?:id|index|idx|num|number))?|index")
"""What rows call the number of their shard; it is one only if it tells the rows of a label apart."""
_COUNT_KEY: Final = re.compile(
    rf"(?:num|n|total)[_-]?{_PIECE}s?|{_PIECE}(?:s|s?[_-]?(?:count|total|num))|(?:{_PIECE}[_-])?total"
)
"""What rows call the number of all shards."""


def label_key(job: Job, matrix: Matrix) -> str:
    """The key of a row that names its runner: what `runs-on` asks for, else `runner`."""
    asked = [OF_MATRIX.fullmatch(str(spot.value).strip()) for spot in job.runs_on]
    keys = [found[1] for found in asked if found]
    return next((key for key in keys if any(key in row.cells for row in matrix.rows)), "runner")


def label_of(job: Job, matrix: Matrix) -> str:
    """The one runner of a job whose matrix is made of lists; empty where there are several.

    Labels that every runner of one's own has (`self-hosted`, `linux`) do not count beside another.
    """
    labels: set[str] = set()
    for spot in job.runs_on:
        asked = OF_MATRIX.fullmatch(str(spot.value).strip())
        labels |= {str(one.value) for one in matrix.lists.get(asked[1], ())} if asked else {str(spot.value)}
    own = {label for label in labels if label.lower() not in _EVERYWHERE} or labels
    return own.pop() if len(own) == 1 else ""


class Numbering(Struct, frozen=True, kw_only=True):
    """Which keys of a config's rows say which shard a row is, and of how many."""

    first: Mapping[str, int]
    """The keys of its number, and what it begins with."""
    counts: tuple[str, ...]
    """The keys of how many there are."""


def numbering(rows: Sequence[Row], key: str) -> Numbering:
    """How the rows of a config are numbered: by keys that are called so, and whose values say so.

    Args:
        rows: The rows.
        key: Of their runner: rows of each label may have numbers of their own.
    """
    names = dict.fromkeys(name for row in rows for name in row.cells)
    found = {name: _first(rows, name, key) for name in names if _SHARD_KEY.fullmatch(name)}
    first = {name: begin for name, begin in found.items() if begin is not None}
    if len(rows) == 1:  # `shards: 1` is how many
        first = {name: begin for name, begin in first.items() if not _COUNT_KEY.fullmatch(name)}
    counts = [name for name in names if _COUNT_KEY.fullmatch(name) and name not in first]
    return Numbering(first=first, counts=tuple(one for one in counts if None not in {_number(r, one) for r in rows}))


def _first(rows: Sequence[Row], name: str, key: str) -> int | None:
    """What a key's numbers begin with, 0 or 1, if they go on from there: over all rows, or over those of each label."""
    lanes: dict[str, list[int]] = {}
    for row in rows:
        number = _number(row, name)
        if number is None:
            return None
        lanes.setdefault(row.text(key), []).append(number)
    for parts in ([[one for part in lanes.values() for one in part]], list(lanes.values())):
        for first in (1, 0):
            if all(sorted(part) == list(range(first, first + len(part))) for part in parts):
                return first
    return None


def _number(row: Row, key: str) -> int | None:
    text = row.text(key)
    return int(text) if text.isdecimal() else None


def refuse_variants(
    workflow: Workflow, job: Job, matrix: Matrix, config: str | None, more: Collection[str] = ()
) -> None:
    """Rows of a config must be its shards: more or fewer of what differs in something else are not the same tests.

    Where rows say how many shards there are, each is one of those, whatever else it says.

    Args:
        workflow: The file.
        job: Its job.
        matrix: The job's matrix.
        config: Whose rows.
        more: Keys by which scripts tell lanes apart.

    Raises:
        ByHandError: They differ in more than their number and their runner, or are the same shards on several runners.
    """
    rows = matrix.of(config)
    key = label_key(job, matrix)
    found = numbering(rows, key)
    is_counted = any(_COUNT_KEY.fullmatch(name) for row in rows for name in row.cells)
    if is_counted and any(len({row.text(name) for row in rows}) == len(rows) for name in found.first):
        return
    what = f"rows of config {config!r}" if config else "rows"
    labels = dict.fromkeys(row.text(key) for row in rows)
    if len(labels) > 1 and len({tuple(row.text(name) for name in (*found.first, *more)) for row in rows}) < len(rows):
        problem = f"the {what} of job {job.id} run the same shards on {' and on '.join(labels)}"
        raise ByHandError(workflow.path, f"{problem}: {BY_HAND}")
    known = {key, "config", *more, *found.first, *found.counts}
    names = dict.fromkeys(name for row in rows for name in (*row.cells, *row.others) if name not in known)
    told = {name: {row.others.get(name, row.text(name)) for row in rows} for name in names}
    if differing := [name for name, values in told.items() if len(values) > 1]:
        differing = [name for name in differing if not _SHARD_KEY.fullmatch(name)] or differing
        problem = f"the {what} of job {job.id} differ in {', '.join(differing)}: they are not shards of the same tests"
        raise ByHandError(workflow.path, f"{problem}: {BY_HAND}")


def fixed_counts(workflow: Workflow, job: Job, matrix: Matrix, keys: Collection[str], count: int) -> list[int]:
    """The lines of a job, outside of its matrix, that say how many shards there are in digits: `--splits 4`.

    Args:
        workflow: The file.
        job: Its job.
        matrix: The job's matrix.
        keys: Of the number of a shard.
        count: How many there are.
    """
    number = rf"(?<![\w.-]){count}(?![\w.-])"
    named = re.compile(rf"(?:{_PIECE}s?|total)[^\w\n]{{1,3}}{number}", re.IGNORECASE)
    of_shard = re.compile(rf"matrix\.(?:{'|'.join(map(re.escape, keys))})\b") if keys else None
    end = matrix.span.begin + len(workflow.slice(matrix.span).rstrip())
    found: list[int] = []
    for line in re.finditer(r"[^\n]+", workflow.slice(job.span)):
        at = job.span.begin + line.start()
        if at < end and job.span.begin + line.end() > matrix.span.begin:
            continue
        if named.search(line[0]) or (of_shard and of_shard.search(line[0]) and re.search(number, line[0])):
            found.append(workflow.line(at))
    return found


def fixed_label(job: Job, matrix: Matrix, rows: Sequence[Row]) -> str | None:
    """The runner of all rows, where `runs-on` says it and not they; None where nothing does, or other rows share it."""
    label = label_of(job, matrix)
    return label if label and "${{" not in label and len(rows) == len(matrix.rows) else None
