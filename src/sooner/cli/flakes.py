"""What `sooner trunk flaky` does: reads the history, ranks, prints, keeps the quarantine."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click
import msgspec
from msgspec import Struct

from sooner.cli.histories import history_at, when_it_ends
from sooner.cli.quarantining import quarantine_file
from sooner.cli.spans import check_order, moment_of
from sooner.history import History, Where, check_named, check_one_repository, left_out
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.quarantine import Quarantine, quarantine_text, read_quarantine
from sooner.model.text import printable
from sooner.run.folder import write_atomically

if TYPE_CHECKING:
    from sooner.analysis.trunk.flaky import Run
    from sooner.analysis.trunk.load_digest import Found
    from sooner.analysis.trunk.quarantine import Update


class Order(Struct, frozen=True, kw_only=True):
    """What was asked."""

    root: str
    where: Where
    kind: str
    file: str
    check: bool
    failures: int
    commits: int
    limit: int
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """From the command line.

        Raises:
            UsageError: A time that is not understood, options that do not fit, or a history that is not there.
        """
        if options["check"] and not options["file"]:
            raise UsageError("--check needs --write FILE: the quarantine to check")
        if options["failures"] < 1 or options["commits"] < 1:
            raise UsageError("--failures and --commits are at least 1")
        return cls(
            root=history_at(options["root"]),
            where=window_of(options, repository=options["repository"], branch=options["branch"]),
            **{name: options[name] for name in ("kind", "file", "check", "failures", "commits", "limit", "as_json")},
        )


def window_of(options: Mapping[str, Any], **more: str) -> Where:
    """`--since` and `--until`; a span in the former counts back from the latter.

    Raises:
        UsageError: They are not understood, or no time lies between them.
    """
    now = time.time()
    until = moment_of(options["until"], "--until", now=now) if options["until"] else now
    since = moment_of(options["since"], "--since", now=until)
    check_order(options, since, until)
    return Where(since=since, until=until, **more)


def show(order: Order) -> int:
    """Rank, print, and keep the quarantine; the exit code says whether there was anything to rank."""
    from sooner.analysis.trunk.flaky import by_subject, ranking
    from sooner.report.flaky import flaky_text, update_text

    old = _read(order.file)
    runs, attempts, with_cases = _runs(order, old)
    inside = [run for run in runs if run.started is None or run.started >= (order.where.since or 0.0)]
    rows = ranking(inside, with_cases=with_cases)
    update = _updated(order, old, rows, by_subject(runs)) if order.file else None
    if update is not None:
        _write(order.file, update.quarantine)  # before anybody is told that it was
    if not attempts:
        click.echo(f"the history has no run of that time: {when_it_ends(order.root)}, --branch which", err=True)
    if order.as_json:
        answer = {
            "since": order.where.since,
            "until": order.where.until,
            "flaky": rows,
            "quarantine": _told(order, update),
        }
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=1).decode())
    else:
        if attempts:
            click.echo(flaky_text(rows, order.limit))
        if update is not None:
            click.echo("\n" + update_text(update, order.file))
    return int(ExitCode.ALL_PASSED if attempts else ExitCode.NOTHING_TO_RUN)


def _read(file: str) -> Quarantine:
    """What the file holds so far; nothing where there is none."""
    if not file or not Path(file).exists():
        return Quarantine()
    return read_quarantine(quarantine_file(file), source=file)


def _runs(order: Order, old: Quarantine) -> "Found":
    """Runs of the time, and of what is in quarantine since it entered."""
    from sooner.analysis.trunk.load_digest import Found, runs_of_jobs, runs_of_tests

    entered = [entry.since for entry in (*old.tests, *old.jobs) if entry.since is not None]
    first = min((datetime.combine(day, datetime.min.time(), UTC).timestamp() for day in entered), default=None)
    since = order.where.since if first is None else min(first, order.where.since or first)
    where = msgspec.structs.replace(order.where, since=since)
    tests = jobs = Found([], 0)
    tables = {"test": ("tests",), "job": ("jobs",)}.get(order.kind, ("tests", "jobs"))
    with History(order.root) as history:
        check_named(history, where)
        for note in left_out(history, where):
            click.echo(f"note: {note}", err=True)
        check_one_repository(history, msgspec.structs.replace(where, branch=""), *tables)
        if order.kind in ("all", "test"):
            tests = runs_of_tests(history, where, keep=frozenset(entry.id for entry in old.tests))
        if order.kind in ("all", "job"):
            jobs = runs_of_jobs(history, where, keep=frozenset(entry.id for entry in old.jobs))
    return Found([*tests.runs, *jobs.runs], tests.attempts + jobs.attempts, tests.with_cases)


def _updated(order: Order, old: Quarantine, rows: Sequence[Any], runs: Mapping[Any, Sequence["Run"]]) -> "Update":
    from sooner.analysis.trunk.facts import Kind
    from sooner.analysis.trunk.quarantine import Rule, updated

    today = datetime.fromtimestamp(order.where.until or time.time(), UTC).date()
    entering = frozenset({Kind.JOB if order.kind == "job" else Kind.TEST})
    rule = None if order.check else Rule(failures=order.failures, commits=order.commits, kinds=entering)
    kinds = frozenset(Kind) if order.kind == "all" else entering
    return updated(old, rows, runs, today=today, rule=rule, kinds=kinds)


def _told(order: Order, update: "Update | None") -> dict[str, object] | None:
    if update is None:
        return None
    return {
        "file": printable(order.file),
        "tests": len(update.quarantine.tests),
        "jobs": len(update.quarantine.jobs),
        "entered": update.entered,
        "left": update.left,
        "silent": update.silent,
    }


def _write(file: str, quarantine: Quarantine) -> None:
    try:
        write_atomically(Path(file).resolve(), quarantine_text(quarantine).encode())
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}") from None
