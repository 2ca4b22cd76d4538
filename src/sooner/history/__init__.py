"""What happened, kept as Parquet files and read through DuckDB: the only home of DuckDB, of SQL and of foreign formats.

`History` is the door: rows of jobs, runs, tests, commits, runners and measures go in, typed rows and columns come out.
`sooner.history.ingest` reads other systems' files. Nothing here imports DuckDB before a history is opened.
"""

from sooner.history.branches import lands_on, of_requests, trunk_among
from sooner.history.commit import Added
from sooner.history.durations import Subject
from sooner.history.errors import HistoryError, IngestError
from sooner.history.executions import LastRun
from sooner.history.naming import check_named, check_one_repository, left_out, unknown_name
from sooner.history.outcomes import HistoryOutcome
from sooner.history.reading import Columns, Texts, Where
from sooner.history.record import record_run
from sooner.history.repeats import attempts_told_apart
from sooner.history.store import DEFAULT_ROOT, History, known_durations
from sooner.history.surroundings import surroundings
from sooner.history.tables import SCHEMA, CommitRow, Epoch, JobRow, MeasureRow, RunnerRow, RunRow, TestRow

__all__ = [
    "DEFAULT_ROOT",
    "SCHEMA",
    "Added",
    "Columns",
    "CommitRow",
    "Epoch",
    "History",
    "HistoryError",
    "HistoryOutcome",
    "IngestError",
    "JobRow",
    "LastRun",
    "MeasureRow",
    "RunRow",
    "RunnerRow",
    "Subject",
    "TestRow",
    "Texts",
    "Where",
    "attempts_told_apart",
    "check_named",
    "check_one_repository",
    "known_durations",
    "lands_on",
    "left_out",
    "of_requests",
    "record_run",
    "surroundings",
    "trunk_among",
    "unknown_name",
]
