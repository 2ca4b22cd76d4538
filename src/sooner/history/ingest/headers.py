"""Understands the header of a table: which table of the history its rows belong to, which column is which field."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from sooner.history.errors import IngestError
from sooner.history.tables import TABLES

_WORD: Final = re.compile(r"[^a-z0-9]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

_WINDOW: Final = re.compile(r"(?<=^jobs)_\d+d$")
"""`jobs_30d`: jobs of 30 days."""

_SHARED: Final[Mapping[str, tuple[str, ...]]] = {
    "repository": ("repository", "repo", "project", "full_name"),
    "run": ("run", "run_id", "workflow_run_id", "build_id", "build", "pipeline_id"),
    "attempt": ("attempt", "run_attempt", "try"),
    "commit": (
        "commit",
        "sha",
        "commit_sha",
        "head_sha",
        "revision",
        "git_commit",
        "commit_hash",
        "git_sha",
        "commit_id",
    ),
    "branch": ("branch", "head_branch", "git_branch", "ref"),
}
_OUTCOME: Final = ("outcome", "conclusion", "result", "verdict", "status", "state")
_STARTED: Final = (
    "started", "started_at", "start", "start_time", "begin", "began_at", "time", "timestamp", "date", "datetime",
)  # fmt: skip
_AT: Final = ("at", "time", "date", "timestamp", "datetime", "measured_at", "started", "started_at")
_DURATION: Final = (
    "duration",
    "duration_s",
    "seconds",
    "duration_seconds",
    "elapsed",
    "elapsed_s",
    "runtime",
    "took",
    "time_s",
)
_VARIANT: Final = ("variant", "build_env", "config", "configuration", "test_config")

FIELDS: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "jobs": {
        **_SHARED,
        "workflow": ("workflow", "workflow_name", "pipeline", "pipeline_name"),
        "job": ("job", "job_name", "check", "check_name", "context", "name"),
        "job_id": ("job_id", "id"),
        "shard": ("shard",),
        "parent": ("parent", "parent_sha", "base_sha"),
        "pull_request": ("pull_request", "pr", "pr_number", "pull_request_number"),
        "event": ("event", "event_name", "trigger"),
        "run_created": ("run_created", "run_created_at", "workflow_created", "workflow_created_at"),
        "created": ("created", "created_at"),
        "queued": ("queued", "queued_at", "scheduled_at", "runnable_at", "enqueued_at"),
        "started": _STARTED,
        "completed": ("completed", "completed_at", "finished", "finished_at", "ended", "ended_at", "end", "end_time"),
        "runner": ("runner", "runner_label", "label", "labels", "pool", "queue", "runs_on"),
        "runner_name": ("runner_name", "machine", "host", "agent", "agent_name"),
        "devices": ("devices", "gpus", "num_devices", "num_gpus", "n_gpus", "ngpus", "gpu_count", "device_count"),
        "outcome": _OUTCOME,
        "failure_line": ("failure_line", "failure", "error", "error_message"),
        "duration": _DURATION,
    },
    "tests": {
        **_SHARED,
        "job": ("job", "job_name"),
        "unit": ("unit", "test_file", "file", "suite", "test_suite", "module", "target"),
        "node_id": ("node_id", "nodeid", "test", "test_id", "test_name", "testname", "test_case", "case", "name"),
        "classname": ("classname", "class", "class_name"),
        "variant": _VARIANT,
        "outcome": _OUTCOME,
        "duration": _DURATION,
        "started": _STARTED,
        "devices": ("devices", "gpus"),
        "device_count": ("num_devices", "num_gpus", "n_gpus", "ngpus", "gpu_count", "device_count"),
        "peak_memory_mib": ("peak_memory_mib", "peak_memory", "peak_mib", "max_memory_mib"),
        "worker": ("worker", "worker_id"),
        "message": ("message", "error", "error_message", "failure"),
        "exit_code": ("exit_code",),
        "signal": ("signal",),
    },
    "commits": {
        "repository": _SHARED["repository"],
        "sha": (*_SHARED["commit"], "hash"),
        "parents": ("parent", "parents", "parent_sha"),
        "time": ("commit_time", "committed_at", "committer_date", "time", "timestamp", "date", "datetime"),
        "author": ("author", "author_name", "author_email"),
        "message": ("message", "subject", "title"),
        "files": ("file", "files", "path", "filename", "paths"),
        "branch": _SHARED["branch"],
    },
    "runners": {
        "repository": _SHARED["repository"],
        "label": ("runner_label", "label", "pool", "runner"),
        "at": _AT,
        "size": ("size", "capacity", "machines", "runners", "max_size"),
        "online": ("online",),
        "busy": ("busy",),
        "peak": ("peak", "peak_concurrent"),
        "jobs": ("jobs",),
        "note": ("section", "note", "group"),
    },
    "measures": {
        **{field: spellings for field, spellings in _SHARED.items() if field in TABLES["measures"].columns},
        "workflow": ("workflow", "workflow_name"),
        "job": ("job", "job_name", "build_env", "config", "configuration"),
        "job_id": ("job_id",),
        "subject": ("subject", "step", "unit_name", "test", "test_file", "file"),
        "name": ("name", "metric", "measure", "key"),
        "value": ("value",),
        "unit": ("unit", "units"),
        "at": _AT,
    },
}
"""Spellings of each field, best first; `duration`, `classname` and `device_count` are turned into others."""

_JOINED: Final = {("tests", "variant"), ("measures", "job")}
"""Fields that several columns make up together, such as PyTorch's `build_env` and `config`."""
_ANY_OF: Final = frozenset({"outcome"})
"""Fields for which the first column counts that says something: `conclusion` is empty while `status` is not."""


