"""What right-sizing does to workflow files: rows of a matrix, runners, crons. Each edit is read again and compared.

Pure.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from sooner.workflows.crons import hours_between
from sooner.workflows.errors import ByHandError, WorkflowError
from sooner.workflows.facts import Job, Matrix, Row, Span, Spot, Style, Value, Where, Workflow
from sooner.workflows.numbering import BY_HAND, OF_MATRIX, fixed_label, label_key, label_of, numbering, refuse_variants
from sooner.workflows.reading import read
from sooner.workflows.splices import Splice, added, removed, row_splices, row_text, spliced, value_splice, written

_JSON: Final = ("[", "{")
_SHARD_KEYS: Final = ("shard", "shards", "group", "split", "part", "index")
_COUNT_KEYS: Final = ("num_shards", "num-shards", "shard_count", "groups", "splits", "total")


class Shards(Struct, frozen=True, kw_only=True):
    """Some shards of a config on one runner."""

    label: str
    count: int
    more: Mapping[str, Value] = {}
    """Further keys of each row, such as what its script selects tests by."""


def has_rows(workflow: Workflow, config: str | None, job_id: str | None = None) -> bool:
    """Whether any job, or one, has rows of a config, be they such that can be edited or not."""
    return any(
        matrix.of(config) for job in workflow.jobs.values() if job_id in {None, job.id} for matrix in job.matrices
    )


def matrices_with(workflow: Workflow, config: str | None) -> list[tuple[Job, Matrix]]:
    """The matrices that have rows of a config, with their jobs."""
    jobs = workflow.jobs.values()
    return [(job, matrix) for job in jobs for matrix in job.matrices if matrix.of(config)]


def has_others(workflow: Workflow, job: Job, config: str | None) -> bool:
    """Whether a workflow has more than a config of a job: rows of others, or jobs that have nothing to do with it."""
    jobs = workflow.jobs.values()
    has_rows_of_others = any(len(matrix.of(config)) < len(matrix.rows) for each in jobs for matrix in each.matrices)
    kin = {job.id, *job.needs, *(each.id for each in jobs if job.id in each.needs)}
    return has_rows_of_others or not kin.issuperset(workflow.jobs)


def find_matrix(workflow: Workflow, config: str | None, job_id: str | None = None) -> tuple[Job, Matrix]:
    """The one matrix that has rows of a config.

    Raises:
        WorkflowError: There is none, or more than one.
    """
    jobs = workflow.jobs.values() if job_id is None else [workflow.jobs[job_id]] if job_id in workflow.jobs else []
    if job_id is not None and not jobs:
        raise WorkflowError(workflow.path, f"has no job {job_id!r}: there are {', '.join(workflow.jobs)}")
    found = [(job, matrix) for job in jobs for matrix in job.matrices if matrix.of(config)]
    what = f"rows of config {config!r}" if config else "a matrix with rows"
    if not found:
        computed = [job.id for job in jobs if job.unreadable]
        hint = f" (computed when it runs: {', '.join(computed)})" if computed else ""
        shared = [job.id for job in jobs if job.shared]
        hint += f" (made of YAML anchors, which are not edited: {', '.join(shared)})" if shared else ""
        known = sorted({row.text("config") for job in jobs for matrix in job.matrices for row in matrix.rows} - {""})
        hint += f": there are {', '.join(known)}" if config and known else ""
        raise WorkflowError(workflow.path, f"no job has {what}{hint}")
    if len(found) > 1:
        raise WorkflowError(
            workflow.path,
            f"several jobs have {what}: {', '.join(job.id for job, _ in found)}: choose one with --in-job",
        )
    job, matrix = found[0]
    if matrix.where is Where.STRATEGY and matrix.lists:
        problem = (
            f"job {job.id} has lists ({', '.join(matrix.lists)}) beside its `include` rows, which GitHub multiplies"
        )
        raise ByHandError(workflow.path, f"{problem}: {BY_HAND}")
    return job, matrix


def rows_wanted(
    rows: Sequence[Row], config: str | None, shards: Sequence[Shards], key: str = "runner", like: Sequence[Row] = ()
) -> list[dict[str, Value]]:
    """What the rows of a config should say: shard by shard, all else as in the row in its place, or the last one.

    Args:
        rows: The rows that there are.
        config: What they are called.
        shards: What they should be.
        key: Of their runner.
        like: Rows that show how shards are numbered (default: the rows).
    """
    if not rows:
        return []
    found = numbering(like or rows, key)
    wanted: list[dict[str, Value]] = []
    has_several = any(one.count > 1 for one in shards)  # a row without a number beside rows that have one is no shard
    firsts = found.first or ({"shard": 1} if has_several else {})
    is_told = bool(found.first) and len(shards) == 1  # elsewhere, as it was until now
    counts = found.counts or (("num_shards",) if has_several and not is_told else ())
    for one in shards:
        for place in range(one.count):
            model = rows[min(len(wanted), len(rows) - 1)]
            values = {**model.values, **one.more, key: one.label}
            values |= {name: _as_in(model, name, first + place) for name, first in firsts.items()}
            values |= {name: _as_in(model, name, one.count) for name in counts}
            if config is not None and "config" in model.cells:
                values["config"] = config
            wanted.append(values)
    return wanted


def _as_in(model: Row, key: str, number: int) -> Value:
    """A number, as text where the row has it as text (`shard: '1'`)."""
    return str(number) if isinstance(model.values.get(key), str) else number


def with_shards(workflow: Workflow, job: Job, matrix: Matrix, config: str | None, shards: Sequence[Shards]) -> Workflow:
    """The workflow with other shards of a config; read again, and compared with what was wanted.

    Raises:
        WorkflowError: It cannot be edited so.
    """
    rows = matrix.of(config)
    key = label_key(job, matrix)
    refuse_variants(workflow, job, matrix, config, {name for one in shards for name in one.more})
    _refuse_taken(workflow, job, rows, key, shards)
    label = "" if any(key in row.cells or key in row.others for row in rows) else fixed_label(job, matrix, rows)
    _refuse_other_kind(workflow, job, [row.text(key) for row in rows], shards)
    wanted = rows_wanted(rows, config, shards, key)
    if label is None or (label and len({one.label for one in shards}) > 1):
        problem = f"the rows of job {job.id} do not name the runner (`{key}`)"
        raise ByHandError(workflow.path, f"{problem}: {BY_HAND}")
    if label:
        wanted = [{name: value for name, value in values.items() if name != key} for values in wanted]
    splices: list[Splice] = []
    for row, values in zip(rows, wanted, strict=False):
        splices += row_splices(workflow, row, values)
    if len(wanted) > len(rows):
        texts = [row_text(workflow, rows[-1], values) for values in wanted[len(rows) :]]
        splices += added(workflow, rows[-1].span, texts, matrix.style)
    gone = [matrix.rows.index(row) for row in rows[len(wanted) :]]
    splices += removed(workflow, [row.span for row in matrix.rows], gone, matrix.style)
    new = _checked(workflow, splices, job, matrix, _expected(matrix, rows, wanted))
    return with_runs_on(new, job.id, label, shards[0].label) if label not in {"", shards[0].label} else new


def _refuse_taken(workflow: Workflow, job: Job, rows: Sequence[Row], key: str, shards: Sequence[Shards]) -> None:
    """What scripts select tests by must be a key of its own: not that of the runner, of the config or of a number."""
    found = numbering(rows, key)
    taken = {key, "config", *(found.first or ("shard",)), *(found.counts or ("num_shards",))}
    if both := sorted(taken & {name for one in shards for name in one.more}):
        problem = f"the rows of job {job.id} say something else by {both[0]!r}: name another key with --lane-key"
        raise WorkflowError(workflow.path, problem)


def _refuse_other_kind(workflow: Workflow, job: Job, labels: Sequence[str], shards: Sequence[Shards]) -> None:
    """What `fromJSON` makes labels of (`["self-hosted", "gpu.4"]`) must stay JSON."""
    for old in filter(None, labels):
        for new in (one.label for one in shards):
            if old.startswith(_JSON) and not new.startswith(_JSON):
                problem = f"the runner of job {job.id} is JSON: {old}; name it and others so, as in --runner '2=[...]'"
                raise ByHandError(workflow.path, problem)


def _expected(matrix: Matrix, rows: Sequence[Row], wanted: Sequence[Mapping[str, Value]]) -> list[dict[str, Value]]:
    """All rows as they should be afterwards: new ones come behind the last old one."""
    places = {id(row): index for index, row in enumerate(rows)}
    result: list[dict[str, Value]] = []
    for row in matrix.rows:
        index = places.get(id(row))
        if index is None:
            result.append(row.values)
            continue
        if index < len(wanted):
            result.append(dict(wanted[index]))
        if index == len(rows) - 1:
            result += map(dict, wanted[len(rows) :])
    return result


def with_more_rows(workflow: Workflow, job: Job, matrix: Matrix, config: str, shards: Sequence[Shards]) -> Workflow:
    """The workflow with rows of a config that the matrix did not have yet, modelled on its last row.

    Raises:
        ByHandError: That row does not say its config, or its runner: a new one beside it would not either.
    """
    model = matrix.rows[-1]
    key = label_key(job, matrix)
    if missing := [name for name in ("config", key) if name not in model.cells]:
        problem = f"the last row of job {job.id} has no `{missing[0]}`: add rows of config {config!r} by hand"
        raise ByHandError(workflow.path, problem)
    _refuse_other_kind(workflow, job, [model.text(key)], shards)
    like = matrix.of(model.text("config") or None)
    _refuse_taken(workflow, job, like, key, shards)
    wanted = rows_wanted([model], config, shards, key, like)
    texts = [row_text(workflow, model, values) for values in wanted]
    splices = added(workflow, model.span, texts, matrix.style)
    return _checked(workflow, splices, job, matrix, [*(row.values for row in matrix.rows), *wanted])


def _checked(
    workflow: Workflow, splices: Sequence[Splice], job: Job, matrix: Matrix, expected: Sequence[Mapping[str, Value]]
) -> Workflow:
    """The edited workflow, if reading it again gives what was meant, and everything else as it was."""
    new = _read_again(workflow, splices, job)
    index = job.matrices.index(matrix)
    if job.id not in new.jobs or len(new.jobs[job.id].matrices) != len(job.matrices):
        raise WorkflowError(workflow.path, f"the edit of {job.id} would break the file: nothing was changed")
    found = new.jobs[job.id].matrices[index]
    if [row.values for row in found.rows] != list(expected) or _others(new, job.id) != _others(workflow, job.id):
        raise WorkflowError(
            workflow.path, f"the edit of {job.id} would not give the matrix that was meant: nothing was changed"
        )
    return new


def _read_again(workflow: Workflow, splices: Sequence[Splice], job: Job) -> Workflow:
    try:
        return read(spliced(workflow.text, splices), workflow.path)
    except WorkflowError as error:
        problem = f"the edit of {job.id} would break the file: nothing was changed ({error.problem})"
        raise WorkflowError(workflow.path, problem) from error


def _others(workflow: Workflow, job_id: str) -> list[tuple[str, str]]:
    return [(job.id, workflow.slice(job.span)) for job in workflow.jobs.values() if job.id != job_id]


def with_runs_on(workflow: Workflow, job_id: str, old: str, new: str) -> Workflow:
    """The workflow with another label in a job's `runs-on`, and in lists of its `strategy.matrix`.

    Raises:
        WorkflowError: The label is not there.
    """
    job = workflow.jobs[job_id]
    spots = [spot for spot in job.runs_on if spot.value == old]
    for matrix in job.matrices:
        if matrix.where is Where.STRATEGY:
            spots += [spot for values in matrix.lists.values() for spot in values if spot.value == old]
            spots += [spot for row in matrix.rows for spot in row.cells.values() if spot.value == old]
    if not spots:
        raise WorkflowError(workflow.path, f"job {job_id} does not run on {old!r}")
    splices = [one for spot in spots for one in value_splice(workflow, spot, new)]
    return _read_again(workflow, splices, job)


def find_lists(workflow: Workflow, job_id: str | None = None) -> tuple[Job, Matrix, str]:
    """The one job whose `strategy.matrix` lists shards, without `include`; with the key of that list.

    Raises:
        WorkflowError: There is none, or more than one.
    """
    found = [
        (job, matrix, key)
        for job in workflow.jobs.values()
        if job_id in (None, job.id)
        for matrix in job.matrices
        for key in _SHARD_KEYS
        if matrix.where is Where.STRATEGY and not matrix.rows and matrix.lists.get(key) and _is_fixed(job, matrix)
    ]
    if len(found) != 1:
        many = f"several jobs list shards: {', '.join(job.id for job, *_ in found)}: choose one with --in-job"
        raise WorkflowError(workflow.path, many if found else "no job has a matrix with rows, or with a list of shards")
    job, matrix, key = found[0]
    if matrix.is_cut:
        raise ByHandError(workflow.path, f"job {job.id} leaves out shards (`exclude`): {BY_HAND}")
    numbers = [int(str(spot.value)) for spot in matrix.lists[key] if str(spot.value).isdecimal()]
    if numbers != list(range(numbers[0], numbers[0] + len(numbers)) if numbers else ()):
        raise ByHandError(workflow.path, f"the shards of job {job.id} do not follow each other: {BY_HAND}")
    return job, matrix, key


def _is_fixed(job: Job, matrix: Matrix) -> bool:
    """Whether a job has one runner, and it is written out."""
    label = label_of(job, matrix)
    return bool(label) and "${{" not in label


def repeated_for(job: Job, matrix: Matrix, key: str) -> list[str]:
    """The other lists of a matrix of lists, for each of whose values all shards are run: `py (2)`."""
    asked = {found[1] for spot in job.runs_on if (found := OF_MATRIX.fullmatch(str(spot.value).strip()))}
    others = {name: values for name, values in matrix.lists.items() if name not in {key, *asked, *_COUNT_KEYS}}
    return [f"{name} ({len(values) or 'computed'})" for name, values in others.items() if len(values) != 1]


def with_listed_shards(workflow: Workflow, job: Job, matrix: Matrix, key: str, shards: Shards) -> Workflow:
    """The workflow with another runner and another number of shards, where a matrix lists them.

    Raises:
        WorkflowError: It cannot be edited so.
    """
    label = label_of(job, matrix)
    _refuse_other_kind(workflow, job, [label], [shards])
    old = matrix.lists[key]
    begin = old[0].value
    is_text = isinstance(begin, str) and begin.isdecimal()  # `['1', '2']`; an edit of other text (`1/2`) is refused
    first = int(str(begin)) if str(begin).isdecimal() else 1
    numbers = range(first, first + shards.count)
    wanted: list[Value] = [str(number) for number in numbers] if is_text else list(numbers)
    style = Style.FLOW if _is_flow(workflow, old) else Style.BLOCK
    splices = [one for spot, value in zip(old, wanted, strict=False) for one in value_splice(workflow, spot, value)]
    more = [written(value, workflow.slice(old[-1].span)) for value in wanted[len(old) :]]
    splices += added(workflow, old[-1].span, more, style)
    spans = [spot.span for spot in old]
    splices += removed(workflow, spans, list(range(len(wanted), len(old))), style)
    for name in _COUNT_KEYS:
        if len(values := matrix.lists.get(name, ())) == 1:
            splices += value_splice(workflow, values[0], shards.count)
    new = _read_again(workflow, splices, job)
    found = new.jobs[job.id].matrices[job.matrices.index(matrix)] if job.id in new.jobs else None
    told = [spot.value for spot in found.lists.get(key, ())] if found else []
    if told != wanted or _others(new, job.id) != _others(workflow, job.id):
        raise WorkflowError(
            workflow.path, f"the edit of {job.id} would not give the shards that were meant: nothing was changed"
        )
    return new if label == shards.label else with_runs_on(new, job.id, label, shards.label)


def _is_flow(workflow: Workflow, items: Sequence[Spot]) -> bool:
    start = workflow.text.rfind("\n", 0, items[0].span.begin) + 1
    return workflow.text[start : items[0].span.begin].strip() != "-"


def with_cron(workflow: Workflow, cron: str) -> Workflow:
    """The workflow with a cron; as it is where one of its own has it run as often or oftener, be it at another minute.

    Raises:
        WorkflowError: Its `on` is written in a way that cannot be extended.
    """
    often = hours_between(cron) or 0
    if any(spot.value == cron or 0 < (hours_between(str(spot.value)) or 0) <= often for spot in workflow.crons):
        return workflow
    if workflow.crons and workflow.schedule is not None:
        last = workflow.crons[-1]
        start = workflow.text.rfind("\n", 0, last.span.begin) + 1
        line = workflow.text[start : last.span.begin]
        if line.strip() == "- cron:":
            end = _line_end(workflow.text, workflow.schedule.end)
            text = f"{workflow.newline_at(end)}{line}{written(cron, workflow.slice(last.span))}"
            return _with_cron(workflow, Splice(Span(end, end), text), cron)
    elif workflow.triggers is not None and workflow.triggers_style is Style.BLOCK and workflow.schedule is None:
        begin = workflow.triggers.begin
        start = workflow.text.rfind("\n", 0, begin) + 1
        indent = workflow.text[start:begin]
        if not indent.strip() and indent:
            newline = workflow.newline_at(begin)
            text = f"schedule:{newline}{indent}  - cron: {written(cron)}{newline}{indent}"
            return _with_cron(workflow, Splice(Span(begin, begin), text), cron)
    raise WorkflowError(
        workflow.path, f"a cron cannot be added here: add `- cron: {written(cron)}` under `on: schedule:` by hand"
    )


def _with_cron(workflow: Workflow, splice: Splice, cron: str) -> Workflow:
    new = read(spliced(workflow.text, [splice]), workflow.path)
    wanted = {*(spot.value for spot in workflow.crons), cron}
    if {spot.value for spot in new.crons} != wanted or list(new.jobs) != list(workflow.jobs):
        raise WorkflowError(workflow.path, "adding the cron would break the file: nothing was changed")
    return new


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if text[end - 1] == "\r" else end
