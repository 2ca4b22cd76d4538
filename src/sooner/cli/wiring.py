"""Wires the rooms together for every verb that runs units: devices, order, folder, engine, reports."""

import asyncio
import contextlib
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TextIO

import msgspec
from msgspec import Struct

from sooner import __version__
from sooner.cli.settings import RunSettings, run_settings
from sooner.devices.find import find_devices
from sooner.devices.leases import LeaseBook, lease_root
from sooner.devices.masks import widest_gang
from sooner.devices.proof import Monitor
from sooner.model.devices import Device
from sooner.model.errors import DevicesError, PlanError, RunFolderError, SoonerError, UsageError
from sooner.model.events import Attempt, Event, Verdict
from sooner.model.jsonl import decode_result, split_lines
from sooner.model.outcomes import BROKEN, ExitCode, Outcome, exit_code
from sooner.model.text import printable
from sooner.model.units import Plan, UnitKey, unit_key
from sooner.plan.checks import check_needs
from sooner.plan.durations import expected, merge, read_durations
from sooner.report.summary import Figures, summary_json, summary_text
from sooner.run.engine import Engine, RunOptions
from sooner.run.finish import complete
from sooner.run.folder import (
    RunFolder,
    new_run_path,
    open_regular,
    past_runs,
    prepare_state_folder,
    register_run,
)
from sooner.run.launch import RUN_MARKER
from sooner.run.ports import Ports
from sooner.run.records import JUnitFile, write_records
from sooner.run.supervision.client import Supervisor
from sooner.schedule.bounds import lower_bound
from sooner.schedule.order import assumed_seconds, ranks
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.shard import shard
from sooner.schedule.work import Work, works_of

_STATE: Final = Path(".sooner")
_PAST_RUNS: Final = 5
_SWITCH_S: Final = 0.0005
"""How soon the event loop, for which devices wait, gets its turn while a thread searches for a better order."""


Attempts = Mapping[UnitKey, Sequence[Attempt]]
"""Attempts of units that have no verdict yet."""


class Past(Struct, frozen=True, kw_only=True):
    """What earlier runs tell about the units of a plan."""

    seconds: dict[UnitKey, float] = {}
    failed: frozenset[UnitKey] = frozenset()


class Prepared(Struct, frozen=True, kw_only=True):
    """Everything that is decided before the first unit starts."""

    plan: Plan
    devices: tuple[Device, ...]
    works: tuple[Work, ...]
    notes: tuple[str, ...]
    settings: RunSettings


def prepare(
    plan: Plan,
    cli: Mapping[str, Any],
    *,
    text: str = "",
    settled: Mapping[UnitKey, Verdict] | None = None,
    attempts: Attempts | None = None,
    folder: RunFolder | None = None,
) -> Prepared:
    """Find devices, look up durations, cut the shard, check that everything fits.

    Raises:
        SoonerError: With what is wrong, before anything has started.
    """
    settings = run_settings(cli)
    devices, notes = _devices(settings)
    past = _past(plan, cli.get("durations"), folder)
    plan = _sharded(plan, cli.get("shard"), cli.get("durations"))
    unsettled = msgspec.structs.replace(plan, units=tuple(u for u in plan.units if u.key not in (settled or {})))
    lacking = check_needs(unsettled, devices, text=text)
    if lacking and settings.on_missing == "fail":
        raise lacking[0]
    _check_gangs(plan, devices)
    counts = {key: len(earlier) for key, earlier in (attempts or {}).items()}
    works = works_of(plan, seconds=past.seconds, failed=past.failed, settled=settled or (), attempts=counts)
    return Prepared(plan=plan, devices=devices, works=tuple(works), notes=(*notes, *plan.notes), settings=settings)


def _devices(settings: RunSettings) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    book = LeaseBook(lease_root(os.environ))
    found = find_devices(settings.devices, os.environ, is_taken=lambda device: book.holder_of(device) is not None)
    usable, notes = [], list(found.notes)
    for device in found.devices:
        reason = book.put_aside_reason(device, now=time.time())
        if reason is None:
            usable.append(device)
        else:
            notes.append(f"{device.label} is put aside ({reason}); `sooner devices --clear {device.id}` takes it back")
    if not usable:
        raise DevicesError(f"every device is put aside: {'; '.join(notes)}")
    return tuple(usable), tuple(notes)