_TELL_TESTS: Final = frozenset(
    {"node_id", "nodeid", "test", "test_id", "test_name", "testname", "test_case", "test_file", "unit", "classname"}
)
_ORDER: Final = ("jobs", "tests", "measures", "commits", "runners")
"""What is looked for first: a measure, too, has a commit and a subject."""


class Form(StrEnum):
    """How a table's rows are to be read."""

    LONG = "long"
    """One row of the history a row."""
    WIDE_STATUS = "wide_status"
    """Commits x jobs: a status in each cell."""
    WIDE_NUMBERS = "wide_numbers"
    """A measure in each column that holds numbers."""


class Reading(Struct, frozen=True):
    """What a header means."""

    table: str
    form: Form
    fields: Mapping[str, tuple[str, ...]]
    """Columns by field."""
    cells: tuple[str, ...] = ()
    """Columns that hold cells of a wide table."""
    unused: tuple[str, ...] = ()


def understand(path: str, columns: Sequence[str], mapping: Mapping[str, str], kinds: Mapping[str, str]) -> Reading:
    """Find out what a header means.

    Args:
        path: For errors.
        columns: As they are spelled.
        mapping: Field by column, given by the user; empty: leave the column out.
        kinds: What the cells of a column look like: `status`, `number`, `text` or `empty`.

    Raises:
        IngestError: Nobody can tell, or the mapping names what is not there.
    """
    _check_mapping(path, columns, mapping)
    ignored = {column for column, field in mapping.items() if not field}
    usable = [column for column in columns if column not in ignored]
    for name in _ORDER:
        fields = _assign(name, usable, mapping)
        if _is_enough(name, fields) and (name != "jobs" or not _names_a_test(usable, mapping)):
            return _reading(name, Form.LONG, fields, columns)
    wide = _wide(usable, mapping, kinds)
    if wide is not None:
        return wide
    raise IngestError(
        path,
        f"the columns {', '.join(columns[:12])} are not understood: say what they are with --map column=field, for"
        " instance --map build=job --map verdict=outcome --map when=started",
    )


