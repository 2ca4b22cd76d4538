"""Takes sources in: finds out what each is and hands it to its format. What one of them lacks stops no other."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from sooner.history.errors import HistoryError, IngestError
from sooner.history.ingest.buildkite import take_buildkite
from sooner.history.ingest.detect import FOLDERS, FORMATS, LIVE, files_in, format_of
from sooner.history.ingest.git import take_git
from sooner.history.ingest.github import take_github
from sooner.history.ingest.intake import Intake, Options, Progress, check_constants
from sooner.history.ingest.junit import take_junit
from sooner.history.ingest.ossci import take_ossci
from sooner.history.ingest.report import Report
from sooner.history.ingest.sccache import take_sccache
from sooner.history.ingest.table import take_table
from sooner.history.ingest.test_times import take_test_times
from sooner.history.record import add_run
from sooner.history.store import History
from sooner.history.tables import table_named

_ONLY_MEANT: Final = frozenset({".xml", ".json", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".gz", ".zst"})
"""In a folder that is walked through, other files are not meant."""


def ingest(
    history: History,
    paths: Iterable[str],
    options: Options,
    *,
    strict: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Take sources in.

    Args:
        history: Where their rows go.
        paths: Files, folders, or `github:owner/name`.
        options: How they are to be read.
        strict: Whether the first thing that cannot be read stops everything; what was committed before stays.
        progress: Is told how far it is.

    Raises:
        IngestError: Under `strict`, the first thing that cannot be read.
        HistoryError: The options make no sense, or the history cannot be written.
    """
    paths = list(paths)
    _check(options, paths)
    report = Report(strict=strict)
    with history.folder.staging() as staging:
        intake = Intake(history, staging, options, report, progress)
        try:
            for path in paths:
                _take_path(path, intake)
            intake.flush()
        finally:
            intake.discard()
    _note_unused(options.constants, report)
    return report


def _check(options: Options, paths: Iterable[str]) -> None:
    """What would stop everything is told before anything has begun."""
    for path in paths:
        if path.startswith(LIVE) or options.format == "github-api":
            continue
        if not Path(path).exists():
            raise IngestError(path, "there is no such file or folder")
        if not (Path(path).is_file() or Path(path).is_dir()):
            raise IngestError(path, "it is no file but a pipe or a device, and sources are read twice: save it first")
    check_constants(options.constants)
    _ = options.timezone
    if options.format and options.format not in FORMATS:
        raise HistoryError(f"--format {options.format!r} is unknown: the formats are {', '.join(FORMATS)}")


def _note_unused(constants: Iterable[str], report: Report) -> None:
    """What was said of all rows, and no table that they went to has, is nowhere now."""
    tables = [name for name, found in report.tables.items() if found.rows]
    for field in constants:
        if tables and not any(field in table_named(name).columns for name in tables):
            report.note(f"--set {field} was not used: {' and '.join(tables)} have no such field")


def _take_path(path: str, intake: Intake) -> None:
    if path.startswith(LIVE) or intake.options.format == "github-api":
        from sooner.history.ingest.github_live import take_live

        take_live(path.removeprefix(LIVE), intake)
        return
    sources = list(_sources(Path(path), intake.options.format))
    if not sources:
        raise IngestError(path, "there is nothing in it that could be read")
    for number, source in enumerate(sources):
        intake.progress(str(source), number, len(sources))
        _take_source(source, intake)
    intake.progress(path, len(sources), len(sources))


def _sources(path: Path, known: str) -> Iterator[Path]:
    if path.is_file() or known in FOLDERS or (not known and format_of(path)):
        yield path
    else:
        yield from (file for file in files_in(path) if file.is_dir() or _ONLY_MEANT & set(file.suffixes))


def _take_source(path: Path, intake: Intake) -> None:
    try:
        name = intake.options.format or format_of(path)
        _FORMATS[name](path, intake)
    except IngestError as error:
        if intake.report.strict:
            raise
        problem = str(error).removeprefix(f"{error.path}:{error.line}: ").removeprefix(f"{error.path}: ")
        intake.report.reject(error.path, error.line, problem)


def _take_run(path: Path, intake: Intake) -> None:
    for table, added in add_run(intake.history, path, intake.options.constants).items():
        intake.report.add(table, added)


_FORMATS: Final[Mapping[str, Callable[[Path, Intake], None]]] = {
    "junit": take_junit,
    "csv": lambda path, intake: take_table(path, intake, "csv"),
    "jsonl": lambda path, intake: take_table(path, intake, "jsonl"),
    "json": lambda path, intake: take_table(path, intake, "json"),
    "parquet": lambda path, intake: take_table(path, intake, "parquet"),
    "github": take_github,
    "buildkite": take_buildkite,
    "ossci": take_ossci,
    "test-times": take_test_times,
    "sccache": take_sccache,
    "git": take_git,
    "run": _take_run,
}