def _check_gangs(plan: Plan, devices: Sequence[Device]) -> None:
    widest = widest_gang(devices)
    for unit in plan.units:
        if widest < unit.need.devices <= len(devices):
            raise PlanError(
                f"{unit.name!r} needs {unit.need.devices} devices, but CUDA opens one MIG instance a process",
                source=plan.source,
                line=unit.line,
                hint="give whole GPUs with --devices, or devices = 1",
            )


def _past(plan: Plan, durations: str | None, folder: RunFolder | None) -> Past:
    """Durations from `--durations`, else from the last runs; failures from the last run of each unit."""
    runs = past_runs(_STATE, most=_PAST_RUNS)
    if durations and Path(durations).is_file():
        known = read_durations(Path(durations).read_text(encoding="utf-8"), source=durations)
        return Past(seconds=expected(plan, known), failed=_failed(runs))
    if durations:
        runs = [RunFolder(Path(durations))]
        if not runs[0].results.exists():
            raise UsageError(f"--durations {durations} is neither a JSON file nor a run folder with results.jsonl")
    elif folder is not None and folder.results.exists():
        runs = [folder, *runs]
    samples: dict[UnitKey, list[float]] = {}
    for run in runs:
        for verdict in read_results(run):
            if verdict.outcome is Outcome.PASSED:
                samples.setdefault(unit_key(verdict.unit, verdict.variant), []).append(verdict.duration_s)
    return Past(seconds=expected(plan, merge(samples)), failed=_failed(runs))


def _failed(runs: Sequence[RunFolder]) -> frozenset[UnitKey]:
    last: dict[UnitKey, Outcome] = {}
    for run in runs:
        for verdict in read_results(run):
            last.setdefault(unit_key(verdict.unit, verdict.variant), verdict.outcome)
    return frozenset(key for key, outcome in last.items() if outcome in BROKEN)


def read_results(folder: RunFolder) -> list[Verdict]:
    """The verdicts of a run from its results.jsonl; lines that are not results are left out."""
    verdicts = []
    with contextlib.suppress(OSError):
        for line in split_lines(folder.results.read_bytes()):
            with contextlib.suppress(msgspec.MsgspecError):
                verdicts.append(decode_result(line))
    return verdicts


def _sharded(plan: Plan, spec: str | None, durations: str | None) -> Plan:
    """The part of the plan that this machine runs.

    Balanced by `--durations` alone: what a machine remembers of its own runs would cut the plan differently on each.
    """
    if not spec:
        return plan
    index, slash, count = spec.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise UsageError(f"--shard {spec!r} is not I/N with 1 <= I <= N, for instance 2/4")
    works = works_of(plan, seconds=_past(plan, durations, None).seconds if durations else {})
    keys = set(shard(works, assumed_seconds(works), index=int(index), count=int(count)))
    return msgspec.structs.replace(plan, units=tuple(unit for unit in plan.units if unit.key in keys))