def _assign(table: str, columns: Sequence[str], mapping: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Columns by field: the user's first, then the best spelling of each field."""
    found: dict[str, tuple[str, ...]] = {}
    taken = set()
    for column, field in mapping.items():
        if field in FIELDS[table]:
            found[field] = (*found.get(field, ()), column)
        taken.add(column)
    plain = {plain_name(column): column for column in reversed(columns) if column not in taken}
    if table == "runners":
        plain = {_WINDOW.sub("", name): column for name, column in plain.items()}
    for field, spellings in FIELDS[table].items():
        if field in found:
            continue
        present = [plain[spelling] for spelling in spellings if plain.get(spelling, "") not in taken | {""}]
        several = field in _ANY_OF or (table, field) in _JOINED
        if present:
            found[field] = tuple(present if several else present[:1])
            taken.update(found[field])
    return found


def _is_enough(table: str, fields: Mapping[str, object]) -> bool:
    """Whether rows can be made of these fields."""
    has = fields.keys().__contains__
    match table:
        case "jobs":
            return has("job") and has("outcome")
        case "tests":
            return (has("node_id") or has("unit")) and (has("outcome") or has("duration"))
        case "commits":
            return has("sha") and (has("files") or has("message") or has("parents"))
        case "runners":
            return has("label") and (has("size") or has("peak") or has("online"))
        case _:
            return has("name") and has("value")


def _names_a_test(columns: Iterable[str], mapping: Mapping[str, str]) -> bool:
    """Rows that name a test are no rows of jobs, though they may name the job that it ran in."""
    named = {plain_name(column) for column in columns if column not in mapping} | set(mapping.values())
    return bool(named & _TELL_TESTS)


def _wide(columns: Sequence[str], mapping: Mapping[str, str], kinds: Mapping[str, str]) -> Reading | None:
    statuses = [column for column in columns if kinds.get(column) == "status" and column not in mapping]
    fields = _assign("jobs", [column for column in columns if column not in statuses], mapping)
    if statuses and "commit" in fields:
        dropped = {name: found for name, found in fields.items() if name not in ("outcome", "job", "duration")}
        cells = [*statuses, *(c for c in columns if kinds.get(c) == "empty" and (c,) not in dropped.values())]
        return _reading("jobs", Form.WIDE_STATUS, dropped, columns, tuple(cells))
    fields = _assign("measures", columns, mapping)
    used = {column for found in fields.values() for column in found}
    numbers = tuple(column for column in columns if kinds.get(column) == "number" and column not in used)
    if numbers and ("at" in fields or "commit" in fields):
        return _reading("measures", Form.WIDE_NUMBERS, fields, columns, numbers)
    return None


def _reading(
    table: str, form: Form, fields: Mapping[str, tuple[str, ...]], columns: Iterable[str], cells: tuple[str, ...] = ()
) -> Reading:
    used = {column for found in fields.values() for column in found} | set(cells)
    return Reading(table, form, fields, cells, tuple(column for column in columns if column not in used))


def _check_mapping(path: str, columns: Sequence[str], mapping: Mapping[str, str]) -> None:
    known = {field for fields in FIELDS.values() for field in fields}
    for column, field in mapping.items():
        if column not in columns:
            raise IngestError(path, f"--map {column}={field}: there is no such column; there are {', '.join(columns)}")
        if field and field not in known:
            raise IngestError(
                path, f"--map {column}={field}: there is no such field; there are {', '.join(sorted(known))}"
            )


def plain_name(column: str) -> str:
    """A column's name as the spellings above have it: `headSha`, `Head SHA` and `head-sha` are `head_sha`."""
    return _WORD.sub("_", _HUMP.sub("_", column.strip().lstrip("\ufeff")).lower()).strip("_")


_TURNED_INTO_OTHERS: Final = frozenset({"duration", "classname", "device_count"})
assert all(  # noqa: S101 - a typo here would be silent
    field in {*TABLES[table].columns, *_TURNED_INTO_OTHERS} for table, fields in FIELDS.items() for field in fields
)
