"""PyTorch's `ossci-job-status` of 2019: folders `master/` and `pr/` with one JSON file a commit, job name -> status.

Known from its readers (pytorch/test-infra and ezyang's HUD): a status is a word or an object with `status` and
`build_url`; `master/index.json` lists commits with their times. The files tell no times of jobs.
"""

import json
import re
from pathlib import Path
from typing import Any, Final

from sooner.history.ingest.intake import Intake
from sooner.history.ingest.json_facts import Unusable, as_mapping, as_objects, as_text, as_time
from sooner.history.ingest.opening import opened
from sooner.history.outcomes import spelled
from sooner.history.tables import CommitRow, Epoch, JobRow

_OF_COMMIT: Final = re.compile("[0-9a-f]+")
"""Files are called by their commit: other dumps lie in a folder called main, too."""
_EVENTS: Final = {"pr": "pull_request", "master": "push", "main": "push"}


def is_ossci(folder: Path) -> bool:
    """Whether a folder looks like theirs."""
    return any(_OF_COMMIT.fullmatch(path.stem) for name in _EVENTS for path in (folder / name).glob("*.json"))


def take_ossci(folder: Path, intake: Intake) -> None:
    """Read the folders."""
    for name, event in _EVENTS.items():
        files = sorted((folder / name).glob("*.json"))
        for number, path in enumerate(files):
            if path.name == "index.json":
                _take_index(path, intake)
            else:
                _take_commit(path, event, name if event == "push" else "", intake)
            intake.progress(str(folder / name), number + 1, len(files))


def _take_commit(path: Path, event: str, branch: str, intake: Intake) -> None:
    statuses = _loaded(path, intake)
    if not isinstance(statuses, dict):
        if statuses is not None:
            intake.report.reject(str(path), 1, "no object of job name -> status")
        return
    as_of = Epoch(path.stat().st_mtime)
    for index, (job, told) in enumerate(statuses.items(), 1):
        status = told if isinstance(told, str) else as_text(as_mapping(told).get("status"))
        outcome = spelled(status) if status else None
        if outcome is None:
            intake.report.reject(str(path), index, f"{job}: the status {status!r} is unknown")
            continue
        intake.add(
            JobRow(
                job=job,
                commit=path.stem,
                branch=branch,
                event=event,
                outcome=outcome,
                source=f"ossci:{path.parent.name}/{path.name}",
                as_of=as_of,
            )
        )


def _take_index(path: Path, intake: Intake) -> None:
    for commit in as_objects(_loaded(path, intake)):
        try:
            time = as_time(commit.get("timestamp"), intake.options.timezone)
        except Unusable as error:
            intake.report.reject(str(path), 1, str(error))
            continue
        sha, author = as_text(commit.get("id")), commit.get("author")
        if sha:
            intake.add(
                CommitRow(
                    sha=sha,
                    time=time,
                    author=as_text(as_mapping(author).get("name")) or as_text(author),
                    message=as_text(commit.get("message")) or as_text(commit.get("title")),
                    branch=path.parent.name,
                    source=f"ossci:{path.parent.name}/{path.name}",
                )
            )


def _loaded(path: Path, intake: Intake) -> Any:
    try:
        with opened(path) as stream:
            return json.load(stream)
    except (ValueError, RecursionError) as error:
        intake.report.reject(str(path), getattr(error, "lineno", 1), f"no JSON: {error}")
        return None
