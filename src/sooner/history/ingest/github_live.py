"""Asks GitHub about a repository's runs and jobs, from the newest back; goes on where it was interrupted.

What is in the history is the only memory: a run is recorded after its jobs, so a run that is there and has ended needs
not be asked about again. Listing is cheap (one request for a hundred runs), jobs are not (one for each run).
"""

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from sooner.history.errors import Gone, IngestError
from sooner.history.ingest.github_api import Api
from sooner.history.ingest.github_jobs import rows_of
from sooner.history.ingest.intake import Intake
from sooner.history.ingest.json_facts import Unusable, as_count, as_id, as_objects, as_text
from sooner.history.outcomes import UNSETTLED
from sooner.history.reading import Where

_RUNS_A_BATCH: Final = 200
"""Runs between two commits: what an interruption costs."""
_MOST_SHOWN: Final = 1_000
"""GitHub shows no more runs of one search: a longer time is cut in halves."""
_SHORTEST_S: Final = 60.0
_GONE: Final = "GitHub has it no more"
_DEFAULT_DAYS: Final = 14
_NAME: Final = re.compile(r"[\w.-]+/[\w.-]+")
_DEFAULT_URL: Final = "https://api.github.com"


def take_live(name: str, intake: Intake) -> None:
    """Ask about a repository: runs since `options.since`, or of the last two weeks.

    Raises:
        IngestError: It is no repository, the time ends before it begins, or GitHub refuses.
    """
    if not _NAME.fullmatch(name):
        raise IngestError(name, "is no repository: pass github:owner/name")
    url = os.environ.get("GITHUB_API_URL") or _DEFAULT_URL
    api = Api(url, os.environ.get("GITHUB_TOKEN", "") or os.environ.get("GH_TOKEN", ""), _pause)
    live = _Live(name, api, intake)
    until = intake.options.until or time.time()
    since = intake.options.since or until - _DEFAULT_DAYS * 86_400
    if since >= until:
        raise IngestError(name, f"--since is {_stamp(since)}, not before --until, {_stamp(until)}")
    try:
        live.take(since, until)
    finally:
        intake.flush()  # an interruption, too, keeps what was read


class _Live:
    def __init__(self, name: str, api: Api, intake: Intake) -> None:
        self._name = name
        self._api = api
        self._intake = intake
        self._source = f"github:{name}"
        settled = (row for row in intake.history.runs(Where(repository=name)) if row.outcome not in UNSETTLED)
        self._known = {(row.run, row.attempt) for row in settled}
        self._done = 0

    def take(self, since: float, until: float) -> None:
        """All runs that were created in a time."""
        waiting = 0
        for run in self._runs(since, until):
            waiting += self._take_run(run)
            self._done += 1
            self._intake.progress(self._source, self._done, 0)
            if waiting >= _RUNS_A_BATCH:
                self._intake.flush()
                waiting = 0

    def _runs(self, since: float, until: float) -> Iterator[Mapping[str, Any]]:
        """Runs of a time, the newest first."""
        parameters = {"created": f"{_stamp(since)}..{_stamp(until)}"}
        if branch := self._intake.options.constants.get("branch"):
            parameters["branch"] = branch
        for number, page in enumerate(self._api.pages(f"repos/{self._name}/actions/runs", **parameters)):
            total = as_count(page.get("total_count")) or 0
            if number == 0 and total > _MOST_SHOWN and until - since > _SHORTEST_S:
                middle = (since + until) / 2
                yield from self._runs(middle, until)
                yield from self._runs(since, middle)
                return
            yield from as_objects(page.get("workflow_runs"))

    def _take_run(self, run: Mapping[str, Any]) -> bool:
        """Ask about a run's jobs unless they are known; says whether something was asked."""
        identity, attempts = as_id(run.get("id")), as_count(run.get("run_attempt")) or 1
        if all((identity, attempt) in self._known for attempt in range(1, attempts + 1)):
            return False
        path = f"repos/{self._name}/actions/runs/{identity}"
        if not self._take_jobs(f"{path}/jobs"):
            return True
        for attempt in range(1, attempts):
            if (identity, attempt) not in self._known:
                self._take_attempt(f"{path}/attempts/{attempt}")
        self._add(run, path)
        self._known |= {(identity, attempt) for attempt in range(1, attempts + 1)}
        return True

    def _take_jobs(self, path: str) -> bool:
        """All jobs of a run; says whether it is still there: runs are deleted while they are asked about."""
        try:
            for page in self._api.pages(path, filter="all"):
                for job in as_objects(page.get("jobs")):
                    self._add(job, path)
        except Gone:
            self._intake.report.reject(path, 0, _GONE)
            return False
        return True

    def _take_attempt(self, path: str) -> None:
        try:
            self._add(self._api.get(path), path)
        except Gone:
            self._intake.report.reject(path, 0, _GONE)

    def _add(self, item: Mapping[str, Any], path: str) -> None:
        try:
            rows = list(rows_of(item, self._source))
        except Unusable as error:
            self._intake.report.reject(path, 0, f"{as_text(item.get('id'))}: {error}")
            return
        for row in rows:
            self._intake.add(row)


def _stamp(time_s: float) -> str:
    return datetime.fromtimestamp(time_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _pause(seconds: float, why: str) -> None:
    sys.stderr.write(f"{why}: waiting {seconds:.0f} s\n")
    sys.stderr.flush()
    time.sleep(seconds)
