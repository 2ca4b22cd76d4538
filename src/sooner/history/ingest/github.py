"""GitHub Actions as files: REST dumps as `gh api --paginate` prints them, and webhook events as stored."""

from pathlib import Path

from sooner.history.ingest.github_jobs import rows_of
from sooner.history.ingest.intake import Intake
from sooner.history.ingest.json_facts import Unusable
from sooner.history.ingest.json_items import Broken, items
from sooner.history.ingest.opening import opened


def take_github(path: Path, intake: Intake) -> None:
    """Read a dump: pages, lists, single objects or lines, one after the other or nested.

    Raises:
        IngestError: It cannot be opened.
    """
    source = f"github:{path.name}"
    with opened(path) as stream:
        for item in items(stream):
            if isinstance(item, Broken):
                intake.report.reject(str(path), item.line, item.reason)
                continue
            try:
                rows = list(rows_of(item.value, source))
            except Unusable as error:
                intake.report.reject(str(path), item.line, str(error))
            else:
                for row in rows:
                    intake.add(row)
