"""What `sooner tts` does: reads the history, computes, prints."""

from collections.abc import Mapping
from typing import Any

import click
import msgspec
import numpy as np
from msgspec import Struct

from sooner.analysis.metrics import decide
from sooner.analysis.metrics.facts import Facts, Samples
from sooner.analysis.metrics.load import is_of_seconds, job_facts, measure_samples
from sooner.analysis.metrics.statistics import Estimate, percentile, rate
from sooner.analysis.metrics.summary import By, Group, summarise
from sooner.cli.histories import history_at, when_it_ends
from sooner.cli.spans import check_order, iso_epoch
from sooner.history import History, Where, check_one_repository, unknown_name
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.model.text import there_are
from sooner.report.signal_times import changes_text, groups_text, how_long, overview, plain
from sooner.report.wording import short, unheard


class Question(Struct, frozen=True, kw_only=True):
    """What was asked."""

    root: str
    by: By
    metric: str
    measure: str
    where: Where
    required: tuple[str, ...]
    why: bool
    limit: int
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Question":
        """From the options of the command line.

        Raises:
            UsageError: A name or a date that is not understood, or a history that is not there.
        """
        if options["metric"] not in decide.METRICS:
            raise UsageError(f"--metric {options['metric']!r}: there are {', '.join(decide.METRICS)}")
        root = history_at(options["root"])
        where: dict[str, Any] = {name: options[name] for name in ("repository", "workflow", "branch")}
        where |= {name: _epoch(f"--{name}", options[name]) for name in ("since", "until")}
        check_order(options, where["since"], where["until"])
        return cls(
            root=root,
            by=By(options["by"]),
            where=Where(**where),
            **{name: options[name] for name in ("metric", "measure", "required", "why", "limit", "as_json")},
        )


def _epoch(option: str, text: str) -> float | None:
    if not text:
        return None
    try:
        return iso_epoch(text)
    except ValueError:
        raise UsageError(f"{option} {text!r} is no date such as 2026-11-01") from None


class Answer(Struct, frozen=True, kw_only=True):
    """Everything that is known."""

    metric: str
    by: str
    metrics: dict[str, dict[str, Any] | None]
    red: dict[str, Any]
    flaky: dict[str, Any]
    rows: list[Group]


def show(question: Question) -> int:
    """Compute and print; the exit code says whether there was anything."""
    with History(question.root) as history:
        check_one_repository(history, question.where, "jobs")
        facts = job_facts(history, question.where)
        measured = Samples.of(measure_samples(history, question.measure, question.where) if question.measure else ())
        say = plain if question.measure and not is_of_seconds(history, question.measure) else how_long
        nothing = _nothing(history, question, facts, measured)
    samples = {name: _samples(name, facts, question) for name in decide.METRICS}
    if question.measure:
        samples = {question.measure: measured}
    chosen = question.measure or question.metric
    if not any(len(some) for some in samples.values()):
        click.echo(nothing, err=True)
    elif not len(samples[chosen]):
        others = ", ".join(name for name, some in samples.items() if len(some))
        click.echo(f"no job has the times that {chosen} is made of; --metric takes one of {others}", err=True)
    groups = summarise(samples[chosen], question.by)
    figures = {name: _figures(some) for name, some in samples.items()}
    if question.as_json:
        cells = decide.cells(facts)
        count, red, flaky = len(cells.is_red), int(cells.is_red.sum()), int(cells.is_flaky.sum())
        answer = Answer(
            metric=chosen,
            by=question.by,
            metrics={name: _named(one) for name, one in figures.items()},
            red={"cells": count, "count": red, "rate": rate(red, count)},
            flaky={"cells": count, "count": flaky, "rate": rate(flaky, count)},
            rows=groups,
        )
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=1).decode())
    else:
        rows = groups_text(groups, question.by, question.limit, say)
        parts = [overview(figures, say), f"{unheard(short(chosen))} by {question.by}:", rows]
        if changes := changes_text(groups, question.by, question.limit, why=question.why, say=say):
            parts += ["changes:", changes]
        click.echo("\n\n".join(parts))
    return int(ExitCode.ALL_PASSED if groups else ExitCode.NOTHING_TO_RUN)


def _nothing(history: History, question: Question, facts: Facts, measured: Samples) -> str:
    """What to say if there turns out to be no value at all.

    Raises:
        UsageError: A required workflow that no job is of: nothing could ever be green.
    """
    of_jobs = {facts.workflow.names[code] for code in np.unique(facts.workflow.codes)} - {""}
    for name in question.required if len(facts.attempt) else ():
        if name not in of_jobs:
            raise UsageError(f"--required {name!r}: no job of a workflow of this name; {there_are(name, of_jobs)}")
    if question.measure and not len(measured):
        codes, names = history.columns("measures", ["name"], ordered=False).text("name")
        known = {names[code] for code in np.unique(codes) if code >= 0}
        if question.measure not in known:
            return f"the history has no measure {question.measure!r}: {there_are(question.measure, known)}"
    nothing = (
        "the history has nothing to answer from: no job has the times that are asked for (created, started, completed)"
    )
    if len(facts.attempt):
        return nothing
    if unknown := unknown_name(history, question.where):
        return unknown
    is_of_a_time = question.where.since is not None or question.where.until is not None
    return f"the history has no job of that time: {when_it_ends(question.root)}" if is_of_a_time else nothing


def _samples(name: str, facts: Facts, question: Question) -> Samples:
    if name == "commit_time_to_signal":
        return decide.commit_time_to_signal(facts, question.required)
    if name == "strict_lag":
        return decide.strict_lag(facts, question.required)
    return decide.METRICS[name](facts)


def _figures(samples: Samples) -> tuple[int, Estimate, Estimate] | None:
    seconds = samples.seconds
    return (len(seconds), percentile(seconds, 0.5), percentile(seconds, 0.9)) if len(seconds) else None


def _named(figures: tuple[int, Estimate, Estimate] | None) -> dict[str, Any] | None:
    return None if figures is None else {"n": figures[0], "p50": figures[1], "p90": figures[2]}
