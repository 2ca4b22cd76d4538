"""What `sooner rightsize` does: reads needs, durations and jobs, prices every option, proposes, prints, edits."""

import re
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from msgspec import Struct

from sooner.analysis.sizing.decide import Limits, Objective, Priced, Proposal, decide
from sooner.analysis.sizing.options import options as all_options
from sooner.analysis.sizing.placement import Runner, Terms, Test, price
from sooner.analysis.sizing.tests import by_file, with_durations
from sooner.cli import sizing_files as files
from sooner.cli.histories import history_at
from sooner.cli.needs_labels import MODEL
from sooner.cli.sizing_coverage import needs_of
from sooner.model.errors import UsageError
from sooner.model.outcomes import ExitCode
from sooner.report.wording import counted

if TYPE_CHECKING:
    from sooner.analysis.sizing.replay import Pool

_PERIODS = (3.0, 6.0, 12.0, 24.0)
_TARGET_MIN = 60.0
_COUNT = re.compile("[0-9]{1,4}")
"""A number of devices or shards, as options say it."""
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_MOST_JOBS = 256
"""In a matrix: https://docs.github.com/en/actions/reference/limits."""
_SIZE = re.compile(
    rf"(?P<stem>.*\.)(?P<size>[1-9][0-9]{{0,3}})|(?P<named>.*(?:gpus?|{MODEL})(?:[-_:]x?|x))(?P<few>16|[1-9])",
    re.IGNORECASE,
)
"""What a label ends in where that is a number of devices: the 04 of `ubuntu-22.04` is none."""


class Question(Struct, frozen=True, kw_only=True):
    """What was asked."""

    files: tuple[str, ...]
    needs: Path
    durations: Path | None
    runners: tuple[Runner, ...]
    current: tuple[Runner, int] | None
    commits_per_day: float | None
    jobs: Path | None
    root: str
    job: str
    pools: Path | None
    periods: tuple[float, ...]
    limits: Limits
    target: float | None
    setup: float
    packed: bool
    granularity: str
    objective: Objective
    chosen: str | None
    apply: bool
    diff: bool
    config: str | None
    in_job: str | None
    lane_key: str | None
    periodic: str | None
    as_json: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Question":
        """From the options of the command line.

        Raises:
            UsageError: They make no sense together.
        """
        if not options["needs"]:
            raise UsageError("--needs FILE is missing: `sooner needs PATH --json > needs.json` makes it")
        if options["apply"] and options["diff"]:
            raise UsageError("--apply edits, --diff only shows: choose one")
        if (options["apply"] or options["diff"]) and not options["files"]:
            raise UsageError("say which workflow files: sooner rightsize .github/workflows/trunk.yml --diff ...")
        _check_numbers(options)
        _check_lane_key(options["lane_key"])
        runners = tuple(_runner(text) for text in options["runners"])
        if len({runner.devices for runner in runners}) < len(runners):
            raise UsageError("--runner: two labels of one size: name the one that shards shall run on")
        if len({runner.label for runner in runners}) < len(runners):
            raise UsageError("--runner: one label of two sizes: a runner has one number of devices")
        return cls(
            files=tuple(options["files"]),
            needs=Path(options["needs"]),
            durations=Path(options["durations"]) if options["durations"] else None,
            runners=runners,
            current=_current(options["current"], runners),
            jobs=Path(options["jobs"]) if options["jobs"] else None,
            root="" if options["root"] is None else history_at(options["root"]),
            pools=Path(options["pools"]) if options["pools"] else None,
            periods=_periods(options["periods"]),
            limits=Limits(lost=options["allow_loss"], delay_h=options["max_delay"], moved=options["max_moved"]),
            objective=Objective(options["objective"]),
            **{
                name: options[name]
                for name in (
                    "commits_per_day", "job", "target", "setup", "packed", "granularity", "chosen", "apply", "diff",
                    "config", "in_job", "lane_key", "periodic", "as_json",
                )
            },
        )  # fmt: skip


def _check_lane_key(key: str | None) -> None:
    if key is not None and not _KEY.fullmatch(key):
        raise UsageError(f"--lane-key {key!r}: a key of a matrix is letters, digits, - and _, such as devices")


def _check_numbers(options: Mapping[str, Any]) -> None:
    for name in ("max_delay", "allow_loss", "max_moved", "setup"):
        if options[name] is not None and not options[name] >= 0:
            raise UsageError(f"--{name.replace('_', '-')} must not be negative")
    if options["setup"] == inf:
        raise UsageError("--setup inf: must be a number of minutes")
    for name in ("commits_per_day", "target"):
        if options[name] is not None and not 0 < options[name] < inf:
            raise UsageError(f"--{name.replace('_', '-')} {options[name]:g}: must be a number above 0")


