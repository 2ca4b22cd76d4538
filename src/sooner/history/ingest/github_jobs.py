"""GitHub's jobs and runs as rows: REST objects and webhook events, and what is not to be believed in them.

- `started_at` is filled while a job still queues: only a job that runs or ran has been started.
- `created_at` of a run survives a re-run: the attempt was asked for at `run_started_at`.
- "Re-run failed jobs" shows the jobs that passed before as jobs of the new attempt, created after they ended: such a
  copy is kept as a shadow, which only counts where the job that ran is not known.
- A job that lost its runner, or never got one, is completed by the system hours or days later: that is when it was
  closed, not when it ended.
- A job may have a placeholder beside it, of its name and another id (or none), that never ran.

Sources: docs.github.com/en/rest/actions (objects), docs.github.com/en/actions/reference/limits (6 h a hosted job,
5 days a self-hosted one, 24 h in the queue), tt-metal #12010 and gha-new-relic-exporter #38 (copies), test-infra's
`queued_jobs` (steps show that a queued job has run).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from sooner.history.ingest.json_facts import Unusable, as_count, as_id, as_mapping, as_objects, as_text, as_time
from sooner.history.outcomes import HistoryOutcome, spelled
from sooner.history.tables import CommitRow, Epoch, JobRow, MeasureRow, Row, RunRow

_REPOSITORY: Final = re.compile(r"/([^/\s]+/[^/\s]+)/actions/(?:runs|jobs)/")
_SILENT_S: Final = 3_600.0
"""A job whose last step ended so long before it did was not ended by itself."""
_QUEUE_LIMIT_S: Final = 86_400.0
_RUN_LIMIT_S: Final = 5 * 86_400.0
_WAITING: Final = frozenset({"queued", "waiting", "pending", "requested"})
_ENVELOPES: Final = ("payload", "body", "detail", "_source")
"""Keys under which databases and queues keep an event."""


def rows_of(item: Any, source: str) -> Iterator[Row]:
    """The rows that a job, a run or an event stands for.

    Raises:
        Unusable: It is none of them, or lacks what a row needs.
    """
    value = _unwrapped(item)
    repository = as_text(as_mapping(value.get("repository")).get("full_name"))
    if job := as_mapping(value.get("workflow_job")):
        yield from _job_rows(job, repository, source)
    elif run := as_mapping(value.get("workflow_run")):
        yield from _run_rows(run, repository, source)
    elif "run_id" in value and {"labels", "steps", "workflow_name", "run_url"} & value.keys():
        yield from _job_rows(value, repository, source)
    elif "head_sha" in value and {"workflow_id", "run_number", "run_attempt"} & value.keys():
        yield from _run_rows(value, repository, source)
    else:
        raise Unusable("neither a job nor a run of GitHub Actions")


def is_github(item: Any) -> bool:
    """Whether an item looks like one of GitHub's."""
    value = _unwrapped(item)
    is_job = "run_id" in value and ("steps" in value or "run_url" in value or "labels" in value)
    is_run = "head_sha" in value and ("workflow_id" in value or "run_number" in value)
    return is_job or is_run or bool({"workflow_job", "workflow_run"} & value.keys())


def _unwrapped(item: Any) -> Mapping[str, Any]:
    value = as_mapping(item)
    for key in _ENVELOPES:
        inner = value.get(key)
        if isinstance(inner, str) and inner.startswith("{"):
            import json

            try:
                inner = json.loads(inner)
            except ValueError:
                continue
        if isinstance(inner, dict):
            return _unwrapped(inner)
    return value


