"""What `sooner trunk digest` does: reads the history, sums up, prints."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

import click
import msgspec
from msgspec import Struct

from sooner.cli.flakes import window_of
from sooner.cli.histories import history_at, when_it_ends
from sooner.cli.settings import area_settings
from sooner.history import History, Where, check_named, check_one_repository, left_out
from sooner.model.outcomes import ExitCode

if TYPE_CHECKING:
    from sooner.analysis.metrics.facts import Facts
    from sooner.analysis.trunk.digest import Broke, Digest, Landed
    from sooner.analysis.trunk.flaky import Flaky

_DAY_S: Final = 86_400.0
_WEEK_S: Final = 7 * _DAY_S
_BEFORE_S: Final = 14 * _DAY_S
"""What happened earlier is looked at too: what was red already, what is flaky."""
_REVERTED_WITHIN_S: Final = 30 * _DAY_S
"""Commits so much earlier are looked for when one is reverted."""


class Order(Struct, frozen=True, kw_only=True):
    """What was asked."""

    root: str
    where: Where
    required: tuple[str, ...]
    areas: dict[str, tuple[str, ...]]
    form: str
    limit: int
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """From the command line and `[tool.sooner.areas]`.

        Raises:
            UsageError: A time that is not understood, or a history that is not there.
        """
        return cls(
            root=history_at(options["root"]),
            where=window_of(options, repository=options["repository"], branch=options["branch"]),
            areas=area_settings(),
            **{name: options[name] for name in ("required", "form", "limit", "as_json")},
        )


def show(order: Order) -> int:
    """Sum up and print; the exit code says whether there was anything."""
    from sooner.report.digest import digest_markdown, digest_text

    found = digest_of(order)
    if order.as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=1).decode())
    else:
        click.echo((digest_markdown if order.form == "markdown" else digest_text)(found, order.limit))
    told = found.commits or found.broke or found.flaky or any(one.n for one in found.signal_times)
    is_empty = not (told or _has_reports(order))
    if is_empty:
        click.echo(f"the history has nothing of that time: {when_it_ends(order.root)}", err=True)
    return int(ExitCode.NOTHING_TO_RUN if is_empty else ExitCode.ALL_PASSED)


def _has_reports(order: Order) -> bool:
    """Whether tests ran within the time: reports alone tell of no commit that landed, but they are something."""
    with History(order.root) as history:
        where = msgspec.structs.replace(order.where, branch="")
        return len(history.columns("tests", ["outcome"], where, ordered=False)) > 0


def digest_of(order: Order) -> "Digest":
    """Everything about the time that was asked for."""
    from sooner.analysis.metrics.load import job_facts
    from sooner.analysis.trunk.digest import Digest, areas_of, undone_in
    from sooner.analysis.trunk.load_digest import landed
    from sooner.analysis.trunk.load_jobs import trunk_of

    with History(order.root) as history:
        where = order.where
        check_named(history, where)
        for workflow in order.required:
            check_named(history, Where(workflow=workflow))
        for note in left_out(history, where):
            click.echo(f"note: {note}", err=True)
        since, until = where.since or 0.0, where.until or 0.0
        everywhere = msgspec.structs.replace(where, branch="", since=since - _REVERTED_WITHIN_S)
        check_one_repository(history, everywhere, "jobs", "tests", "commits")
        if not where.branch:
            where = msgspec.structs.replace(where, branch=trunk_of(history, _since(where, since - _BEFORE_S)))
        earlier = landed(history, msgspec.structs.replace(where, since=since - _REVERTED_WITHIN_S))
        now = [commit for commit in earlier if commit.time >= since]
        return Digest(
            since=since,
            until=until,
            branch=where.branch,
            commits=len(now),
            authors=len({commit.author for commit in now if commit.author}),
            areas=tuple(areas_of(now, order.areas)),
            broke=tuple(_broke(history, where, earlier)),
            undone=tuple(undone_in(earlier, since)),
            flaky=tuple(_flaky(history, where)),
            signal_times=tuple(
                _signal_times(job_facts(history, _since(where, since - _WEEK_S)), order.required, since, until)
            ),
        )


def _since(where: Where, since: float) -> Where:
    return msgspec.structs.replace(where, since=since)


def _broke(history: History, where: Where, told: Sequence["Landed"]) -> list["Broke"]:
    from sooner.analysis.trunk.breakages import find_breakages, series_of
    from sooner.analysis.trunk.decide import suspicion_of
    from sooner.analysis.trunk.digest import broke_in
    from sooner.analysis.trunk.facts import Kind
    from sooner.analysis.trunk.load import load_trunk

    since, until = where.since or 0.0, where.until or 0.0
    trunk = load_trunk(history, _since(where, since - _BEFORE_S), kinds=tuple(Kind))
    places = {commit.sha: i for i, commit in enumerate(trunk.commits)}
    if not places:
        return []
    breakages = find_breakages(
        [series_of(signal.key, signal.events, places) for signal in trunk.signals],
        [suspicion_of(commit) for commit in trunk.commits],
    )
    signals = {signal.key: signal for signal in trunk.signals}
    return broke_in(
        breakages, trunk.commits, signals, {commit.sha: commit for commit in told}, since=since, until=until
    )


def _flaky(history: History, where: Where) -> list["Flaky"]:
    """What flaked within the time, with the rate of the two weeks before its end."""
    from sooner.analysis.trunk.flaky import ranking
    from sooner.analysis.trunk.load_digest import runs_of_jobs, runs_of_tests

    since = where.since or 0.0
    wider = _since(where, min(since, (where.until or 0.0) - _BEFORE_S))
    tests, jobs = runs_of_tests(history, wider), runs_of_jobs(history, wider)
    rows = ranking([*tests.runs, *jobs.runs], with_cases=tests.with_cases)
    return [row for row in rows if row.last is None or row.last >= since]


def _signal_times(facts: "Facts", required: Sequence[str], since: float, until: float) -> list[Any]:
    from sooner.analysis.metrics.decide import commit_time_to_signal, job_time_to_signal, queue_time, time_to_red_signal
    from sooner.analysis.trunk.digest import signal_time

    samples = {
        "commit_time_to_signal": commit_time_to_signal(facts, required),
        "time_to_red_signal": time_to_red_signal(facts),
        "job_time_to_signal": job_time_to_signal(facts),
        "queue_time": queue_time(facts),
    }
    return [signal_time(name, some, since, until, _WEEK_S) for name, some in samples.items()]
