"""Runs what a script recorded or submitted."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sooner.cli.wiring import execute
from sooner.model.errors import SoonerError, UsageError
from sooner.model.outcomes import ExitCode
from sooner.plan.dependence import dependence_notes
from sooner.plan.invocations import keys_of, read_invocations, units_of
from sooner.plan.submitted import units_of_submissions
from sooner.report.wording import counted
from sooner.run.recording import record
from sooner.run.submissions import Submission, put_back, take

_MOST_NOTES: Final = 5


def run_script(script: Path, arguments: Sequence[str], cli: Mapping[str, Any]) -> ExitCode:
    """Record a script, then run what it recorded; a script that fails by itself makes the run fail.

    Raises:
        SoonerError: The script cannot be recorded, or what it recorded cannot be run.
    """
    if script.suffix == ".toml":
        raise UsageError(f"{script} is a plan, and no shell script: `sooner run {script}` runs it")
    env = dict(os.environ)
    stdout = sys.stderr if cli.get("as_json") else None
    recording = record(script, args=arguments, env=env, cwd=Path.cwd(), stdout=stdout)
    invocations = read_invocations(recording.calls, script=recording.script, script_text=recording.text)
    plan = units_of(invocations, base_env=env, source=str(script))
    notes = dependence_notes(
        recording.text, invocations, keys=keys_of(invocations, base_env=env), source=recording.script
    )
    gone = tuple(
        f"{unit.key} ran in {unit.cwd}, which is gone now that the script has ended (a `trap ... EXIT`?): it will fail"
        for unit in plan.units
        if not Path(unit.cwd).is_dir()
    )
    _report_notes((*gone, *plan.notes, *notes))
    sys.stderr.write(f">>> {script} recorded {counted(len(plan.units), 'test run')}, exit code {recording.exit_code}\n")
    if not plan.units:
        sys.stderr.write(
            "sooner: no call of pytest, python -m pytest or torchrun was recorded (others: `sooner submit`)\n"
        )
    code = execute(plan, cli)
    if recording.exit_code and code in (ExitCode.ALL_PASSED, ExitCode.NOTHING_TO_RUN):
        sys.stderr.write(f"sooner: {script} itself ended with exit code {recording.exit_code}: see its output above\n")
        return ExitCode.SOME_FAILED
    return code


def run_submitted(queue: str, cli: Mapping[str, Any]) -> ExitCode:
    """Run what the calling script submitted; where it cannot begin, all of it waits for the next `sooner wait`.

    Raises:
        SoonerError: The spool cannot be used, or what was submitted cannot be run.
    """
    taken = take(env=os.environ, queue=queue)
    report_dropped(taken.dropped)
    if not taken.submissions:
        sys.stderr.write("sooner: nothing was submitted: `sooner submit -- COMMAND` does that\n")
        return ExitCode.NOTHING_TO_RUN
    begun: list[bool] = []
    try:
        plan = units_of_submissions(taken.submissions, base_env=dict(os.environ), source="sooner submit")
        _report_notes(plan.notes)
        return execute(plan, cli, begin=lambda: begun.append(True))
    except SoonerError:
        if not begun:
            put_back(taken.submissions, env=os.environ)
        raise


def _report_notes(notes: Sequence[str]) -> None:
    """Say what the user must know; of many places of one script the first few, unless the CI job is being debugged."""
    most = len(notes) if os.environ.get("RUNNER_DEBUG") == "1" else _MOST_NOTES
    for note in notes[:most]:
        sys.stderr.write(f"sooner: {note}\n")
    if len(notes) > most:
        sys.stderr.write(f"sooner: ... and {len(notes) - most} more such places; RUNNER_DEBUG=1 lists all\n")


def report_dropped(dropped: Sequence[Submission]) -> None:
    """Say which submissions nobody can wait for any more."""
    if dropped:
        what = counted(len(dropped), "command")
        sys.stderr.write(f"sooner: dropped {what} submitted by scripts that ended without `sooner wait`\n")
