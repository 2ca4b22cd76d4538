"""From a warden's report to an attempt: gathers what is known of an end, and judges it."""

import re
from pathlib import Path

from sooner.devices.proof import device_out_of_memory, fault_in_log
from sooner.model.events import Attempt
from sooner.model.outcomes import Outcome
from sooner.model.units import Unit
from sooner.run import clock
from sooner.run.classify import End, classify
from sooner.run.folder import RunFolder
from sooner.run.junit_files import Stamp, keep_cases
from sooner.run.records import kept_junit_path, own_junit_path, tail_of
from sooner.run.supervision.client import Report, decode_wait_status

_TAIL_BYTES = 64 * 1024


def attempt_of(
    report: Report,
    unit: Unit,
    *,
    folder: RunFolder,
    log: str,
    devices: tuple[str, ...],
    started_at: float,
    timeout_s: float,
    asked_to_stop: bool,
    oom_kills: int,
    device_fault: str,
    junit_before: Stamp | None = None,
) -> Attempt:
    """Judge how an attempt ended; `junit_before` is the stamp of its own JUnit file when it started."""
    exit_code, signal = decode_wait_status(report.status) if report.status is not None else (None, None)
    clean = exit_code == 0 and not report.ended_by
    junit = own_junit_path(unit, folder)
    newer_than = min(started_at, clock.as_the_system_tells(started_at), started_at + report.clock_ahead_s)
    kept = kept_junit_path(folder, log)
    has_junit = junit is None or keep_cases(junit, kept, newer_than=newer_than, before=junit_before)
    tail = "" if clean else tail_of(folder.path / log, _TAIL_BYTES)
    end = End(
        exit_code=exit_code,
        signal=signal,
        ended_by=report.ended_by,
        asked_to_stop=asked_to_stop,
        lost=report.error if report.kind == "lost" else "",
        unstartable=report.error if report.kind == "unstartable" else "",
        timeout_s=timeout_s,
        oom_kills=oom_kills,
        tail=tail,
        device_fault=device_fault or fault_in_log(tail),
        device_out_of_memory=device_out_of_memory(tail),
        junit_missing=not has_junit,
    )
    outcome, cause = classify(end)
    if report.survivors:
        outcome, cause = Outcome.WORKER_LOST, f"cannot be killed: {', '.join(report.survivors)}"
    return Attempt(
        outcome=outcome,
        cause=cause,
        devices=devices,
        started_at=started_at,
        ended_at=report.at,
        exit_code=exit_code,
        signal=signal,
        peak_rss_mib=report.peak_rss_mib,
        leaked=report.leaked,
    )


def oom_kill_count() -> int:
    """How many processes the kernel's OOM killer ended since boot, in any memory cgroup; 0 where it does not say."""
    try:
        found = re.search(r"^oom_kill (\d+)$", Path("/proc/vmstat").read_text(encoding="ascii"), re.MULTILINE)
    except OSError:
        return 0
    return int(found.group(1)) if found else 0
