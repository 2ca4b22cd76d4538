"""A run folder of `sooner run` as rows: one for each attempt of each unit, one for each case of its JUnit file.

Reads the folder by its documented formats (docs/reference/run-folder.md), whether the run has ended, was interrupted,
or still goes on. Recorded again later, only what is new is added.
"""

import contextlib
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sooner.history.commit import Added, Repeats
from sooner.history.database import MEMORY_MIB
from sooner.history.errors import HistoryError
from sooner.history.fingerprints import digest_of, first_line
from sooner.history.outcomes import BROKEN, HistoryOutcome, of_run
from sooner.history.row_files import RowFile
from sooner.history.store import DEFAULT_ROOT, History
from sooner.history.tables import TABLES, Epoch, RunRow, TestRow
from sooner.model.events import Attempt, Event, Finished, RunFinished, RunStarted, Started, Verdict
from sooner.model.jsonl import decode_event, decode_result, split_lines
from sooner.model.outcomes import ExitCode, Outcome
from sooner.model.units import UnitKey, unit_key

_JOURNALS: Final[Mapping[str, Callable[[bytes], object]]] = {
    "events.jsonl": decode_event,
    "results.jsonl": decode_result,
}
_NOT_OURS: Final = (msgspec.MsgspecError, AttributeError, KeyError, TypeError, RecursionError)
"""What decoding raises of a line that somebody else wrote."""
_LOOKED_AT: Final = 10
"""Lines: the first may have been cut."""
_LONGEST_MESSAGE: Final = 500
_OF_EXIT: Final[Mapping[int, HistoryOutcome]] = {
    ExitCode.ALL_PASSED: HistoryOutcome.PASSED,
    ExitCode.SOME_FAILED: HistoryOutcome.FAILED,
    ExitCode.COVERAGE_HOLE: HistoryOutcome.SKIPPED_NO_DEVICES,
    ExitCode.INFRASTRUCTURE: HistoryOutcome.INFRASTRUCTURE,
    ExitCode.INTERRUPTED: HistoryOutcome.CANCELLED,
    ExitCode.SIGINT: HistoryOutcome.CANCELLED,
}