class _Steps:
    """The steps of a job: the only witnesses of whether and how long it ran."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        self.are_told = isinstance(job.get("steps"), list)
        self.all = list(as_objects(job.get("steps")))
        self._times = [(as_time(step.get("started_at")), as_time(step.get("completed_at"))) for step in self.all]

    @property
    def first(self) -> Epoch | None:
        return min((begin for begin, _ in self._times if begin is not None), default=None)

    @property
    def last(self) -> Epoch | None:
        return max((time for pair in self._times for time in pair if time is not None), default=None)

    @property
    def failure(self) -> str:
        """The step that failed first."""
        failed = (as_text(step.get("name")) for step in self.all if step.get("conclusion") == "failure")
        name = next(failed, "")
        return f"step: {name}" if name else ""

    def durations(self) -> Iterator[tuple[str, Epoch, float]]:
        """Name, begin and seconds; a name that comes again gets a number."""
        seen: dict[str, int] = {}
        for step, (begin, end) in zip(self.all, self._times, strict=True):
            name = as_text(step.get("name")) or "step"
            seen[name] = seen.get(name, 0) + 1
            if begin is not None and end is not None and end >= begin:
                yield name if seen[name] == 1 else f"{name} #{seen[name]}", begin, end - begin


def _job_rows(job: Mapping[str, Any], repository: str, source: str) -> Iterator[Row]:
    steps = _Steps(job)
    row = _judged(_job(job, repository, source), job, steps)
    yield row
    if row.shadow or row.outcome is HistoryOutcome.RUNNING:
        return
    for name, begin, seconds in steps.durations():
        yield MeasureRow(
            repository=row.repository,
            workflow=row.workflow,
            run=row.run,
            attempt=row.attempt,
            job=row.job,
            job_id=row.job_id,
            commit=row.commit,
            subject=name,
            name="step_seconds",
            value=seconds,
            unit="s",
            at=begin,
            source=source,
        )


def _job(job: Mapping[str, Any], repository: str, source: str) -> JobRow:
    """A job as it is told."""
    run, name = as_id(job.get("run_id")), as_text(job.get("name"))
    if not run or not name:
        raise Unusable("a job without run_id" if not run else "a job without a name")
    created = as_time(job.get("created_at"))
    return JobRow(
        repository=repository or _repository_in(job),
        workflow=as_text(job.get("workflow_name")),
        run=run,
        attempt=as_count(job.get("run_attempt")) or 1,
        job=name,
        job_id=as_id(job.get("id")),
        commit=as_text(job.get("head_sha")),
        branch=as_text(job.get("head_branch")),
        created=created,
        queued=created,
        started=as_time(job.get("started_at")),
        completed=as_time(job.get("completed_at")),
        runner=_labels(job.get("labels")),
        runner_name=as_text(job.get("runner_name")),
        outcome=_outcome(job),
        source=source,
    )


def _judged(row: JobRow, job: Mapping[str, Any], steps: _Steps) -> JobRow:
    """The same without what is not to be believed."""
    has_run = bool(steps.all) or bool(row.runner_name) or bool(as_id(job.get("runner_id")))
    if as_text(job.get("status")) in _WAITING:
        row = replace(row, started=steps.first, completed=None)
    if _is_copy(row):
        # The earliest attempt that it can have run in; there is no telling which one it was.
        row = replace(row, shadow="copied", attempt=1, created=None, queued=None)
    elif not has_run and row.outcome not in (HistoryOutcome.PASSED, HistoryOutcome.FAILED):
        row = replace(row, shadow="placeholder")
    row = _closed(row, steps, has_run=has_run)
    failure = steps.failure if row.outcome is not HistoryOutcome.PASSED else ""
    times = [time for time in (row.closed, row.completed, steps.last, row.started, row.created) if time is not None]
    return replace(row, failure_line=failure, as_of=max(times, default=None))


def _is_copy(row: JobRow) -> bool:
    """Whether it ended before this record of it was made."""
    is_again = row.attempt > 1 and row.completed is not None and row.created is not None
    return is_again and row.started is not None and row.completed < row.created  # type: ignore[operator]


def _closed(row: JobRow, steps: _Steps, *, has_run: bool) -> JobRow:
    """A job that the system completed: the time of its last sign of life, and whose fault it was."""
    if row.completed is None:
        return row
    good, skipped = row.outcome is HistoryOutcome.PASSED, row.outcome is HistoryOutcome.SKIPPED
    if not has_run and steps.are_told and not skipped and not good:
        waited = row.completed - (row.created if row.created is not None else row.completed)
        lost = waited >= _QUEUE_LIMIT_S or row.outcome is HistoryOutcome.FAILED
        outcome = HistoryOutcome.INFRASTRUCTURE if lost else row.outcome
        return replace(row, started=None, completed=None, closed=row.completed, outcome=outcome)
    last = steps.last
    if last is not None and row.completed - last > _SILENT_S:
        outcome = row.outcome if good else HistoryOutcome.INFRASTRUCTURE
        return replace(row, completed=last, closed=row.completed, outcome=outcome)
    if last is None and row.started is not None and row.completed - row.started > _RUN_LIMIT_S:
        outcome = row.outcome if good else HistoryOutcome.INFRASTRUCTURE
        return replace(row, completed=None, closed=row.completed, outcome=outcome)
    if skipped and not has_run:
        return replace(row, started=None)
    return row


def _outcome(value: Mapping[str, Any]) -> HistoryOutcome:
    status, conclusion = as_text(value.get("status")), as_text(value.get("conclusion"))
    if conclusion:
        outcome = spelled(conclusion)
    elif status == "completed":
        return HistoryOutcome.INFRASTRUCTURE  # it ended, and GitHub itself does not know how
    else:
        outcome = spelled(status)
    if outcome is None:
        raise Unusable(f"the {'conclusion' if conclusion else 'status'} {conclusion or status!r} is unknown")
    return outcome


def _run_rows(run: Mapping[str, Any], repository: str, source: str) -> Iterator[Row]:
    identity = as_id(run.get("id"))
    if not identity:
        raise Unusable("a run without id")
    repository = repository or as_text(as_mapping(run.get("repository")).get("full_name")) or _repository_in(run)
    attempt = as_count(run.get("run_attempt")) or 1
    created, started = as_time(run.get("created_at")), as_time(run.get("run_started_at"))
    updated, outcome = as_time(run.get("updated_at")), _outcome(run)
    commit, branch = as_text(run.get("head_sha")), as_text(run.get("head_branch"))
    requests = [as_count(request.get("number")) for request in as_objects(run.get("pull_requests"))]
    yield RunRow(
        repository=repository,
        workflow=as_text(run.get("name")) or as_text(as_mapping(run.get("workflow")).get("name")),
        run=identity,
        attempt=attempt,
        number=as_count(run.get("run_number")),
        commit=commit,
        branch=branch,
        pull_request=next((number for number in requests if number), None),
        event=as_text(run.get("event")),
        created=started if attempt > 1 and started is not None else created,
        first_created=created,
        started=started,
        completed=updated if outcome is not HistoryOutcome.RUNNING else None,
        outcome=outcome,
        source=source,
        as_of=updated if updated is not None else created,
    )
    head = as_mapping(run.get("head_commit"))
    if head.get("id") == commit and commit:
        yield CommitRow(
            repository=repository,
            sha=commit,
            time=as_time(head.get("timestamp")),
            author=as_text(as_mapping(head.get("author")).get("name")),
            message=as_text(head.get("message")),
            source=source,
        )


def _labels(value: Any) -> str:
    labels: Sequence[Any] = value if isinstance(value, list) else []
    return ",".join(as_text(as_mapping(label).get("name")) or as_text(label) for label in labels)


def _repository_in(value: Mapping[str, Any]) -> str:
    for key in ("url", "run_url", "html_url", "jobs_url"):
        if found := _REPOSITORY.search(as_text(value.get(key))):
            return found[1].removeprefix("repos/")
    return ""
