"""Everything that is decided before the first unit starts: devices, durations, the shard, whether needs can be met."""

import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from sooner.cli.quarantining import quarantine_file
from sooner.cli.remembering import STATE, history_root, remembered
from sooner.cli.run import read_text
from sooner.cli.settings import RunSettings, run_settings
from sooner.devices.find import usable_devices
from sooner.devices.leases import LeaseBook, lease_root
from sooner.devices.masks import widest_gang
from sooner.model.devices import Device
from sooner.model.errors import PlanError, UsageError
from sooner.model.events import Attempt, Verdict
from sooner.model.jsonl import decode_result, split_lines
from sooner.model.outcomes import BROKEN, Outcome
from sooner.model.units import Plan, UnitKey, unit_key
from sooner.plan.checks import check_needs
from sooner.plan.durations import expected, merge, read_durations
from sooner.run.backends.node import Node
from sooner.run.folder import RunFolder, past_runs
from sooner.schedule.order import assumed_seconds, ranks
from sooner.schedule.scheduler import Scheduler
from sooner.schedule.shard import shard
from sooner.schedule.work import Work, works_of

_PAST_RUNS: Final = 5

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
    quarantine: str = ""
    """Text of the quarantine file; empty where there is none."""
    nodes: tuple[Node, ...] = ()
    """The other machines that `devices` are of; empty where all are this machine's."""


def prepare(
    plan: Plan,
    cli: Mapping[str, Any],
    *,
    text: str = "",
    settled: Mapping[UnitKey, Verdict] | None = None,
    attempts: Attempts | None = None,
    folder: RunFolder | None = None,
    elsewhere: ExitStack | None = None,
) -> Prepared:
    """Look up durations, cut the shard, find devices, check that everything fits.

    Args:
        plan: What to run.
        cli: What the command line gave.
        text: The plan's source, to name lines in errors.
        settled: Verdicts from before a resume.
        attempts: Attempts from before a resume, of units that have no verdict.
        folder: Of the run, where it is known already.
        elsewhere: Lets go of what other machines were asked for; without it nothing but this machine is looked at.

    Raises:
        SoonerError: With what is wrong, before anything has started.
    """
    settings = run_settings(cli)
    quarantine = quarantine_file(settings.quarantine)
    past = _past(plan, cli.get("durations"), folder, history=history_root(settings.history))
    plan = _sharded(plan, cli.get("shard"), cli.get("durations"))
    nodes: tuple[Node, ...] = ()
    if settings.backend == "ray" and elsewhere is not None:
        nodes, notes = _nodes(settings, elsewhere)
        devices = tuple(device for node in nodes for device in node.devices)
    else:
        found = usable_devices(settings.devices, os.environ, LeaseBook(lease_root(os.environ)), now=time.time())
        devices, notes = found.devices, found.notes
        if settings.backend == "ray":
            notes = (*notes, "the devices are this machine's: those of the Ray cluster are asked for when a run begins")
    unsettled = msgspec.structs.replace(plan, units=tuple(u for u in plan.units if u.key not in (settled or {})))
    lacking = check_needs(unsettled, devices, text=text)
    if lacking and settings.on_missing == "fail":
        raise lacking[0]
    _check_gangs(plan, devices)
    counts = {key: len(earlier) for key, earlier in (attempts or {}).items()}
    works = works_of(plan, seconds=past.seconds, failed=past.failed, settled=settled or (), attempts=counts)
    return Prepared(
        plan=plan,
        devices=devices,
        works=tuple(works),
        notes=(*notes, *plan.notes),
        settings=settings,
        quarantine=quarantine,
        nodes=nodes,
    )


def _nodes(settings: RunSettings, elsewhere: ExitStack) -> tuple[tuple[Node, ...], tuple[str, ...]]:
    from sooner.run.backends.ray_nodes import RayCluster

    cluster = RayCluster()
    elsewhere.callback(cluster.close)
    cluster.gather(settings.devices, Path.cwd(), say=lambda text: sys.stderr.write(f">>> {text}\n"))
    return tuple(cluster.nodes), (*cluster.notes, *(note for node in cluster.nodes for note in node.notes))


def _check_gangs(plan: Plan, devices: Sequence[Device]) -> None:
    widest = widest_gang(devices)
    most = max(Counter(device.node for device in devices).values(), default=0)
    for unit in plan.units:
        if widest < unit.need.devices <= most:
            raise PlanError(
                f"{unit.name!r} needs {unit.need.devices} devices, but CUDA opens one MIG instance a process",
                source=plan.source,
                line=unit.line,
                hint="give whole GPUs with --devices, or devices = 1",
            )


def _past(plan: Plan, durations: str | None, folder: RunFolder | None, *, history: str = "") -> Past:
    """Durations from `--durations`, else from the last runs and the history; failures from each unit's last run."""
    runs = past_runs(STATE, most=_PAST_RUNS)
    if durations and Path(durations).is_file():
        known = read_durations(read_text(Path(durations)), source=durations)
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
    known = merge(samples)
    if not durations and any(unit.key not in known for unit in plan.units):
        known = {**known, **remembered(plan, history)}
    return Past(seconds=expected(plan, known), failed=_failed(runs))


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