def host_slots() -> int:
    """How many units without a device run at once: one for each CPU that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def scheduler_of(prepared: Prepared) -> Scheduler:
    """The scheduler for what is still to run."""
    return Scheduler(
        prepared.works,
        prepared.devices,
        ranks=ranks(prepared.works, prepared.devices, host_slots=host_slots()),
        policy=prepared.settings.policy,
        retries=prepared.settings.retries,
        host_slots=host_slots(),
    )


def execute(
    plan: Plan,
    cli: Mapping[str, Any],
    *,
    text: str = "",
    folder: RunFolder | None = None,
    verdicts: Mapping[UnitKey, Verdict] | None = None,
    attempts: Attempts | None = None,
) -> ExitCode:
    """Run a plan from its preparation to its reports; returns the exit code.

    Args:
        plan: What to run.
        cli: What the command line gave.
        text: The plan's source, to name lines in errors.
        folder: The folder of the run that is resumed, held; None for a new run.
        verdicts: What the resumed run had already said.
        attempts: Attempts of the resumed run that had no verdict yet.
    """
    target = folder or (RunFolder(Path(cli["out"])) if cli.get("out") else None)
    prepared = prepare(plan, cli, text=text, settled=verdicts, attempts=attempts, folder=target)
    if not prepared.plan.units:
        sys.stderr.write(f"sooner: {plan.source}: nothing to run\n")
        return ExitCode.NOTHING_TO_RUN
    if folder is None:
        with contextlib.suppress(RunFolderError) if target else contextlib.nullcontext():
            prepare_state_folder(_STATE)
        folder = target or RunFolder(new_run_path(_STATE / "runs", time.time()))
        folder.create()
        register_run(_STATE, folder.path)
    _describe(folder, prepared)
    return _run(prepared, folder, dict(verdicts or {}), attempts or {}, as_json=bool(cli.get("as_json")))


def _describe(folder: RunFolder, prepared: Prepared) -> None:
    facts = {
        "sooner": __version__,
        "python": sys.version.split()[0],
        "command_line": [text.encode("utf-8", "backslashreplace").decode() for text in sys.argv],
        "cwd": str(Path.cwd()),
        "began_at": time.time(),
        "settings": prepared.settings,
    }
    folder.write_description(prepared.plan, prepared.devices, facts)


def _run(
    prepared: Prepared, folder: RunFolder, verdicts: dict[UnitKey, Verdict], attempts: Attempts, *, as_json: bool
) -> ExitCode:
    run_id = printable(f"{folder.path.name}-{os.getpid()}")
    supervisors: list[Supervisor] = []
    junit = JUnitFile(folder, prepared.plan, verdicts)
    junit.write()

    def supervisor(on_report: Callable[[Any], None]) -> Supervisor:
        finisher = [
            sys.executable,
            "-P",
            "-m",
            "sooner.run.finish",
            str(folder.path),
        ]  # -P: not from the current folder
        made = Supervisor(marker=f"{RUN_MARKER}={run_id}", finisher=finisher, on_report=on_report)
        made.start()
        supervisors.append(made)
        return made

    _raise_file_limit()
    sys.setswitchinterval(_SWITCH_S)
    root = lease_root(os.environ)
    with _progress(prepared.devices) as progress, contextlib.closing(Monitor(prepared.devices)) as monitor:
        engine = Engine(
            plan=prepared.plan,
            devices=prepared.devices,
            scheduler=scheduler_of(prepared),
            works={work.key: work for work in prepared.works},
            folder=folder,
            book=LeaseBook(root),
            monitor=monitor,
            ports=Ports(root),
            supervisor=supervisor,
            options=RunOptions(
                run_id=run_id,
                host_slots=host_slots(),
                timeout_s=prepared.settings.timeout_s,
                grace_s=prepared.settings.grace_s,
                settle_s=prepared.settings.settle_s,
            ),
            listeners=[junit, progress],
            verdicts=verdicts,
            attempts=attempts,
        )
        try:
            final = asyncio.run(engine.run())
        except BaseException:
            with contextlib.suppress(SoonerError, OSError):  # what went wrong first is what must be told
                complete(folder, now=time.time())
            raise
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)  # while the reports are written; then a signal ends the printing
    notes = _finish(folder, prepared, final, engine, junit)
    code = exit_code((verdict.outcome for verdict in final.values()), interrupted=engine.interrupted)
    ordered = [final[unit.key] for unit in prepared.plan.units]
    ran_before = {id(verdict) for verdict in verdicts.values()}
    figures = figures_of(prepared, [verdict for verdict in ordered if id(verdict) not in ran_before])
    folder.unlock()
    show(ordered, figures, folder, prepared, code=code, notes=notes, as_json=as_json)
    return code


def _raise_file_limit() -> None:
    """Leases and ports are open files: take what the system allows. Units keep the limit that their guardian has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or soft < hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _finish(
    folder: RunFolder, prepared: Prepared, final: Mapping[UnitKey, Verdict], engine: Engine, junit: JUnitFile
) -> tuple[str, ...]:
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
        folder.reserve.unlink(missing_ok=True)
        if not folder.holds_run:  # a unit removed it
            _describe(folder, prepared)
        write_records(folder, prepared.plan, final, prepared.devices, junit)
    except OSError as error:
        raise RunFolderError(
            f"the reports in {folder.path} could not be written ({error.strerror}): make room, then `sooner replay`"
            " completes them from events.jsonl"
        ) from error
    lost = f"{engine.lost_events} events did not get into events.jsonl: the disk was full"
    return (*prepared.notes, lost) if engine.lost_events else prepared.notes


