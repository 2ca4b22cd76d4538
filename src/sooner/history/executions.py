"""When each test case last ran, by how much it ran on: a few rows a test, however many runs there are of it."""

from collections.abc import Iterable

from msgspec import Struct

from sooner.history.database import Database
from sooner.history.outcomes import HistoryOutcome
from sooner.history.reading import Where
from sooner.history.statements import listed, sql


class LastRun(Struct, frozen=True, kw_only=True, gc=False):
    """The last execution of a test case on so many devices of such a runner."""

    node_id: str
    at: float
    """When it started, epoch seconds; else when its job did, else when it became known."""
    devices: int | None
    """How many it held, else how many its job had; None where nobody tells."""
    runner: str
    """Label of its job's runner."""
    is_pretended: bool
    """Whether these were virtual devices, or slots of the CPU."""
    run: str
    job: str
    worker: str
    commit: str
    outcome: HistoryOutcome
    ranks: int | None


def last_runs(
    database: Database, jobs_time: str, outcomes: Iterable[HistoryOutcome], until: float, where: Where
) -> list[LastRun]:
    """By test, the latest last; see `History.last_runs`."""
    given = {"repository": where.repository, "branch": where.branch}
    places = {"jobs_time": jobs_time, "outcomes": listed(sorted(outcomes)), "until": repr(until)}
    return [
        LastRun(
            node_id=node_id, at=at, devices=devices, runner=runner, is_pretended=is_pretended, run=run, job=job,
            worker=worker, commit=commit, outcome=HistoryOutcome(outcome), ranks=ranks,
        )
        for node_id, at, devices, runner, is_pretended, run, job, worker, commit, outcome, ranks
        in database.rows(sql("executions", "latest", **places), given)
    ]  # fmt: skip


def all_cases(database: Database, repository: str) -> list[str]:
    """Node ids of every test case that was ever seen, run or not; of one repository, if it is named."""
    return [node_id for (node_id,) in database.rows(sql("executions", "cases"), {"repository": repository})]