def _periods(given: Sequence[float]) -> tuple[float, ...]:
    if not all(0 < hours < inf for hours in given):
        raise UsageError("--period must be above 0 hours")
    return tuple(sorted(set(given))) or _PERIODS


def _runner(text: str) -> Runner:
    count, _, label = text.partition("=")
    if not _COUNT.fullmatch(count) or not label:
        raise UsageError(f"--runner {text!r}: write N=LABEL, such as 4=linux.gpu.4")
    return Runner(devices=int(count), label=label)


def _current(text: str | None, runners: Sequence[Runner]) -> tuple[Runner, int] | None:
    if text is None:
        return None
    label, _, shards = text.rpartition(":")
    if not label or not _COUNT.fullmatch(shards) or not int(shards):
        raise UsageError(f"--current {text!r}: write LABEL:SHARDS, such as linux.gpu.4:3")
    if int(shards) > _MOST_JOBS:
        raise UsageError(f"--current {text!r}: a matrix has {_MOST_JOBS} jobs at most")
    return runner_of(label, runners), int(shards)


def runner_of(label: str, runners: Sequence[Runner]) -> Runner:
    """A runner by its label; its size is told by --runner, or by the number at the label's end.

    Raises:
        UsageError: Neither says it.
    """
    known = next((runner for runner in runners if runner.label == label), None)
    if known is not None:
        return known
    if not (told := _size_of(label)):
        raise UsageError(f"how many devices has {label!r}? say it with --runner N={label}")
    return Runner(devices=told[1], label=label)


def _size_of(label: str) -> tuple[str, int] | None:
    """What comes before the number of devices at the end of a label, and that number."""
    found = _SIZE.fullmatch(label)
    return found and (found["stem"] or found["named"], int(found["size"] or found["few"]))


def show(question: Question) -> int:
    """Compute and print, and edit where that is asked for."""
    from sooner.cli.sizing_workflows import apply_option, current_of, runners_in

    current = question.current
    if current is None and question.files:
        current = current_of(question.files, question.config, question.in_job, question.runners, question.lane_key)
    runners = _runners(question, current, runners_in(question, current[0]) if question.files and current else ())
    record = _record(question)
    notes = list(record.notes)
    tests = _tests(question, notes)
    commits = question.commits_per_day or record.commits_per_day
    if commits is None:
        commits = 1.0
        notes.append("how often the job runs is not known (--commits-per-day): figures are for one commit a day")
    terms = Terms(
        runners=runners,
        commits_per_day=commits,
        target_s=_target(question, tests, current) * 60.0,
        setup_s=question.setup * 60.0,
        packed=question.packed,
    )
    found = all_options(tests, terms, periods_h=question.periods, current=current)
    priced = [_priced(option, tests, terms, record) for option in found]
    proposal = decide(priced, question.objective, question.limits)
    shown = _chosen(question, priced, proposal)
    if question.apply or question.diff:
        return apply_option(question, shown)
    _print(question, priced, proposal, shown, terms, notes)
    return int(ExitCode.ALL_PASSED)


class _Record(Struct, frozen=True, kw_only=True):
    """What jobs tell."""

    pools: "dict[str, Pool]" = {}
    refused: dict[str, str] = {}
    pushes: tuple[float, ...] = ()
    commits_per_day: float | None = None
    notes: tuple[str, ...] = ()


def _record(question: Question) -> _Record:
    if question.jobs is None and not question.root:
        return _Record()
    from sooner.cli.sizing_record import record_of

    pools, refused, pushes, per_day, notes = record_of(question.jobs, question.root, question.job, question.pools)
    return _Record(pools=pools, refused=refused, pushes=pushes, commits_per_day=per_day, notes=tuple(notes))


def _priced(option: Any, tests: Sequence[Test], terms: Terms, record: _Record) -> Priced:
    cost = price(option, tests, terms)
    if not record.pushes:
        return Priced(option=option, price=cost, refused="no jobs are known (--jobs or --history, and --job)")
    from sooner.analysis.sizing.replay import waiting

    labels = {one.runner.label for one in option.lanes}
    for label in sorted(labels & set(record.refused)):
        return Priced(option=option, price=cost, refused=f"{label}: {record.refused[label]}")
    found = waiting(option, record.pools, record.pushes)
    if isinstance(found, str):
        return Priced(option=option, price=cost, refused=found)
    return Priced(option=option, price=cost, waiting=found)


