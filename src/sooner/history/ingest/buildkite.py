"""Buildkite's builds, as its REST API and `bk` print them.

A job that was retried stays in its build beside its retry: they are attempts of one job. Jobs whose agent was lost end
with exit status -1, those that no agent took expire: neither is the job's fault.
Source: buildkite.com/docs/apis/rest-api/builds.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sooner.history.ingest.intake import Intake
from sooner.history.ingest.json_facts import Unusable, as_count, as_mapping, as_objects, as_text, as_time
from sooner.history.ingest.json_items import Broken, items
from sooner.history.ingest.opening import opened
from sooner.history.outcomes import HistoryOutcome, spelled
from sooner.history.tables import JobRow, Row, RunRow

_EVENTS: Final = {"webhook": "push", "api": "api", "ui": "manual", "schedule": "schedule", "trigger_job": "trigger"}
_NO_COMMAND: Final = frozenset({"waiter", "manual", "trigger"})
"""Steps in which nothing runs."""


def is_buildkite(item: Any) -> bool:
    """Whether an item looks like a build."""
    value = as_mapping(item)
    return isinstance(value.get("jobs"), list) and "pipeline" in value and "state" in value


def take_buildkite(path: Path, intake: Intake) -> None:
    """Read builds, one after the other or in lists.

    Raises:
        IngestError: It cannot be opened.
    """
    source = f"buildkite:{path.name}"
    with opened(path) as stream:
        for item in items(stream):
            if isinstance(item, Broken):
                intake.report.reject(str(path), item.line, item.reason)
            else:
                _take_build(path, item.line, item.value, source, intake)


def _take_build(path: Path, line: int, value: Any, source: str, intake: Intake) -> None:
    build = as_mapping(value)
    try:
        run = _run(build, source)
    except Unusable as error:
        intake.report.reject(str(path), line, str(error))
        return
    for job in as_objects(build.get("jobs")):
        try:
            rows = list(_job_rows(job, run, build))
        except Unusable as error:
            intake.report.reject(str(path), line, f"job {as_text(job.get('id'))}: {error}")
        else:
            for row in rows:
                intake.add(row)
    intake.add(run)


def _run(build: Mapping[str, Any], source: str) -> RunRow:
    identity = as_text(build.get("id"))
    if not identity or not is_buildkite(build):
        raise Unusable("no build: it has no id, pipeline or jobs")
    pipeline = as_mapping(build.get("pipeline"))
    created = as_time(build.get("created_at"))
    return RunRow(
        repository=_repository(as_text(pipeline.get("repository"))) or as_text(pipeline.get("slug")),
        workflow=as_text(pipeline.get("slug")) or as_text(pipeline.get("name")),
        run=identity,
        number=as_count(build.get("number")),
        commit=as_text(build.get("commit")),
        branch=as_text(build.get("branch")),
        pull_request=as_count(as_mapping(build.get("pull_request")).get("id")),
        event=_EVENTS.get(as_text(build.get("source")), as_text(build.get("source"))),
        created=created,
        first_created=created,
        started=as_time(build.get("started_at")),
        completed=as_time(build.get("finished_at")),
        outcome=_word(as_text(build.get("state"))),
        source=source,
        as_of=as_time(build.get("finished_at")) or as_time(build.get("started_at")) or created,
    )


def _job_rows(job: Mapping[str, Any], run: RunRow, build: Mapping[str, Any]) -> Iterator[Row]:
    if as_text(job.get("type")) in _NO_COMMAND:
        return
    name = as_text(job.get("name")) or as_text(job.get("label")) or as_text(job.get("step_key"))
    if not name:
        raise Unusable("it has no name")
    index, total = as_count(job.get("parallel_group_index")), as_count(job.get("parallel_group_total"))
    times = {key: as_time(job.get(f"{key}_at")) for key in ("created", "runnable", "scheduled", "started", "finished")}
    yield JobRow(
        repository=run.repository,
        workflow=run.workflow,
        run=run.run,
        attempt=(as_count(job.get("retries_count")) or 0) + 1,
        job=name,
        job_id=as_text(job.get("id")),
        shard=f"{index + 1}/{total}" if index is not None and total else "",
        commit=run.commit,
        branch=run.branch,
        pull_request=run.pull_request,
        event=run.event,
        run_created=as_time(build.get("created_at")),
        created=times["created"],
        queued=times["runnable"] or times["scheduled"] or times["created"],
        started=times["started"],
        completed=times["finished"],
        runner=_queue(job),
        runner_name=as_text(as_mapping(job.get("agent")).get("name")),
        outcome=_outcome(job),
        source=run.source,
        as_of=times["finished"] or times["started"] or times["runnable"] or times["created"],
    )


def _outcome(job: Mapping[str, Any]) -> HistoryOutcome:
    going = ("canceled", "cancelled", "running")
    if as_text(job.get("exit_status")) == "-1" and as_text(job.get("state")) not in going:
        return HistoryOutcome.INFRASTRUCTURE
    if job.get("soft_failed") is True:
        return HistoryOutcome.FAILED
    return _word(as_text(job.get("state")))


def _word(state: str) -> HistoryOutcome:
    outcome = spelled("running" if state in ("failing", "blocked_running") else state)
    if outcome is None:
        raise Unusable(f"the state {state!r} is unknown")
    return outcome


def _queue(job: Mapping[str, Any]) -> str:
    rules = job.get("agent_query_rules")
    told = map(str, rules) if isinstance(rules, list) else ()
    return ",".join(rule.partition("=")[2] for rule in told if rule.startswith("queue="))


def _repository(url: str) -> str:
    """`owner/name` of a clone's address."""
    path = url.removesuffix(".git").replace(":", "/").rstrip("/").split("/")
    return "/".join(path[-2:]) if len(path) > 1 else ""
