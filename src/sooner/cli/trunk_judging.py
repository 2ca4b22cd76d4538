"""Loads a trunk, asks for decisions about it, and shows them."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self

import click
import msgspec
from msgspec import Struct

from sooner.analysis.trunk.breakages import Breakage, find_breakages, series_of
from sooner.analysis.trunk.decide import decide, suspicion_of
from sooner.analysis.trunk.facts import Answer, Commit, Kind, Policy, Question
from sooner.analysis.trunk.lessons import Lessons
from sooner.analysis.trunk.load import Trunk, load_trunk
from sooner.analysis.trunk.replay import lessons_at, question_at
from sooner.cli.histories import history_at
from sooner.cli.spans import epoch_of
from sooner.history import History, Where, check_named, left_out, unknown_name
from sooner.model.errors import UsageError
from sooner.report.trunk import breakages_as_text, decisions_as_text


class Inquiry(Struct, frozen=True, kw_only=True):
    """What is asked."""

    root: str
    as_of: float | None
    window: int
    kinds: tuple[Kind, ...]
    policy: Policy
    breakages: bool
    where: Where
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """From the command line."""
        if options["window"] < 2:  # noqa: PLR2004 - a culprit has a parent
            raise UsageError(f"--window {options['window']}: at least 2 commits")
        kind = options["kind"]
        return cls(
            root=history_at(options["root"]),
            as_of=None if options["as_of"] is None else epoch_of(options["as_of"], "--as-of"),
            window=options["window"],
            kinds=tuple(Kind) if kind == "all" else (Kind(kind),),
            policy=Policy(options["policy"]),
            breakages=options["breakages"],
            where=Where(repository=options["repository"], branch=options["branch"], workflow=options["workflow"]),
            as_json=options["as_json"],
        )


def show(inquiry: Inquiry) -> int:
    """Print verdicts, or all breakages."""
    with History(inquiry.root) as history:
        check_named(history, inquiry.where)
        trunk = load_trunk(history, inquiry.where, kinds=inquiry.kinds, as_of=inquiry.as_of)
        url = history.folder.url
        is_empty = trunk.ended is None
        notes = [*left_out(history, inquiry.where), *trunk.notes] if not is_empty else trunk.notes
        unknown = unknown_name(history, inquiry.where) if is_empty else ""
        began_later = inquiry.as_of is not None and is_empty
        began_later = began_later and load_trunk(history, inquiry.where, kinds=inquiry.kinds).ended is not None
    for note in notes:
        click.echo(f"note: {note}", err=True)
    if is_empty and not began_later:
        nothing = "no job or test, of a known commit and time, that passed, failed or runs"
        raise UsageError(unknown or f"{url}: {nothing}: `sooner ingest` takes them in")
    if inquiry.breakages:
        return _show_breakages(trunk, as_json=inquiry.as_json)
    as_it_is = trunk.ended or 0.0  # when the record ends, unless somebody asks for another moment
    now, window = as_it_is if inquiry.as_of is None else inquiry.as_of, inquiry.window
    lessons = lessons_at(trunk.commits, trunk.signals, now, window=window, tested=trunk.tested)
    question = question_at(trunk.commits, trunk.signals, now, window=window, lessons=lessons, tested=trunk.tested)
    answer = decide(question, inquiry.policy)
    if inquiry.as_json:
        _print_json(_document(question, answer, lessons))
    else:
        click.echo(decisions_as_text(question, answer))
    return 0


def _document(question: Question, answer: Answer, lessons: Lessons) -> dict[str, object]:
    signals = [{"key": one.key, "kind": one.kind, "events": len(one.events)} for one in question.signals]
    return {
        "now": question.now,
        "commits": [commit.sha for commit in question.commits],
        "signals": signals,
        "paths": {"culprits": lessons.culprits, "gain": round(lessons.gain, 3), "used": bool(lessons.everywhere)},
        "decisions": answer.decisions,
    }


def _show_breakages(trunk: Trunk, *, as_json: bool) -> int:
    places = {commit.sha: i for i, commit in enumerate(trunk.commits)}
    series = [series_of(signal.key, signal.events, places) for signal in trunk.signals]
    found = sorted(find_breakages(series, [suspicion_of(c) for c in trunk.commits]), key=lambda one: one.culprit)
    if as_json:
        _print_json([_breakage(one, trunk.commits) for one in found])
    else:
        click.echo(breakages_as_text(found, trunk.commits))
    return 0


def _breakage(found: Breakage, commits: Sequence[Commit]) -> dict[str, object]:
    return {
        "signal": found.signal,
        "culprit": commits[found.culprit].sha,
        "probability": found.probability,
        "range": [commits[i].sha for i in range(found.first, found.last + 1)],
        "fixed": commits[found.fixed].sha if found.fixed is not None else None,
        "failures": found.failures,
        "is_certain": found.is_certain,
        "is_older": found.is_older,
        "at": commits[found.culprit].time,
    }


def _print_json(value: object) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(value) + b"\n")
