"""The files that tell what a run came to: results.jsonl, junit.xml and trace.json.

junit.xml is complete at every moment: it is written before the first unit starts, with every unit as not run yet, and
replaced as verdicts come in, ever more rarely the longer writing takes. All three are made from the journal's verdicts
alone, so a run whose runner died is completed by the same code (`complete`).
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

import msgspec

from sooner.model.devices import Device
from sooner.model.events import Attempt, Event, Finished, Started, Verdict
from sooner.model.jsonl import decode_event, encode_result, split_lines
from sooner.model.junit import Suite, junit_document
from sooner.model.outcomes import Outcome
from sooner.model.text import decoded
from sooner.model.trace import trace_document
from sooner.model.units import Plan, Unit, UnitKey, unit_key
from sooner.run.folder import RunFolder, log_names, open_regular, write_atomically
from sooner.run.quarantined import Quarantined

TAIL_BYTES: Final = 16 * 1024
"""How much of the log of a unit that did not pass goes into junit.xml; the whole log lies beside it."""
_SHARE_OF_TIME: Final = 20
"""Between two writes of junit.xml at least this many times the duration of the last one passes: at most 5 %."""
_MIN_PAUSE_S: Final = 0.5


class JUnitFile:
    """Keeps junit.xml complete while a run goes on; a listener of events.

    Args:
        folder: Where it lies.
        plan: What is planned: every unit is in the file from the beginning.
        verdicts: Verdicts from before a resume.
    """

    def __init__(self, folder: RunFolder, plan: Plan, verdicts: Mapping[UnitKey, Verdict]) -> None:
        self._folder = folder
        self._units = {unit.key: unit for unit in plan.units}
        self._quarantined = Quarantined(folder)
        self._suites = {unit.key: self._suite(unit, verdicts.get(unit.key)) for unit in plan.units}
        self._not_before = 0.0
        self._writing: asyncio.Future[None] | None = None

    def __call__(self, event: Event) -> None:
        """Take a verdict in; write now and then, in a thread, because devices wait for the event loop."""
        if isinstance(event, Verdict):
            key = unit_key(event.unit, event.variant)
            self._suites[key] = self._suite(self._units[key], event)
            busy = self._writing is not None and not self._writing.done()
            if not busy and time.monotonic() >= self._not_before:
                document = junit_document(list(self._suites.values()))
                self._writing = asyncio.get_running_loop().run_in_executor(None, self._replace, document)

    def _suite(self, unit: Unit, verdict: Verdict | None) -> Suite:
        if verdict is None or not verdict.attempts:
            return Suite(unit, verdict)
        kept = kept_junit_path(self._folder, verdict.log) if unit.junit and verdict.log else None
        file = self._quarantined.cases_of(unit, kept) if kept else None
        passed = verdict.outcome is Outcome.PASSED
        tail = "" if passed else tail_of(self._folder.path / verdict.log, TAIL_BYTES)
        return Suite(unit, verdict, file, tail)

    def write(self) -> None:
        """Replace junit.xml now; on a full disk the last one stays."""
        self._replace(junit_document(list(self._suites.values())))

    def _replace(self, document: str) -> None:
        began = time.monotonic()
        with contextlib.suppress(OSError):
            write_atomically(self._folder.junit, document.encode())
        took = time.monotonic() - began
        self._not_before = time.monotonic() + max(_MIN_PAUSE_S, _SHARE_OF_TIME * took)


def own_junit_path(unit: Unit, folder: RunFolder) -> Path | None:
    """Where a unit writes its own JUnit file, if it does."""
    if not unit.junit:
        return None
    return Path(unit.cwd or os.curdir, unit.junit.replace("{log_dir}", str(folder.logs)))


def kept_junit_path(folder: RunFolder, log: str) -> Path:
    """Where the run keeps its copy of the JUnit file of the unit that has this log."""
    return folder.cases / f"{Path(log).name.removesuffix('.log')}.xml"


def tail_of(path: Path, size: int) -> str:
    """The last `size` bytes of a log as text; empty where there is none."""
    try:
        with open_regular(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - size))
            return decoded(file.read(size))
    except OSError:
        return ""


def read_events(folder: RunFolder) -> list[Event]:
    """Every complete event of a run's journal; a last line that was cut by a crash is left out."""
    try:
        data = folder.events.read_bytes()
    except FileNotFoundError:
        return []
    events = []
    for line in split_lines(data):
        with contextlib.suppress(msgspec.DecodeError):
            events.append(decode_event(line))
    return events


def verdicts_in(events: Iterable[Event]) -> dict[UnitKey, Verdict]:
    """The last verdict of each unit; units that were not run have none (they can still be run)."""
    verdicts: dict[UnitKey, Verdict] = {}
    for event in events:
        if isinstance(event, Verdict) and event.outcome is not Outcome.NOT_RUN:
            verdicts[unit_key(event.unit, event.variant)] = event
    return verdicts


def attempts_in(plan: Plan, events: Iterable[Event], *, now: float) -> dict[UnitKey, tuple[Attempt, ...]]:
    """Attempts of the units that have no verdict: those that ended, and those that were lost with their runner."""
    unsettled = missing_verdicts(plan, events, now=now)
    return {unit_key(verdict.unit, verdict.variant): verdict.attempts for verdict in unsettled if verdict.attempts}


def missing_verdicts(plan: Plan, events: Iterable[Event], *, now: float) -> list[Verdict]:
    """Verdicts for the units that have none: lost with the runner if they were running, else not run."""
    known = list(events)
    have = verdicts_in(known)
    running: dict[UnitKey, Started] = {}
    attempts: dict[UnitKey, list[Attempt]] = {}
    for event in known:
        if isinstance(event, Started):
            running[unit_key(event.unit, event.variant)] = event
        elif isinstance(event, Finished):
            key = unit_key(event.unit, event.variant)
            running.pop(key, None)
            attempts.setdefault(key, []).append(event.result)
    logs = log_names(plan)
    missing = []
    for unit in plan.units:
        if unit.key in have:
            continue
        outcome, cause, tries = Outcome.NOT_RUN, "the run ended before its turn", attempts.get(unit.key, [])
        if started := running.get(unit.key):
            outcome, cause = Outcome.WORKER_LOST, "the runner died while it ran"
            ended_at = max(now, started.at)  # the system's clock may have been set back since
            lost = Attempt(
                outcome=outcome, cause=cause, devices=started.devices, started_at=started.at, ended_at=ended_at
            )
            tries = [*tries, lost]
        missing.append(
            Verdict(
                at=now,
                unit=unit.name,
                variant=unit.variant,
                outcome=outcome,
                cause=cause,
                attempts=tuple(tries),
                duration_s=tries[-1].ended_at - tries[-1].started_at if tries else 0.0,
                log=logs[unit.key] if tries else "",
            )
        )
    return missing


def write_records(
    folder: RunFolder,
    plan: Plan,
    verdicts: Mapping[UnitKey, Verdict],
    devices: Iterable[Device],
    junit: JUnitFile | None = None,
) -> None:
    """Write results.jsonl, junit.xml and trace.json, complete and in plan order.

    Raises:
        OSError: The disk is full; what was there before is untouched.
    """
    ordered = [verdicts[unit.key] for unit in plan.units if unit.key in verdicts]
    write_atomically(folder.results, b"".join(encode_result(verdict) for verdict in ordered))
    (junit or JUnitFile(folder, plan, verdicts)).write()
    rows = [(device.id, device.label) for device in devices]
    write_atomically(folder.trace, msgspec.json.encode(trace_document(ordered, rows)))