def _runners(question: Question, current: tuple[Runner, int] | None, used: Sequence[Runner]) -> tuple[Runner, ...]:
    """A runner of each size: as asked for, else as the workflows name them, else by the label of the current one."""
    found = {runner.devices: runner for runner in question.runners}
    if current is not None:
        found.setdefault(current[0].devices, current[0])
        if not question.runners and (told := _size_of(current[0].label)):
            found |= {n: Runner(devices=n, label=f"{told[0]}{n}") for n in (1, 2, 4) if n < current[0].devices}
    if not question.runners:
        found |= {one.devices: one for one in used if current is None or one.devices != current[0].devices}
    if not found:
        raise UsageError("say which runners there are: --runner 1=LABEL --runner 2=LABEL --runner 4=LABEL")
    return tuple(runner for _, runner in sorted(found.items()))


def _tests(question: Question, notes: list[str]) -> list[Test]:
    needs = list(needs_of(question.needs).values())
    if not needs:
        raise UsageError(f"{question.needs} holds no tests")
    tests, note = with_durations(needs, _durations(question))
    notes += [note] if note else []
    unknown = sum(not isinstance(test.need.full, int) for test in tests if not test.need.never_runs)
    if unknown:
        told = f"{counted(unknown, 'test')} of unknown full need"
        notes.append(f"{told}: on the largest runner where tests are placed by need, and lost in every option")
    return by_file(tests) if question.granularity == "file" else tests


def _durations(question: Question) -> Mapping[str, float]:
    if question.durations is None:
        return _recorded_durations(question.root) if question.root else {}
    found = files.document(question.durations)
    try:
        durations = msgspec.convert(found, dict[str, float])
    except msgspec.ValidationError as error:
        raise files.SizingFileError(question.durations, f'must be {{"test or file": seconds}}: {error}') from error
    for name, seconds in durations.items():
        if not 0 <= seconds < inf:
            raise files.SizingFileError(question.durations, f"{name} takes {seconds:g} s: that is no duration")
    return durations


def _recorded_durations(root: str) -> Mapping[str, float]:
    from sooner.history import History, Subject

    with History(root) as history:
        found = {name: s for (name, _), s in history.durations(of=Subject.UNITS).items()}
        return found | {name: s for (name, _), s in history.durations(of=Subject.CASES).items()}


def _target(question: Question, tests: Sequence[Test], current: tuple[Runner, int] | None) -> float:
    """Minutes that a shard should take: as asked for, else as they take now, with a tenth of slack."""
    if question.target is not None:
        if question.target <= question.setup:
            raise UsageError(f"--target {question.target:g}: a shard's set-up alone takes {question.setup:g} minutes")
        return question.target
    if current is None:
        return max(_TARGET_MIN, 2 * question.setup)
    total = sum(test.seconds for test in tests) / 60.0
    return question.setup + max(1.0, 1.1 * total / current[1])


def _chosen(question: Question, priced: Sequence[Priced], proposal: Proposal) -> Priced | None:
    if question.chosen is None:
        return proposal.best
    found = next((one for one in priced if one.option.name == question.chosen), None)
    if found is None:
        raise UsageError(f"--option {question.chosen!r}: there are {', '.join(one.option.name for one in priced)}")
    return found


def _print(  # noqa: PLR0917 - everything that there is to show
    question: Question, priced: Sequence[Priced], proposal: Proposal, shown: Priced | None, terms: Terms,
    notes: Sequence[str],
) -> None:  # fmt: skip
    from sooner.report.sizing import options_text

    if question.as_json:
        answer = {
            "objective": question.objective,
            "best": proposal.best.option.name if proposal.best else None,
            "reason": proposal.reason,
            "frontier": proposal.frontier,
            "commits_per_day": terms.commits_per_day,
            "options": [_as_json(one, full=one is shown) for one in priced],
            "notes": notes,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(answer), indent=1).decode())
        return
    for note in notes:
        click.echo(f"note: {note}", err=True)
    click.echo(options_text(priced, proposal, shown))


def _as_json(one: Priced, *, full: bool) -> dict[str, Any]:
    """An option; the tests of each shard only where it is the one that is proposed or asked for."""
    lanes = [
        {
            "runner": lane.runner.label,
            "devices": lane.runner.devices,
            "every_h": lane.every_h,
            "tests": len(lane.tests),
            "shards": [
                {"seconds": wall, "count": len(part), **({"tests": part} if full else {})}
                for part, wall in zip(lane.shards, lane.walls_s, strict=True)
            ],
        }
        for lane in one.option.lanes
    ]
    return {
        "name": one.option.name, "lanes": lanes, **msgspec.to_builtins(one.price),
        "waiting": msgspec.to_builtins(one.waiting), "refused": one.refused,
    }  # fmt: skip