def record_run(
    folder: Path, root: str | os.PathLike[str] = DEFAULT_ROOT, *, about: Mapping[str, str] | None = None
) -> Added:
    """Add what a run folder tells to a history.

    Args:
        folder: The run's folder.
        root: The history.
        about: `repository`, `commit`, `branch`, `job` of the run, as far as they are known; see `surroundings`.

    Raises:
        HistoryError: The folder holds no run, or the history cannot be written.
    """
    with History(root, memory_mib=MEMORY_MIB // 2) as history:
        return sum(add_run(history, folder, about or {}).values(), Added())


def add_run(history: History, folder: Path, about: Mapping[str, str]) -> dict[str, Added]:
    """The same for a history that is open; says what became of the rows by table."""
    run = _Run(folder, about)
    with history.folder.staging() as staging:
        file = RowFile(TABLES["tests"], staging / "tests.jsonl")
        with file:
            file.extend(run.attempts())
            _add_cases(run, file)
        added = history.commit(file.table, file.source, file.given, staging, Repeats.ATTEMPTS)
    return {"tests": added, "runs": history.add_runs([run.row()])}


def is_run_folder(folder: Path) -> bool:
    """Whether a run of ours was recorded here: others call their files `results.jsonl`, too."""
    return any(_tells(folder / name, decode) for name, decode in _JOURNALS.items())


def _tells(path: Path, decode: Callable[[bytes], object]) -> bool:
    """Whether one of the first lines is one of ours."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        for line in itertools.islice(file, _LOOKED_AT):
            with contextlib.suppress(*_NOT_OURS):
                decode(line)
                return True
    return False


class _Run:
    """What a run folder tells."""

    def __init__(self, folder: Path, about: Mapping[str, str]) -> None:
        if not is_run_folder(folder):
            raise HistoryError(
                f"{folder} holds no run (neither events.jsonl nor results.jsonl): pass the folder of a run"
            )
        self.folder = folder
        self._about = about
        self._events = list(_decoded(folder / "events.jsonl", decode_event))
        self.verdicts = _verdicts(list(_decoded(folder / "results.jsonl", decode_result)), self._events)
        self._facts = _description(folder / "run.json")
        self.id, self.began = self._identity()

    def _identity(self) -> tuple[str, Epoch | None]:
        """The same for all parts of a run that was resumed; different on every machine and for every run."""
        for event in self._events:
            if isinstance(event, RunStarted):
                return f"{event.run}@{round(event.at * 1000)}", Epoch(event.at)
        starts = [attempt.started_at for verdict in self.verdicts.values() for attempt in verdict.attempts]
        digest = hashlib.sha256(msgspec.json.encode(list(self.verdicts.values()))).hexdigest()[:16]
        began = min(starts, default=self._facts.get("began_at"))
        return f"{self.folder.name}@{digest}", Epoch(began) if began is not None else None

    @property
    def source(self) -> str:
        """Where the rows are from."""
        return f"sooner:{self.folder.name}"

    def attempts(self) -> Iterator[TestRow]:
        """A row for each attempt of each unit; one for a unit that was not started."""
        for verdict in self.verdicts.values():
            if not verdict.attempts:
                yield self._row(verdict, 1, of_run(verdict.outcome), verdict.cause)
            for number, attempt in enumerate(verdict.attempts, 1):
                yield self._attempt(verdict, number, attempt)

    def _attempt(self, verdict: Verdict, number: int, attempt: Attempt) -> TestRow:
        if not attempt.ended_at:
            running = self._row(verdict, number, HistoryOutcome.RUNNING, "")
            return replace(running, started=Epoch(attempt.started_at), devices=attempt.devices)
        cause = attempt.cause if attempt.outcome is not Outcome.PASSED else ""
        return replace(
            self._row(verdict, number, of_run(attempt.outcome), cause),
            seconds=attempt.ended_at - attempt.started_at,
            started=Epoch(attempt.started_at),
            devices=attempt.devices,
            peak_memory_mib=attempt.peak_rss_mib or None,
            exit_code=attempt.exit_code,
            signal=attempt.signal,
        )

    def _row(self, verdict: Verdict, attempt: int, outcome: HistoryOutcome, cause: str) -> TestRow:
        message = first_line(cause, _LONGEST_MESSAGE)
        return TestRow(
            run=self.id,
            repository=self._about.get("repository", ""),
            job=self._about.get("job", ""),
            commit=self._about.get("commit", ""),
            branch=self._about.get("branch", ""),
            unit=verdict.unit,
            variant=verdict.variant,
            attempt=attempt,
            outcome=outcome,
            message=message,
            message_digest=digest_of(message),
            source=self.source,
            as_of=Epoch(verdict.at) if verdict.at else self.began,
        )

    def case(self, row: TestRow) -> TestRow | None:
        """A case of a unit's own JUnit file; None for what stands in junit.xml only to tell of the unit itself."""
        verdict = self.verdicts.get(unit_key(row.unit, row.variant))
        if verdict is None or not verdict.attempts or row.node_id == f"{row.variant or 'sooner'}::{row.unit}":
            return None
        last = verdict.attempts[-1]
        return replace(
            row,
            repository=self._about.get("repository", ""),
            job=self._about.get("job", ""),
            commit=self._about.get("commit", ""),
            branch=self._about.get("branch", ""),
            attempt=len(verdict.attempts),
            # When in its unit a case began is not told: it is placed at the unit's own start.
            started=Epoch(last.started_at),
            devices=last.devices,
        )

    def row(self) -> RunRow:
        """The run as a whole."""
        ends = [attempt.ended_at for verdict in self.verdicts.values() for attempt in verdict.attempts]
        outcome = self._outcome()
        return RunRow(
            repository=self._about.get("repository", ""),
            commit=self._about.get("commit", ""),
            branch=self._about.get("branch", ""),
            run=self.id,
            workflow=str(self._facts.get("plan", {}).get("source", "")),
            created=self.began,
            first_created=self.began,
            started=self.began,
            completed=Epoch(max(ends)) if ends and outcome is not HistoryOutcome.RUNNING else None,
            outcome=outcome,
            devices=len(self._facts.get("devices", ())) or None,
            source=self.source,
            as_of=Epoch(self._events[-1].at) if self._events else self.began,
        )

    def _outcome(self) -> HistoryOutcome:
        ended = [event for event in self._events if isinstance(event, RunFinished)]
        if ended:
            return _OF_EXIT.get(ended[-1].exit_code, HistoryOutcome.INFRASTRUCTURE)
        outcomes = {of_run(verdict.outcome) for verdict in self.verdicts.values()}
        if not (self.folder / "results.jsonl").is_file():
            return HistoryOutcome.RUNNING
        if outcomes & BROKEN:
            return HistoryOutcome.FAILED
        lost = outcomes & {HistoryOutcome.INFRASTRUCTURE, HistoryOutcome.NOT_RUN}
        return HistoryOutcome.INFRASTRUCTURE if lost else HistoryOutcome.PASSED


def _verdicts(results: Iterable[Verdict], events: Sequence[Event]) -> dict[UnitKey, Verdict]:
    """What is known of each unit: of its result, its verdict in the journal and its attempts there, what tells most."""
    known: dict[UnitKey, Verdict] = {}
    for verdict in [*results, *_told(events)]:
        key = unit_key(verdict.unit, verdict.variant)
        if key not in known or _weight(verdict) > _weight(known[key]):
            known[key] = verdict
    return known


def _weight(verdict: Verdict) -> tuple[int, bool]:
    ended = sum(attempt.ended_at > 0 for attempt in verdict.attempts)
    return len(verdict.attempts) + ended, verdict.outcome is not Outcome.NOT_RUN


def _told(events: Sequence[Event]) -> Iterator[Verdict]:
    """Verdicts of the journal, and what it tells of units that have none yet."""
    ended: dict[UnitKey, list[Attempt]] = {}
    running: dict[UnitKey, Started] = {}
    units: dict[UnitKey, Started] = {}
    for event in events:
        match event:
            case Verdict():
                yield event
            case Started():
                running[unit_key(event.unit, event.variant)] = units[unit_key(event.unit, event.variant)] = event
            case Finished():
                running.pop(unit_key(event.unit, event.variant), None)
                ended.setdefault(unit_key(event.unit, event.variant), []).append(event.result)
    for key, start in units.items():
        attempts = list(ended.get(key, ()))
        if key in running:
            went_on = running[key]
            attempts.append(Attempt(outcome=Outcome.NOT_RUN, devices=went_on.devices, started_at=went_on.at))
        outcome = attempts[-1].outcome if attempts else Outcome.NOT_RUN
        yield Verdict(
            at=start.at,
            unit=start.unit,
            variant=start.variant,
            outcome=outcome,
            attempts=tuple(attempts),
            log=start.log,
        )


def _decoded(path: Path, decode: Any) -> Iterator[Any]:
    """The lines of a file that can be read; one that was cut by a crash is no line."""
    with contextlib.suppress(OSError):
        for line in split_lines(path.read_bytes()):
            with contextlib.suppress(*_NOT_OURS):
                yield decode(line)


def _description(path: Path) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _add_cases(run: _Run, file: RowFile) -> None:
    from sooner.history.ingest.junit import read_cases

    def add(row: TestRow) -> None:
        if (case := run.case(row)) is not None:
            file.add(case)

    path = run.folder / "junit.xml"
    if path.is_file():
        like = TestRow(run=run.id, outcome=HistoryOutcome.PASSED, source=run.source, as_of=run.began)
        read_cases(path, add, like)