def figures_of(prepared: Prepared, verdicts: Sequence[Verdict]) -> Figures:
    """How long what ran now took, and what bound its real durations set."""
    attempts = [attempt for verdict in verdicts for attempt in verdict.attempts]
    if not attempts:
        return Figures(makespan_s=0.0, bound_s=0.0, sequential_s=0.0)
    took = {
        unit_key(v.unit, v.variant): sum(a.ended_at - a.started_at for a in v.attempts) for v in verdicts if v.attempts
    }
    ran = [msgspec.structs.replace(work, after=()) for work in prepared.works if work.key in took]
    return Figures(
        makespan_s=max(a.ended_at for a in attempts) - min(a.started_at for a in attempts),
        bound_s=lower_bound(ran, took, prepared.devices),
        sequential_s=sum(took.values()),
    )


@contextlib.contextmanager
def _progress(devices: Sequence[Device]) -> Iterator[Callable[[Event], None]]:
    """The live board on a terminal, plain lines elsewhere; always on stderr."""
    from sooner.report.progress import Progress

    if is_live(sys.stderr):
        from sooner.report.board import Board

        with Board(sys.stderr, devices) as board:
            yield board
    else:
        yield Progress(sys.stderr, devices, colour=wants_colour(sys.stderr))


def show(
    verdicts: Sequence[Verdict],
    figures: Figures,
    folder: RunFolder,
    prepared: Prepared,
    *,
    code: ExitCode,
    notes: Sequence[str],
    as_json: bool,
) -> None:
    """Replay the logs and print the summary; who has read enough (`| head`, Ctrl-C) changes no exit code."""
    try:
        with _signals_end_printing():
            _show(verdicts, figures, folder, prepared, code=code, notes=notes, as_json=as_json)
            sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _signals_end_printing() -> Iterator[None]:
    """The run has its exit code: a signal now only says that nobody needs the rest of the output."""

    def enough(*_: object) -> None:
        raise BrokenPipeError

    before = {signum: signal.signal(signum, enough) for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def _show(
    verdicts: Sequence[Verdict],
    figures: Figures,
    folder: RunFolder,
    prepared: Prepared,
    *,
    code: ExitCode,
    notes: Sequence[str],
    as_json: bool,
) -> None:
    """Replay the logs and print the summary; with `as_json` only JSON goes to stdout."""
    from sooner.report.github import annotations, step_summary
    from sooner.report.replay import replay

    github = os.environ.get("GITHUB_ACTIONS") == "true"
    stream: TextIO = sys.stderr if as_json else sys.stdout
    shown = _shown(folder.path)
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    chosen = [v for v in verdicts if prepared.settings.replay == "all" or v.outcome is not Outcome.PASSED]
    if prepared.settings.replay != "none" and chosen:
        replay(
            stream,
            chosen,
            folder.path,
            prepared.devices,
            colour=wants_colour(stream),
            open_log=open_regular,
            github=github,
        )
    text = summary_text(verdicts, figures, shown, code=code, colour=wants_colour(stream), notes=notes)
    stream.write(text)
    if github:
        stream.writelines(f"{line}\n" for line in annotations(verdicts))
        if path := os.environ.get("GITHUB_STEP_SUMMARY"):
            with contextlib.suppress(OSError), Path(path).open("a", encoding="utf-8") as file:
                headline = summary_text(verdicts, figures, shown, code=code, colour=False, notes=()).split("\n")
                file.write(step_summary(verdicts, headline[2]))
    stream.flush()
    if as_json:
        summary = summary_json(verdicts, figures, folder.path, code=code, notes=notes)
        sys.stdout.write(msgspec.json.encode(summary).decode() + "\n")


def _shown(path: Path) -> Path:
    """A path as people want to read it: relative where it lies below the current folder."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def wants_colour(stream: TextIO) -> bool:
    """NO_COLOR wins, then FORCE_COLOR and CLICOLOR_FORCE, then whether it is a terminal that knows colours."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def is_live(stream: TextIO) -> bool:
    """Whether a display that redraws itself makes sense: a real terminal, and no CI."""
    ci = os.environ.get("CI") or os.environ.get("GITHUB_ACTIONS")
    return stream.isatty() and not ci and os.environ.get("TERM") != "dumb"
